/** What a person does in VS Code: with keys, and looking at what is shown. */

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import path from "node:path";

export class Hands {
  constructor(page, folder, shots) {
    this.page = page;
    this.folder = folder;
    this.shots = shots;
    mkdirSync(shots, { recursive: true });
    this.editor = page.locator(".editor-instance .monaco-editor").first();
    this.squiggles = page.locator(".editor-instance .squiggly-warning, .editor-instance .squiggly-error, .editor-instance .squiggly-info");
    this.input = page.locator(".quick-input-widget input[type=text]");
  }

  /** A picture of the window, or of a part of it. */
  async shot(name, clip) {
    await this.page.waitForTimeout(500);
    await this.page.screenshot({ path: path.join(this.shots, `${name}.png`), ...(clip && { clip }) });
  }

  text(file) {
    return readFileSync(path.join(this.folder, file), "utf8");
  }

  press(...keys) {
    return keys.reduce((before, key) => before.then(() => this.page.keyboard.press(key)), Promise.resolve());
  }

  /** A command by its title in the palette. */
  async command(title) {
    await this.again(async (patience) => {
      await this.press("F1");
      await this.input.waitFor({ state: "visible", timeout: patience });
      await this.input.fill(`>${title}`, { timeout: patience });
      const row = this.page.locator(".quick-input-list .monaco-list-row", { hasText: title });
      await row.first().waitFor({ timeout: patience });
    });
    await this.press("Enter");
  }

  /** The caret to a place; the focus stays in the editor. An editor that is not there yet is waited for. */
  async goTo(line, column = 1) {
    await this.again(async (patience) => {
      await this.press("Control+g");
      await this.input.waitFor({ state: "visible", timeout: patience });
      await this.input.fill(`:${line}:${column}`, { timeout: patience });
      await this.press("Enter");
      await this.input.waitFor({ state: "hidden", timeout: patience });
    });
  }

  /** What a person does again, after Escape, when nothing has come of it. */
  async again(attempt) {
    for (let number = 0; ; number++) {
      try {
        return await attempt(6000);
      } catch (error) {
        if (number === 9) {
          throw error;
        }
        await this.press("Escape");
      }
    }
  }

  /** The caret to the first place of a text in the file on the disk. */
  async goToText(file, text, offset = 0) {
    const before = this.text(file).split(text)[0].split("\n");
    await this.goTo(before.length, before.at(-1).length + 1 + offset);
  }

  /** The file to the front: by Enter, and with the mouse where Enter came too early for the list. */
  async openFile(name) {
    let byMouse = false;
    await this.again(async (patience) => {
      await this.press("Control+p");
      await this.input.waitFor({ state: "visible", timeout: patience });
      await this.input.fill(name);
      const row = this.page.locator(".quick-input-list .monaco-list-row", { hasText: name }).first();
      await row.waitFor({ timeout: patience });
      await (byMouse ? row.click({ timeout: patience }) : this.press("Enter"));
      byMouse = !byMouse;
      await this.page.locator(".tab.active", { hasText: name }).first().waitFor({ timeout: patience });
    });
  }

  /** Ctrl+. at the caret; gives the entry with this title. The menu may be empty while the server is busy. */
  async menu(title) {
    const entry = this.page.locator(".action-widget .monaco-list-row.action", { hasText: title }).first();
    await this.again(async (patience) => {
      await this.press("Control+.");
      await entry.waitFor({ timeout: patience });
    });
    return entry;
  }

  /** Choose the entry with this title, by keys: a layer lies over the menu until the mouse has moved. */
  async quickFix(title, shot) {
    const entry = await this.menu(title);
    if (shot !== undefined) {
      await this.shot(...shot);
    }
    for (let row = 0; row < 20 && !(await entry.getAttribute("class")).includes("focused"); row++) {
      await this.press("ArrowDown");
    }
    await this.press("Enter");
    await this.page.locator(".action-widget").first().waitFor({ state: "hidden" });
  }

  /** Save until the file on the disk is as wanted. */
  async saved(file, wanted) {
    for (let attempt = 0; attempt < 60; attempt++) {
      await this.press("Control+s");
      await this.page.waitForTimeout(500);
      if (wanted.test(this.text(file))) {
        return;
      }
    }
    assert.fail(`${file} on the disk never was ${wanted}:\n${this.text(file)}`);
  }

  /** The hover at the caret, when it says this. */
  hover(words) {
    const shown = this.page.locator(".monaco-hover:visible", { hasText: words }).first();
    return this.again(async (patience) => {
      await this.press("Control+k", "Control+i");
      await shown.waitFor({ timeout: patience });
      return (await shown.innerText()).replace(/\s+/g, " ");
    });
  }

  /** The rows of the Problems panel that say this. */
  problem(words) {
    return this.page.locator(".markers-panel .monaco-list-row", { hasText: words });
  }

  toast(words) {
    return this.page.locator(".notifications-toasts .notification-list-item", { hasText: words });
  }

  hint(words) {
    return this.page.locator(".editor-instance .view-lines span", { hasText: words });
  }
}
