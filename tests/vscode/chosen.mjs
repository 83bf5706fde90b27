/** With the Python extension the server runs in the environment that is chosen there, and follows when that changes. */

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { given, scenario, until } from "./code.mjs";

const folder = mkdtempSync(path.join(tmpdir(), "gradvet-chosen-"));
/** An interpreter that notes when the server is started with it. */
const interpreter = (name) => {
  const file = path.join(folder, name);
  const lines = ["#!/bin/sh", `case "$*" in *start.py*) : > ${file}-started;; esac`, `exec ${given.python} "$@"`];
  writeFileSync(file, `${lines.join("\n")}\n`, { mode: 0o755 });
  return file;
};
const pythons = [interpreter("first"), interpreter("other")];
process.env.STUB_PYTHONS = JSON.stringify(pythons);

await scenario("chosen", { bare: true, development: ["stub-python"] }, async ({ hands, open }, said) => {
  await open("train.py");
  await hands.goTo(26);
  await hands.squiggles.first().waitFor();
  assert.ok(existsSync(`${pythons[0]}-started`));
  assert.ok(!existsSync(`${pythons[1]}-started`));
  said("the server runs in the chosen environment");

  await hands.command("Stub: Choose the Other Python");
  await until("the other Python", () => existsSync(`${pythons[1]}-started`));
  await hands.squiggles.first().waitFor();
  said("and follows when another one is chosen");
});
rmSync(folder, { recursive: true });
