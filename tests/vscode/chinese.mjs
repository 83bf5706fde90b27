/** The extension in Chinese. */

import assert from "node:assert/strict";
import { given, scenario } from "./code.mjs";

await scenario("chinese", { bare: true }, async ({ hands, page, open, change }, said) => {
  // there is no language pack for VS Code itself here: it stays English, and tells its extensions this language
  await page.addInitScript(() =>
    Object.defineProperty(globalThis, "_VSCODE_NLS_LANGUAGE", { get: () => "zh-cn", set: () => undefined }),
  );
  await open("train.py");
  const message = hands.toast("Gradvet 需要 Python 3.10 或更高版本");
  await message.waitFor();
  await message.getByRole("button", { name: "选择解释器" }).waitFor();
  await hands.press("F1");
  await hands.input.fill(">Gradvet");
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "解释 torch 的报错" }).first().waitFor();
  await hands.shot("palette");
  assert.ok(await page.locator(".quick-input-list .monaco-list-row", { hasText: "重启服务器" }).count());
  said("messages and commands are in Chinese");

  await hands.press("Escape");
  await hands.command("Notifications: Clear All Notifications");
  await hands.command("Welcome: Open Walkthrough...");
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "看清 autograd 在做什么" }).first().waitFor();
  await hands.input.fill("autograd");
  await hands.press("Enter");
  const step = page.locator(".getting-started-step", { hasText: "用 Ctrl+. 修复" }).first();
  await step.click();
  await page.locator(".getting-started-media img").first().waitFor();
  await page.waitForTimeout(1500);
  await hands.shot("walkthrough");
  said("so is the walkthrough, with its pictures");

  change({ "gradvet.interpreter": [given.python] });
  await open("train.py");
  await hands.squiggles.first().waitFor();
  await hands.command("Problems: Focus on Problems View");
  await page.locator(".markers-panel .monaco-list-row", { hasText: "计算图" }).first().waitFor();
  await hands.shot("problems");
  said("the server takes VS Code's language: its findings are in Chinese");
});
