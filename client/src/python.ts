/** Finding programs, and asking a Python how old it is. */

import { execFile } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import * as path from "node:path";

export const OLDEST: readonly [number, number] = [3, 10];

/** Isolated, and without site-packages: the answer must not depend on what is installed. */
const ASK = ["-I", "-S", "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"];
const PATIENCE = 20_000; // ms; a first start from a cold disk takes its time

/** A program by its name, as an absolute path: never one of the current folder, which may be anybody's. */
export function which(name: string): string | undefined {
  if (/[\\/]/.test(name)) {
    return isFile(name) ? name : undefined;
  }
  const endings = process.platform === "win32" ? [".exe", ""] : [""]; // scripts of cmd.exe cannot be run without it
  for (const folder of (process.env["PATH"] ?? "").split(path.delimiter)) {
    if (path.isAbsolute(folder)) {
      const found = endings.map((ending) => path.join(folder, name + ending)).find(isFile);
      if (found !== undefined) {
        return found;
      }
    }
  }
  return undefined;
}

/** The interpreter of a virtual environment. */
export function pythonIn(environment: string): string | undefined {
  const places = [path.join("bin", "python"), path.join("Scripts", "python.exe")];
  return places.map((place) => path.join(environment, place)).find(existsSync);
}

/** The version, as in "3.11.7"; undefined when it cannot be run. */
export function versionOf(interpreter: string[]): Promise<string | undefined> {
  const [program, ...rest] = interpreter;
  const found = program === undefined ? undefined : which(program);
  if (found === undefined) {
    return Promise.resolve(undefined);
  }
  return new Promise((resolve) => {
    try {
      execFile(found, [...rest, ...ASK], { timeout: PATIENCE, windowsHide: true }, (error, output) => {
        const version = /^\d+\.\d+\.\d+/.exec(output.trim())?.[0];
        resolve(error === null ? version : undefined);
      });
    } catch {
      resolve(undefined); // nothing that the system could run
    }
  });
}

export function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
}

function isFile(name: string): boolean {
  return statSync(name, { throwIfNoEntry: false })?.isFile() ?? false;
}
