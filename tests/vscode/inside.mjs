/** The tests of `inside/`, in the extension host of an editor that has nothing but the package installed. */

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { HERE, scenario, until } from "./code.mjs";

const folder = mkdtempSync(path.join(tmpdir(), "gradvet-inside-"));
const result = path.join(folder, "result");
process.env.GRADVET_RESULT = result;

await scenario("inside", {}, async ({ page, base, open }) => {
  // The workbench takes a folder of tests from the page's own configuration. That is changed as the page reads it:
  // a page whose answer was rewritten on the way would not be allowed to open sockets of this machine.
  const at = (file) => ({ scheme: "vscode-remote", authority: new URL(base).host, path: path.join(HERE, "inside", file) });
  const options = { extensions: [at("")], extensionTestsPath: at("index.cjs") };
  await page.addInitScript((developmentOptions) => {
    const get = Element.prototype.getAttribute;
    Element.prototype.getAttribute = function (name) {
      const value = get.call(this, name);
      const ours = name === "data-settings" && this.id === "vscode-workbench-web-configuration";
      return ours ? JSON.stringify({ ...JSON.parse(value), developmentOptions }) : value;
    };
  }, options);
  await open();
  await until("the tests", () => existsSync(result) && readFileSync(result, "utf8") !== "", 300_000);
  const told = readFileSync(result, "utf8");
  console.log(told);
  assert.match(told, /^passed$/m);
});
rmSync(folder, { recursive: true });
