"""What a task names that code can look for."""

import time

import pytest

from planner.lookups import terms_of


@pytest.mark.parametrize(
    ("task", "terms"),
    [
        ('mentions of "late  fee" and INV-204', ("late fee", "INV-204")),
        ("„Verzug“ oder «retard» oder 「延滞」", ("Verzug", "retard", "延滞")),
        ("tickets #4711 and A17b, v1.2.3 too.", ("#4711", "A17b", "v1.2.3")),
        ("who is bob@example.org?", ("bob@example.org",)),
        ("what does `read_file` do", ("read_file",)),
        ("it's the company's fault, isn't it", ()),
        ("in 2024 for 20% of 5kg by the 3rd, 10:30, 2024-05-01, Q3, 12km", ()),
        ("a well-known multi-agent system", ()),
        ('he said "', ()),
        ('"' + "x" * 100 + '"', ()),
        ("INV-204 or INV-204", ("INV-204",)),
    ],
)
def test_quoted_and_id_like_terms_are_found(task: str, terms: tuple[str, ...]) -> None:
    assert terms_of(task).exact == terms


@pytest.mark.parametrize("text", ['"' * 500_000, "a-1" * 160_000, "a_" * 200_000, "1:" * 200_000])
def test_long_text_takes_no_longer(text: str) -> None:
    started = time.process_time()
    terms_of(text)
    assert time.process_time() - started < 1
