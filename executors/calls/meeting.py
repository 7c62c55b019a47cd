"""What is told of a model before it is asked for the first time: where what it is shown goes."""

from __future__ import annotations

from executors.clock import Clock
from executors.events import ModelMet
from executors.ids import NodeId
from executors.models.base import Model
from executors.models.masked import Masked
from executors.models.prices import KnownPrices, PriceList

__all__ = ["met"]

_ROOT = NodeId("root")
_HERE = "in-process"


def met(model: Model, clock: Clock, prices: PriceList) -> ModelMet | None:
    """Return the event of a model, as it is sent to; None where nothing leaves this machine."""
    info = model.info
    every = (info, *info.others)
    if all(one.origin == _HERE for one in every):
        return None
    # What reads URLs is heavy, and who has a server has loaded it already.
    from executors.models.wire.origins import stays_here

    ways = tuple((one.title, "" if stays_here(one.origin) else one.origin) for one in every)
    if not any(origin for _, origin in ways):
        return None
    masks = model.kinds if isinstance(model, Masked) else ()
    source = prices.source(info) if isinstance(prices, KnownPrices) else ""
    return ModelMet(
        node=_ROOT, at=clock.now(), model=info.spec, ways=ways, masks=masks, prices=source
    )
