/** Starting, stopping and restarting the language server, one after the other. */

import * as vscode from "vscode";
import { LanguageClient, MessageType, ShowMessageNotification, State } from "vscode-languageclient/node";
import { Closing, Crashes } from "./crashes";
import { chooseInterpreter, NoInterpreter } from "./interpreter";
import { launch } from "./launch";
import { Button, notify } from "./notify";
import { options } from "./options";
import { settings } from "./settings";
import { Status } from "./status";

/** What `bundled/start.py` says where the interpreter is not a whole one, as some packages of systems are. */
const LACKS = /^Gradvet cannot run in this Python \(([^)]*)\): it lacks the module (\S+)/;
const LAST_WORDS = 300; // ms in which what a server said before it ended comes in
const DOWNLOADS = "https://www.python.org/downloads/";

/** Its own pop-ups would stand beside ours, which say what can be done. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

export class Server {
  private client: LanguageClient | undefined;
  private queue: Promise<void> = Promise.resolve();
  private asked = 0;
  private lacks: RegExpExecArray | undefined;
  private readonly crashes = new Crashes();

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly log: vscode.LogOutputChannel,
    private readonly status: Status,
  ) {}

  /** Start anew, since the user wants it. */
  restart(): Promise<void> {
    this.crashes.forget();
    return this.again();
  }

  /** Calls wait for each other; of several that wait, only the last does anything. */
  private again(): Promise<void> {
    const turn = ++this.asked;
    return this.enqueue(async () => {
      if (turn === this.asked) {
        await this.halt();
        await this.start();
      }
    });
  }

  /** Stop for good. */
  stop(): Promise<void> {
    this.asked++;
    return this.enqueue(() => this.halt());
  }

  /** Have the server carry out one of its commands; undefined, and word to the user, when it does not run. */
  async ask<Answer>(command: string, ...args: unknown[]): Promise<Answer | undefined> {
    await this.queue;
    if (this.client?.state !== State.Running) {
      void notify(MessageType.Error, vscode.l10n.t("Gradvet's server is not running."), this.restartButton(), this.logButton());
      return undefined;
    }
    return this.client.sendRequest<Answer>("workspace/executeCommand", { command, arguments: args });
  }

  /** A position or an address as the protocol writes it. */
  get convert(): LanguageClient["code2ProtocolConverter"] | undefined {
    return this.client?.code2ProtocolConverter;
  }

  private enqueue(step: () => Promise<void>): Promise<void> {
    this.queue = this.queue.then(step).catch((error: unknown) => this.failed(error));
    return this.queue;
  }

  private async halt(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    this.status.off();
    // a server that failed to start cannot be stopped; there is nothing left of it to wait for
    await client?.dispose().catch((error: unknown) => this.log.warn(String(error)));
  }

  private async start(): Promise<void> {
    const chosen = settings();
    if (!chosen.enabled) {
      this.log.info("switched off by the setting gradvet.enabled");
      return;
    }
    this.status.starting();
    const { executable, told } = await launch(this.context, this.log);
    this.log.info(`starting ${executable.command} ${executable.args?.join(" ") ?? ""}`);
    let started = false;
    // a server that ends while it starts makes the start fail, and that is told there
    const closing = new Closing(() => started && this.ended(client));
    this.lacks = undefined;
    const look = (line: string): void => {
      this.lacks ??= LACKS.exec(line) ?? undefined;
    };
    const client = new QuietClient("gradvet", "Gradvet", executable, options(chosen, this.log, closing, look));
    this.client = client;
    client.onNotification(ShowMessageNotification.type, ({ type, message }) => {
      this.log.info(message);
      void notify(type, message, this.logButton());
    });
    client.onDidChangeState(({ newState }) => {
      if (newState === State.Running && this.client === client) {
        this.log.info("the server is ready");
        this.status.ready(told);
      }
    });
    try {
      await client.start();
    } catch (error) {
      await new Promise((done) => setTimeout(done, LAST_WORDS));
      throw error;
    }
    started = true;
  }

  private failed(reason: unknown): void {
    this.client = undefined;
    const [, version = "", module = ""] = this.lacks ?? [];
    const error =
      this.lacks === undefined
        ? reason
        : new NoInterpreter(
            vscode.l10n.t("Gradvet cannot run in Python {0}: this one is not whole, it lacks the module {1}.", version, module),
          );
    const message = error instanceof Error ? error.message : String(error);
    this.log.error(message);
    this.status.broken(message);
    if (error instanceof NoInterpreter) {
      const choose = { title: vscode.l10n.t("Choose Interpreter"), press: chooseInterpreter };
      const get = {
        title: vscode.l10n.t("Get Python"),
        press: () => vscode.env.openExternal(vscode.Uri.parse(DOWNLOADS)),
      };
      void notify(MessageType.Error, message, choose, get, this.logButton());
    } else {
      void notify(
        MessageType.Error,
        vscode.l10n.t("Gradvet's server could not be started."),
        this.restartButton(),
        this.logButton(),
      );
    }
  }

  /** The server has ended by itself. */
  private ended(client: LanguageClient): void {
    if (client !== this.client) {
      return;
    }
    if (!this.crashes.tooMany()) {
      void this.again();
      return;
    }
    const message = vscode.l10n.t("Gradvet's server keeps ending by itself, and is not started again.");
    this.log.error(message);
    this.status.broken(message);
    void notify(MessageType.Error, message, this.restartButton(), this.logButton());
  }

  private restartButton(): Button {
    return { title: vscode.l10n.t("Restart"), press: () => this.restart() };
  }

  private logButton(): Button {
    return { title: vscode.l10n.t("Show Log"), press: () => this.log.show() };
  }
}
