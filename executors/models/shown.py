"""The text of an answer as it comes, handed to a caller who watches: nothing twice, whatever fails."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["OnText", "Shown"]

OnText = Callable[[str], None]
"""Called on the loop's thread with each piece of text; must not block. What it raises ends the call.

The pieces of a call together begin its text. They are all of it, except where a try failed that had
begun to answer, and the next one said something else: then they stop where the two part. What counts
is the reply.
"""


class Shown:
    """What of one call its caller has seen, over all its tries."""

    __slots__ = ("_ahead", "_on_text", "_parted", "_told")

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._told: list[str] = []
        self._ahead = ""
        self._parted = False

    def begin(self) -> None:
        """A try begins to answer from the start."""
        self._ahead = "".join(self._told)
        self._told = [self._ahead] if self._ahead else []

    def piece(self, text: str) -> None:
        """Take the next piece of a try: what is new of it is handed on."""
        if self._parted:
            return
        if self._ahead:
            known = self._ahead[: len(text)]
            if not text.startswith(known):
                self._parted = True
                return
            self._ahead, text = self._ahead[len(known) :], text[len(known) :]
        if text:
            self._told.append(text)
            self._on_text(text)

    def whole(self, text: str) -> None:
        """Hand on what is left of the answer, or all of it where it did not come in pieces."""
        self.begin()
        self.piece(text)
