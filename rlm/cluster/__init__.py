"""A count on a cluster, from the coordinator's side; see `rlm.units` for the workers'.

begin         which counts can go there, and what they need for it
coordinator   sends blocks and takes what comes back
blocks        what is to be judged, and where verdicts go
settling      what the journal knows already
answering     what units are answered
seats         leases, for as many units as there are workers
losses        what a dead worker did
traces        the same, as its lines tell
work          a block, and a unit that runs
"""

from __future__ import annotations

from rlm.cluster.begin import engine_for, judge_on_cluster, require_place, require_units
from rlm.cluster.blocks import Judged

__all__ = ["Judged", "engine_for", "judge_on_cluster", "require_place", "require_units"]
