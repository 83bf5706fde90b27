/** Which Python runs the server: the user's choice, the Python extension's, the workspace's, the system's. */

import { existsSync } from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";

/** The part of the Python extension's API that is used here. */
interface PythonApi {
  ready?: Promise<void>;
  environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { id: string; path: string };
    resolveEnvironment(environment: { id: string; path: string }): Promise<
      { executable: { uri?: vscode.Uri } } | undefined
    >;
    onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

const PYTHON_EXTENSION = "ms-python.python";

/** The interpreter to use, and where it was found, for the log. */
export async function findInterpreter(): Promise<{ python: string; from: string }> {
  const chosen = setting("interpreter");
  if (chosen !== "") {
    return { python: chosen, from: "the setting gradvet.interpreter" };
  }
  const active = await activeEnvironment();
  if (active !== undefined) {
    return { python: active, from: "the Python extension" };
  }
  for (const folder of vscode.workspace.workspaceFolders ?? []) {
    const python = pythonIn(path.join(folder.uri.fsPath, ".venv"));
    if (python !== undefined) {
      return { python, from: `.venv of ${folder.name}` };
    }
  }
  return { python: process.platform === "win32" ? "python" : "python3", from: "PATH" };
}

/** Call back when the user chooses another environment in the Python extension. */
export async function onInterpreterChange(changed: () => void): Promise<vscode.Disposable | undefined> {
  const api = await pythonApi();
  return api?.environments.onDidChangeActiveEnvironmentPath(changed);
}

/** Let the user choose: with the Python extension's list where there is one, else in the settings. */
export async function chooseInterpreter(): Promise<void> {
  if (vscode.extensions.getExtension(PYTHON_EXTENSION) !== undefined && setting("interpreter") === "") {
    await vscode.commands.executeCommand("python.setInterpreter");
  } else {
    await vscode.commands.executeCommand("workbench.action.openSettings", "gradvet.interpreter");
  }
}

/** A path from the settings, with `~` and `${workspaceFolder}` filled in; empty when not set. */
export function setting(name: "path" | "interpreter"): string {
  const value = vscode.workspace.getConfiguration("gradvet").get<string>(name, "").trim();
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
  return value.replace(/^~(?=[\\/])/, os.homedir()).replaceAll("${workspaceFolder}", folder);
}

async function activeEnvironment(): Promise<string | undefined> {
  const environments = (await pythonApi())?.environments;
  if (environments === undefined) {
    return undefined;
  }
  const active = environments.getActiveEnvironmentPath(vscode.workspace.workspaceFolders?.[0]?.uri);
  const environment = await environments.resolveEnvironment(active);
  return environment?.executable.uri?.fsPath;
}

async function pythonApi(): Promise<PythonApi | undefined> {
  const extension = vscode.extensions.getExtension<PythonApi>(PYTHON_EXTENSION);
  const api = await extension?.activate();
  await api?.ready;
  return api;
}

function pythonIn(environment: string): string | undefined {
  const places = [path.join("bin", "python"), path.join("Scripts", "python.exe")];
  return places.map((place) => path.join(environment, place)).find(existsSync);
}
