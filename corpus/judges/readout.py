"""Reading an answer off the probabilities of its first token, or of all of its tokens.

Pure code: it is given the alternatives that a model reports and never asks by itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from executors.errors import ValidationError

__all__ = ["Alternatives", "OptionMass", "Options", "option_mass", "sequence_mass"]

Alternatives = Iterable[tuple[str, float]]
"""Tokens that might stand at one place, with their natural-log probabilities."""
AskNext = Callable[[str], Awaitable[Alternatives]]
"""From what the answer says so far to the alternatives for its next token."""

# Some servers show the space before a word as one of these marks.
_SPACES: Final = " \t\r\n\u2581\u0120\u010a"
# Tokenizers split between letters, digits and signs, so two labels that are alike up to the first
# such border certainly begin with the same token; so may a label that is the beginning of another.
_PIECE: Final = re.compile(r"[^\W\d_]+|.", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionMass:
    """The probability that falls on each option."""

    mass: Mapping[str, float]
    total: float
    """What falls on any option; the rest is an answer that none of them is."""
    begun: float
    """What falls on tokens that begin an option and are none. When it outweighs `total`, the
    options are longer than one token: choose shorter ones, or use `sequence_mass`."""


@dataclass(frozen=True, slots=True)
class Options:
    """Labels with the spellings that count for each; case and surrounding space do not matter.

    Raises:
        ValidationError: an empty spelling, or one that two labels share.
    """

    labels: Mapping[str, Sequence[str]]
    _owner: dict[str, str] = field(
        init=False, repr=False, compare=False, default_factory=dict[str, str]
    )
    """Folded spelling -> label"""

    def __post_init__(self) -> None:
        for label, spellings in self.labels.items():
            for spelling in spellings:
                folded = _fold(spelling)
                if not folded:
                    raise ValidationError(f"the label {label!r} has a blank spelling")
                other = self._owner.setdefault(folded, label)
                if other != label:
                    raise ValidationError(
                        f"the labels {other!r} and {label!r} share the spelling {spelling!r}"
                    )

    def owner(self, text: str) -> str | None:
        """Return the label that a folded text spells."""
        return self._owner.get(text)

    def begins(self, text: str) -> bool:
        """Whether a folded text begins a longer spelling."""
        return any(len(text) < len(known) and known.startswith(text) for known in self._owner)

    def require_own_starts(self) -> None:
        """Refuse labels whose answers begin with the same token.

        Raises:
            ValidationError: naming two such labels.
        """
        pieces: dict[str, str] = {}
        for folded, label in self._owner.items():
            found = _PIECE.match(folded)
            piece = found.group() if found else folded
            other = pieces.setdefault(piece, label)
            if other != label:
                raise _same_start(other, label, piece)
            for end in range(1, len(folded)):
                other = self._owner.get(folded[:end], label)
                if other != label:
                    raise _same_start(other, label, folded[:end])


def option_mass(options: Mapping[str, Sequence[str]] | Options, top: Alternatives) -> OptionMass:
    """Sum the probability of each option over the alternatives for the first token.

    Raises:
        ValidationError: labels that begin alike cannot be told apart by one token.
    """
    if not isinstance(options, Options):
        options = Options(options)
        options.require_own_starts()
    mass = dict.fromkeys(options.labels, 0.0)
    begun = 0.0
    for token, logprob in top:
        folded = _fold(token)
        label = options.owner(folded)
        if label is not None:
            mass[label] += math.exp(logprob)
        elif folded and options.begins(folded):
            begun += math.exp(logprob)
    return OptionMass(mass=mass, total=sum(mass.values()), begun=begun)


async def sequence_mass(
    options: Mapping[str, Sequence[str]] | Options,
    ask: AskNext,
    *,
    floor: float = 0.001,
    most_asks: int = 64,
) -> OptionMass:
    """Sum the probability of each option over whole answers, token after token.

    Follows every beginning of an option whose probability reaches `floor`; at most `most_asks`
    questions, of which an option of n tokens takes about n. What was not followed is in `begun`.

    Raises:
        ValidationError: two labels share a spelling.
    """
    options = options if isinstance(options, Options) else Options(options)
    mass = dict.fromkeys(options.labels, 0.0)
    begun = 0.0
    open_ends = [("", 1.0)]
    while open_ends:
        # The heaviest first, so that the bound on questions cuts what matters least.
        open_ends.sort(key=lambda end: end[1])
        said, weight = open_ends.pop()
        if weight < floor or most_asks <= 0:
            begun += weight
            continue
        most_asks -= 1
        left = weight
        for token, logprob in await ask(said):
            text, share = said + token, weight * math.exp(logprob)
            folded = _fold(text)
            if options.begins(folded) and len(text) > len(said):
                left -= share
                open_ends.append((text, share))
            elif (label := options.owner(folded)) is not None and folded != _fold(said):
                left -= share
                mass[label] += share
        whole = options.owner(_fold(said))
        if whole is not None:
            mass[whole] += max(0.0, left)
    return OptionMass(mass=mass, total=sum(mass.values()), begun=begun)


def _same_start(one: str, other: str, start: str) -> ValidationError:
    return ValidationError(
        f"the labels {one!r} and {other!r} begin with the same token {start!r}",
        where="reading the probability of the answer's first token",
        hint="name the options A, B, C …, use labels that begin apart, or a judge that reads text",
    )


def _fold(text: str) -> str:
    return text.strip(_SPACES).casefold()
