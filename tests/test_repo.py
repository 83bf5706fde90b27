"""What holds for the repository as a whole."""

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradvet import __version__
from gradvet.rules import all_rules

ROOT = Path(__file__).parent.parent
RULES = ROOT / "server" / "gradvet" / "rules"
NOT_OURS = {".git", ".cache", ".venv", "node_modules", "out", "dist", "packages", "__pycache__"}


def files() -> Iterator[Path]:
    """The files that belong to the repository."""
    folders = [ROOT]
    while folders:
        for path in folders.pop().iterdir():
            if (
                path.is_dir()
                and path.name not in NOT_OURS
                and not path.name.endswith(("_cache", ".egg-info"))
            ):
                folders.append(path)
            elif path.is_file():
                yield path


def lint_imports(folder: Path) -> int:
    """Its exit status; in a process of its own, since it silences the loggers of the one it runs in."""
    code = "from importlinter import cli; raise SystemExit(cli.lint_imports(no_cache=True, no_logo=True))"
    return subprocess.run([sys.executable, "-c", code], cwd=folder, check=False).returncode


def test_every_room_knows_only_those_below_it() -> None:
    """The contracts stand in `pyproject.toml`."""
    assert 0 == lint_imports(ROOT)


def test_a_breach_of_a_contract_is_seen(tmp_path: Path) -> None:
    """The contracts would not be kept by just any program."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    turned = re.sub(r'"analysis",(\s+)"rules \| config",', r'"rules | config",\1"analysis",', text)
    assert text != turned
    (tmp_path / "pyproject.toml").write_text(turned, encoding="utf-8")
    assert 1 == lint_imports(tmp_path)


def test_rules_and_pages_come_in_pairs() -> None:
    """Each module has its page, and each page its module; and each module holds the rule of its name."""
    modules = {path.stem for path in RULES.glob("*.py")} - {"__init__"}
    assert modules == {path.stem for path in RULES.glob("*.md")}
    assert modules == {name.replace("-", "_") for name in all_rules()}


@pytest.mark.parametrize("name", sorted(all_rules()))
def test_a_rule_is_named_in_the_changelog(name: str) -> None:
    """Users learn of it there."""
    assert f"`{name}`" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_readme_shows_what_is_printed() -> None:
    """A reader who types the command sees the same; `python -m tools.readme` puts it there."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("\n$ gradvet check examples/") == 1
    done = subprocess.run([sys.executable, "-m", "tools.readme", "--check"], cwd=ROOT, check=False)
    assert 0 == done.returncode


def test_the_catalogue_lists_the_rules_as_they_are() -> None:
    """`python -m tools.catalogue` writes it anew."""
    done = subprocess.run([sys.executable, "-m", "tools.catalogue", "--check"], cwd=ROOT, check=False)
    assert 0 == done.returncode


# Places and names of one machine, and words that mean something to one person only.
FORBIDDEN = re.compile(
    r"(?<![\w.])/(?:work|root|home|Users)/\w"
    r"|\.\./shared/"
    r"|\b[Ss]tep [A-F]\b"
    r"|\b[Ii]ssue #?\d"
    r"|\b(?:registry\.npmjs|pypi\.org/simple|files\.pythonhosted|artifactory|localhost)\b"
)
SPOKEN_OF = {Path(__file__)}  # this file names them


def test_no_file_speaks_of_one_machine() -> None:
    """Anyone may clone this anywhere."""
    found = []
    for path in files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if path not in SPOKEN_OF:
            lines = enumerate(text.splitlines(), 1)
            found += [
                f"{path.relative_to(ROOT)}:{row}: {line[:80]}"
                for row, line in lines
                if FORBIDDEN.search(line)
            ]
    assert [] == found


def test_versions_agree() -> None:
    """The package and the extension are released together."""
    manifest = (ROOT / "package.json").read_text(encoding="utf-8")
    assert f'"version": "{__version__}"' in manifest


@pytest.mark.parametrize("module", ["torch", "numpy", "expecttest", "libcst", "pygls", "pytest_lsp"])
def test_nothing_that_tests_need_is_missing(module: str) -> None:
    """No test of ours may be skipped for lack of a dependency."""
    assert importlib.util.find_spec(module) is not None


def test_the_client_speaks_each_of_its_languages_wholly() -> None:
    """Every text of the manifest and of the client has its Chinese one, and none is left over."""
    texts = [
        json.loads((ROOT / f"package.nls{part}.json").read_text(encoding="utf-8")) for part in ("", ".zh-cn")
    ]
    used = set(re.findall(r'"%([\w.]+)%"', (ROOT / "package.json").read_text(encoding="utf-8")))
    assert used == texts[0].keys() == texts[1].keys()
    client = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "client" / "src").glob("*.ts"))
    said = set(re.findall(r'l10n\.t\(\s*"((?:[^"\\]|\\.)+)"', client))
    bundle = json.loads((ROOT / "l10n" / "bundle.l10n.zh-cn.json").read_text(encoding="utf-8"))
    assert said == bundle.keys()
    for text, translated in bundle.items():
        assert re.findall(r"\{\d\}", text) == re.findall(r"\{\d\}", translated)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/editors.md", "CHANGELOG.md"])
def test_links_to_our_own_files_lead_somewhere(name: str) -> None:
    """Pictures too."""
    page = ROOT / name
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [] == [link for link in links if not (page.parent / link).exists()]
