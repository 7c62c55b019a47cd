"""Reading answers off token probabilities."""

import math
from collections.abc import Mapping

import pytest

from corpus.judges.readout import Options, option_mass, sequence_mass
from executors.errors import ValidationError

YES_NO = {"yes": ["yes"], "no": ["no"]}


def logs(**probabilities: float) -> list[tuple[str, float]]:
    return [(token.replace("_", " "), math.log(p)) for token, p in probabilities.items()]


def test_case_and_surrounding_space_of_a_token_do_not_matter() -> None:
    got = option_mass(YES_NO, logs(Yes=0.3, _yes=0.2, YES=0.1, _No=0.25, Maybe=0.15))
    assert got.mass == pytest.approx({"yes": 0.6, "no": 0.25})
    assert got.total == pytest.approx(0.85)


def test_the_space_marks_of_servers_are_space() -> None:
    got = option_mass(YES_NO, [("\u2581yes", math.log(0.5)), ("\u0120No", math.log(0.25))])
    assert got.mass == pytest.approx({"yes": 0.5, "no": 0.25})


def test_a_token_that_only_begins_an_option_counts_for_none() -> None:
    """`I` is far more often a word of its own than the beginning of `invoice`."""
    got = option_mass({"invoice": ["invoice"], "spam": ["spam"]}, logs(_I=0.7, _spam=0.2))
    assert got.mass == pytest.approx({"invoice": 0.0, "spam": 0.2})
    assert got.begun == pytest.approx(0.7)


def test_every_spelling_counts_for_its_label() -> None:
    got = option_mass({"yes": ["yes", "true"], "no": ["no"]}, logs(yes=0.2, True_=0.3, no=0.5))
    assert got.mass == pytest.approx({"yes": 0.5, "no": 0.5})


@pytest.mark.case("K6-16")
@pytest.mark.parametrize(
    "labels",
    [("col_A", "col_B"), ("no", "no opinion"), ("1", "10"), ("bill", "billing"), ("是", "是的")],
)
def test_labels_that_begin_with_the_same_token_are_refused(labels: tuple[str, str]) -> None:
    """One token cannot tell them apart, so no mass is stated."""
    with pytest.raises(ValidationError, match="begin with the same token") as caught:
        option_mass({label: [label] for label in labels}, logs(col=0.9))
    assert all(repr(label) in str(caught.value) for label in labels)


def test_labels_whose_words_only_look_alike_are_taken() -> None:
    got = option_mass({"interest": ["interest"], "internal": ["internal"]}, logs(internal=0.5))
    assert got.mass == pytest.approx({"interest": 0.0, "internal": 0.5})


@pytest.mark.parametrize("spellings", [["Yes", "no "], [" "]])
def test_a_spelling_is_never_blank_or_shared(spellings: list[str]) -> None:
    with pytest.raises(ValidationError):
        Options({"yes": spellings, "no": ["no"]})


class Speaker:
    """Says what stands in a table: text so far -> next tokens."""

    def __init__(self, table: Mapping[str, Mapping[str, float]]) -> None:
        self._table = table
        self.asked: list[str] = []

    async def __call__(self, said: str) -> list[tuple[str, float]]:
        self.asked.append(said)
        return [(token, math.log(p)) for token, p in self._table[said].items()]


@pytest.mark.anyio
@pytest.mark.case("K6-16")
async def test_whole_answers_tell_labels_apart_that_begin_alike() -> None:
    speaker = Speaker(
        {"": {"col": 0.8, "The": 0.2}, "col": {"_": 1.0}, "col_": {"A": 0.75, "B": 0.2}}
    )
    got = await sequence_mass({"a": ["col_A"], "b": ["col_B"]}, speaker)
    assert got.mass == pytest.approx({"a": 0.6, "b": 0.16})
    assert speaker.asked == ["", "col", "col_"]


@pytest.mark.anyio
async def test_an_answer_that_ends_early_belongs_to_the_shorter_label() -> None:
    speaker = Speaker({"": {"no": 0.9}, "no": {" opinion": 0.3, "<end>": 0.7}})
    got = await sequence_mass({"no": ["no"], "none": ["no opinion"]}, speaker)
    assert got.mass == pytest.approx({"no": 0.63, "none": 0.27})


@pytest.mark.anyio
async def test_what_is_too_unlikely_is_not_followed_and_said() -> None:
    speaker = Speaker({"": {"yes": 0.9, "n": 0.0005}})
    got = await sequence_mass(YES_NO, speaker)
    assert got.mass["no"] == 0.0
    assert got.begun == pytest.approx(0.0005)


@pytest.mark.anyio
async def test_blank_tokens_do_not_lead_on_for_ever() -> None:
    async def only_blanks(said: str) -> list[tuple[str, float]]:
        return [(" ", 0.0)]

    got = await sequence_mass(YES_NO, only_blanks, most_asks=5)
    assert (got.total, got.begun) == (0.0, 1.0)
