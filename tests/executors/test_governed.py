"""A gate as tools and models meet it: what they do is translated, decided about, and written down."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from executors.calls.calls import Calls
from executors.clock import VirtualClock
from executors.errors import Halted
from executors.gate.allowance import Drawn, Estimate, Reservation
from executors.gate.audited import AuditedAllowance, caught_up
from executors.gate.decisions import Allow, Deny
from executors.gate.gate import Gate
from executors.gate.governed import Governed, action_of
from executors.gate.governor import Deed, DeedKind, Done
from executors.gate.outlet import DataOutlet, outlet_of
from executors.ids import NodeId
from executors.models.fakes.scripted import ScriptedModel
from executors.models.prices import Price, PriceTable
from tests.executors.asks import ask
from tests.executors.benches import reply

pytestmark = pytest.mark.anyio


def deed(tool: str, kind: DeedKind = "tool", depth: int = 0, **arguments: Any) -> Deed:  # noqa: ANN401
    return Deed(
        tool=tool,
        kind=kind,
        arguments=arguments,
        context={"user": "ann"},
        node=NodeId("root.1"),
        depth=depth,
    )


async def decided(config: Mapping[str, object], one: Deed) -> tuple[str, str]:
    got = await Governed(Gate(config)).check(one)
    return got.outcome, got.rule


# ---------------------------------------------------------------- translation


@pytest.mark.case("G-214")
async def test_a_tool_is_judged_by_what_it_does_and_listed_by_its_name(tmp_path: Path) -> None:
    files = {"fs": {"read_scope": [str(tmp_path)]}}
    inside, outside = str(tmp_path / "a"), "/etc/passwd"
    assert (await decided(files, deed("look", "read", path=inside)))[0] == "allow"
    assert await decided(files, deed("look", "read", path=outside)) == ("deny", "fs.readScope")
    named = {**files, "tools": {"denylist": ["look"]}}
    assert await decided(named, deed("look", "read", path=inside)) == ("deny", "tools.denylist")
    shell = {"bash": {"allow": ["git "]}}
    assert await decided(shell, deed("run", "bash", cmd="rm x")) == ("deny", "bash.allow")
    net: dict[str, object] = {"net": {"allow_domains": []}}
    asked = deed("get", "fetch", url="https://example.com/")
    assert await decided(net, asked) == ("deny", "net.allowDomains")


async def test_a_tool_of_no_kind_is_judged_by_its_name_and_by_urls() -> None:
    strict: dict[str, object] = {"fs": {"read_scope": []}, "net": {"allow_domains": []}}
    plain = deed("crm_lookup", path="/etc/passwd", cmd="rm -r a")
    assert (await decided(strict, plain))[0] == "allow"
    listed = {**strict, "tools": {"allowlist": ["crm_*"]}}
    assert (await decided(listed, plain))[0] == "allow"
    assert (await decided(strict, deed("crm", url="http://10.0.0.1/")))[0] == "deny"
    assert await decided(listed, deed("mail")) == ("deny", "tools.allowlist.exclusive")


def test_an_action_carries_who_acts_and_where() -> None:
    assert action_of(deed("look", "read", path="a")) == {
        "type": "read",
        "tool": "look",
        "args": {"path": "a"},
        "_ctx": {"user": "ann", "at": "root.1"},
    }


@pytest.mark.case("G-080", "G-081", "G-095")
async def test_children_are_counted_when_they_are_admitted_and_held_to_their_depth() -> None:
    governed = Governed(Gate({"limits": {"max_children": 1, "max_depth": 2}}))
    assert isinstance(await governed.check(deed("spawn_child", "spawn", depth=1)), Allow)
    again = await governed.check(deed("spawn_child", "spawn", depth=1))
    assert (again.outcome, again.rule) == ("deny", "limits.maxChildren")
    deep = await Governed(Gate({"limits": {"max_depth": 2}})).check(
        deed("spawn_child", "spawn", depth=2)
    )
    assert (deep.outcome, deep.rule) == ("deny", "limits.maxDepth")


# ---------------------------------------------------------------- the catalogue


@pytest.mark.case("G-040", "R-201")
async def test_a_tool_is_offered_by_its_name_also_where_the_budget_is_spent() -> None:
    """A run that goes on must tell its models of the same tools, or nothing would be found again."""
    gate = Gate({"budget": {"max_cost_usd": "0"}, "tools": {"denylist": ["mail*"]}})
    governed = Governed(gate)
    assert not gate.allows("look")
    assert governed.offers("look")
    assert not governed.offers("mail_all")
    assert Governed(Gate({"fs": {"read_scope": []}})).offers("read_file")


def test_a_fetch_is_led_where_the_rules_let_it_go_alone() -> None:
    governed = Governed(Gate({"net": {"allow_domains": ["example.com"]}}))
    assert governed.why_not("https://example.com/a") is None
    assert "net.allowDomains" in str(governed.why_not("https://example.net/"))
    assert "net.denyPrivateIps" in str(Governed(Gate({})).why_not("http://169.254.169.254/"))


# ---------------------------------------------------------------- the audit


async def test_what_came_of_a_tool_is_joined_to_its_check() -> None:
    gate = Gate({})
    governed = Governed(gate)
    for text, failed in (("fine", False), ("Error: no such file", True)):
        one = deed("look", "tool", path="a")
        allowed = await governed.check(one)
        assert isinstance(allowed, Allow)
        await governed.record(one, Done(text=text, failed=failed), aid=allowed.aid)
        line = gate.audit.entries[-1]
        assert (line["phase"], line["aid"]) == ("record", allowed.aid)
        assert ("no such file" in str(line)) is failed
    denied = await Governed(Gate({"tools": {"denylist": ["*"]}})).check(deed("look"))
    assert isinstance(denied, Deny)
    assert denied.aid


PRICES = PriceTable({"scripted": Price(input=Decimal(1_000), output=Decimal(1_000))})


def pipeline(gate: Gate) -> Calls:
    return Calls(
        allowance=AuditedAllowance(gate.allowance, gate.audit),
        emit=lambda _: None,
        clock=VirtualClock(),
        prices=PRICES,
    )


@pytest.mark.case("G-220")
async def test_each_call_of_a_model_has_its_line_with_what_it_drew() -> None:
    gate = Gate({})
    await pipeline(gate).ask(
        ScriptedModel(lambda _: reply(7)), ask("a"), role="verifier", node=NodeId("root.2")
    )
    gate.audit.flush()
    (line,) = [one for one in gate.audit.entries if one["phase"] == "call"]
    assert (line["role"], line["node"], line["model"]) == (
        "verifier",
        "root.2",
        "scripted:scripted",
    )
    assert (line["calls"], line["tokens"], line["usd"], line["unpriced"]) == (1, 7, "0.007", False)


async def test_a_call_without_room_is_a_halt_that_names_rule_spent_and_cap() -> None:
    calls = pipeline(Gate({"budget": {"max_calls": 1}}))
    model = ScriptedModel(lambda _: reply(7))
    await calls.ask(model, ask("a"), role="judge", node=NodeId("root"))
    with pytest.raises(Halted) as caught:
        await calls.ask(model, ask("b"), role="judge", node=NodeId("root"))
    assert caught.value.bound == "budget.maxCalls"
    assert "of 1 1 are used" in caught.value.what
    assert "--budget calls=" in str(caught.value.hint)


def settled(allowance: AuditedAllowance, estimate: Estimate, usd: Decimal | None) -> None:
    held = allowance.reserve(estimate)
    assert isinstance(held, Reservation)
    allowance.settle(held, tokens=5, usd=usd)


@pytest.mark.case("G-046", "G-070")
@pytest.mark.parametrize("known", [Decimal("0.01"), None])
@pytest.mark.parametrize("usd", [Decimal(0), Decimal("0.003"), Decimal("0.5"), None])
def test_the_lines_say_what_the_ledger_was_charged(
    known: Decimal | None, usd: Decimal | None
) -> None:
    gate = Gate({})
    allowance = AuditedAllowance(gate.allowance, gate.audit)
    settled(allowance, Estimate(tokens=10, usd=known), usd)
    totals = gate.allowance.totals()
    gate.audit.flush()
    (line,) = gate.audit.entries
    assert (line["calls"], line["tokens"]) == (totals.calls, totals.tokens)
    assert Decimal(str(line["usd"])) == totals.usd
    assert line["unpriced"] == totals.unpriced


def test_what_a_dead_session_drew_is_charged_once_and_written_down() -> None:
    gate = Gate({})
    for drawn in (Drawn(calls=3, tokens=30, usd=Decimal("0.3")), Drawn(calls=3, tokens=30)):
        caught_up(gate.ledger, gate.audit, "run-1", drawn)
    gate.audit.flush()
    (line,) = gate.audit.entries
    assert (line["calls"], line["tokens"], line["usd"]) == (3, 30, "0.3")
    assert gate.ledger.totals().usd == Decimal("0.3")


def test_workers_that_hold_leases_are_written_down_as_they_report() -> None:
    gate = Gate({})
    allowance = AuditedAllowance(gate.allowance, gate.audit)
    held = allowance.reserve(Estimate(calls=0, tokens=0, usd=None))
    assert isinstance(held, Reservation)
    assert allowance.grow(held, Estimate(calls=4, tokens=100, usd=Decimal(1))) is None
    assert not allowance.draw(held, Drawn(calls=2, tokens=40, usd=Decimal("0.2")))
    assert not allowance.draw(held, Drawn())
    allowance.release(held)
    gate.audit.flush()
    (line,) = gate.audit.entries
    assert (line["calls"], line["tokens"], line["usd"], line["role"]) == (2, 40, "0.2", None)
    assert allowance.drawn == Drawn(calls=2, tokens=40, usd=Decimal("0.2"))


# ---------------------------------------------------------------- where texts may go


class Elsewhere(ScriptedModel):
    """A scripted model that claims to be on another machine."""

    @property
    def info(self) -> Any:  # noqa: ANN401
        from dataclasses import replace

        return replace(super().info, origin="https://api.example.com:443")


async def test_no_text_goes_to_a_host_that_is_not_listed_in_any_process() -> None:
    gate = Gate({"data": {"hosts": ["api.example.net"]}})
    outlet = DataOutlet(gate.config.data)
    here, there = ScriptedModel("here"), Elsewhere("there")
    for one in (outlet, outlet_of(outlet.data)):
        assert one.model(here) is here
        with pytest.raises(Halted, match=r"data\.hosts"):
            one.model(there)
    assert DataOutlet(Gate({}).config.data).model(there) is there


async def test_personal_data_is_masked_before_models_elsewhere_and_only_once() -> None:
    pytest.importorskip("phonenumbers")
    outlet = DataOutlet(Gate({"data": {"mask": ["email"]}}).config.data)
    there = Elsewhere("fine")
    calls = Calls(
        allowance=Gate({}).allowance, emit=lambda _: None, clock=VirtualClock(), outlet=outlet
    )
    await calls.ask(there, ask("mail ann@example.com"), role="judge", node=NodeId("root"))
    assert "ann@example.com" not in there.requests[0].messages[0].content
    masked = outlet.model(there)
    assert outlet.model(masked) is masked
