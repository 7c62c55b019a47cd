"""Routes: which way a question goes over a corpus."""

import time

import pytest

from corpus.questions import YesNo
from executors.errors import ValidationError
from planner.completeness import implies_completeness
from planner.routes import route, route_by_rules

COMPLETE = [
    "how many reports mention an incident?",
    "list all suppliers",
    "count the refunds",
    "every contract must be cited",
    "the total number of outages",
    "How  many?",
    "what percentage of mails is spam",
    "wie viele Tickets sind offen?",
    "combien de contrats expirent ?",
    "¿cuántos correos son spam?",
    "сколько писем",
    "有多少封邮件",
]
NEEDLE = [
    "who signed the lease?",
    "summarize the meeting",
    "notes of the all-hands",
    "the recount was small",
    "",
    None,
    42,
]


@pytest.mark.case("R-092")
@pytest.mark.parametrize("text", COMPLETE)
def test_a_question_for_everything_is_seen(text: str) -> None:
    assert implies_completeness(text)


@pytest.mark.case("R-092")
@pytest.mark.parametrize("text", NEEDLE)
def test_a_question_for_one_thing_is_left_alone(text: object) -> None:
    assert not implies_completeness(text)


@pytest.mark.case("R-072", "R-077")
def test_a_corpus_is_scanned_by_default() -> None:
    assert route("what is this?", has_corpus=True).retrieval == "scan"


@pytest.mark.case("R-007")
def test_without_a_corpus_nothing_is_retrieved() -> None:
    assert route("how many?", has_corpus=False).retrieval is None


@pytest.mark.case("R-085")
def test_a_search_for_everything_becomes_a_scan() -> None:
    found = route("how many mention fire?", has_corpus=True, retrieval="search")
    assert (found.retrieval, found.upgraded) == ("scan", True)


@pytest.mark.case("R-086")
def test_a_contract_can_ask_for_everything_too() -> None:
    found = route(
        "find fires", has_corpus=True, retrieval="search", contract="cite every report of a fire"
    )
    assert found.upgraded


@pytest.mark.case("R-085")
@pytest.mark.parametrize("task", ["Is it about fire?", "这是投诉吗？", "Mood: calm, angry or sad?"])
def test_a_question_asked_of_each_record_is_upgraded_without_a_key_word(task: str) -> None:
    assert route(task, has_corpus=True, retrieval="search").upgraded
    assert not route(task, has_corpus=True, retrieval="search", counts=False).upgraded


def test_a_question_that_compiles_to_a_count_needs_no_key_word() -> None:
    assert route("Feuer?", has_corpus=True, retrieval="search", counts=True).upgraded


@pytest.mark.case("R-087")
def test_a_needle_stays_a_search() -> None:
    found = route("who signed?", has_corpus=True, retrieval="search")
    assert (found.retrieval, found.upgraded) == ("search", False)


@pytest.mark.case("R-089")
@pytest.mark.parametrize("retrieval", ["tools", "exact", "scan"])
def test_only_a_search_is_upgraded(retrieval: str) -> None:
    found = route("how many?", has_corpus=True, retrieval=retrieval)
    assert (found.retrieval, found.upgraded) == (retrieval, False)


def test_an_unknown_route_is_refused_with_its_choices() -> None:
    """D13."""
    with pytest.raises(ValidationError, match="retrieval='grep'") as caught:
        route("x", has_corpus=True, retrieval="grep")
    assert "scan, search, exact, tools" in str(caught.value)


def test_the_guard_is_linear_on_long_text() -> None:
    started = time.process_time()
    assert not implies_completeness("needle " * 100_000)
    assert time.process_time() - started < 2


# ---------------------------------------------------------------- by rules alone


@pytest.mark.parametrize(
    ("task", "way"),
    [
        ("Who signed the lease?", "search"),
        ("Finde die Klausel zur Kündigung", "search"),
        ("How many tickets are about refunds?", "scan"),
        ("How many tickets are about 'refunds'?", "scan"),
        ("How many tickets mention 'late fee'?", "exact"),
        ("What happened to INV-204?", "exact"),
        ("How many tickets are about INV-204?", "scan"),
        ("Who complained in 2024 about 12km of pipe?", "search"),
        ("Who is bob@example.org?", "exact"),
        ("Is it a complaint?", "scan"),
        ("这是投诉吗？", "scan"),
        ("How many are refunds? Who handled most?", "tools"),
        ("List all suppliers, and find who signed first", "tools"),
        ("Write about harbours", "scan"),
        ("", "scan"),
    ],
)
def test_a_route_is_chosen_by_rules_alone_and_says_why(task: str, way: str) -> None:
    found = route_by_rules(task)
    assert found.retrieval == way
    assert found.reason
    assert not found.upgraded


def test_exact_terms_that_decided_are_named() -> None:
    found = route_by_rules("What happened to INV-204?")
    assert found.terms == ("INV-204",)
    assert "'INV-204'" in found.reason


@pytest.mark.case("R-086")
def test_by_rules_too_a_contract_can_ask_for_everything() -> None:
    assert route_by_rules("who signed?").retrieval == "search"
    assert route_by_rules("who signed?", contract="cite every lease").retrieval == "scan"


def test_a_worker_without_tools_is_never_given_any() -> None:
    found = route_by_rules("How many are refunds? Who handled most?", tools=False)
    assert found.retrieval == "scan"


def test_without_tools_a_question_about_an_id_is_searched_and_not_counted() -> None:
    found = route_by_rules("What happened to INV-204?", tools=False)
    assert (found.retrieval, found.terms) == ("search", ("INV-204",))
    counted = route_by_rules("How many mails mention INV-204?", tools=False)
    assert counted.retrieval == "exact"


def test_a_typed_question_is_scanned() -> None:
    assert route_by_rules(YesNo(text="INV-204?")).retrieval == "scan"


@pytest.mark.parametrize("task", COMPLETE)
def test_by_rules_no_question_for_everything_is_searched(task: str) -> None:
    assert route_by_rules(task).retrieval in {"scan", "exact", "tools"}


@pytest.mark.parametrize(
    "text", ["a-1_" * 100_000, '"' * 400_000, "x1." * 130_000, "who, and " * 50_000]
)
def test_rules_are_linear_on_long_text(text: str) -> None:
    started = time.process_time()
    route_by_rules(text)
    assert time.process_time() - started < 2
