"""Printing to standard output."""

from __future__ import annotations

import json
import sys

__all__ = ["print_json"]


def print_json(value: object) -> None:
    """Print one JSON object on a line of its own, in ASCII: any stream can carry it."""
    sys.stdout.write(json.dumps(value, ensure_ascii=True, allow_nan=False) + "\n")
