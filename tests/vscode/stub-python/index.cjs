/** Stands in for the Python extension: the part of its API that names the environment that the user has chosen. */

const vscode = require("vscode");

exports.activate = (context) => {
  const changed = new vscode.EventEmitter();
  const [first, other] = JSON.parse(process.env.STUB_PYTHONS);
  let path = first;
  const choose = () => {
    path = other;
    changed.fire({ id: path, path });
  };
  context.subscriptions.push(vscode.commands.registerCommand("stub.chooseOther", choose));
  return {
    ready: Promise.resolve(),
    environments: {
      getActiveEnvironmentPath: () => ({ id: path, path }),
      resolveEnvironment: async (chosen) => ({ ...chosen, executable: { uri: vscode.Uri.file(chosen.path) } }),
      onDidChangeActiveEnvironmentPath: changed.event,
    },
  };
};
