/** The settings that the client itself acts on; the rest is the server's. */

import * as os from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";

export const SECTION = "gradvet";

export type ImportStrategy = "useBundled" | "fromEnvironment";
export type Notifications = "off" | "onError" | "onWarning" | "always";

export interface Settings {
  enabled: boolean;
  /** The command line of another `gradvet`, without `server`; empty to start the one of the strategy. */
  path: string[];
  args: string[];
  /** The command line of the interpreter; empty to look for one. */
  interpreter: string[];
  importStrategy: ImportStrategy;
  cwd: string;
  notifications: Notifications;
  ignorePatterns: string[];
  severity: Record<string, string>;
  run: "onType" | "onSave";
  logLevel: string;
}

/** Of the section, what is none of the server's business. */
const OURS = [
  "args", "cwd", "enabled", "ignorePatterns", "importStrategy", "interpreter", "logLevel", "path", "run", "severity",
  "showNotifications", "trace",
];

export function settings(): Settings {
  const from = vscode.workspace.getConfiguration(SECTION);
  return {
    enabled: from.get("enabled", true),
    path: command(from.get("path")),
    args: words(from.get("args")).map(filledIn),
    interpreter: command(from.get("interpreter")),
    importStrategy: from.get("importStrategy", "useBundled"),
    cwd: filledIn(from.get("cwd", "")),
    notifications: from.get("showNotifications", "onError"),
    ignorePatterns: words(from.get("ignorePatterns")),
    severity: from.get("severity", {}),
    run: from.get("run", "onType"),
    logLevel: from.get("logLevel", "warning"),
  };
}

/** Whether a change concerns what the client acts on, so that the server has to be started anew. */
export function concernsUs(event: vscode.ConfigurationChangeEvent): boolean {
  return OURS.filter((name) => name !== "trace").some((name) => event.affectsConfiguration(`${SECTION}.${name}`));
}

/** The section as the server gets it. */
export function serversPart(section: unknown): unknown {
  if (typeof section !== "object" || section === null) {
    return section;
  }
  return Object.fromEntries(Object.entries(section).filter(([name]) => !OURS.includes(name)));
}

/** A path or an argument with `~` and `${…}` filled in, as in the settings of the Python extensions. */
export function filledIn(value: string): string {
  const folders = vscode.workspace.workspaceFolders ?? [];
  const first = folders[0]?.uri.fsPath ?? os.homedir();
  return value
    .trim()
    .replace(/^~(?=$|[\\/])/, os.homedir())
    .replace(/\$\{(\w+)(?::([^}]*))?\}/g, (whole: string, name: string, of: string | undefined) => {
      switch (name) {
        case "workspaceFolder":
          return of === undefined ? first : (folders.find((folder) => folder.name === of)?.uri.fsPath ?? whole);
        case "userHome":
          return os.homedir();
        case "cwd":
          return first;
        case "env":
          return process.env[of ?? ""] ?? "";
        default:
          return whole;
      }
    });
}

/** A command line: a list, as in the Python extensions, or a lone string. */
function command(value: unknown): string[] {
  return words(typeof value === "string" ? [value] : value).map(filledIn).filter((word) => word !== "").map(absolute);
}

/** The program of a command line that is given relative to the workspace. */
function absolute(word: string, at: number): string {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  const relative = at === 0 && /[\\/]/.test(word) && !path.isAbsolute(word);
  return relative && folder !== undefined ? path.join(folder, word) : word;
}

function words(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((word): word is string => typeof word === "string") : [];
}
