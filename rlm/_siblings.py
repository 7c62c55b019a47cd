"""Refuses to start on somebody else's `planner`, `corpus` or `executors`.

Other distributions own these import names too. Whatever stands first on `sys.path` would win, and
half of ours would run on half of theirs. So `rlm` looks before it imports anything: each sibling
must lie in the same folder as `rlm` itself and carry our mark. Looking never runs foreign code: a
spec is found and its source read, nothing is executed.
"""

import importlib.util
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path

__all__ = ["DISTRIBUTION", "SIBLINGS", "Intruder", "find_intruders", "require_siblings"]

DISTRIBUTION = "rlm-recurse"
SIBLINGS = ("executors", "corpus", "planner")

_HERE = Path(__file__).resolve().parent.parent
_MARK = re.compile(rf'^__rlm_distribution__ = "{re.escape(DISTRIBUTION)}"$', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intruder:
    """A sibling name that does not lead to our package.

    `found` is the file or folder that Python would import instead, None if there is none.
    """

    name: str
    found: str | None

    def __str__(self) -> str:
        if self.found is None:
            return f"{self.name!r} is missing: expected in {str(_HERE)!r}"
        return f"{self.name!r} comes from {self.found!r}: expected in {str(_HERE)!r}"


def find_intruders() -> Iterator[Intruder]:
    """Yield each sibling name that leads elsewhere or nowhere, executing none of them."""
    for name in SIBLINGS:
        spec = _find(name)
        if spec is None:
            yield Intruder(name=name, found=None)
        elif not _is_ours(name, spec):
            yield Intruder(name=name, found=_place(spec))


def require_siblings() -> None:
    """Raise ImportError naming every intruder, and what to do about it."""
    intruders = list(find_intruders())
    if not intruders:
        return
    first = intruders[0]
    lines = [str(intruder) for intruder in intruders]
    lines.append(
        f"{DISTRIBUTION!r} brings its own rlm, planner, corpus and executors. "
        "Install it in an environment of its own, or remove or rename the package or file named "
        f"above (a script called {first.name}.py beside yours is enough to hide ours)."
    )
    raise ImportError("\n".join(lines), name=first.name, path=first.found)


def _find(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except ValueError:  # it stands in sys.modules without a spec: made by hand, so not ours
        return ModuleSpec(name, None, origin=f"sys.modules[{name!r}] ({sys.modules.get(name)!r})")


def _is_ours(name: str, spec: ModuleSpec) -> bool:
    """Whether the spec is a regular package in our folder that carries our mark."""
    if spec.origin is None or Path(spec.origin).resolve().parent != _HERE / name:
        return False
    read = getattr(spec.loader, "get_source", None)
    source = read(name) if callable(read) else None
    return isinstance(source, str) and _MARK.search(source) is not None


def _place(spec: ModuleSpec) -> str:
    if spec.origin is not None:
        return spec.origin
    return next(iter(spec.submodule_search_locations or ()), spec.name)
