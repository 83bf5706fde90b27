/** What can be wrong with the Python, and how a person gets out of it; and a workspace that is not trusted. */

import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { given, scenario, until } from "./code.mjs";

/** A program of a few lines of shell. */
function program(file, ...lines) {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, `#!/bin/sh\n${lines.join("\n")}\n`);
  chmodSync(file, 0o755);
  return file;
}

await scenario("troubles", { bare: true }, async ({ hands, page, home, open, change }, said) => {
  await open("train.py");
  const message = hands.toast("Gradvet needs Python 3.10 or newer, and there is none on the PATH.");
  await message.waitFor();
  for (const button of ["Choose Interpreter", "Get Python", "Show Log"]) {
    await message.getByRole("button", { name: button }).waitFor();
  }
  await hands.shot("missing");
  assert.equal(await page.locator(".notifications-toasts .notification-list-item").count(), 1);
  said("without a Python there is one message, with buttons");

  await message.getByRole("button", { name: "Choose Interpreter" }).click();
  await page.locator(".settings-editor", { hasText: "Gradvet: Interpreter" }).first().waitFor();
  await hands.shot("settings");
  said("its button leads to the setting");

  change({ "gradvet.interpreter": [program(path.join(home, "old", "python"), "echo 3.8.10")] });
  await hands.toast("the setting gradvet.interpreter names one of version 3.8.10").waitFor();
  await hands.shot("too-old");
  said("a Python that is too old is named, with its version");

  await hands.command("Notifications: Clear All Notifications");
  change({ "gradvet.interpreter": [given.python] });
  await hands.openFile("train.py");
  await hands.goTo(26);
  await hands.squiggles.first().waitFor();
  said("with a right one the server starts at once");

  const only = async (words) => {
    await hands.toast(words).first().waitFor();
    await page.waitForTimeout(3000);
    assert.equal(await page.locator(".notifications-toasts .notification-list-item").count(), 1);
  };
  change({ "gradvet.path": [program(path.join(home, "broken"), "echo nothing here >&2", "exit 1")] });
  await only("Gradvet's server could not be started.");
  await hands.shot("broken");
  said("a server that cannot be started is told of once");
  await hands.command("Notifications: Clear All Notifications");

  const lacks = "Gradvet cannot run in this Python (3.11.2): it lacks the module asyncio of the standard library";
  change({ "gradvet.path": [program(path.join(home, "partial"), `echo '${lacks}' >&2`, "exit 4")] });
  await only("it lacks the module asyncio");
  await hands.toast("it lacks the module").getByRole("button", { name: "Choose Interpreter" }).waitFor();
  said("a Python that is not whole is told of by what it lacks");
  await hands.command("Notifications: Clear All Notifications");

  const pid = path.join(home, "pid");
  const start = `${path.join(home, "ext")}/gradvet.gradvet-*/bundled/start.py`;
  change({ "gradvet.path": [program(path.join(home, "gradvet"), `echo $$ > ${pid}`, `exec ${given.python} -I -S ${start} "$@"`)] });
  for (let crash = 1; crash <= 5; crash++) {
    await until("the server", () => existsSync(pid));
    await hands.squiggles.first().waitFor();
    const server = Number(readFileSync(pid, "utf8"));
    rmSync(pid);
    process.kill(server, "SIGKILL");
    await hands.squiggles.first().waitFor({ state: "detached" });
  }
  await only("Gradvet's server keeps ending by itself, and is not started again.");
  assert.ok(!existsSync(pid));
  await hands.shot("crashing");
  said("a server that keeps crashing is started again four times; then there is one message");

  await hands.toast("keeps ending by itself").getByRole("button", { name: "Restart" }).click();
  await hands.squiggles.first().waitFor();
  said("its button starts it once more");
});
