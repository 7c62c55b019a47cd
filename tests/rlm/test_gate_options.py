"""What may be given as a gate, and what is refused before anything is read or spent."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

import rlm
from executors.errors import ValidationError
from rlm.options.gates import gate_name
from rlm.options.options import CountOptions


class Half:
    """A gate that decides, and hears nothing."""

    def check(self) -> None: ...

    def allows(self) -> None: ...


@pytest.mark.case("G-211", "R-201")
@pytest.mark.parametrize("gate", [7, [], True, Half(), SimpleNamespace(check=1), "", "  "])
def test_what_is_no_gate_is_refused_where_it_is_given(gate: object) -> None:
    for take in (rlm.Wiring, CountOptions):
        with pytest.raises(ValidationError, match="gate"):
            take(gate=gate)  # type: ignore[arg-type]


def test_who_is_to_be_asked_has_to_be_callable() -> None:
    with pytest.raises(ValidationError, match="human='ann'"):
        rlm.Wiring(gate={}, human="ann")  # type: ignore[arg-type]


def test_a_file_stands_in_receipts_by_its_name_and_all_else_as_given() -> None:
    assert gate_name(Path("gate.yaml")) == "gate.yaml"
    assert gate_name("a\udcff.yaml") == "a\\udcff.yaml"
    assert gate_name({"budget": {}}) == "given"
    assert CountOptions(gate="gate.yaml").shown["gate"] == "gate.yaml"
    assert "gate" not in CountOptions().shown
