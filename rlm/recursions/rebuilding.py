"""A recursion as an earlier session of it was: who works, how, and over which records."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from executors.errors import ConfigError
from rlm.corpora import open_corpus
from rlm.recursions.options import KEPT, RecurseOptions
from rlm.recursions.wiring import ROLES, Wiring
from rlm.runs.manifest import Manifest

__all__ = ["rebuilt"]

_TRUSTED: Final = ("persona", "context")
"""Text that stands above, or beside, what workers are told: taken from nowhere else."""
_BOUNDING: Final = ("caps", "prices", "limits", "concurrency", "key_env", "data")
_OF_ONE_MODEL: Final = ("prices", "limits", "key_env")


def rebuilt(
    manifest: Manifest, directory: Path, options: Mapping[str, object], wiring: Mapping[str, object]
) -> tuple[Wiring, RecurseOptions]:
    """Return who works and how: what is given anew, and else what the run recorded.

    Args:
        options, wiring: what is given, by name.

    Raises:
        ConfigError: the run needs what only its caller has.
        ValidationError: the manifest holds what no longer is an option.
    """
    _require(manifest, directory, {**options, **wiring})
    record = dict(manifest.options)
    if manifest.foreign:
        record = {name: v for name, v in record.items() if name not in (*ROLES, *_BOUNDING)}
    elif "model" in wiring and wiring["model"] != record.get("model"):
        # Another model may be on another server, and of another price.
        record = {name: v for name, v in record.items() if name not in _OF_ONE_MODEL}
    changes = {"corpus": _corpus(manifest, directory), **options}
    found = RecurseOptions.of_record(record, **changes, run=directory)
    return Wiring.of_record(record, **wiring), found


def _require(manifest: Manifest, directory: Path, given: Mapping[str, object]) -> None:
    """Refuse to go on without what only the caller has."""
    lacking = {name: was for name, was in manifest.objects.items() if name not in given}
    if lacking:
        listed = ", ".join(f"{name} ({was})" for name, was in lacking.items())
        raise ConfigError(
            f"the run in {str(directory)!r} was given what no file can hold: {listed}",
            hint=_give_again(lacking, directory),
        )
    if not manifest.foreign:
        return
    if "model" not in given:
        raise ConfigError(
            f"the run in {str(directory)!r} was made elsewhere, and names {_asks(manifest)}",
            where="neither its models nor the name of a key are taken from there",
            hint="name the model yourself: resume(run, model=…) (--model), and key_env (--key-env)",
        )
    for name in _TRUSTED:
        if manifest.options.get(name) is not None and name not in given:
            raise ConfigError(
                f"the run in {str(directory)!r} was made elsewhere, and has a {name} of its own",
                where="workers trust that text, so it is taken from nobody else",
                hint=f"read it in manifest.json, and give it yourself: "
                f"rlm recurse TASK --run {_quoted(directory)} --{name} TEXT",
            )


def _give_again(lacking: Mapping[str, str], directory: Path) -> str:
    """Return how the caller gives again what only he has."""
    if lacking.get("synthesize") == "audit_union":
        again = f"rlm audit DIR TASK --run {_quoted(directory)}"
        return f"it is an audit, give it again: {again}, or rlm.audit(…, run={str(directory)!r})"
    again = f"give it again: rlm.recurse(task, …, run={str(directory)!r})"
    if _by_cli(lacking):
        again += f", or: rlm recurse TASK --run {_quoted(directory)} --sensor …"
    return again


def _by_cli(lacking: Mapping[str, str]) -> bool:
    return set(lacking) == {"refine_leaf"}


def _asks(manifest: Manifest) -> str:
    named = [str(manifest.options[role]) for role in ROLES if manifest.options.get(role)]
    return ", ".join(map(repr, named)) or "no model"


def _corpus(manifest: Manifest, directory: Path) -> object:
    """Return the records that the run has kept, else its source, opened again; None for neither."""
    kept = (directory / "spool" / "meta.json").exists()
    if not kept and not manifest.options.get("has_corpus"):
        return None
    spec = manifest.source
    if kept or spec is None or manifest.foreign:
        return KEPT
    return open_corpus(
        spec.source,
        id=spec.id,
        text=spec.text,
        query=spec.query,
        format=spec.format,
        encoding=spec.encoding,
        on_bad=spec.on_bad,
    )


def _quoted(directory: Path) -> str:
    return shlex.quote(str(directory))
