"""A gate's books stand in its run alone, and a halt says how that run goes on under another gate."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

import rlm
from executors.errors import ConfigError
from tests.rlm.trees import cast

pytestmark = pytest.mark.anyio

TEXTS = [f"report {n}: {'a fire' if n % 2 == 0 else 'calm'}" for n in range(64)]


async def halted(run: Path) -> rlm.Incomplete[Any]:
    outcome = await rlm.count(
        "is it about a fire?", TEXTS, model=cast(), gate={"limits": {"max_turns": 2}}, run=run
    )
    assert isinstance(outcome, rlm.Incomplete)
    return outcome


async def test_a_halt_that_has_no_option_names_the_gate_that_goes_on(tmp_path: Path) -> None:
    run = tmp_path / "a run"
    told = "\n".join((await halted(run)).missing)
    assert "limits.max_turns" in told
    assert f"rlm resume {shlex.quote(str(run))} --gate FILE" in told


@pytest.mark.parametrize("name", ["gate", "gate/config.json"])
async def test_a_link_in_place_of_the_gate_is_refused(name: str, tmp_path: Path) -> None:
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    await halted(run)
    (run / name).rename(elsewhere)
    (run / name).symlink_to(elsewhere)
    with pytest.raises(ConfigError, match="symbolic link"):
        await rlm.resume(run, model=cast())
