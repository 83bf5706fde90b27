/** The extension: it starts the server and restarts it when the user or a setting asks. All else is the server's. */

import * as path from "node:path";
import * as vscode from "vscode";
import { onInterpreterChange } from "./interpreter";
import { Server } from "./server";

let server: Server | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = vscode.window.createOutputChannel("Gradvet", { log: true });
  const current = new Server(log, path.join(context.extensionPath, "client"));
  server = current;
  const restart = (): Promise<void> => current.restart();
  context.subscriptions.push(
    log,
    vscode.commands.registerCommand("gradvet.restart", restart),
    vscode.commands.registerCommand("gradvet.showLog", () => log.show()),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("gradvet.path") || event.affectsConfiguration("gradvet.interpreter")) {
        void restart();
      }
    }),
  );
  const watcher = await onInterpreterChange(() => void restart());
  if (watcher !== undefined) {
    context.subscriptions.push(watcher);
  }
  await restart();
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}
