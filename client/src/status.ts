/** The language status item: what the server is doing, behind the `{}` of the status bar. */

import * as vscode from "vscode";
import { SELECTOR } from "./options";

export class Status implements vscode.Disposable {
  private readonly item: vscode.LanguageStatusItem;

  constructor() {
    this.item = vscode.languages.createLanguageStatusItem("gradvet.status", SELECTOR);
    this.item.name = "Gradvet";
    this.off();
  }

  starting(): void {
    this.show("Gradvet", vscode.l10n.t("starting"));
    this.item.busy = true;
  }

  ready(told: string): void {
    this.show("Gradvet", told);
  }

  off(): void {
    this.show("Gradvet", vscode.l10n.t("switched off"));
  }

  broken(why: string): void {
    this.show("Gradvet", why);
    this.item.severity = vscode.LanguageStatusSeverity.Error;
  }

  dispose(): void {
    this.item.dispose();
  }

  private show(text: string, detail: string): void {
    const log = { command: "gradvet.showLog", title: vscode.l10n.t("Show Log") };
    this.item.text = text;
    this.item.detail = detail;
    this.item.busy = false;
    this.item.severity = vscode.LanguageStatusSeverity.Information;
    this.item.command = log;
  }
}
