"""A count on worker processes draws on the ledger of its gate, through the leases."""

from decimal import Decimal
from pathlib import Path

import pytest

pytest.importorskip("distributed")

from executors.gate.allowance import Caps
from executors.models.price import Price
from rlm.options.top_up import BudgetChange
from rlm.outcome import Incomplete
from tests.rlm.clusters import counted, judging, options, records, tally

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture(scope="session", autouse=True)
def dasks_own_thread() -> None:
    """dask keeps one thread for the life of the process, made when it first needs it."""
    from distributed.utils import _offload_executor

    _offload_executor.submit(int).result()


@pytest.mark.case("G-063", "G-064")
async def test_workers_spend_no_more_than_the_gate_of_their_run_allows(tmp_path: Path) -> None:
    run, corpus = tmp_path / "run", records(4_500)
    gate = {"budget": {"max_calls": 200}}
    with judging(latency=0.002) as server:
        chosen = options(server, run, engine="dask:2", gate=gate, passes=1)
        outcome = await counted(corpus, chosen)
        assert isinstance(outcome, Incomplete)
        assert outcome.blocker == "halted"
        told = "\n".join(outcome.missing)
        assert "budget.maxCalls" in told
        assert f"rlm resume {run} --budget calls=400" in told
        assert 0 < sum(server.asked.values()) <= 200
        more = options(server, run, engine="dask:2", passes=1, top_up=BudgetChange(calls=10_000))
        assert tally(await counted(corpus, more)).count == 643
        assert server.repeats == 0


async def test_no_text_goes_to_a_host_that_the_gate_does_not_list(tmp_path: Path) -> None:
    with judging() as server:
        elsewhere = server.model.replace("127.0.0.1", "judge.example.invalid")
        gate = {"data": {"hosts": ["api.example.com"]}}
        chosen = options(server, tmp_path / "run", model=elsewhere, engine="dask:2", gate=gate)
        outcome = await counted(records(10), chosen)
    assert isinstance(outcome, Incomplete)
    assert "data.hosts" in "\n".join(outcome.missing)
    assert not server.asked


@pytest.mark.timeout(60)
@pytest.mark.parametrize("governed", [True, False])
async def test_workers_that_each_hold_less_than_a_call_needs_end_at_the_bound(
    tmp_path: Path, governed: bool
) -> None:
    usd, price = Decimal("0.1"), Price(input=Decimal(10), output=Decimal(10))
    corpus = [(str(n), f"text number {n} " + "w " * 40) for n in range(300)]
    bound = {"gate": {"budget": {"max_cost_usd": usd}}} if governed else {"caps": Caps(usd=usd)}
    with judging(latency=0.02) as server:
        chosen = options(server, tmp_path / "run", engine="dask:2", prices=price, **bound)
        outcome = await counted(corpus, chosen)
    assert isinstance(outcome, Incomplete)
    assert outcome.blocker == "halted"
    spent = outcome.receipts.totals.cost
    assert spent is not None
    assert 0 < spent <= usd
