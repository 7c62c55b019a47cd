"""The order in which things can be done that wait for each other, or the circle that forbids it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Circle", "Order", "order_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Who waits for whom, seen from both ends."""

    depths: Mapping[str, int]
    """Longest way from a thing that waits for nothing, which has depth 0."""
    needs: Mapping[str, int]
    """How many others each waits for; one that it names twice counts twice, here and below."""
    dependents: Mapping[str, Sequence[str]]
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
    missing: dict[str, int] = {}
    dependents: dict[str, list[str]] = {}
    for id_ in ids:
        needs = depends.get(id_, ())
        missing[id_] = len(needs)
        for needed in needs:
            dependents.setdefault(needed, []).append(id_)
    depths = {id_: 0 for id_, count in missing.items() if count == 0}
    left = dict(missing)
    free = list(depths)
    for done in free:  # grows while it is read
        below = depths[done] + 1
        for id_ in dependents.get(done, ()):
            left[id_] -= 1
            if left[id_] == 0:  # the last one that it waits for is the deepest: depths never fall
                depths[id_] = below
                free.append(id_)
    if len(free) < len(missing):
        return _circle(left, depends)
    return Order(depths=depths, needs=missing, dependents=dependents)


def _circle(missing: Mapping[str, int], depends: Mapping[str, Collection[str]]) -> Circle:
    """Return a circle among things of which each waits for one that never gets free."""
    at = next(id_ for id_, count in missing.items() if count > 0)
    seen: dict[str, int] = {}
    while at not in seen:
        seen[at] = len(seen)
        at = next(needed for needed in depends[at] if missing[needed] > 0)
    return Circle(ids=tuple(seen)[seen[at] :])
