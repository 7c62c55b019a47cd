"""The order in which things can be done that wait for each other, or the circle that forbids it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

__all__ = ["Circle", "Order", "order_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Who waits for whom, seen from both ends."""

    depths: Mapping[str, int]
    """Longest way from a thing that waits for nothing, which has depth 0."""
    dependents: Mapping[str, tuple[str, ...]]
    """Who waits for a thing, in the order given; things that nobody waits for are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Circle:
    """Things that wait for each other: each one for the next, the last one for the first."""

    ids: tuple[str, ...]

    def __str__(self) -> str:
        return " -> ".join((*self.ids, self.ids[0]))


def order_of(ids: Iterable[str], depends: Mapping[str, Collection[str]]) -> Order | Circle:
    """Return the order of things by what they wait for, in time linear in things and waits.

    Kahn's algorithm (Communications of the ACM 5, 1962), without recursion: a chain of any length
    is one.

    Args:
        ids: all of them, each once.
        depends: what each waits for, all of it among `ids`; what is not named waits for nothing.
    """
    missing = {id_: len(set(depends.get(id_, ()))) for id_ in ids}
    dependents: dict[str, list[str]] = {}
    for id_ in missing:
        for needed in dict.fromkeys(depends.get(id_, ())):
            dependents.setdefault(needed, []).append(id_)
    depths = {id_: 0 for id_, count in missing.items() if count == 0}
    free = list(depths)
    for done in free:  # grows while it is read
        for id_ in dependents.get(done, ()):
            depths[id_] = depths.get(id_, 0)
            depths[id_] = max(depths[id_], depths[done] + 1)
            missing[id_] -= 1
            if missing[id_] == 0:
                free.append(id_)
    if len(free) < len(missing):
        return _circle(missing, depends)
    return Order(depths=depths, dependents={id_: tuple(who) for id_, who in dependents.items()})


def _circle(missing: Mapping[str, int], depends: Mapping[str, Collection[str]]) -> Circle:
    """Return a circle among things of which each waits for one that never gets free."""
    at = next(id_ for id_, count in missing.items() if count > 0)
    seen: dict[str, int] = {}
    while at not in seen:
        seen[at] = len(seen)
        at = next(needed for needed in depends[at] if missing[needed] > 0)
    return Circle(ids=tuple(seen)[seen[at] :])
