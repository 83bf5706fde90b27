/** What happens when the server ends by itself: it is started again, but not for ever. */

import { CloseAction, CloseHandlerResult, ErrorAction, ErrorHandler, ErrorHandlerResult } from "vscode-languageclient/node";

const MOST = 4;
const WITHIN = 3 * 60 * 1000; // ms

export class Crashes implements ErrorHandler {
  private readonly times: number[] = [];

  /**
   * @param again the server is about to be started again
   * @param over it crashes too often
   */
  constructor(
    private readonly again: () => void,
    private readonly over: () => void,
  ) {}

  error(_error: Error, _message: unknown, count: number | undefined): ErrorHandlerResult {
    return { action: (count ?? 0) <= 3 ? ErrorAction.Continue : ErrorAction.Shutdown, handled: true };
  }

  closed(): CloseHandlerResult {
    const now = Date.now();
    this.times.push(now);
    if (this.times.filter((time) => now - time < WITHIN).length <= MOST) {
      this.again();
      return { action: CloseAction.Restart, message: "The server ended by itself; it is started again.", handled: true };
    }
    this.over();
    return { action: CloseAction.DoNotRestart, message: "The server keeps ending by itself.", handled: true };
  }
}
