"""Which calls run side by side, and which one after another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.loop.grouping import batches, chains


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ("", []),
        ("ppp", ["ppp"]),
        ("sss", ["s", "s", "s"]),
        ("ppspp", ["pp", "s", "pp"]),
        ("sp", ["s", "p"]),
    ],
)
def test_neighbours_that_are_parallel_begin_together(calls: str, expected: list[str]) -> None:
    assert ["".join(batch) for batch in batches(calls, lambda call: call == "p")] == expected


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ([["a"], ["b"], ["c"]], [[0], [1], [2]]),
        ([["a"], ["b"], ["a"]], [[0, 2], [1]]),
        ([["a"], ["./a"], ["b/../a"]], [[0, 1, 2]]),
        ([["src"], ["src/a.py"], ["srcs"]], [[0, 1], [2]]),
        ([["src/a.py"], ["src/b.py"], ["src"]], [[0, 1, 2]]),
        ([["src/a.py"], ["src/b.py"]], [[0], [1]]),
        ([["a", "b"], ["b", "c"], ["c"], ["d"]], [[0, 1, 2], [3]]),
        ([["/"], ["/etc"], ["etc"]], [[0, 1], [2]]),
        ([["."], ["a"], ["/b"]], [[0, 1, 2]]),
    ],
)
def test_calls_that_touch_the_same_place_form_a_chain(
    paths: list[list[str]], expected: list[list[int]]
) -> None:
    assert chains(range(len(paths)), lambda index: paths[index]) == expected


def test_calls_that_touch_nothing_stand_alone() -> None:
    assert chains("abc", lambda _: ()) == [["a"], ["b"], ["c"]]


PLACES = st.lists(
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=3).map("/".join), max_size=3
)


@given(st.lists(PLACES, max_size=8))
def test_chains_lose_nothing_and_keep_apart_what_shares_nothing(paths: list[list[str]]) -> None:
    found = chains(range(len(paths)), lambda index: paths[index])
    assert sorted(index for chain in found for index in chain) == list(range(len(paths)))
    assert all(chain == sorted(chain) for chain in found)
    place = {index: n for n, chain in enumerate(found) for index in chain}
    for one, ours in enumerate(paths):
        for other, theirs in enumerate(paths):
            if any(f"{b}/".startswith(f"{a}/") for a in ours for b in theirs):
                assert place[one] == place[other]
