"""Names with `*`: any characters, `/` and line breaks too. Everything else stands for itself."""

from __future__ import annotations

__all__ = ["Glob"]


class Glob:
    """Matches whole names.

    The leftmost place for each piece is the right one, so that a match takes no longer than reading
    the name once for each piece.
    """

    __slots__ = ("_first", "_last", "_middle", "_one", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        first, *rest = text.split("*")
        self._one = not rest
        self._first = first
        self._last = rest[-1] if rest else ""
        self._middle = [piece for piece in rest[:-1] if piece]

    def matches(self, name: str) -> bool:
        """Return whether it stands for a name."""
        if self._one:
            return name == self.text
        end = len(name) - len(self._last)
        at = len(self._first)
        if at > end or not name.startswith(self._first) or not name.endswith(self._last):
            return False
        for piece in self._middle:
            found = name.find(piece, at, end)
            if found < 0:
                return False
            at = found + len(piece)
        return True
