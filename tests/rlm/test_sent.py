"""The receipt says which texts went to which server, and what it does not know."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from executors.errors import AuthError, ConnectFault, ServerFault
from executors.events import CallFailed, ModelMet, ToolFinished
from executors.gate.config.data import DataSection
from executors.gate.rules.hosts import DataRule
from executors.ids import NodeId
from executors.messages import ModelReply, ModelRequest
from executors.models.base import ModelInfo
from executors.models.published import prices_source
from rlm import Completed, Fallback, Incomplete, Price, count, resume
from rlm.receipts.receipts import ReceiptFold, Receipts
from rlm.receipts.sent import SentReceipt
from rlm.render.lines import Line
from rlm.render.sent import sent_lines
from rlm.render.text import result_block
from rlm.testing import ScriptedModel, judge_script

pytestmark = pytest.mark.anyio

CORPUS = [(f"r{n}", f"{'fire' if n % 2 else 'calm'} {n}") for n in range(20)]
API, OTHER = "https://api.example.com:443", "http://10.0.0.7:8000"


class Elsewhere(ScriptedModel):
    """A judge on another machine."""

    def __init__(
        self, origin: str = API, *, name: str = "far", error: Exception | None = None
    ) -> None:
        super().__init__(judge_script(lambda text: "fire" in text), name=name)
        self._error = error
        self._elsewhere = replace(super().info, origin=origin)

    @property
    def info(self) -> ModelInfo:
        return self._elsewhere

    async def generate(self, request: ModelRequest) -> ModelReply:
        if self._error is not None:
            self.calls += 1
            raise self._error
        return await super().generate(request)


def said(receipts: Receipts) -> list[str]:
    return [words(line) for line in sent_lines(receipts)]


def words(line: Line) -> str:
    return "".join(piece.text for piece in line).strip()


def only(receipts: Receipts) -> SentReceipt:
    assert receipts.sent is not None
    assert len(receipts.sent) == 1
    return receipts.sent[0]


async def test_what_a_judge_was_shown_is_told_by_its_server() -> None:
    outcome = await count("fire?", CORPUS, model=Elsewhere())
    assert isinstance(outcome, Completed)
    sent = only(outcome.receipts)
    assert (sent.origin, sent.texts, sent.roles) == (API, 20, ("judge",))
    assert sent.calls == outcome.receipts.totals.calls
    assert sent.tokens == outcome.receipts.totals.input > 0
    assert said(outcome.receipts) == [
        f"sent: 20 texts, {sent.tokens:,} tokens to api.example.com (judge)",
        "nothing else left this machine",
    ]
    assert any("sent: 20 texts" in words(line) for line in result_block(outcome.receipts))
    assert Receipts.load(outcome.receipts.directory).sent == (sent,)


@pytest.mark.parametrize(
    "options", [{"model": ScriptedModel(judge_script(str.isalpha))}, {"terms": ("fire",)}]
)
async def test_a_run_that_stays_here_says_so(options: dict[str, Any]) -> None:
    outcome = await count("fire?", CORPUS, **options)
    assert outcome.receipts.sent == ()
    assert said(outcome.receipts) == ["sent: nothing left this machine"]


async def test_a_run_that_goes_on_elsewhere_tells_of_both_servers(tmp_path: Path) -> None:
    run = tmp_path / "run"
    fails = Elsewhere(error=AuthError("401"))
    first = await count("fire?", CORPUS, model=fails, run=run)
    assert isinstance(first, Incomplete)
    sent = only(first.receipts)
    assert (sent.origin, sent.unmetered, sent.tokens) == (API, sent.calls, 0)
    assert "that nobody counted" in said(first.receipts)[0]
    last = await resume(run, model=Elsewhere(OTHER, name="near"))
    assert [one.origin for one in last.receipts.sent or ()] == [OTHER, API]
    assert said(last.receipts)[0].endswith(f"tokens to {OTHER} (judge)")


async def test_a_stand_in_is_told_with_the_one_before_it_and_not_with_the_one_after() -> None:
    first = Elsewhere("https://one.example:443", name="one", error=ServerFault("503", status=503))
    second = Elsewhere("https://two.example:443", name="two")
    third = Elsewhere("https://three.example:443", name="three")
    outcome = await count("fire?", CORPUS, model=Fallback(first, second, third))
    assert {one.origin for one in outcome.receipts.sent or ()} == {
        "https://one.example:443",
        "https://two.example:443",
    }


async def test_what_was_masked_is_said() -> None:
    model = DataRule(DataSection(mask=["email"])).masked(Elsewhere())
    outcome = await count("fire?", CORPUS, model=model)
    sent = only(outcome.receipts)
    assert sent.masks == ("email",)
    assert said(outcome.receipts)[0].endswith("(judge, email masked)")


async def test_the_table_that_a_price_is_from_is_told_with_its_server() -> None:
    vendor = Elsewhere("https://api.openai.com:443", name="gpt-4o-mini")
    outcome = await count("fire?", CORPUS, model=vendor)
    sent = only(outcome.receipts)
    assert sent.prices == (str(prices_source()),)
    assert f"by the prices of genai-prices {version('genai-prices')}" in said(outcome.receipts)[0]
    assert outcome.receipts.totals.unpriced == 0
    assert outcome.receipts.totals.cost > 0
    mine = await count(
        "fire?", CORPUS, model=vendor, prices=Price(input=Decimal(1), output=Decimal(1))
    )
    assert only(mine.receipts).prices == ()


# ---------------------------------------------------------------- the fold alone
AT = datetime(2026, 1, 1, tzinfo=UTC)


def failed(code: str, attempts: int = 1) -> CallFailed:
    return CallFailed(
        node=NodeId("root.0"),
        at=AT,
        key="k",
        role="worker",
        model="m",
        error=code,
        message="",
        attempts=attempts,
        seconds=0.0,
        possibly_paid=False,
    )


@pytest.mark.parametrize(
    ("event", "left"),
    [
        (failed("server-fault"), True),
        (failed("call-lost"), True),
        (failed(ConnectFault.code), False),
        (failed("connect-timeout"), False),
        (failed("circuit-open", 0), False),
        (failed("cancelled", 0), False),
    ],
)
def test_a_call_that_never_left_sent_nothing(event: CallFailed, left: bool, tmp_path: Path) -> None:
    fold = ReceiptFold()
    fold(ModelMet(node=NodeId("root"), at=AT, model="m", ways=(("m", API),)))
    fold(event)
    assert bool(fold.receipts(tmp_path, {}).sent) is left


def test_what_tools_sent_is_not_known_and_that_is_said(tmp_path: Path) -> None:
    fold = ReceiptFold()
    for source, name, stays in (
        ("run", "fetch\x1b[2J", False),
        ("journal", "old", False),
        ("run", "search", True),
    ):
        fold(
            ToolFinished(
                node=NodeId("root"),
                at=AT,
                tool=name,
                round=0,
                index=0,
                end="done",
                seconds=0.0,
                source=source,  # type: ignore[arg-type]
                characters=1,
                stays=stays,
            )
        )
    (line,) = said(fold.receipts(tmp_path, {}))
    assert line.startswith("sent: what tools sent is not known here; these ran: fetch")
    assert "\x1b" not in line
    assert "old" not in line
    assert "search" not in line


def test_the_workers_of_another_machine_are_told_of(tmp_path: Path) -> None:
    receipts = ReceiptFold().receipts(tmp_path, {})
    away = replace(receipts, options={"engine": "dask://10.0.0.9:8786"})
    assert said(away)[0] == "sent: texts went to the workers of dask://10.0.0.9:8786"
    here = replace(receipts, options={"engine": "dask:2"})
    assert said(here) == ["sent: nothing left this machine"]
    assert sent_lines(replace(receipts, sent=None)) == []
