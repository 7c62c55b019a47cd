"""Reading a judge's reply: the fast way reads what the careful way reads."""

import json

from hypothesis import given
from hypothesis import strategies as st

from corpus.judges.answers import AnswerReader, Outcome
from corpus.questions import OneOf, Question, YesNo
from corpus.records import Part

ALIASES = st.sampled_from(["1", "2", "3", "4", "01", "r1", 'a"b', ""])
WORDS: list[object] = ["yes", "no", "unsure", "Yes", "a", "b", '"', "", True, None, 1]
VALUES = st.sampled_from(WORDS)


class Careful(AnswerReader):
    def _plain(self, text: str, count: int) -> list[Outcome] | None:
        del text, count
        return None


@given(
    st.lists(st.tuples(ALIASES, VALUES), max_size=5),
    st.integers(1, 4),
    st.sampled_from(["{%s}", "\ufeff{%s}", "  {\n%s}\n", "[%s]", "{%s", "{%s} {%s}", '"%s"']),
    st.sampled_from([YesNo(text="?"), OneOf(text="?", labels=("a", "b", "yes"))]),
    st.booleans(),
)
def test_a_reply_says_the_same_however_it_is_read(
    pairs: list[tuple[str, object]], count: int, form: str, question: Question, quotes: bool
) -> None:
    body = ", ".join(f"{json.dumps(alias)}: {json.dumps(value)}" for alias, value in pairs)
    text = form.replace("%s", body)
    parts = [Part(ordinal=n, id=f"r{n}", text="yes a b") for n in range(count)]
    fast = AnswerReader(question, quotes=quotes).read(text, parts)
    assert fast == Careful(question, quotes=quotes).read(text, parts)


def test_an_alias_that_stands_twice_is_no_answer_however_plain() -> None:
    parts = [Part(ordinal=0, id="r0", text="x")]
    reader = AnswerReader(YesNo(text="?"), quotes=False)
    assert "not the JSON" in str(reader.read('{"1": "no", "1": "yes"}', parts).outcomes[0])
