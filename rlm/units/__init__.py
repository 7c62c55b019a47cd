"""The units of a count: what workers of a cluster do.

values   what travels: a block's reference, the options of a run, a block's report
sources  the records of a block, from a shared disk or sent along
filed    the journal of a unit: its run's own, and what the coordinator knows already
lease    the unit's lease, renewed on its line
outbox   its events, on their way to the coordinator
desk     what a worker process keeps from one unit of a run to the next
block    a unit itself
"""

from __future__ import annotations

from rlm.units.block import judge_block

__all__ = ["judge_block"]
