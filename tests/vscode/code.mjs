/** VS Code with the extension installed, and a page on it. No host but this machine is asked for anything. */

import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { chromium } from "playwright-core";
import { Hands } from "./hands.mjs";

export const HERE = path.dirname(new URL(import.meta.url).pathname);
export const PATIENCE = 90_000; // ms; machines that run tests may have much else to do

/** What the tests were given: { codeServer, chromium, vsix, python, shots }. */
export const given = JSON.parse(process.env.GRADVET_VSCODE);

const QUIET = {
  "telemetry.telemetryLevel": "off",
  "update.mode": "none",
  "extensions.autoUpdate": false,
  "extensions.autoCheckUpdates": false,
  "extensions.ignoreRecommendations": true,
  "workbench.enableExperiments": false,
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
  "chat.disableAIFeatures": true,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "editor.accessibilitySupport": "off",
  "files.autoSave": "off", // in a browser it is on
  "editor.hover.delay": 100,
  "editor.minimap.enabled": false,
  "window.menuBarVisibility": "compact",
};
const NO_GALLERY = { serviceUrl: "http://127.0.0.1:9/", itemUrl: "http://127.0.0.1:9/", resourceUrlTemplate: "http://127.0.0.1:9/", controlUrl: "" };

/**
 * Start it on a copy of the workspace.
 *
 * `settings` go to the user's and to the machine's: a window on a server reads those of scope machine from the
 * latter only. `trusting` switches workspace trust off, as a person does who trusts everything. On a `bare` machine
 * there is no program on the PATH, also not on that of the user's shell, which VS Code asks. `development` names
 * folders of extensions that are loaded as they are, `tests` a program to run in the extension host.
 */
export async function startCode({ name, settings = {}, bare = false, trusting = true, prepare, development = [], tests }) {
  const home = mkdtempSync(path.join(tmpdir(), "gradvet-code-"));
  const folder = path.join(home, "line-fit");
  cpSync(path.join(HERE, "workspace"), folder, { recursive: true });
  prepare?.(folder);
  const data = path.join(home, "data");
  for (const [part, content] of [["User", { ...QUIET, ...settings }], ["Machine", settings]]) {
    mkdirSync(path.join(data, part), { recursive: true });
    const trust = part === "User" ? { "security.workspace.trust.enabled": !trusting } : {};
    writeFileSync(path.join(data, part, "settings.json"), JSON.stringify({ ...trust, ...content }, null, 1));
  }
  writeFileSync(path.join(home, "config.yaml"), "auth: none\ncert: false\n");
  const where = ["--user-data-dir", data, "--extensions-dir", path.join(home, "ext"), "--config", path.join(home, "config.yaml")];
  const own = { ...process.env, HOME: home, XDG_DATA_HOME: path.join(home, "xdg"), EXTENSIONS_GALLERY: JSON.stringify(NO_GALLERY) };
  delete own.PYTHONPATH;
  execFileSync(given.codeServer, [...where, "--install-extension", given.vsix], { env: own, stdio: "pipe" });

  const env = { ...own };
  if (bare) {
    const shell = path.join(home, "shell");
    writeFileSync(shell, '#!/bin/sh\nfor last; do :; done\neval "$last"\n', { mode: 0o755 });
    Object.assign(env, { PATH: "/nonexistent", SHELL: shell });
  }
  const port = await freePort();
  const log = path.join(home, "server.log");
  const out = openSync(log, "w");
  const options = ["--auth", "none", "--bind-addr", `127.0.0.1:${port}`, "--disable-telemetry", "--disable-update-check", "--disable-getting-started-override"];
  if (trusting) {
    options.push("--disable-workspace-trust");
  }
  const server = spawn(given.codeServer, [...where, ...options, folder], { env, stdio: ["ignore", out, out], detached: true });
  const base = `http://127.0.0.1:${port}`;
  await until("code-server", async () => {
    if (server.exitCode !== null) {
      throw new Error(`code-server ended:\n${readFileSync(log, "utf8")}`);
    }
    return (await fetch(`${base}/healthz`).catch(() => undefined))?.ok;
  });

  const browser = await chromium.launch({
    executablePath: given.chromium,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const elsewhere = [];
  await context.route(
    (url) => url.hostname !== "127.0.0.1" && url.protocol.startsWith("http"),
    (route) => {
      elsewhere.push(route.request().url());
      return route.abort();
    },
  );
  const page = await context.newPage();
  if (development.length > 0) {
    await develop(page, (file) => ({ scheme: "vscode-remote", authority: `127.0.0.1:${port}`, path: path.join(HERE, file) }), development, tests);
  }
  page.setDefaultTimeout(PATIENCE);
  const hands = new Hands(page, folder, path.join(given.shots, name));
  const open = async (file) => {
    const url = new URL(base);
    url.searchParams.set("folder", folder);
    if (file !== undefined) {
      url.searchParams.set("payload", JSON.stringify([["openFile", `vscode-remote://127.0.0.1:${port}${path.join(folder, file)}`]]));
    }
    await page.goto(url.href, { waitUntil: "domcontentloaded" });
    await page.locator(".monaco-workbench").waitFor();
  };
  const change = (settings) => writeFileSync(path.join(data, "Machine", "settings.json"), JSON.stringify(settings, null, 1));
  const stop = async () => {
    await browser.close();
    await ended(server);
    rmSync(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  };
  return { page, hands, folder, home, base, port, elsewhere, open, change, stop };
}

/**
 * Load extensions from folders. The workbench takes them from the page's own configuration, and that is changed as
 * it is read: a page whose answer was rewritten on the way would not be allowed to open sockets of this machine.
 */
function develop(page, at, extensions, tests) {
  const options = { extensions: extensions.map(at), ...(tests && { extensionTestsPath: at(tests) }) };
  return page.addInitScript((developmentOptions) => {
    const get = Element.prototype.getAttribute;
    Element.prototype.getAttribute = function (name) {
      const value = get.call(this, name);
      const ours = name === "data-settings" && this.id === "vscode-workbench-web-configuration";
      return ours ? JSON.stringify({ ...JSON.parse(value), developmentOptions }) : value;
    };
  }, options);
}

/** Run a scenario: what goes wrong is told with the last picture, and nothing is left running. */
export async function scenario(name, options, run) {
  const begin = Date.now();
  const said = (text) => console.log(`ok ${((Date.now() - begin) / 1000).toFixed(1)}s ${text}`);
  const code = await startCode({ name, ...options });
  try {
    said("VS Code is there");
    await run(code, said);
    console.log("passed");
  } catch (error) {
    await code.hands.shot("failure").catch(() => undefined);
    console.log(error.stack);
    process.exitCode = 1;
  } finally {
    await code.stop();
  }
}

export async function until(what, check, patience = PATIENCE) {
  for (const end = Date.now() + patience; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 100))) {
    const answer = await check();
    if (answer) {
      return answer;
    }
  }
  throw new Error(`waited in vain for ${what}`);
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

function ended(server) {
  const signal = (name) => {
    try {
      process.kill(-server.pid, name);
    } catch {
      // it has gone
    }
  };
  signal("SIGTERM");
  return new Promise((resolve) => {
    const late = setTimeout(() => {
      signal("SIGKILL");
      resolve();
    }, 5000);
    const done = () => {
      clearTimeout(late);
      resolve();
    };
    if (server.exitCode !== null) {
      done();
    }
    server.once("exit", done);
  });
}
