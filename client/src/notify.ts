/** Messages to the user, as many as `gradvet.showNotifications` wants, each with something to press. */

import * as vscode from "vscode";
import { MessageType } from "vscode-languageclient/node";
import { Notifications, settings } from "./settings";

/** What a message can offer. */
export interface Button {
  title: string;
  press(): unknown;
}

const ALLOWED: Record<Notifications, number> = { off: 0, onError: 1, onWarning: 2, always: 4 };

/** Tell the user; what they do not want to be told is in the log all the same. */
export async function notify(type: MessageType, message: string, ...buttons: Button[]): Promise<void> {
  if (type > ALLOWED[settings().notifications]) {
    return;
  }
  const titles = buttons.map((button) => button.title);
  const answer = await shown(type)(message, ...titles);
  await buttons.find((button) => button.title === answer)?.press();
}

function shown(type: MessageType): (message: string, ...titles: string[]) => Thenable<string | undefined> {
  switch (type) {
    case MessageType.Error:
      return vscode.window.showErrorMessage;
    case MessageType.Warning:
      return vscode.window.showWarningMessage;
    default:
      return vscode.window.showInformationMessage;
  }
}
