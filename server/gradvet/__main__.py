"""`python -m gradvet`."""

import sys

from gradvet.cli import main

if __name__ == "__main__":
    sys.exit(main())
