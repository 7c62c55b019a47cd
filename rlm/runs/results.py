"""The tally of a run that ended, for whoever looks at it later."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from executors.errors import RunDirError

if TYPE_CHECKING:
    from corpus.results import Tally

__all__ = ["load_result"]


def load_result(directory: str | os.PathLike[str]) -> Tally:
    """Return the tally of a run that ended.

    Raises:
        RunDirError: the directory holds no tally.
    """
    # The spool needs numpy, which naming a run directory does not.
    from corpus.spool import Spool
    from corpus.tally_file import load_tally

    directory = Path(directory)
    try:
        return load_tally(directory / "verdicts", Spool.open(directory / "spool"))
    except FileNotFoundError as error:
        raise RunDirError(
            f"the run directory {str(directory)!r} holds no tally",
            where=f"{error.filename} is missing",
            hint="its count ended before anything was judged, or it ranked; see: rlm show DIR",
        ) from None
