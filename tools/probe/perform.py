"""Runs one program with its expressions seen, as `python FILE` would run it."""

import ast
import builtins
import gc
import linecache
import os
import random
import sys
import threading
import traceback
import types
import warnings
from collections.abc import Callable
from typing import Any

import torch

from tools.probe.instrument import SEE, Instrument
from tools.probe.observed import Failure, Observation, Program
from tools.probe.recorder import Recorder

_PATH = tuple(sys.path)


def perform(program: Program, seconds: float, deliver: Callable[[Observation], None]) -> None:
    """Run a program to its end, its exception or its time limit, and deliver what was seen till then.

    At the time limit the process is left at once, since Python cannot stop a running thread.
    """
    rewriting = Instrument()
    try:
        tree: ast.Module = rewriting.visit(ast.parse(program.text, program.path))
        code = compile(tree, program.path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        deliver(Observation({}, Failure(type(error).__name__, str(error), getattr(error, "lineno", None))))
        return
    recorder = Recorder(rewriting.places)

    main_thread = threading.get_ident()

    def out_of_time() -> None:
        row = _row(traceback.extract_stack(sys._current_frames().get(main_thread)), program)
        deliver(Observation(recorder.seen(), Failure("Timeout", f"no end after {seconds:g} seconds", row)))
        os._exit(0)

    alarm = threading.Timer(seconds, out_of_time)
    alarm.daemon = True
    alarm.start()
    failure = _execute(program, code, recorder)
    _wait_for_threads()
    alarm.cancel()
    deliver(Observation(recorder.seen(), failure))


def set_back() -> bool:
    """Undo what a program has left behind; whether the next one may run in the same process."""
    sys.path[:] = _PATH
    sys.modules.pop("__main__", None)
    linecache.clearcache()
    gc.collect()  # a generator that was left inside a `with` leaves its grad mode only when it is collected
    torch.set_grad_enabled(True)
    return not (torch.is_inference_mode_enabled() or torch.is_autocast_enabled("cpu"))


def _execute(program: Program, code: types.CodeType, recorder: Recorder) -> Failure | None:
    _prepare(program)
    main = types.ModuleType("__main__")
    main.__file__ = program.path
    sys.modules["__main__"] = main
    # A compiler must not look into what looks: it would see its own tensors, and keep them in its code.
    see: Any = recorder.see
    if "compile" in program.text:
        see = torch.compiler.disable(see)  # type: ignore[no-untyped-call]
    setattr(builtins, SEE, see)
    try:
        exec(code, vars(main))  # noqa: S102  that is what it is for
    except SystemExit as error:
        return None if error.code in {None, 0} else _failure(error, program)
    except BaseException as error:
        return _failure(error, program)
    return None


def _prepare(program: Program) -> None:
    """The surroundings that `python FILE` gives, with chance fixed."""
    sys.argv = [program.path]
    sys.path.insert(0, program.folder)
    # `inspect.getsource` has to find the text, though it may not be on disk.
    lines = program.text.splitlines(keepends=True)
    linecache.cache[program.path] = (len(program.text), None, lines, program.path)
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)


def _wait_for_threads() -> None:
    """Python waits for them too, before it exits."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def _failure(error: BaseException, program: Program) -> Failure:
    return Failure(type(error).__name__, str(error), _row(traceback.extract_tb(error.__traceback__), program))


def _row(frames: traceback.StackSummary, program: Program) -> int | None:
    """The innermost row of the program among frames."""
    return next((frame.lineno for frame in reversed(frames) if frame.filename == program.path), None)
