"""More for a run that goes on: `usd=20,calls=5000`, as a person says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Self, cast

from executors.errors import ValidationError
from executors.gate.allowance import Caps

__all__ = ["BudgetChange", "BudgetLike", "topped"]

BudgetLike = str | Mapping[str, object]
"""`"usd=20,calls=5000"`, or the same by name."""
_EXAMPLE: Final = "as in budget='usd=20,calls=5000' (--budget usd=20,calls=5000)"


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetChange:
    """Bounds of all sessions of a run together that hold from now on; None leaves one as it is."""

    calls: int | None = None
    tokens: int | None = None
    usd: Decimal | None = None

    @classmethod
    def read(cls, given: BudgetLike) -> Self:
        """Return what a person wrote.

        Raises:
            ValidationError: it names no bound, one twice, or an amount that is none.
        """
        pairs = _pairs(given) if isinstance(given, str) else list(given.items())
        names = tuple(field.name for field in fields(cls))
        found: dict[str, int | Decimal] = {}
        for name, amount in pairs:
            if name not in names or name in found:
                raise ValidationError(
                    f"budget={given!r}: {name!r} is "
                    + ("there twice" if name in found else "no bound of a run"),
                    hint=f"choose from {', '.join(names)}, {_EXAMPLE}",
                )
            found[name] = _amount(given, name, amount)
        if not found:
            raise ValidationError(f"budget={given!r} raises nothing", hint=_EXAMPLE)
        return cls(**cast("dict[str, Any]", found))

    @classmethod
    def of(cls, given: BudgetChange | BudgetLike | None) -> Self | None:
        """Return what is given, read where it is written; None for nothing.

        Raises:
            ValidationError: see `read`.
        """
        if given is None or isinstance(given, str | Mapping):
            return None if given is None else cls.read(given)
        if isinstance(given, cls):
            return given
        raise ValidationError(f"budget={given!r}"[:200], hint=_EXAMPLE)

    def over(self, caps: Caps) -> Caps:
        """Return the bounds of a run with these in place of its own."""
        return replace(caps, **cast("dict[str, Any]", self.given))

    @property
    def given(self) -> dict[str, int | Decimal]:
        """The bounds that are named."""
        named = {"calls": self.calls, "tokens": self.tokens, "usd": self.usd}
        return {name: value for name, value in named.items() if value is not None}


def topped(caps: Caps, by: BudgetChange | None) -> Caps:
    """Return the bounds of a run, with those that a person gave in place of its own."""
    return caps if by is None else by.over(caps)


def _pairs(text: str) -> list[tuple[str, object]]:
    parts = [part.partition("=") for part in text.split(",") if part.strip()]
    return [(name.strip(), amount.strip()) for name, _, amount in parts]


def _amount(given: object, name: str, amount: object) -> int | Decimal:
    """Return an amount: of USD to the last digit, of all else a whole number."""
    try:
        if isinstance(amount, bool) or not isinstance(amount, str | int | float | Decimal):
            raise InvalidOperation
        exact = Decimal(str(amount).replace("_", ""))
        if not exact.is_finite() or exact < 0 or (name != "usd" and exact != int(exact)):
            raise InvalidOperation
    except InvalidOperation:
        whole = "" if name == "usd" else "whole "
        raise ValidationError(
            f"budget={given!r}: {name}={amount!r} is no bound",
            hint=f"give a finite {whole}number >= 0, {_EXAMPLE}",
        ) from None
    return exact if name == "usd" else int(exact)
