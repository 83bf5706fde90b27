/** A workspace that is not trusted: the bundled server works, and nothing of the workspace is run. */

import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { scenario } from "./code.mjs";

/** Programs that would be run if anything in the workspace were believed. */
function trap(folder) {
  const sprung = path.join(folder, "sprung");
  const files = [path.join(folder, "gradvet"), path.join(folder, "python3"), path.join(folder, ".venv", "bin", "python")];
  for (const file of files) {
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, `#!/bin/sh\ntouch ${sprung}\n`);
    chmodSync(file, 0o755);
  }
  mkdirSync(path.join(folder, ".vscode"));
  const settings = { "gradvet.path": [files[0]], "gradvet.interpreter": [files[1]], "gradvet.importStrategy": "fromEnvironment" };
  writeFileSync(path.join(folder, ".vscode", "settings.json"), JSON.stringify(settings));
  writeFileSync(path.join(folder, "typing.py"), `open(${JSON.stringify(sprung)}, "w")\n`);
}

const settings = { "security.workspace.trust.startupPrompt": "never" };
await scenario("trust", { trusting: false, prepare: trap, settings }, async ({ hands, page, folder, open }, said) => {
  await open("train.py");
  await hands.goTo(26);
  await hands.squiggles.first().waitFor();
  await page.locator(".part.statusbar", { hasText: "Restricted Mode" }).waitFor();
  await hands.shot("restricted");
  assert.ok(!existsSync(path.join(folder, "sprung")));
  await page.locator("#status\\.languageStatus").click();
  await page.locator(".hover-language-status", { hasText: /Gradvet.*Python 3/ }).waitFor();
  await hands.shot("status");
  said("in restricted mode the bundled server works, and nothing of the workspace is run");
});
