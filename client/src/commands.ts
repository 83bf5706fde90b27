/** The commands of the palette. What they tell comes from the server. */

import * as vscode from "vscode";
import { Pages } from "./pages";
import { Server } from "./server";
import { reveal, Step, walk } from "./steps";

interface GradientPath {
  title: string;
  markdown: string;
  steps: Step[];
}

interface Explained {
  markdown: string;
  places?: Step[];
}

const LOOKS_LIKE_TORCH = /Traceback|RuntimeError|UserWarning|requires[_ ]grad|\bgrad(ient)?\b|backward|inplace/;

export function registerCommands(
  context: vscode.ExtensionContext,
  server: Server,
  pages: Pages,
  log: vscode.LogOutputChannel,
): vscode.Disposable[] {
  const commands: Record<string, (...args: never[]) => unknown> = {
    restart: () => server.restart(),
    showLog: () => log.show(),
    showGradientPath: () => showGradientPath(server, pages),
    explainError: (message?: string) => explainError(server, pages, message),
    checkWorkspace: () => checkWorkspace(server),
    fixAll: () =>
      vscode.commands.executeCommand("editor.action.sourceAction", { kind: "source.fixAll.gradvet", apply: "first" }),
    openDocumentation: (rule?: string) => openDocumentation(context, rule),
    debugInformation: () => debugInformation(context, server),
  };
  return Object.entries(commands).map(([name, run]) => vscode.commands.registerCommand(`gradvet.${name}`, run));
}

async function showGradientPath(server: Server, pages: Pages): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor?.document.languageId !== "python") {
    void vscode.window.showInformationMessage(vscode.l10n.t("Put the cursor on a value in a Python file first."));
    return;
  }
  const found = await server.ask<GradientPath | null>("gradvet.server.gradientPath", {
    uri: server.convert?.asUri(editor.document.uri),
    position: server.convert?.asPosition(editor.selection.active),
  });
  if (found === undefined) {
    return;
  }
  if (found === null) {
    void vscode.window.showInformationMessage(vscode.l10n.t("Nothing is known of a gradient here."));
    return;
  }
  const page = { label: vscode.l10n.t("Show all of it as a page"), press: () => pages.show(found.title, found.markdown) };
  await walk(found.title, found.steps, page);
}

async function explainError(server: Server, pages: Pages, given?: string): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor?.document.languageId !== "python") {
    void vscode.window.showInformationMessage(vscode.l10n.t("Open the Python file that the error came from first."));
    return;
  }
  const text = given ?? (await pastedMessage());
  if (text === undefined || text.trim() === "") {
    return;
  }
  const uri = server.convert?.asUri(editor.document.uri);
  const found = await server.ask<Explained | null>("gradvet.server.explainError", { uri, text });
  if (found === undefined) {
    return;
  }
  if (found === null) {
    void vscode.window.showInformationMessage(vscode.l10n.t("Gradvet does not know this message."));
    return;
  }
  await pages.show(vscode.l10n.t("Error explained"), found.markdown);
  if (found.places?.[0] !== undefined) {
    await reveal(found.places[0], false, editor.viewColumn);
  }
}

/** What torch said: from the clipboard when that looks like it, since a line of input takes no traceback. */
async function pastedMessage(): Promise<string | undefined> {
  const clipboard = await vscode.env.clipboard.readText();
  const lines = clipboard.trim().split(/\r?\n/);
  if (lines.length > 1 && LOOKS_LIKE_TORCH.test(clipboard)) {
    const pasted = { label: vscode.l10n.t("Explain what is in the clipboard"), detail: lines.at(-1) ?? "" };
    const other = { label: vscode.l10n.t("Enter another message") };
    const answer = await vscode.window.showQuickPick([pasted, other]);
    if (answer !== other) {
      return answer === undefined ? undefined : clipboard;
    }
  }
  const single = lines.length === 1 && LOOKS_LIKE_TORCH.test(clipboard);
  return vscode.window.showInputBox({
    prompt: vscode.l10n.t("torch's message, or the last line of the traceback"),
    placeHolder: "RuntimeError: element 0 of tensors does not require grad",
    value: single ? clipboard.trim() : "",
    ignoreFocusOut: true,
  });
}

/** The server shows how far it is; what it has found stands in the Problems panel. */
async function checkWorkspace(server: Server): Promise<void> {
  const found = await server.ask<{ findings: number; files: number } | null>("gradvet.server.checkWorkspace");
  if (!found) {
    return;
  }
  const show = vscode.l10n.t("Show Problems");
  const message =
    found.findings === 0
      ? vscode.l10n.t("Gradvet has found nothing in the workspace.")
      : vscode.l10n.t("Gradvet's findings in the workspace: {0} (files: {1})", found.findings, found.files);
  const answer = await vscode.window.showInformationMessage(message, ...(found.findings === 0 ? [] : [show]));
  if (answer === show) {
    await vscode.commands.executeCommand("workbench.actions.view.problems");
  }
}

/** The list of rules, or the page of one, as they were when this version was made: no network is needed. */
async function openDocumentation(context: vscode.ExtensionContext, rule?: string): Promise<void> {
  const place =
    typeof rule === "string" && /^[a-z-]+$/.test(rule)
      ? ["bundled", "server", "gradvet", "rules", `${rule.replaceAll("-", "_")}.md`]
      : ["docs", "rules.md"];
  await vscode.commands.executeCommand("markdown.showPreview", vscode.Uri.joinPath(context.extensionUri, ...place));
}

async function debugInformation(context: vscode.ExtensionContext, server: Server): Promise<void> {
  const told = await server.ask<string>("gradvet.server.debugInformation");
  if (told !== undefined) {
    const { version } = context.extension.packageJSON as { version: string };
    const ours = `VS Code ${vscode.version}, extension ${version}, ${process.platform} ${process.arch}`;
    const trust = vscode.workspace.isTrusted ? "trusted" : "not trusted";
    const content = `${told.trimEnd()}\n\n- ${ours}\n- the workspace is ${trust}\n`;
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ language: "markdown", content }));
  }
}
