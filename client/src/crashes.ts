/** How often the server has ended by itself: it is started again, but not for ever. */

import { CloseAction, CloseHandlerResult, ErrorAction, ErrorHandler, ErrorHandlerResult } from "vscode-languageclient/node";

const MOST = 4;
const WITHIN = 3 * 60 * 1000; // ms

export class Crashes {
  private times: number[] = [];

  /** The user has taken the matter in hand. */
  forget(): void {
    this.times = [];
  }

  /** Count one; whether that was one too many. */
  tooMany(): boolean {
    const now = Date.now();
    this.times = [...this.times.filter((time) => now - time < WITHIN), now];
    return this.times.length > MOST;
  }
}

/** Leaves it to us what is done when the connection has ended: the client's own ways pop up more than once. */
export class Closing implements ErrorHandler {
  constructor(private readonly ended: () => void) {}

  error(_error: Error, _message: unknown, count: number | undefined): ErrorHandlerResult {
    return { action: (count ?? 0) <= 3 ? ErrorAction.Continue : ErrorAction.Shutdown, handled: true };
  }

  closed(): CloseHandlerResult {
    this.ended();
    return { action: CloseAction.DoNotRestart, message: "The server has ended.", handled: true };
  }
}
