/** The command line of the server. */

import * as path from "node:path";
import * as vscode from "vscode";
import { Executable } from "vscode-languageclient/node";
import { findInterpreter } from "./interpreter";
import { settings } from "./settings";

/** What will be run, and what the user may want to know of it. */
export interface Launch {
  executable: Executable;
  told: string;
}

/**
 * `-I -S`: no environment variable, no `.pth` file and nothing that is installed gets into the bundled server.
 * In a workspace that is not trusted there is no other.
 */
export async function launch(context: vscode.ExtensionContext, log: vscode.LogOutputChannel): Promise<Launch> {
  const chosen = settings();
  const server = ["server", "--log-level", chosen.logLevel, ...chosen.args];
  const trusted = vscode.workspace.isTrusted;
  const options = { cwd: trusted && chosen.cwd !== "" ? chosen.cwd : context.extensionPath };
  const [program, ...rest] = trusted ? chosen.path : [];
  if (program !== undefined) {
    return { executable: { command: program, args: [...rest, ...server], options }, told: program };
  }
  const found = await findInterpreter(log);
  log.info(`Python ${found.version}: ${found.command.join(" ")}, from ${found.from}`);
  const [python = "", ...before] = found.command;
  const start = path.join(context.extensionPath, "bundled", "start.py");
  const own = trusted && chosen.importStrategy === "fromEnvironment";
  const how = own ? [start, "--from-environment"] : ["-I", "-S", start];
  return {
    executable: { command: python, args: [...before, ...how, ...server], options },
    told: `Python ${found.version}`,
  };
}
