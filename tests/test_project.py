"""Files and settings as they are on the disk."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gradvet.config import Config
from gradvet.project import File, Project, ProjectError, read
from gradvet.text import Source


def tree(root: Path, *files: str) -> Path:
    """Some files in a folder, all empty."""
    for name in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return root


def found(root: Path, *paths: str) -> list[str]:
    """What is found under some paths, and what is said of those that are not there."""
    files = Project().files([root / path for path in paths or [""]])
    return [
        str(file) if isinstance(file, ProjectError) else file.relative_to(root).as_posix() for file in files
    ]


def test_python_files_are_found_in_order(tmp_path: Path) -> None:
    """All the way down, and no others."""
    tree(tmp_path, "b.py", "a/c.py", "a/b/d.py", "a/e.pyc", "a.txt", "z.pyi", "py")
    assert ["a/b/d.py", "a/c.py", "b.py"] == found(tmp_path)


@pytest.mark.parametrize(
    "folder",
    [
        ".git",
        ".venv",
        "venv",
        "node_modules",
        "build",
        "dist",
        "__pycache__",
        "lib/site-packages",
        ".hidden/x",
        "a/.tox",
    ],
)
def test_folders_of_others_are_left_out(tmp_path: Path, folder: str) -> None:
    """Unless they are what was asked for."""
    tree(tmp_path, "a.py", f"{folder}/inside/b.py")
    assert ["a.py"] == found(tmp_path)
    assert [f"{folder}/inside/b.py"] == found(tmp_path, f"{folder}/inside")
    assert [f"{folder}/inside/b.py"] == found(tmp_path, f"{folder}/inside/b.py")


def test_a_virtual_environment_is_left_out_whatever_its_name(tmp_path: Path) -> None:
    """Its `pyvenv.cfg` gives it away."""
    tree(tmp_path, "a.py", "my-env/pyvenv.cfg", "my-env/b.py")
    assert ["a.py"] == found(tmp_path)


def test_a_file_that_is_given_is_taken(tmp_path: Path) -> None:
    """Whatever it is called."""
    tree(tmp_path, "script", ".hidden.py")
    assert ["script", ".hidden.py"] == found(tmp_path, "script", ".hidden.py")


def test_each_file_is_taken_once(tmp_path: Path) -> None:
    """Also when paths overlap."""
    tree(tmp_path, "a/b.py", "a/c.py")
    assert ["a/c.py", "a/b.py"] == found(tmp_path, "a/c.py", "a", "a/b.py", "")


def test_links_that_go_round_do_no_harm(tmp_path: Path) -> None:
    """A linked folder is not entered."""
    tree(tmp_path, "a/b.py")
    (tmp_path / "a" / "loop").symlink_to(tmp_path, target_is_directory=True)
    assert ["a/b.py"] == found(tmp_path)


def test_a_path_that_is_not_there_is_told(tmp_path: Path) -> None:
    """In its place, and the others go on."""
    tree(tmp_path, "a.py")
    missing, there = found(tmp_path, "nothing", "a.py")
    assert missing.endswith("nothing: no such file or folder")
    assert "a.py" == there


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ('["tests"]', ["a.py", "lib/gen_b.py"]),
        ('["gen_*.py"]', ["a.py", "lib/tests/c.py", "tests/d.py"]),
        ('["lib/tests"]', ["a.py", "lib/gen_b.py", "tests/d.py"]),
        ('["lib/"]', ["a.py", "tests/d.py"]),
        ('["*/tests/*"]', ["a.py", "lib/gen_b.py", "tests/d.py"]),
        ("[]", ["a.py", "lib/gen_b.py", "lib/tests/c.py", "tests/d.py"]),
    ],
)
def test_settings_exclude_files(tmp_path: Path, patterns: str, expected: list[str]) -> None:
    """By name, or by the way from the settings; a file that is given is taken all the same."""
    tree(tmp_path, "a.py", "lib/gen_b.py", "lib/tests/c.py", "tests/d.py")
    (tmp_path / "pyproject.toml").write_text(f"[tool.gradvet]\nexclude = {patterns}\n")
    assert expected == found(tmp_path)
    assert ["lib/tests/c.py"] == found(tmp_path, "lib/tests/c.py")


def test_the_nearest_settings_count(tmp_path: Path) -> None:
    """`gradvet.toml` before `pyproject.toml`; one that does not speak of us is passed over."""
    tree(tmp_path, "a.py", "in/a.py", "in/er/a.py", "own/a.py")
    (tmp_path / "pyproject.toml").write_text('[tool.gradvet]\nselect = ["leak"]\n')
    (tmp_path / "in" / "pyproject.toml").write_text("[tool.other]\nselect = 3\n")
    (tmp_path / "in" / "er" / "pyproject.toml").write_text("[project]\nname = 'gradvet-user'\n")
    (tmp_path / "own" / "pyproject.toml").write_text('[tool.gradvet]\nselect = ["mode"]\n')
    (tmp_path / "own" / "gradvet.toml").write_text('ignore = ["graph-retained"]\n')
    project = Project()
    leak = Config(select=frozenset({"leak"}))
    assert leak == project.settings(tmp_path / "a.py").config
    assert leak == project.settings(tmp_path / "in" / "a.py").config
    assert leak == project.settings(tmp_path / "in" / "er").config
    assert Config(ignore=frozenset({"graph-retained"})) == project.settings(tmp_path / "own" / "a.py").config


def test_no_settings_are_the_default(tmp_path: Path) -> None:
    """Everything is asked, nothing is left out."""
    settings = Project().settings(tmp_path / "a.py")
    assert settings.path is None or not settings.path.is_relative_to(tmp_path)


BAD = [
    ("pyproject.toml", "[tool.gradvet]\nselct = []\n", ["[tool.gradvet]", "no setting `selct`", "`select`"]),
    ("pyproject.toml", '[tool.gradvet]\nselect = "leak"\n', ["`select` must be a list of strings", "'leak'"]),
    ("pyproject.toml", "[tool.gradvet]\nexclude = [1]\n", ["`exclude` must be a list of strings", "[1]"]),
    (
        "pyproject.toml",
        '[tool.gradvet]\nignore = ["graph-retaned"]\n',
        ["`ignore`", "`graph-retaned`", "`graph-retained`"],
    ),
    ("pyproject.toml", "[tool]\ngradvet = 3\n", ["must be a table"]),
    ("gradvet.toml", "select = [\n", ["not valid TOML"]),
    ("gradvet.toml", "jobs = 3\n", ["no setting `jobs`"]),
]


@pytest.mark.parametrize(("name", "text", "words"), BAD)
def test_bad_settings_are_told_with_file_and_key(
    tmp_path: Path, name: str, text: str, words: list[str]
) -> None:
    """So that they can be put right without looking anything up."""
    (tmp_path / name).write_text(text)
    with pytest.raises(ProjectError) as error:
        Project().settings(tmp_path / "a.py")
    for word in [str(tmp_path / name), *words]:
        assert word in str(error.value)


TEXTS = [
    (b"x = '\xc3\xa9'\r\ny = 1\r", "utf-8", "x = 'é'\r\ny = 1\r"),
    (b"\xef\xbb\xbfx = '\xc3\xa9'\n", "utf-8-sig", "x = 'é'\n"),
    (b"# -*- coding: latin-1 -*-\nx = '\xe9'\n", "iso-8859-1", "# -*- coding: latin-1 -*-\nx = 'é'\n"),
    (
        b"#!/usr/bin/python\n# vim: fileencoding=cp1252 :\nx = '\x80'\n",
        "cp1252",
        "#!/usr/bin/python\n# vim: fileencoding=cp1252 :\nx = '€'\n",
    ),
    (b"", "utf-8", ""),
]


@pytest.mark.parametrize(("data", "encoding", "text"), TEXTS)
def test_a_file_is_read_as_python_reads_it(tmp_path: Path, data: bytes, encoding: str, text: str) -> None:
    """But with its line ends as they are; and written the same way."""
    path = tmp_path / "a.py"
    path.write_bytes(data)
    file = read(path)
    assert File(path, text, encoding) == file
    file.write(file.source())
    assert data == path.read_bytes()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"x = 1\ny = '\xe9'\n", ["line 2 is not UTF-8", "0xe9", "coding: latin-1"]),
        (b"x = 1\n\n\n# \xff\n", ["line 4 is not UTF-8"]),
        ("x = 1\n".encode("utf-16"), ["line 1 is not UTF-8", "0xff"]),
        (b"# coding: klingon\nx = 1\n", ["encoding that Python cannot use"]),
        (b"# coding: rot13\nk = 1\n", ["encoding that Python cannot use"]),
        (b"# coding: ascii\nx = '\xe9'\n", ["line 2 is not ASCII"]),
    ],
)
def test_a_file_that_cannot_be_decoded_is_told(tmp_path: Path, data: bytes, words: list[str]) -> None:
    """With the line, and with what to do."""
    path = tmp_path / "a.py"
    path.write_bytes(data)
    with pytest.raises(ProjectError) as error:
        read(path)
    for word in [str(path), *words]:
        assert word in str(error.value)


def test_what_may_not_be_read_or_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file, a folder below one that was given, and a file that cannot be put where it should."""
    tree(tmp_path, "a.py", "in/b.py")
    with pytest.raises(ProjectError, match="in: cannot be read: Is a directory"):
        read(tmp_path / "in")
    with pytest.raises(ProjectError, match=r"b\.py: cannot be written: Not a directory"):
        File(tmp_path / "a.py" / "b.py", "", "utf-8").write(Source("b.py", "x"))

    def scandir(folder: Path) -> object:
        if folder.name == "in":
            raise PermissionError(13, "Permission denied")
        return os_scandir(folder)

    os_scandir = os.scandir
    monkeypatch.setattr(os, "scandir", scandir)
    file, folder = found(tmp_path)
    assert "a.py" == file
    assert folder.endswith("in: cannot be read: Permission denied")


def test_a_folder_that_may_not_be_entered_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it is met on the way or what is in it was named; the others go on."""
    tree(tmp_path, "a.py", "in/b.py", "z.py")
    closed = str(tmp_path / "in")

    def closing(call: Callable[..., object]) -> Callable[..., object]:
        def closed_call(path: object = ".", *rest: object, **options: object) -> object:
            # As the system does: the folder itself can be asked, what is in it cannot.
            name = "" if isinstance(path, int) else os.fspath(path)  # type: ignore[call-overload]
            if name.startswith(closed + os.sep) or (call is os_scandir and name == closed):
                raise PermissionError(13, "Permission denied", name)
            return call(path, *rest, **options)

        return closed_call

    os_scandir = os.scandir
    for name in ("stat", "lstat", "scandir"):
        monkeypatch.setattr(os, name, closing(getattr(os, name)))
    first, folder, last = found(tmp_path)
    assert ["a.py", "z.py"] == [first, last]
    assert f"{closed}: cannot be read: Permission denied" == folder
    file, last = found(tmp_path, "in/b.py", "z.py")
    assert f"{tmp_path / 'in' / 'b.py'}: cannot be read: Permission denied" == file
    assert "z.py" == last


def test_a_link_to_itself_does_no_harm(tmp_path: Path) -> None:
    """It is passed over on the way, and told when it was named."""
    tree(tmp_path, "a.py")
    (tmp_path / "round.py").symlink_to("round.py")
    assert ["a.py"] == found(tmp_path)
    (named,) = found(tmp_path, "round.py")
    assert "round.py: cannot be read: " in named
