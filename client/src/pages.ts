/** Texts that the server made, shown as rendered pages. */

import * as vscode from "vscode";

const SCHEME = "gradvet";

// the rendered page takes no links to files; their text is told all the same
const FILE_LINK = /\[([^\]]+)\]\(file:[^)]*\)/g;

/** Documents that exist only here, by their address. */
export class Pages implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  readonly onDidChange = this.changed.event;

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.path) ?? "";
  }

  /** Show a text in Markdown, rendered, beside the code; a page of the same title is replaced. */
  async show(title: string, markdown: string): Promise<void> {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${title.replace(/[\\/?#:]/g, " ")}.md` });
    this.texts.set(uri.path, markdown.replace(FILE_LINK, "$1"));
    this.changed.fire(uri);
    await vscode.commands.executeCommand("markdown.showPreviewToSide", uri);
  }

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }
}
