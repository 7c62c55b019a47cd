"""The main job: how many of 6,046 real mails are spam? No key, no network, 80 labels.

The truth column is read only after the count has ended, to print the true number beside it.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from pathlib import Path

import rlm
from rlm.cli import main

DATA = Path(__file__).parent / "data"
MAILS = DATA / "spamassassin.jsonl.gz"
LABELS = DATA / "labels-80.csv"
QUESTION = "Is this mail spam?"


def true_count() -> int:
    """Count the mails that the collection's makers filed as spam."""
    with gzip.open(MAILS, "rt", encoding="utf-8") as lines:
        return sum(json.loads(line)["truth"] == "spam" for line in lines)


def demo(options: list[str]) -> int:
    """Count by the command line, as anyone would, and compare."""
    command = ["count", str(MAILS), QUESTION, "--labels", str(LABELS)]
    command += ["--id", "id", "--text", "subject", "--text", "body", *options]
    sys.stdout.write("$ rlm count spamassassin.jsonl.gz 'Is this mail spam?' ")
    sys.stdout.write("--labels labels-80.csv --id id --text subject --text body\n\n")
    sys.stdout.flush()
    started = time.monotonic()
    code = main(command)
    seconds = time.monotonic() - started
    sys.stdout.write(
        f"\nThe makers of the collection filed {true_count():,} as spam. "
        f"rlm {rlm.__version__} took {seconds:.0f} s.\n"
    )
    return code


if __name__ == "__main__":
    sys.exit(demo(sys.argv[1:]))
