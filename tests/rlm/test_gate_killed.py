"""A governed run that is killed stays within its budget in all sessions together, by the server's count."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rlm
from executors.gate.audit.rebuilding import totals
from executors.gate.ledger.ledger import Ledger
from tests.rlm.clusters import judging, records

pytestmark = pytest.mark.anyio

MOST = 60
RUN = """
import sys, rlm
from tests.rlm.clusters import records
rlm.count_sync(
    "is it about fire?", records(800), model=sys.argv[1], run=sys.argv[2], passes=1,
    gate={"budget": {"max_calls": int(sys.argv[3])}},
)
"""


@pytest.mark.case("G-065", "K8-10")
@pytest.mark.parametrize("after", [3, 25])
async def test_across_kills_no_more_is_sent_than_the_budget_holds(
    after: int, tmp_path: Path
) -> None:
    run, root = tmp_path / "run", Path(__file__).resolve().parents[2]
    with judging(latency=0.02) as server:
        words = [sys.executable, "-c", RUN, server.model, str(run), str(MOST)]
        for times in (1, 2):
            with subprocess.Popen(words, cwd=root) as process:
                until = time.monotonic() + 30
                while sum(server.asked.values()) < after * times and time.monotonic() < until:
                    time.sleep(0.005)
                process.send_signal(signal.SIGKILL)
        outcome = await rlm.resume(run)
        assert isinstance(outcome, rlm.Incomplete)
        assert "budget.maxCalls" in "\n".join(outcome.missing)
        assert 2 * after <= sum(server.asked.values()) <= MOST
        ledger = Ledger(run / "gate" / "ledger.sqlite")
        live, rebuilt = ledger.totals(), totals(run / "gate" / "audit.jsonl")
        assert live.calls == MOST
        assert (live.calls, live.tokens) == (rebuilt.calls, rebuilt.tokens)
        ledger.close()
        more = await rlm.resume(run, budget="calls=300")
        assert isinstance(more, rlm.Completed)
        assert isinstance(more.result, rlm.Tally)
        assert more.result.count == sum("fire" in text for _, text in records(800))
