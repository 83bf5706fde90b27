/** Which Python runs the server: the user's choice, the Python extension's, the workspace's, the system's. */

import * as path from "node:path";
import * as vscode from "vscode";
import { isNewEnough, OLDEST, pythonIn, versionOf, which } from "./python";
import { settings } from "./settings";

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

export interface Interpreter {
  command: string[];
  version: string;
  /** Where it was found, for the log. */
  from: string;
}

/** A sentence for the user that says why there is no interpreter. */
export class NoInterpreter extends Error {}

const PYTHON_EXTENSION = "ms-python.python";
const NAMES = ["python3", "python", "py", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10"];

/** An interpreter that is new enough, or an error for the user. The one that they chose is never passed over. */
export async function findInterpreter(log: vscode.LogOutputChannel): Promise<Interpreter> {
  const oldest = OLDEST.join(".");
  const chosen = settings().interpreter;
  if (chosen.length > 0) {
    const version = await versionOf(chosen);
    if (version === undefined) {
      throw new NoInterpreter(
        vscode.l10n.t("Gradvet cannot run {0}, which the setting gradvet.interpreter names.", chosen.join(" ")),
      );
    }
    if (!isNewEnough(version)) {
      throw new NoInterpreter(
        vscode.l10n.t(
          "Gradvet needs Python {0} or newer; the setting gradvet.interpreter names one of version {1}.",
          oldest,
          version,
        ),
      );
    }
    return { command: chosen, version, from: "the setting gradvet.interpreter" };
  }
  const old: string[] = [];
  for await (const { python, from } of candidates()) {
    const version = await versionOf([python]);
    if (version !== undefined && isNewEnough(version)) {
      return { command: [python], version, from };
    }
    log.info(`passing over ${python}, from ${from}: ${version ?? "it does not run"}`);
    if (version !== undefined) {
      old.push(version);
    }
  }
  if (old[0] === undefined) {
    throw new NoInterpreter(vscode.l10n.t("Gradvet needs Python {0} or newer, and there is none on the PATH.", oldest));
  }
  throw new NoInterpreter(
    vscode.l10n.t("Gradvet needs Python {0} or newer; what was found is of version {1}.", oldest, old.join(", ")),
  );
}

/** Call back when the user chooses another environment in the Python extension. */
export async function onInterpreterChange(changed: () => void): Promise<vscode.Disposable | undefined> {
  return (await pythonApi())?.environments.onDidChangeActiveEnvironmentPath(changed);
}

/** Let the user choose: with the Python extension's list where there is one, else in the settings. */
export async function chooseInterpreter(): Promise<void> {
  const extension = vscode.extensions.getExtension(PYTHON_EXTENSION);
  if (extension !== undefined && settings().interpreter.length === 0 && vscode.workspace.isTrusted) {
    await vscode.commands.executeCommand("python.setInterpreter");
  } else {
    // it is a setting of the machine that the code is on: the user's page does not show it in a remote window
    const where = vscode.env.remoteName === undefined ? "openSettings" : "openRemoteSettings";
    await vscode.commands.executeCommand(`workbench.action.${where}`, { query: "gradvet.interpreter" });
  }
}

/** In a workspace that is not trusted only the system's: what lies in the workspace may be anybody's program. */
async function* candidates(): AsyncGenerator<{ python: string; from: string }> {
  if (vscode.workspace.isTrusted) {
    const active = await activeEnvironment();
    if (active !== undefined) {
      yield { python: active, from: "the Python extension" };
    }
    for (const folder of vscode.workspace.workspaceFolders ?? []) {
      const python = pythonIn(path.join(folder.uri.fsPath, ".venv"));
      if (python !== undefined) {
        yield { python, from: `.venv of ${folder.name}` };
      }
    }
  }
  for (const name of NAMES) {
    const python = which(name);
    if (python !== undefined) {
      yield { python, from: "PATH" };
    }
  }
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

/** The Python extension's, where it is installed and works: it is never required. */
async function pythonApi(): Promise<PythonApi | undefined> {
  try {
    const api = await vscode.extensions.getExtension<PythonApi>(PYTHON_EXTENSION)?.activate();
    await api?.ready;
    return api?.environments === undefined ? undefined : api;
  } catch {
    return undefined;
  }
}
