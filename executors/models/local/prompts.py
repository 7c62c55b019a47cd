"""From messages to token segments, so that no text of a message can become a control token.

The chat template is rendered around place-holders, once for each sequence of roles. Its own text
is tokenized with control tokens, the contents without, each for itself: a record that spells
`<|im_end|>` stays a record. Contents begin new segments, except the first, so that instructions
in an earlier message are evaluated once and taken over by later calls.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from executors.models.local.backends import Engine, EngineRefusal, Turn

__all__ = ["PromptMaker"]

# No template has a reason to hold or to change this.
_MARK: Final = "content-7c1f-{}-7c1f"
_MARKS: Final = re.compile(r"content-7c1f-(\d+)-7c1f")
_PLAIN_GAP: Final = "\n\n"

Tokens = tuple[int, ...]


class PromptMaker:
    """Makes prompts for one engine.

    A conversation that ends with an assistant's message is continued there: the model goes on
    writing that message.

    Args:
        chat: whether the weights hold a chat template; without one, contents are joined plainly.
    """

    def __init__(self, engine: Engine, *, chat: bool) -> None:
        self._engine = engine
        self._chat = chat
        self._frames: dict[tuple[str, ...], tuple[Tokens, ...]] = {}

    def segments(self, turns: Sequence[Turn]) -> tuple[Tokens, ...]:
        """Return the prompt's segments, none of them empty.

        Raises:
            EngineRefusal: the chat template takes no such sequence of roles.
        """
        frame = self._frame(tuple(role for role, _ in turns))
        segments: list[list[int]] = [[]]
        for index, ((_, content), lead) in enumerate(zip(turns, frame, strict=False)):
            segments[-1] += lead
            if index:
                segments.append([])
            segments[-1] += self._engine.tokenize(content, special=False, bos=False)
        segments[-1] += frame[-1]
        return tuple(tuple(segment) for segment in segments if segment)

    def _frame(self, roles: tuple[str, ...]) -> tuple[Tokens, ...]:
        """Return the tokens before, between and after the contents."""
        found = self._frames.get(roles)
        if found is None:
            first, *rest = self._texts(roles)
            found = self._frames[roles] = (
                self._opening(first),
                *(self._engine.tokenize(text, special=True, bos=False) for text in rest),
            )
        return found

    def _texts(self, roles: tuple[str, ...]) -> list[str]:
        if not self._chat:
            return ["", *[_PLAIN_GAP] * (len(roles) - 1), ""]
        marks = [_MARK.format(index) for index in range(len(roles))]
        rendered = self._engine.render(list(zip(roles, marks, strict=True)))
        parts = _MARKS.split(rendered)
        texts, shown = parts[::2], parts[1::2]
        if shown != [str(index) for index in range(len(roles))]:
            raise EngineRefusal(
                "rejected",
                f"the chat template of the weights does not keep the messages {', '.join(roles)}",
            )
        if roles[-1] == "assistant":
            texts[-1] = ""
        return texts

    def _opening(self, text: str) -> Tokens:
        # Some templates spell the token that begins a text, which the tokenizer adds as well.
        added = self._engine.tokenize(text, special=True, bos=True)
        plain = self._engine.tokenize(text, special=True, bos=False)
        return plain if added[:1] == plain[:1] else added
