"""What a leaf's sensor said, kept in the journal: a run that was cut off does not ask it again.

A run that came to its end and is gone on with asks anew: whoever does that may have another sensor.
"""

from __future__ import annotations

import json

from executors.ids import ContentKey, content_key
from executors.journal.records import ToolDone
from executors.secrets import mask
from rlm.checks.verdict import Unusable, Verdict, read_verdict, status_of
from rlm.recursions.forest import Forest
from rlm.recursions.spec import Spec

__all__ = ["SensorMemory"]


class SensorMemory:
    """What the sensor of one leaf said of its attempts."""

    def __init__(self, forest: Forest, spec: Spec) -> None:
        self._forest = forest
        self._node = spec.node

    def recall(self, text: str, attempt: int) -> Verdict | None:
        if not self._forest.goes_on:
            return None
        found = self._forest.journal.tool_found(self._key(text, attempt))
        if not isinstance(found, ToolDone):
            return None
        said = read_verdict(json.loads(found.result))
        return None if isinstance(said, Unusable) else said

    async def keep(self, text: str, attempt: int, verdict: Verdict) -> None:
        held: dict[str, object] = {
            "status": status_of(verdict),
            "score": verdict.score,
            "critique": verdict.critique,
            "suggestions": list(verdict.suggestions),
        }
        try:
            # What is ours stands above what the caller's own fields may be named.
            told = mask(json.dumps({**verdict.extra, **held}, allow_nan=False))
        except (
            TypeError,
            ValueError,
            RecursionError,
        ):  # something of the caller's own, that no file can hold
            return
        key = self._key(text, attempt)
        self._forest.journal.tool_begun(key, name="sensor")
        await self._forest.journal.tool_done(key, result=told, failed=False)

    def _key(self, text: str, attempt: int) -> ContentKey:
        return content_key("sensor", self._node, str(attempt), text)
