/** A person opens a training script, sees what autograd does, and mends it. */

import assert from "node:assert/strict";
import { PATIENCE, scenario } from "./code.mjs";

const SETTINGS = { "editor.codeActionsOnSave": { "source.fixAll.gradvet": "explicit" } };
// the editor without the bars around it
const EDITOR = { x: 48, y: 35, width: 1000, height: 650 };
const TRACEBACK = `Traceback (most recent call last):
  File "train.py", line 24, in fit
    loss.backward()
RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed).`;
const DETACHED = /total \+= loss\.detach\(\)/;

await scenario("person", {}, async ({ page, hands, open, change, elsewhere }, said) => {
  await open("train.py");
  await hands.editor.locator(".view-line").first().waitFor();
  const shown = Date.now();
  await hands.squiggles.first().waitFor();
  said(`the first squiggle is there ${((Date.now() - shown) / 1000).toFixed(1)}s after the text`);

  await hands.press("Control+b"); // the side bar goes: more room for the code
  await hands.goTo(24);
  await hands.press("Control+Shift+m");
  const row = hands.problem("keeps the graph of every iteration").first();
  await row.waitFor();
  const told = (await row.innerText()).replace(/\s+/g, " ");
  assert.match(told, /`total` keeps the graph of every iteration.*gradvet graph-retained.*\[Ln 26, Col 13\]/);
  const count = page.locator(".composite-bar .action-item", { hasText: "Problems" }).locator(".badge-content");
  assert.equal(await count.innerText(), "4");
  await hands.shot("findings");
  said("the Problems panel lists all four findings");
  await hands.press("Control+Shift+m");

  await hands.press("Control+1"); // back into the editor
  await hands.goToText("train.py", "before = ");
  await hands.hint("detached").first().waitFor();
  said("an inlay hint tells where a gradient is cut");

  await hands.goToText("train.py", "loss.backward()", 1);
  const hover = await hands.hover("requires grad");
  assert.match(hover, /requires grad/);
  await hands.shot("hover", EDITOR);
  said(`the hover tells the state: ${hover.slice(0, 80)}`);
  await hands.press("Escape");
  await hands.goToText("train.py", "total += loss", 1);
  await hands.hover("keeps the graph");
  await hands.shot("hover-finding");
  await hands.press("Escape");
  said("the hover of a finding tells of the rule");

  await hands.goToText("train.py", "total += loss", 1);
  await hands.command("Gradvet: Show Gradient Path");
  const steps = page.locator(".quick-input-list .monaco-list-row");
  await steps.filter({ hasText: "model.out.weight, a leaf that asks for a gradient" }).waitFor();
  for (let step = 0; step < 5; step++) {
    await hands.press("ArrowDown");
  }
  await hands.shot("path", { ...EDITOR, y: 0 });
  await hands.press("Escape");
  said("the gradient's path is walked in a list");

  await page.evaluate((text) => navigator.clipboard.writeText(text), TRACEBACK);
  await hands.command("Gradvet: Explain a torch Error");
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "Explain what is in the clipboard" }).waitFor();
  await hands.press("Enter");
  await page.locator(".tab", { hasText: "Error explained" }).waitFor();
  const preview = page.frameLocator("iframe.webview").frameLocator("iframe");
  await preview.getByText("right fix").first().waitFor();
  await hands.shot("error");
  await hands.press("Control+1");
  await hands.command("View: Close Editors in Other Groups");
  said("a pasted error is explained beside the code");

  await hands.goToText("train.py", "total += loss", 2);
  await hands.quickFix("drop the graph", ["quick-fix", EDITOR]);
  await hands.saved("train.py", DETACHED);
  said("quick fix: .detach()");
  await hands.press("Control+z");
  await hands.saved("train.py", /total \+= loss\n/);
  await hands.squiggles.first().waitFor();
  said("undo brings the finding back");

  await hands.goToText("train.py", "weight.data.mul_", 2);
  await hands.quickFix("Write under torch.no_grad()");
  await hands.saved("train.py", /with torch\.no_grad\(\):\n\s+weight\.mul_\(1 - decay\)/);
  said("quick fix: .data is replaced");

  await hands.goToText("train.py", "(model(x) - y).abs()", 2);
  await hands.quickFix("Run it under torch.no_grad()");
  await hands.saved("train.py", /@torch\.no_grad\(\)\ndef evaluate/);
  said("quick fix: no_grad around evaluation");

  await hands.goToText("train.py", "before.mul_(0.5)", 2);
  await hands.quickFix("Copy before the edit");
  await hands.saved("train.py", /\.detach\(\)\.clone\(\)\n/);
  said("quick fix: .clone() before an edit in place");

  await hands.goToText("train.py", "total += loss");
  await hands.squiggles.first().waitFor();
  change(SETTINGS);
  await hands.saved("train.py", DETACHED);
  await hands.squiggles.first().waitFor({ state: "detached" });
  await hands.shot("mended");
  said("fix all on save mends the rest; no squiggle is left");

  await hands.goToText("train.py", "before = ");
  await hands.hint("detached").first().waitFor();
  change({ "gradvet.inlayHints": { detached: false } });
  await hands.hint("detached").first().waitFor({ state: "detached" });
  change({ "gradvet.inlayHints": { detached: true } });
  await hands.hint("detached").first().waitFor();
  said("inlay hints go and come with the setting");

  change({ "gradvet.ignore": ["leak"] });
  await hands.goToText("train.py", "loss.detach()", 4);
  for (let letter = 0; letter < ".detach()".length; letter++) {
    await hands.press("Delete");
  }
  await hands.saved("train.py", /total \+= loss\n/);
  await page.waitForTimeout(1500);
  assert.equal(await hands.squiggles.count(), 0);
  change({});
  await hands.squiggles.first().waitFor();
  said("a rule is silent while the settings ignore it");

  await hands.command("Gradvet: Restart Server");
  await hands.squiggles.first().waitFor({ state: "detached" });
  await hands.squiggles.first().waitFor();
  said("restart: the finding goes, and comes back");

  await hands.command("Gradvet: Fix All Safe Problems in File");
  await hands.saved("train.py", DETACHED);
  said("fix all in file");

  await hands.command("Gradvet: Check the Workspace");
  await hands.toast("Gradvet's findings in the workspace: 2 (files: 2)").waitFor();
  await hands.shot("workspace");
  await hands.command("Notifications: Clear All Notifications");
  said("the workspace is checked, and what was found is counted");

  await hands.openFile("notes.ipynb");
  await page.locator(".notebookOverlay .squiggly-warning").first().waitFor({ timeout: PATIENCE });
  await hands.shot("notebook");
  said("a cell of a notebook has its finding");
  assert.deepEqual(elsewhere, []);
});
