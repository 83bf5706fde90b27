/** Starting, stopping and restarting the language server, one after the other. */

import { execFile } from "node:child_process";
import * as vscode from "vscode";
import { LanguageClient, LanguageClientOptions } from "vscode-languageclient/node";
import { chooseInterpreter, findInterpreter, setting } from "./interpreter";

interface Command {
  command: string;
  args: string[];
}

export class Server {
  private client: LanguageClient | undefined;
  private queue: Promise<void> = Promise.resolve();
  private asked = 0;

  /**
   * @param log where everything is told
   * @param cwd a folder without Python files: `python -m` would prefer a `typing.py` of the user's to the real one
   */
  constructor(
    private readonly log: vscode.LogOutputChannel,
    private readonly cwd: string,
  ) {}

  /** Start anew. Calls wait for each other; of several that wait, only the last does anything. */
  restart(): Promise<void> {
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

  private enqueue(step: () => Promise<void>): Promise<void> {
    this.queue = this.queue.then(step).catch((error: unknown) => {
      this.log.error(String(error));
      void this.warn("Gradvet's language server could not be started.");
    });
    return this.queue;
  }

  private async halt(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    // a server that failed to start cannot be stopped; there is nothing left of it to wait for
    await client?.dispose().catch((error: unknown) => this.log.warn(String(error)));
  }

  private async start(): Promise<void> {
    const command = await this.command();
    if (command === undefined) {
      return;
    }
    this.log.info(`starting ${command.command} ${command.args.join(" ")}`);
    const executable = { ...command, options: { cwd: this.cwd } };
    this.client = new LanguageClient("gradvet", "Gradvet", executable, this.options());
    await this.client.start();
    this.log.info("the server is ready");
  }

  /** The command line, or undefined when there is no Gradvet where the settings point. */
  private async command(): Promise<Command | undefined> {
    const executable = setting("path");
    if (executable !== "") {
      return { command: executable, args: ["server"] };
    }
    const { python, from } = await findInterpreter();
    this.log.info(`interpreter ${python}, from ${from}`);
    const problem = await this.missing(python);
    if (problem === undefined) {
      return { command: python, args: ["-m", "gradvet", "server"] };
    }
    this.log.error(problem);
    void this.warn(problem);
    return undefined;
  }

  /** What is wrong with the interpreter, in one sentence, or undefined when Gradvet can run in it. */
  private missing(python: string): Promise<string | undefined> {
    const find = "import importlib.util as u, sys; sys.exit(0 if u.find_spec('gradvet') else 3)";
    return new Promise((resolve) => {
      execFile(python, ["-c", find], { cwd: this.cwd, timeout: 20_000 }, (error) => {
        if (error === null) {
          resolve(undefined);
        } else if (error.code === 3) {
          resolve(`Gradvet is not installed in ${python}. Install it there with "pip install gradvet".`);
        } else {
          this.log.error(error.message);
          resolve(`Gradvet cannot run the Python interpreter ${python}.`);
        }
      });
    });
  }

  private options(): LanguageClientOptions {
    const settings = vscode.workspace.getConfiguration("gradvet");
    return {
      documentSelector: [
        { language: "python", scheme: "file" },
        { language: "python", scheme: "untitled" },
        { language: "python", notebook: "jupyter-notebook" },
        { language: "python", notebook: "interactive" },
      ],
      initializationOptions: { select: settings.get("select"), ignore: settings.get("ignore") },
      outputChannel: this.log,
      traceOutputChannel: this.log,
    };
  }

  private async warn(message: string): Promise<void> {
    const choose = "Choose Interpreter";
    const show = "Show Log";
    const answer = await vscode.window.showWarningMessage(message, choose, show);
    if (answer === choose) {
      await chooseInterpreter();
    } else if (answer === show) {
      this.log.show();
    }
  }
}
