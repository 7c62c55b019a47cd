"""What of a run left this machine, as one line a server."""

from __future__ import annotations

from typing import Final

from executors.engine.dask_address import Joined, place_of
from executors.errors import ValidationError
from rlm.receipts.receipts import Receipts
from rlm.receipts.sent import SentReceipt
from rlm.render.lines import Line, Piece, line
from rlm.render.safe import plain

__all__ = ["sent_lines"]

_LISTED: Final = 20


def sent_lines(receipts: Receipts) -> list[Line]:
    """Return which texts went to which server; nothing for a receipt that does not know."""
    sent = receipts.sent
    if sent is None:
        return []
    told = [_went(one) for one in sent[:_LISTED]]
    if len(sent) > _LISTED:
        told.append(f"and to {len(sent) - _LISTED:,} more servers, in the receipt")
    if (engine := _workers(receipts)) is not None:
        told.append(f"texts went to the workers of {plain(engine, 100)}")
    told.append(_rest(receipts, any_left=bool(told)))
    head, *more = told
    return [line("  ", Piece("sent: ", "dim"), head), *(line("    ", one) for one in more)]


def _went(sent: SentReceipt) -> str:
    texts = f"{_counted(sent.texts, 'text')}, " if sent.texts else ""
    tokens = f"{sent.tokens:,} tokens"
    if sent.unmetered:
        tokens += f" and those of {_counted(sent.unmetered, 'call')} that nobody counted"
    masked = f", {', '.join(plain(kind, 20) for kind in sent.masks)} masked" if sent.masks else ""
    roles = ", ".join(plain(role, 20) for role in sent.roles)
    table = f", by the prices of {plain(sent.prices[-1], 100)}" if sent.prices else ""
    return f"{texts}{tokens} to {plain(_host(sent.origin), 200)} ({roles}{masked}{table})"


def _host(origin: str) -> str:
    """Return an origin as people write it: without what goes without saying."""
    return (
        origin.removeprefix("https://").removesuffix(":443") if origin[:8] == "https://" else origin
    )


def _rest(receipts: Receipts, *, any_left: bool) -> str:
    if receipts.tools:
        names = ", ".join(plain(tool, 40) for tool in receipts.tools[:_LISTED])
        return f"what tools sent is not known here; these ran: {names}"
    return "nothing else left this machine" if any_left else "nothing left this machine"


def _workers(receipts: Receipts) -> str | None:
    """Return the engine of a run whose workers may be other machines."""
    engine = receipts.options.get("engine")
    if engine is None:
        return None
    try:
        place = place_of(engine)
    except ValidationError:  # of a receipt from elsewhere
        return engine
    return engine if isinstance(place, Joined) and not place.loopback else None


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
