/** The server's log lines in the output channel, each at its own level. */

import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import * as vscode from "vscode";

const LEVEL = /^(DEBUG|INFO|WARNING|ERROR|CRITICAL)\b/;

/** Copy the lines, and show each to whoever looks; one without a level belongs to the line before it. */
export function copyLog(lines: Readable, log: vscode.LogOutputChannel, look?: (line: string) => void): void {
  let level = "ERROR"; // what comes before any log line is Python complaining
  createInterface({ input: lines, crlfDelay: Infinity, terminal: false }).on("line", (line) => {
    look?.(line);
    level = LEVEL.exec(line)?.[1] ?? level;
    if (level === "ERROR" || level === "CRITICAL") {
      log.error(line);
    } else if (level === "WARNING") {
      log.warn(line);
    } else {
      log.info(line); // the setting `gradvet.logLevel` has decided whether it is to be seen
    }
  });
}
