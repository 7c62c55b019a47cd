"""What ends with the model that a run asked: price and limits are its own, and not the next one's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from executors.models.base import Model

if TYPE_CHECKING:
    from rlm.options.options import CountOptions
    from rlm.runs.manifest import Manifest

__all__ = ["OF_MODEL", "asked_by", "asks_another", "dropped"]

OF_MODEL: Final = frozenset({"limits", "prices"})
"""Options that belong to one model."""


def asks_another(was: object, now: object) -> bool:
    """Whether one model is another one than before; None now goes on with the one before.

    Args:
        was, now: a spec, or a model.
    """
    return now is not None and _spec(now) != _spec(was)


def asked_by(manifest: Manifest) -> object:
    """Return the spec of the model that a run asked; None where it asked none."""
    return manifest.options.get("model") or manifest.objects.get("model")


def dropped(manifest: Manifest, options: CountOptions) -> str | None:
    """Return what a person should know where a run goes on without the price that it had.

    Args:
        manifest: of the run as its last session left it.
        options: of the session that begins.
    """
    record, now = manifest.options, options.model
    was = asked_by(manifest)
    if not manifest.sessions or record.get("prices") is None or options.prices is not None:
        return None
    if not asks_another(was, now):
        return None
    return (
        f"the price that the run had is that of {was}: what {_spec(now)} costs is unknown, and no "
        "bound of USD binds it; name its price with prices= (--price IN,OUT)"
    )


def _spec(model: object) -> object:
    return model.info.spec if isinstance(model, Model) else model
