"""Starts the server that lies beside this file, with the libraries beside it, and with nothing else.

The editor runs it as `python -I -S start.py server`: no environment variable, no `.pth` file, no site-packages
and no current folder is looked at, so what the user has installed never gets into the server. Nothing is
written outside this folder, and no environment variable is set that a process of the user's would inherit.

With `--from-environment` first, and without `-I -S`, a Gradvet that is installed with the interpreter is
preferred, libraries and all; what lies here is only used where there is none.

Any Python 3 has to be able to read this file, since it says which one is too old.
"""

import os
import sys

FROM_ENVIRONMENT = "--from-environment"
# The client looks for this line, and tells the user.
LACKS = "Gradvet cannot run in this Python (%s): it lacks the module %s of the standard library\n"
_OWN = getattr(sys, "stdlib_module_names", ())


def main() -> int:
    """Run the command line of the server; gives its exit status."""
    if sys.version_info < (3, 10):  # noqa: UP036  that is what it is for
        sys.stderr.write("Gradvet needs Python 3.10 or newer; this is %s\n" % sys.version.split()[0])  # noqa: UP031
        return 3
    here = os.path.dirname(os.path.abspath(__file__))
    # Python puts the folder of its script first, and some tools the empty name of the current one
    sys.path[:] = [path for path in sys.path if path and os.path.abspath(path) != here]
    preferred = FROM_ENVIRONMENT in sys.argv[1:2]
    if preferred:
        del sys.argv[1]
    if not (preferred and _installed()):
        sys.path[:0] = [os.path.join(here, "server"), os.path.join(here, "libs")]
    try:
        from gradvet.__main__ import main as run

        return run()
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _OWN:
            raise
        sys.stderr.write(LACKS % (sys.version.split()[0], error.name))
        return 4


def _installed() -> bool:
    from importlib.util import find_spec

    return all(find_spec(name) is not None for name in ("gradvet", "pygls", "lsprotocol"))


if __name__ == "__main__":  # processes that the server starts read this file too
    sys.exit(main())
