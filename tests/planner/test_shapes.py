"""The shape of a question, by its words alone."""

import time

import pytest

from corpus.questions import OneOf, YesNo
from planner.shapes import asks_one_thing, compiles_to_count

OF_EACH = [
    "Is it about fire?",
    "Does the customer want a refund?",
    "isn't this spam?",
    "Are there any mentions of asbestos?",
    "Has the patient a fever?",
    "Which kind is it: billing, bug or praise?",
    "Sentiment: positive / negative / neutral",
    "Geht es um eine Kündigung?",
    "Enthält das Dokument eine Frist?",
    "Est-ce que le client se plaint ?",
    "Parle-t-il d'un incendie ?",
    "¿Es una queja?",
    "Gaat het over brand?",
    "Czy to jest skarga?",
    "Есть ли жалоба?",
    "هل هو شكوى؟",
    "这是投诉吗？",
    "是否要求退款",
    "これは苦情ですか？",
    "불만입니까?",
]
ONE_THING = [
    "Who signed the lease?",
    "where is the contract kept",
    "Find the clause about termination",
    "How does the pump fail?",
    "Wer hat unterschrieben?",
    "Qui a signé le bail ?",
    "¿Quién firmó el contrato?",
    "Chi ha firmato?",
    "Кто подписал?",
    "谁签了合同？",
    "いつ届きますか",
]
NEITHER = ["Did Bob sign the lease?", "Summarize the notes", "", "Was Schmidt zahlt", "report: all"]


@pytest.mark.parametrize("task", OF_EACH)
def test_a_question_asked_of_each_record_compiles_to_a_count(task: str) -> None:
    assert compiles_to_count(task)


@pytest.mark.parametrize("task", [*ONE_THING, *NEITHER])
def test_other_questions_do_not(task: str) -> None:
    assert not compiles_to_count(task)


@pytest.mark.parametrize("task", ONE_THING)
def test_a_question_after_one_thing_is_seen(task: str) -> None:
    assert asks_one_thing(task)


def test_typed_questions_always_compile_to_a_count() -> None:
    assert compiles_to_count(YesNo(text="Feuer"))
    assert compiles_to_count(OneOf(text="who?", labels=("a", "b")))


@pytest.mark.parametrize(
    "text",
    [
        "is it " * 100_000,
        '"' * 500_000,
        "a: b, c" * 70_000,
        "a-1" * 160_000,
        "x:" + ", a" * 200_000,
    ],
)
def test_shapes_are_seen_in_linear_time_on_long_text(text: str) -> None:
    started = time.process_time()
    compiles_to_count(text)
    asks_one_thing(text)
    assert time.process_time() - started < 2
