"""Personal data in texts, found by its form and check digits, and masked.

E-mail addresses, telephone numbers, bank accounts, card and IP numbers: what a form tells. Names, addresses of
people and what only a sentence tells are not found; no table of forms can, and what guesses at them is a
model of its own. Telephone numbers are read by Google's rules for each country (`phonenumbers`), account
and card numbers are held against their check digits (`stdnum`): both know no network.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from importlib.util import find_spec
from ipaddress import ip_address
from typing import Final, Literal, get_args

from executors.errors import MissingExtra, ValidationError

__all__ = ["Masking", "PersonalKind"]

PersonalKind = Literal["email", "phone", "iban", "card", "ip"]
"""A kind of personal data."""
_Spans = Callable[[str], Iterator[tuple[int, int]]]

# Each tries few places and few lengths at any of them, whatever the text.
_LOCAL: Final = r"\w.!#$%&'*+/=?^`{|}~-"
_EMAIL: Final = re.compile(
    rf"(?<![{_LOCAL}])[{_LOCAL}]{{1,64}}@[\w-]{{1,63}}(?:\.[\w-]{{1,63}}){{1,8}}"
)
_IBAN: Final = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}[0-9]{2}(?:[ \u00a0-]?[A-Za-z0-9]){11,30}")
_DIGITS: Final = re.compile(r"(?<![0-9])[2-6](?:[ \u00a0-]?[0-9]){12,}")
_IP: Final = re.compile(
    r"(?<![\w.:])(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?!\w|\.[0-9])"
    r"|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f.]{0,15}){2,8}(?![\w:]))"
)
_CARDS: Final = range(13, 20)  # digits
_ACCOUNTS: Final = range(15, 35)  # characters


class Masking:
    """Masks some kinds of personal data.

    Args:
        kinds: which.
        region: two letters of the country whose telephone numbers may stand without "+"; None finds
            those alone that begin with it.

    Raises:
        MissingExtra: the extra `mask` is not installed.
        ValidationError: a kind or a region that is none.
    """

    def __init__(self, kinds: Collection[PersonalKind], *, region: str | None = None) -> None:
        unknown = sorted(set(kinds) - set(get_args(PersonalKind)))
        if unknown:
            raise ValidationError(
                f"{unknown[0]!r} is no kind of personal data",
                hint=f"choose from {', '.join(get_args(PersonalKind))}",
            )
        if any(find_spec(name) is None for name in ("phonenumbers", "stdnum")):
            raise MissingExtra(extra="mask", needed_for="masking personal data")
        if region is not None:
            _check_region(region)
        # Accounts and cards before telephone numbers, which would take parts of them.
        self.kinds: tuple[PersonalKind, ...] = tuple(
            kind for kind in ("email", "iban", "card", "ip", "phone") if kind in kinds
        )
        self.region = region

    def __call__(self, text: str) -> str:
        """Return a text in which a word in brackets stands for what was personal."""
        for kind in self.kinds:
            text = _replaced(text, f"[{kind}]", self._finder(kind))
        return text

    def _finder(self, kind: PersonalKind) -> _Spans:
        match kind:
            case "email":
                return _emails
            case "iban":
                return _ibans
            case "card":
                return _cards
            case "ip":
                return _ips
            case "phone":
                return self._phones

    def _phones(self, text: str) -> Iterator[tuple[int, int]]:
        from phonenumbers import PhoneNumberMatcher  # a table of each country: only who masks pays

        for found in PhoneNumberMatcher(text, self.region):
            yield found.start, found.end


def _emails(text: str) -> Iterator[tuple[int, int]]:
    return (found.span() for found in _EMAIL.finditer(text))


def _ibans(text: str) -> Iterator[tuple[int, int]]:
    """Find accounts: what follows one may look as if it went on, so that each length is tried."""
    from stdnum import iban  # see above

    for found in _IBAN.finditer(text):
        ends = _ends(text, found.start(), found.end(), str.isalnum)
        for end in reversed(ends):
            compact = _compact(text[found.start() : end])
            if len(compact) in _ACCOUNTS and iban.is_valid(compact):
                yield found.start(), end
                break


def _cards(text: str) -> Iterator[tuple[int, int]]:
    """Find cards, also where other digits stand right before or after them."""
    from stdnum import luhn  # see above

    for found in _DIGITS.finditer(text):
        place, last = found.span()
        while place < last:
            ends = _ends(text, place, min(last, place + 2 * _CARDS.stop), str.isdigit)
            for end in reversed(ends):
                compact = _compact(text[place:end])
                if len(compact) in _CARDS and compact[0] in "23456" and luhn.is_valid(compact):
                    yield place, end
                    place = end
                    break
            place = _next_group(text, place, last)


def _ips(text: str) -> Iterator[tuple[int, int]]:
    for found in _IP.finditer(text):
        try:
            ip_address(found[0])
        except ValueError:
            continue
        if any(ch.isalnum() for ch in found[0]):
            yield found.span()


def _ends(text: str, start: int, last: int, goes_on: Callable[[str], bool]) -> list[int]:
    """Return where what begins at a place may end: behind one that goes on, before one that does not."""
    return [
        end
        for end in range(start + 1, last + 1)
        if goes_on(text[end - 1]) and not goes_on(text[end : end + 1])
    ]


def _next_group(text: str, place: int, last: int) -> int:
    """Return the next place where a group of digits begins."""
    while place < last and text[place].isdigit():
        place += 1
    while place < last and not text[place].isdigit():
        place += 1
    return place


def _compact(text: str) -> str:
    return re.sub(r"[ \u00a0-]", "", text)


def _replaced(text: str, word: str, finder: _Spans) -> str:
    parts: list[str] = []
    done = 0
    for start, end in finder(text):
        parts += (text[done:start], word)
        done = end
    if not parts:
        return text
    parts.append(text[done:])
    return "".join(parts)


def _check_region(region: str) -> None:
    from phonenumbers import SUPPORTED_REGIONS  # see above

    if region not in SUPPORTED_REGIONS:
        raise ValidationError(
            f"{region!r} is no region of telephone numbers",
            hint="give the two letters of a country, such as 'DE' or 'US'",
        )
