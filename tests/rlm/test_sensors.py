"""Sensors that code answers: the shape of JSON, and quotes that stand where they are said to stand."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from corpus.records import Record
from corpus.sources.open import open_source
from corpus.spool import build_spool
from executors.errors import SourceError, ValidationError
from rlm.checks.arbiters import Broken, run_arbiter
from rlm.checks.sensors import Sensor, SensorContext, citations, json_schema
from rlm.checks.sensors.cited import Citation, Lookup, read_citations
from rlm.checks.verdict import NeedsRevision, Satisfied, Verdict, read_verdict

pytestmark = pytest.mark.anyio
CONTEXT = SensorContext(task="t")


async def sensed(sensor: Sensor, result: str) -> Verdict:
    found: Verdict | Broken = await run_arbiter(
        sensor, result, CONTEXT, read=read_verdict, kind="broken-sensor"
    )
    assert not isinstance(found, Broken), found
    return found


async def critique(sensor: Sensor, result: str) -> str:
    found = await sensed(sensor, result)
    assert isinstance(found, NeedsRevision)
    return found.critique


# ---------------------------------------------------------------- schemas

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
}


async def test_json_that_fits_passes_also_from_a_fence() -> None:
    sensor = json_schema(PERSON)
    for text in ('{"name": "Ada", "age": 36}', '```json\n{"name": "Ada", "age": 36}\n```'):
        assert await sensed(sensor, text) == Satisfied()


async def test_json_that_does_not_fit_is_told_where_and_why() -> None:
    assert await critique(json_schema(PERSON), '{"age": -1}') == snapshot("""\
the result does not fit the schema:
- at $: 'name' is a required property
- at $.age: -1 is less than the minimum of 0\
""")


@pytest.mark.case("K4-7", "K4-20")
@pytest.mark.parametrize("text", ["", "Ada is 36", '{"name": "A', '{"age": NaN}', '{"re": "\\d"}'])
async def test_what_is_no_json_is_told_with_its_place_and_never_repaired(text: str) -> None:
    said = await critique(json_schema({}), text)
    assert said.startswith("the result is not the JSON that was asked for: ")
    assert "(at character " in said


async def test_many_faults_are_counted_and_long_ones_cut() -> None:
    said = await critique(
        json_schema({"items": {"type": "string", "maxLength": 3}}),
        json.dumps(["y" * 5_000, *range(30)]),
    )
    assert said.count("\n- ") == 11
    assert said.endswith("and 21 more")
    assert len(said) < 1_500


async def test_a_schema_that_is_none_is_refused_and_no_reference_is_fetched() -> None:
    with pytest.raises(ValidationError, match=r"this is no JSON Schema.*\n.*at \$\.type"):
        json_schema({"type": "strnig"})
    with pytest.raises(ValidationError, match="schema=3"):
        json_schema(3)  # type: ignore[arg-type]
    elsewhere = json_schema({"$id": "http://192.0.2.1/", "$ref": "schema.json"})
    found = await run_arbiter(elsewhere, "1", CONTEXT, read=read_verdict, kind="broken-sensor")
    assert isinstance(found, Broken)


@pytest.mark.parametrize(
    "reference",
    [
        "http://192.0.2.1/schema.json",
        "file:other.json",
        "other.json",
        "#/$defs/b",
        "#/$defs/a/0",
    ],
)
async def test_a_reference_to_what_is_not_there_is_refused_at_once(reference: str) -> None:
    with pytest.raises(ValidationError, match=r"which it does not hold\n.*\n.*nothing is fetched"):
        json_schema({"$defs": {"a": {}}, "prefixItems": [{"$ref": reference}]})


async def test_references_within_are_followed_and_data_are_none() -> None:
    schema: dict[str, object] = {
        "$defs": {"a b/c": {"type": "integer"}, "d": {"$anchor": "here", "minimum": 3}},
        "properties": {"x": {"$ref": "#/$defs/a%20b~1c"}, "y": {"$ref": "#here"}},
        "const": {"x": 1, "y": 3, "$ref": "#/nowhere"},
    }
    assert isinstance(
        await sensed(json_schema(schema), '{"x": 1, "y": 3, "$ref": "#/nowhere"}'), Satisfied
    )
    said = await critique(json_schema(schema), '{"x": "1", "y": 2}')
    assert "$.x" in said
    assert "$.y" in said


@pytest.mark.parametrize("odd", [{"const": {1, 2}}, {"const": object()}, {"const": float("nan")}])
async def test_a_schema_that_json_cannot_hold_is_refused(odd: dict[str, object]) -> None:
    with pytest.raises(
        ValidationError, match=r"this is no JSON Schema: .*\n.*\n.*what JSON can hold"
    ):
        json_schema(odd)


# ---------------------------------------------------------------- citations

RECORDS = {
    "a.py": "def add(a, b):\n    return a - b\n",
    "7": "The fee is   12 EUR\nfor each month.",
}


def findings(*items: Mapping[str, object] | object) -> str:
    return json.dumps(list(items))


def finding(record: object, quote: object, **more: object) -> dict[str, object]:
    return {"record": record, "quote": quote, "finding": "it is wrong"} | more


async def test_findings_whose_quotes_stand_pass_and_are_told_with_their_places() -> None:
    result = findings(
        finding("a.py", "return a - b", severity="high"), finding(7, "12 EUR for each month")
    )
    found = await sensed(citations(RECORDS), result)
    assert found == Satisfied(extra=found.extra)
    assert found.extra["uncited"] == ()
    assert found.extra["cited"] == (
        Citation(
            record="a.py",
            finding="it is wrong",
            severity="high",
            quote="return a - b",
            start=19,
            end=31,
            where=None,
        ),
        Citation(
            record="7",
            finding="it is wrong",
            severity=None,
            quote="12 EUR\nfor each month",
            start=13,
            end=34,
            where=None,
        ),
    )


async def test_each_citation_that_fails_is_named_with_its_reason() -> None:
    result = findings(
        finding("a.py", "return a - b"),
        finding("a.py", "return a + b"),
        finding("b.py", "return"),
        finding("a.py", " "),
        {"record": "a.py", "finding": ""},
        "a.py",
    )
    found = await sensed(citations(RECORDS), result)
    assert isinstance(found, NeedsRevision)
    assert found.critique == snapshot("""\
5 of 6 finding(s) are not shown by the records:
- finding 2, record 'a.py': the record does not hold the words 'return a + b'
- finding 3, record 'b.py': there is no record with this id
- finding 4, record 'a.py': it has no quote
- finding 5, record 'a.py': it has no quote and no finding
- finding 6, record '': it has no record and no quote and no finding
Copy each quote exactly from the record that it names, and leave out what none shows.\
""")
    both = read_citations(result, RECORDS.get)
    assert isinstance(both, tuple)
    assert found.extra == {"cited": tuple(both[0]), "uncited": tuple(both[1])}
    assert [one.index for one in both[1]] == [1, 2, 3, 4, 5]


async def test_a_list_without_findings_claims_nothing() -> None:
    for text in ("[]", '{"findings": []}', "```json\n[]\n```"):
        assert isinstance(await sensed(citations(RECORDS), text), Satisfied)


@pytest.mark.parametrize("text", ["", "all is well", "{}", '{"a": []}', "3", '"[]"', "null"])
async def test_what_is_no_list_of_findings_says_how_one_looks(text: str) -> None:
    assert "with the keys record (the id), quote" in await critique(citations(RECORDS), text)


async def test_many_failures_are_counted() -> None:
    said = await critique(citations({}), findings(*(finding(f"r{n}", "x") for n in range(50))))
    assert said.startswith("50 of 50 finding(s)")
    assert "- and 30 more" in said
    assert said.count("\n- finding ") == 20


async def test_records_come_out_of_a_spool_and_out_of_functions(tmp_path: Path) -> None:
    result = findings(finding("a.py", "return a - b"))
    with await build_spool(open_source(list(RECORDS.items())), tmp_path / "spool") as spool:
        assert isinstance(await sensed(citations(spool), result), Satisfied)

    def lookup(id_: str) -> Record | None:
        return Record(id=id_, text=RECORDS[id_], where="a.py:1") if id_ in RECORDS else None

    found = await sensed(citations(lookup), result)
    assert "where='a.py:1'" in repr(found.extra["cited"])


async def test_an_id_that_may_mean_several_records_is_a_failed_citation() -> None:
    def lookup(id_: str) -> Record | None:
        raise SourceError(f"{id_!r} may mean several ids")

    made: Lookup = lookup
    assert "'A' may mean several ids" in await critique(
        citations(made), findings(finding("A", "x"))
    )


@pytest.mark.parametrize("held", [3, ["text"], {"text": "a"}, b"text"])
async def test_a_record_that_is_no_text_is_the_callers_fault(held: object) -> None:
    sensor = citations({"a": held})  # type: ignore[dict-item]
    result = findings(finding("a", "text"))
    found = await run_arbiter(sensor, result, CONTEXT, read=read_verdict, kind="broken-sensor")
    assert isinstance(found, Broken)
    assert f"the record 'a' is a {type(held).__name__}" in found.detail


def test_records_that_are_none_are_refused() -> None:
    with pytest.raises(ValidationError, match="records=3"):
        citations(3)  # type: ignore[arg-type]


def test_findings_can_be_read_without_a_sensor() -> None:
    found = read_citations(findings(finding("a.py", "return a - b")), RECORDS.get)
    assert isinstance(found, tuple)
    assert [len(some) for some in found] == [1, 0]
