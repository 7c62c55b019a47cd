"""From `--labels` and `--label` to labels that exist and a person who is asked for more."""

from __future__ import annotations

import os
import sys
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from corpus.questions import Question, question_key
from executors.errors import ValidationError

if TYPE_CHECKING:
    from rlm.labels import AskLabels

__all__ = ["labels_from"]

_MOST = 10_000


def labels_from(
    labels: str | None,
    *,
    goal: int | None,
    by: str | None,
    positive: str | None,
    description: str | None,
    question: Question,
    source: str,
) -> tuple[str | None, AskLabels | None]:
    """Return where known labels stand, and who is asked for more; checks that somebody can be.

    New labels go to the file that is named; without one, to a file in the working directory that
    is named after the source and the question, so that the next run finds them.

    Raises:
        UsageError: standard input is no terminal, or a number or question that cannot be labelled.
    """
    if goal is None:
        return labels, None
    if not 1 <= goal <= _MOST:
        raise ValidationError(f"label={goal!r}", hint=f"give a number from 1 to {_MOST:,}")
    # Labelling loads what judges; only who is asked for labels needs it.
    from rlm.labelling.asking import ask_in_terminal
    from rlm.labelling.screen import require_terminal, who
    from rlm.labelling.session import keys_of

    require_terminal(sys.stdin)
    keys_of(question)
    named = Path(labels) if labels is not None and _is_file(labels) else None
    file = named or _default_file(source, question)
    known = str(file) if file.exists() else None
    if labels is not None and named is None:
        known = labels  # a column; what an earlier session wrote is read by the asker
    asker = ask_in_terminal(
        file,
        goal=goal,
        by=by or who(),
        positive=positive,
        description=description,
        stdin=sys.stdin,
        out=sys.stderr,
    )
    return known, asker


def _is_file(labels: str) -> bool:
    path = Path(labels)
    return path.exists() or bool(path.suffix) or os.sep in labels


def _default_file(source: str, question: Question) -> Path:
    mark = blake2b("\0".join(question_key(question)).encode(), digest_size=3).hexdigest()
    stem = Path(source).name.partition(".")[0] or "labels"
    return Path(f"{'stdin' if source == '-' else stem}.labels-{mark}.csv")
