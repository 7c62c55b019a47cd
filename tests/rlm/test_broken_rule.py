"""A rule that cannot work ends the count with its error, and leaves nothing behind."""

from pathlib import Path

import pytest

import rlm

pytestmark = pytest.mark.anyio


async def test_a_broken_rule_is_an_error_of_the_caller_and_not_a_count_of_unresolved(
    tmp_path: Path,
) -> None:
    def rule(text: str) -> bool:
        raise RuntimeError("the list is not loaded")

    with pytest.raises(rlm.ValidationError, match="RuntimeError: the list is not loaded"):
        await rlm.count("fire?", [f"t {n}" for n in range(50)], judge=rule, run=tmp_path / "run")
    assert not list((tmp_path / "run").glob("*"))
