"""The far side of `torch_side`: jobs from stdin, first an empty answer when torch is there, then one line a job."""

import json
import sys

from torch_runner import perform


def main() -> None:
    """Read the jobs and answer each."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what the programs print is not an answer
    jobs = json.load(sys.stdin)
    print("{}", file=answers, flush=True)
    for job in jobs:
        print(json.dumps({"id": job["id"], **perform(job)}), file=answers, flush=True)


if __name__ == "__main__":
    main()
