/** The tests of `inside/`, in the extension host of an editor that has nothing but the package installed. */

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { scenario, until } from "./code.mjs";

const folder = mkdtempSync(path.join(tmpdir(), "gradvet-inside-"));
const result = path.join(folder, "result");
process.env.GRADVET_RESULT = result;

await scenario("inside", { development: ["inside"], tests: "inside/index.cjs" }, async ({ open }) => {
  await open();
  await until("the tests", () => existsSync(result) && readFileSync(result, "utf8") !== "", 420_000);
  const told = readFileSync(result, "utf8");
  console.log(told);
  assert.match(told, /^passed$/m);
});
rmSync(folder, { recursive: true });
