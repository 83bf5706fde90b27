"""The arguments, and what each command does. Imports no more than the command needs."""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from gradvet import __version__

_INTERRUPTED, _PIPE_CLOSED = 130, 141  # 128 and the number of the signal, as shells say it

_CHECK = """\
Dry-run autograd over Python files and print the gradient bugs that come to light.

exit status:
  0  nothing was found, or only findings of severity `info`
  1  errors or warnings were found
  2  something could not be checked: no such path, unreadable file, bad settings
"""

_STATES = """\
Dry-run autograd over a Python file and print what it would hold for every expression, joined over every
time that the expression is run.

The text is the source. Below each line, comments tell the states of the expressions that begin there, where
they differ from what was said before. Numbers in brackets are assumptions, which stand at the end.

In JSON, an array with an object for each expression that the dry run came to:
  line, column, end_line, end_column
              where it stands, as Python's `ast` counts: lines from 1, columns from 0 in bytes of UTF-8
  text        its source
  kind        tensor, module (of torch.nn), ndarray (or a scalar of numpy), container (a list, a dict and the
              like, and what is iterated over), number (bool included), other, or unknown; where visits are
              of several kinds, that is unknown too
For a tensor also:
  requires_grad, is_leaf, is_view, is_inference
              yes, no, or maybe
  grad_fn     the names that are possible, null where there may be none; "*" is any name
  grad_mode   those it is run in: grad, no_grad, inference
  storage     group numbers: tensors and arrays that may share storage have one in common; "*" is any.
              What comes from outside the file is taken not to share. An ndarray has this key too
  assumes     what has to be true of what is not in the file

exit status:
  0  the states were printed
  1  they were printed, but parts of the file do not parse and are left out
  2  the file could not be read
"""


_EXPLAIN_ERROR = """\
Take an error or a warning of torch's autograd, a line or a whole traceback, and say what it means for a
file: the lines that are the likeliest cause, the rule that tells of them, the right fix, and which
popular fixes are none.

  gradvet explain-error train.py "element 0 of tensors does not require grad"
  python train.py 2>&1 | gradvet explain-error train.py

exit status:
  0  there are lines to look at
  1  the message is known, but nothing in the file stands out
  2  the message is not known, or the file could not be read
"""


def main(arguments: Sequence[str] | None = None, *, serve: Callable[[], None]) -> int:
    """Run the command line; gives the exit status. `serve` is what `gradvet server` does."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character must not end the run
    try:
        status = _run(_parser().parse_args(arguments), serve)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Python flushes at exit, and would complain then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED
    return status


def _run(options: argparse.Namespace, serve: Callable[[], None]) -> int:
    match options.command:
        case "check":
            from gradvet.cli.check import check

            return check(options)
        case "states":
            from gradvet.cli.states import show_states

            return show_states(options)
        case "explain-error":
            from gradvet.cli.explain_error import explain_error

            return explain_error(options)
        case "explain" if options.rule is not None:
            from gradvet.cli.explain import explain

            return explain(options.rule)
        case "explain" | "rules":
            from gradvet.cli.explain import list_rules

            return list_rules()
        case _:
            logging.getLogger("gradvet").setLevel(options.log_level.upper())
            serve()
            return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "gradvet", description="Find gradient-control bugs in PyTorch code by dry-running autograd."
    )
    parser.add_argument("--version", action="version", version=f"gradvet {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_check(
        commands.add_parser(
            "check",
            help="find bugs",
            description=_CHECK,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
    )
    _add_states(
        commands.add_parser(
            "states",
            help="print what autograd would hold for every expression of a file",
            description=_STATES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
    )
    explain = commands.add_parser(
        "explain",
        help="print a rule's page",
        description="Print a rule's page, or list the rules of a family.",
    )
    explain.add_argument(
        "rule", nargs="?", metavar="NAME", help="of a rule or a family; without it, all rules are listed"
    )
    _add_explain_error(
        commands.add_parser(
            "explain-error",
            help="say what an error of torch means for a file",
            description=_EXPLAIN_ERROR,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
    )
    commands.add_parser("rules", help="list the rules", description="List the rules.")
    server = commands.add_parser(
        "server", help="serve an editor", description="Speak LSP over standard input and output."
    )
    server.add_argument(
        "--stdio", action="store_true", help="the only way there is; accepted since some editors add it"
    )
    server.add_argument(
        "--log-level",
        choices=("error", "warning", "info", "debug"),
        default="warning",
        help="what is written to the standard error output, which editors keep as a log; default: warning",
    )
    return parser


def _add_check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="*",
        type=Path,
        metavar="PATH",
        default=[Path()],
        help="files and folders; default: the current folder. What is named here is always checked; "
        "inside folders, hidden ones, virtual environments, build products and what the settings "
        "exclude are left out",
    )
    parser.add_argument(
        "--output-format",
        choices=("text", "concise", "json"),
        default="text",
        help="text with source lines and reasons (default), one line a finding, or a JSON array",
    )
    parser.add_argument(
        "--select",
        type=_some_names,
        action="extend",
        metavar="NAMES",
        help="rules and families to run, with commas between; in place of those in the settings",
    )
    parser.add_argument(
        "--ignore",
        type=_names,
        action="extend",
        metavar="NAMES",
        help="rules and families to leave out; in place of those in the settings",
    )
    parser.add_argument(
        "--fix",
        action="store_true",
        help="apply safe fixes: those that leave every value and every wanted gradient as it was",
    )
    parser.add_argument(
        "--unsafe-fixes",
        action="store_true",
        help="with --fix or --diff: apply the others as well. Read what they did",
    )
    parser.add_argument(
        "--diff",
        action="store_true",
        help="print what --fix would change, and change nothing; exit status 1 when it would",
    )
    parser.add_argument("--exit-zero", action="store_true", help="exit with 0 although there are findings")
    parser.add_argument(
        "-j", "--jobs", type=_positive, metavar="N", help="processes to use; default: one a processor"
    )
    parser.add_argument("--no-cache", action="store_true", help="accepted for scripts; there is no cache yet")
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="tell which settings are used, how long each file takes, which bounds its dry run reached, "
        "and where a failure came from",
    )


def _add_explain_error(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "words",
        nargs="+",
        metavar="FILE [MESSAGE]",
        help="the file that the error came from, and torch's message; without a message, it is read from the input",
    )
    parser.add_argument(
        "--output-format", choices=("text", "json"), default="text", help="text (default), or a JSON object"
    )


def _add_states(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="a Python file")
    parser.add_argument(
        "--output-format",
        choices=("text", "json"),
        default="text",
        help="the source with comments below its lines (default), or a JSON array",
    )


def _names(value: str) -> list[str]:
    return [name for part in value.split(",") if (name := part.strip())]


def _some_names(value: str) -> list[str]:
    if not (names := _names(value)):
        raise argparse.ArgumentTypeError(
            "expected names of rules or families with commas between (`gradvet rules` lists them); "
            "to run all that the settings choose, leave the option out"
        )
    return names


def _positive(value: str) -> int:
    if not value.isdecimal() or int(value) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, not {value!r}")
    return int(value)
