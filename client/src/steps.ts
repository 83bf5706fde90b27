/** A list of places in the code to walk through. */

import * as vscode from "vscode";

/** A place as the server sends it. */
export interface Step {
  text: string;
  location?: { uri: string; range: { start: Point; end: Point } } | null;
}

interface Point {
  line: number;
  character: number;
}

interface Item extends vscode.QuickPickItem {
  step?: Step;
}

/**
 * Let the user walk through the places: each is shown in the editor as the list comes to it. Leaving the list
 * leads back to where they were. `more` is what the last line of the list does.
 */
export async function walk(title: string, steps: Step[], more: { label: string; press(): unknown }): Promise<void> {
  const before = vscode.window.activeTextEditor;
  const selection = before?.selection;
  const pick = vscode.window.createQuickPick<Item>();
  const last: Item = { label: `$(book) ${more.label}` };
  pick.title = title;
  pick.placeholder = vscode.l10n.t("Go through the places with the arrow keys; Enter stays at one");
  pick.items = [...steps.map(item), last];
  pick.onDidChangeActive(([active]) => active?.step !== undefined && void reveal(active.step, true, before?.viewColumn));
  const chosen = await new Promise<Item | undefined>((resolve) => {
    pick.onDidAccept(() => resolve(pick.selectedItems[0]));
    pick.onDidHide(() => resolve(undefined));
    pick.show();
  });
  pick.dispose();
  if (chosen?.step !== undefined) {
    await reveal(chosen.step, false, before?.viewColumn);
  } else if (before !== undefined && selection !== undefined) {
    const editor = await vscode.window.showTextDocument(before.document, before.viewColumn);
    editor.selection = selection;
    editor.revealRange(selection, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
  }
  if (chosen === last) {
    await more.press();
  }
}

function item(step: Step): Item {
  const line = step.location?.range.start.line;
  const label = step.text.replace(/`|\*\*/g, ""); // a list renders no Markdown
  return { label, description: line === undefined ? "" : vscode.l10n.t("line {0}", line + 1), step };
}

/** Show a place in the editor; as a preview the list keeps the focus. */
export async function reveal(step: Step, preview: boolean, viewColumn: vscode.ViewColumn | undefined): Promise<void> {
  if (step.location) {
    const { start, end } = step.location.range;
    const selection = new vscode.Range(start.line, start.character, end.line, end.character);
    const options = { selection, preserveFocus: preview, preview, ...(viewColumn && { viewColumn }) };
    await vscode.window.showTextDocument(vscode.Uri.parse(step.location.uri), options);
  }
}
