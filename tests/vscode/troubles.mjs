/** What can be wrong with the Python, and how a person gets out of it; and a workspace that is not trusted. */

import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { given, scenario } from "./code.mjs";

/** A program of a few lines of shell. */
function program(file, ...lines) {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, `#!/bin/sh\n${lines.join("\n")}\n`);
  chmodSync(file, 0o755);
  return file;
}

await scenario("troubles", { bare: true }, async ({ hands, page, folder, home, open, change }, said) => {
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

  // a server that runs until it is told to crash, and from then on ends as soon as it has started
  const crash = path.join(home, "crash");
  const extension = `${path.join(home, "ext")}/gradvet.gradvet-*/bundled/start.py`;
  const crashing = program(
    path.join(home, "gradvet"),
    `(while test ! -e ${crash}; do sleep 0.2; done; sleep 4; kill $$) > /dev/null 2>&1 &`,
    `exec ${given.python} -I -S ${extension} "$@"`,
  );
  change({ "gradvet.path": [crashing] });
  await hands.command("Gradvet: Restart Server");
  await hands.squiggles.first().waitFor();
  writeFileSync(crash, "");
  await hands.toast(/keeps ending by itself|could not be started/).first().waitFor({ timeout: 240_000 });
  await page.waitForTimeout(3000);
  await hands.shot("crashing");
  assert.equal(await page.locator(".notifications-toasts .notification-list-item").count(), 1);
  said("a server that keeps crashing ends in one message");
  assert.ok(existsSync(folder));
});
