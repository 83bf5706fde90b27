/** The extension: it starts the server and restarts it when the user or a setting asks. All else is the server's. */

import * as vscode from "vscode";
import { registerCommands } from "./commands";
import { onInterpreterChange } from "./interpreter";
import { Pages } from "./pages";
import { Server } from "./server";
import { concernsUs } from "./settings";
import { Status } from "./status";

let server: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("Gradvet", { log: true });
  const status = new Status();
  const pages = new Pages();
  const current = new Server(context, log, status);
  server = current;
  const restart = (): void => void current.restart();
  context.subscriptions.push(
    log,
    status,
    pages,
    ...registerCommands(context, current, pages, log),
    vscode.workspace.onDidGrantWorkspaceTrust(restart),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (concernsUs(event)) {
        restart();
      }
    }),
  );
  restart();
  // not waited for: the Python extension may take long, and may not be there at all
  void onInterpreterChange(restart).then((watcher) => watcher && context.subscriptions.push(watcher));
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}
