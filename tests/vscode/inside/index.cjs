/** Runs in the extension host, with the `vscode` API. What came out goes to the file that the environment names. */

const assert = require("node:assert/strict");
const fs = require("node:fs");
const vscode = require("vscode");

const PATIENCE = 60_000; // ms

async function until(what, check) {
  for (const end = Date.now() + PATIENCE; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 100))) {
    const answer = await check();
    if (answer) {
      return answer;
    }
  }
  throw new Error(`waited in vain for ${what}`);
}

const codeOf = (diagnostic) => (typeof diagnostic.code === "object" ? diagnostic.code.value : diagnostic.code);
const told = (uri, rule) => vscode.languages.getDiagnostics(uri).find((each) => codeOf(each) === rule);
const actions = (uri, range, kind) => vscode.commands.executeCommand("vscode.executeCodeActionProvider", uri, range, kind, 20);
const set = (name, value) =>
  vscode.workspace.getConfiguration("gradvet").update(name, value, vscode.ConfigurationTarget.Workspace);

/** Change a setting that has the server start anew, and wait until the diagnostics have gone and come. */
async function restartedWith(name, value) {
  let gone = false;
  const watcher = vscode.languages.onDidChangeDiagnostics(() => (gone ||= !told(script, "eval-with-grad")));
  await set(name, value);
  await until("the server to start anew", () => gone && told(script, "eval-with-grad"));
  watcher.dispose();
}

const root = vscode.workspace.workspaceFolders[0].uri;
const script = vscode.Uri.joinPath(root, "train.py");

const tests = {
  "the extension activates with a Python file": async () => {
    await vscode.window.showTextDocument(script);
    const extension = vscode.extensions.getExtension("gradvet.gradvet");
    await until("activation", () => extension.isActive);
    assert.equal(vscode.extensions.getExtension("ms-python.python"), undefined);
  },

  "diagnostics have their rule, its page, their reasons": async () => {
    const found = await until("diagnostics", () => told(script, "graph-retained"));
    assert.equal(found.source, "gradvet");
    assert.equal(found.range.start.line, 25);
    assert.equal(found.severity, vscode.DiagnosticSeverity.Warning);
    assert.match(String(found.code.target), /graph_retained\.md/);
    assert.ok(found.relatedInformation.length > 2);
  },

  "every setting has a text, and every command is there": async () => {
    const { contributes } = vscode.extensions.getExtension("gradvet.gradvet").packageJSON;
    for (const [name, property] of Object.entries(contributes.configuration.properties)) {
      assert.match(property.markdownDescription ?? property.description ?? "", /^[A-Z].+\.$/s, name);
    }
    const commands = await vscode.commands.getCommands(true);
    for (const { command } of contributes.commands) {
      assert.ok(commands.includes(command), command);
    }
  },

  "the first of the fixes is preferred": async () => {
    const found = await actions(script, told(script, "graph-retained").range, vscode.CodeActionKind.QuickFix.value);
    const preferred = found.filter((each) => each.isPreferred);
    assert.equal(preferred.length, 1);
    assert.match(preferred[0].title, /drop the graph/);
    assert.match(JSON.stringify(preferred[0].edit), /\.detach\(\)/);
  },

  "hovers tell the state": async () => {
    const [hover] = await vscode.commands.executeCommand("vscode.executeHoverProvider", script, new vscode.Position(23, 13));
    assert.match(hover.contents.map((each) => each.value).join("\n"), /requires grad/);
  },

  "severities are the user's": async () => {
    await set("severity", { warning: "Information", "graph-retained": "Error" });
    await until("the rule's severity", () => told(script, "graph-retained")?.severity === vscode.DiagnosticSeverity.Error);
    assert.equal(told(script, "eval-with-grad").severity, vscode.DiagnosticSeverity.Information);
    await set("severity", undefined);
    await until("the severity as before", () => told(script, "graph-retained")?.severity === vscode.DiagnosticSeverity.Warning);
  },

  "patterns name files in which nothing is reported": async () => {
    await set("ignorePatterns", ["tr*.py"]);
    await until("silence", () => vscode.languages.getDiagnostics(script).length === 0);
    assert.deepEqual(await actions(script, new vscode.Range(25, 12, 25, 12), "quickfix"), []);
    await set("ignorePatterns", undefined);
    await until("diagnostics", () => told(script, "graph-retained"));
  },

  "patterns and severities hold for the whole workspace too": async () => {
    const replay = vscode.Uri.joinPath(root, "replay.py");
    await restartedWith("severity", { warning: "Hint" });
    void vscode.commands.executeCommand("gradvet.checkWorkspace");
    await until("a finding in a file that is not open", () => told(replay, "graph-retained")?.severity === vscode.DiagnosticSeverity.Hint);
    await restartedWith("ignorePatterns", ["replay.py"]);
    await vscode.commands.executeCommand("gradvet.server.checkWorkspace");
    assert.deepEqual(vscode.languages.getDiagnostics(replay), []);
    await restartedWith("severity", undefined);
    await restartedWith("ignorePatterns", undefined);
  },

  "switched off, nothing is reported": async () => {
    await set("enabled", false);
    await until("silence", () => vscode.languages.getDiagnostics(script).length === 0);
    await set("enabled", undefined);
    await until("diagnostics", () => told(script, "graph-retained"));
  },

  "checked on save, a change alone changes nothing": async () => {
    await restartedWith("run", "onSave");
    const editor = await vscode.window.showTextDocument(script);
    await editor.edit((change) => change.insert(new vscode.Position(25, 25), ".item()"));
    assert.match(editor.document.lineAt(25).text, /total \+= loss\.item\(\)/);
    await new Promise((resolve) => setTimeout(resolve, 2000));
    assert.ok(told(script, "graph-retained"));
    await editor.document.save();
    await until("silence", () => !told(script, "graph-retained"));
    await vscode.commands.executeCommand("undo");
    await editor.document.save();
    await restartedWith("run", undefined);
    assert.ok(told(script, "graph-retained"));
  },

  "all safe fixes at once": async () => {
    await vscode.window.showTextDocument(script);
    await vscode.commands.executeCommand("gradvet.fixAll");
    const document = await vscode.workspace.openTextDocument(script);
    await until("the fix", () => /total \+= loss\.detach\(\)/.test(document.lineAt(25).text));
    await vscode.commands.executeCommand("undo");
    assert.ok(/total \+= loss$/.test(document.lineAt(25).text));
  },

  "cells of a notebook have findings and fixes": async () => {
    const notebook = await vscode.workspace.openNotebookDocument(vscode.Uri.joinPath(root, "notes.ipynb"));
    await vscode.window.showNotebookDocument(notebook);
    const cell = notebook.cellAt(2).document;
    const found = await until("the finding", () => told(cell.uri, "graph-retained"));
    const offered = await actions(cell.uri, found.range, vscode.CodeActionKind.QuickFix.value);
    assert.ok(await vscode.workspace.applyEdit(offered.find((each) => each.isPreferred).edit));
    assert.match(cell.getText(), /total \+= loss\.detach\(\)/);
    await until("silence", () => !told(cell.uri, "graph-retained"));
  },

  "the server's own commands answer": async () => {
    const uri = script.toString().replace(/^vscode-remote:\/\/[^/]*/, "file://");
    const ask = (command, ...args) => vscode.commands.executeCommand(`gradvet.server.${command}`, ...args);
    const path = await ask("gradientPath", { uri, position: { line: 23, character: 13 } });
    assert.match(path.markdown, /model\.hidden\.weight/);
    assert.ok(path.steps.length >= 1);
    const text = "RuntimeError: Trying to backward through the graph a second time";
    const explained = await ask("explainError", { uri, text });
    assert.match(explained.markdown, /right fix/);
    assert.equal(explained.places[0].location.range.start.line, 25);
    assert.match(await ask("debugInformation"), /Gradvet \d+\.\d+/);
  },

  "the documentation opens without a network": async () => {
    await vscode.commands.executeCommand("gradvet.openDocumentation");
    await until("the page", () => vscode.window.tabGroups.all.flatMap((group) => group.tabs).some((tab) => /rules\.md/.test(tab.label)));
    await vscode.commands.executeCommand("gradvet.openDocumentation", "graph-retained");
    await until("the rule's page", () => vscode.window.tabGroups.all.flatMap((group) => group.tabs).some((tab) => /graph_retained/.test(tab.label)));
  },
};

exports.run = async () => {
  const lines = [];
  let failed = 0;
  for (const [name, test] of Object.entries(tests)) {
    const begin = Date.now();
    try {
      await test();
      lines.push(`ok ${((Date.now() - begin) / 1000).toFixed(1)}s ${name}`);
    } catch (error) {
      failed += 1;
      lines.push(`failed: ${name}: ${error.stack}`);
    }
  }
  lines.push(failed === 0 ? "passed" : `${failed} failed`);
  fs.writeFileSync(process.env.GRADVET_RESULT, lines.join("\n"));
};
