"""The packages of the VS Code extension, each with the server and its libraries: `python -m tools.vsix`."""
