"""What a recursion takes over from the run that it goes on with: all that its command leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from rlm.recursions.options import KEPT, RecurseOptions
from rlm.recursions.rebuilding import rebuilt
from rlm.recursions.wiring import Wiring
from rlm.runs.home import MANIFEST
from rlm.runs.manifest import Manifest

__all__ = ["bounded", "options_over"]


def options_over(
    run: str | None, options: Mapping[str, object], wiring: Mapping[str, object]
) -> tuple[Wiring, RecurseOptions]:
    """Return who works and how: what is given, then what the run has, then the defaults.

    Args:
        options, wiring: what is given by name; None leaves one open.

    Raises:
        RunDirError: the run cannot be read.
        ConfigError: the run needs what only its caller has.
        ValidationError: an option is wrong.
    """
    changes = {name: value for name, value in options.items() if value is not None}
    wired = {name: value for name, value in wiring.items() if value is not None}
    if run is not None and (Path(run) / MANIFEST).is_file():
        manifest = Manifest.load(Path(run))
        if manifest.kind == "recurse" and not manifest.foreign:
            return rebuilt(manifest, Path(run), changes, wired)
        if (Path(run) / "spool" / "meta.json").exists():
            changes.setdefault("corpus", KEPT)
    return Wiring.of_record({}, **wired), RecurseOptions.of_record({}, **changes, run=run)


def bounded(
    wiring: Wiring,
    *,
    calls: int | None,
    tokens: int | None,
    usd: float | None,
    seconds: float | None,
) -> Wiring:
    """Return a wiring with the bounds that are given anew; None leaves one as it is."""
    caps = wiring.caps
    caps = replace(
        caps,
        calls=caps.calls if calls is None else calls,
        tokens=caps.tokens if tokens is None else tokens,
        usd=caps.usd if usd is None else Decimal(str(usd)),
        seconds=caps.seconds if seconds is None else seconds,
    )
    return replace(wiring, caps=caps)
