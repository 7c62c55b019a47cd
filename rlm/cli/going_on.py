"""What a count takes over from the run that it goes on with: all that its command leaves open.

Else a command that leaves out `--model` would rank by the encoder what a model has judged, and one
that leaves out `--price` or `--max-usd` would spend without the bound that the run was given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Final

from rlm.options.options import CountOptions
from rlm.options.other_model import OF_MODEL, asks_another
from rlm.resuming import keeps_key
from rlm.runs.home import MANIFEST
from rlm.runs.label_file import kept_labels
from rlm.runs.manifest import Manifest

__all__ = ["bounded", "options_over"]

_OF_JUDGE: Final = frozenset({"judge", "encoder", "terms", "quotes", "window"})


def options_over(run: str | None, given: Mapping[str, object]) -> CountOptions:
    """Return the options of a count: what is given, then what its run has, then the defaults.

    Args:
        given: options by name; None leaves one open.

    Raises:
        RunDirError: the run cannot be read.
        ValidationError: an option is wrong.
    """
    changes = {name: value for name, value in given.items() if value is not None}
    record: Mapping[str, object] = {} if run is None else _record_of(Path(run), changes)
    return CountOptions.of_record(record, run=run, **changes)


def bounded(
    options: CountOptions,
    *,
    calls: int | None,
    tokens: int | None,
    usd: float | None,
    seconds: float | None,
) -> CountOptions:
    """Return options with the bounds that are given anew; None leaves one as it is."""
    caps = options.caps
    caps = replace(
        caps,
        calls=caps.calls if calls is None else calls,
        tokens=caps.tokens if tokens is None else tokens,
        usd=caps.usd if usd is None else Decimal(str(usd)),
        seconds=caps.seconds if seconds is None else seconds,
    )
    return replace(options, caps=caps)


def _record_of(directory: Path, changes: dict[str, object]) -> Mapping[str, object]:
    """Return what the run recorded and still holds; its labels, if any, go into the changes."""
    if not (directory / MANIFEST).is_file():
        return {}
    manifest = Manifest.load(directory)
    # What came from elsewhere is trusted with nothing that spends or says where a key goes.
    if manifest.foreign or manifest.objects.keys() - {"labels"}:
        return {}
    record = manifest.options
    gone = {"replay"} | _replaced(record, changes)
    if "labels" not in changes and (labels := kept_labels(directory)):
        changes["labels"] = labels
    if not changes.keys() & {"labels", "ask_labels"}:
        gone.add("positive")
    return {name: value for name, value in record.items() if name not in gone}


def _replaced(record: Mapping[str, object], changes: Mapping[str, object]) -> set[str]:
    """Return the options of the run that have no meaning under another judge or model."""
    model = asks_another(record.get("model"), changes.get("model"))
    local = bool(changes.keys() & {"encoder", "terms"}) or changes.get("judge") in {
        "encoder",
        "rule",
    }
    judge = model or bool(changes.keys() & {"judge", "encoder", "terms"})
    key = local or not keeps_key(record, changes)
    return {
        *({"model", *OF_MODEL} if model or local else ()),
        *(_OF_JUDGE if judge else ()),
        *({"key_env"} if key else ()),
    }
