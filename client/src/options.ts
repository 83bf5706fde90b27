/** How the client treats documents and what the server says of them. */

import * as vscode from "vscode";
import { LanguageClientOptions, Middleware, vsdiag } from "vscode-languageclient/node";
import { Closing } from "./crashes";
import { copyLog } from "./log";
import { SECTION, serversPart, Settings } from "./settings";

export const SELECTOR = [
  { language: "python", scheme: "file" },
  { language: "python", scheme: "untitled" },
  { language: "python", notebook: "jupyter-notebook" },
  { language: "python", notebook: "interactive" },
];

const SEVERITIES: Record<string, vscode.DiagnosticSeverity> = {
  Error: vscode.DiagnosticSeverity.Error,
  Warning: vscode.DiagnosticSeverity.Warning,
  Information: vscode.DiagnosticSeverity.Information,
  Hint: vscode.DiagnosticSeverity.Hint,
};
const NAMES = ["error", "warning", "info", "hint"]; // by vscode.DiagnosticSeverity

export function options(
  chosen: Settings,
  log: vscode.LogOutputChannel,
  closing: Closing,
  look: (line: string) => void,
): LanguageClientOptions {
  const section = vscode.workspace.getConfiguration(SECTION);
  return {
    documentSelector: SELECTOR,
    initializationOptions: serversPart(JSON.parse(JSON.stringify(section))),
    outputChannel: log,
    traceOutputChannel: log,
    stdioOptions: {
      stdout: (lines) => copyLog(lines, log),
      stderr: (lines) => copyLog(lines, log, look),
    },
    errorHandler: closing,
    initializationFailedHandler: () => false, // told by whoever started it
    diagnosticPullOptions: { onChange: chosen.run === "onType", onSave: true },
    middleware: middleware(chosen),
  };
}

/** Severities and patterns are applied here, whichever way diagnostics come. */
function middleware(chosen: Settings): Middleware {
  const patterns = chosen.ignorePatterns.map(inEveryFolder);
  const ignored = (uri: vscode.Uri): boolean => {
    const document = { uri, languageId: "python" } as vscode.TextDocument; // all that is looked at
    return patterns.some((pattern) => vscode.languages.match({ pattern }, document) > 0);
  };
  const shown = (uri: vscode.Uri, items: vscode.Diagnostic[]): vscode.Diagnostic[] => {
    items.forEach((item) => weigh(item, chosen.severity));
    return ignored(uri) ? [] : items;
  };
  const shownOfAll = (part: vsdiag.WorkspaceDiagnosticReportPartialResult | null | undefined): void => {
    for (const report of part?.items ?? []) {
      if (report.kind === vsdiag.DocumentDiagnosticReportKind.full) {
        report.items = shown(report.uri, report.items);
      }
    }
  };
  return {
    handleDiagnostics: (uri, items, next) => next(uri, shown(uri, items)),
    provideDiagnostics: async (document, previous, token, next) => {
      const report = await next(document, previous, token);
      if (report?.kind === vsdiag.DocumentDiagnosticReportKind.full) {
        report.items = shown(document instanceof vscode.Uri ? document : document.uri, report.items);
      }
      return report;
    },
    provideWorkspaceDiagnostics: async (known, token, tell, next) => {
      const report = await next(known, token, (part) => {
        shownOfAll(part);
        tell(part);
      });
      shownOfAll(report);
      return report;
    },
    provideCodeActions: (document, range, context, token, next) =>
      ignored(document.uri) ? [] : next(document, range, context, token),
    workspace: {
      configuration: async (params, token, next) => {
        const values = await next(params, token);
        return Array.isArray(values)
          ? values.map((value, at) => (params.items[at]?.section === SECTION ? serversPart(value) : value))
          : values;
      },
    },
  };
}

/** A pattern without a folder holds in every folder. */
function inEveryFolder(pattern: string): string {
  return /^(\*\*|\/|[A-Za-z]:)/.test(pattern) ? pattern : `**/${pattern}`;
}

/** The severity that the user wants for this rule, or else for findings of this weight. */
function weigh(item: vscode.Diagnostic, wanted: Record<string, string>): void {
  const rule = typeof item.code === "object" ? String(item.code.value) : String(item.code ?? "");
  const name = wanted[rule] ?? wanted[NAMES[item.severity] ?? ""] ?? "";
  item.severity = SEVERITIES[name] ?? item.severity;
}
