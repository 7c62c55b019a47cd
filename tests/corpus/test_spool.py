"""Pass 0: a source is read once; ids, blanks and repeats are known from then on."""

from pathlib import Path

import pytest

from corpus.sources import open_source
from corpus.spool import Spool, build_spool
from executors.errors import DuplicateIds

pytestmark = pytest.mark.anyio


async def test_records_come_back_equal_and_in_order(tmp_path: Path) -> None:
    pairs = [("b", "two"), ("a", "one\n"), ("é", "drei \U0001f600"), ("", "")][:3]
    built = await build_spool(open_source(pairs), tmp_path / "spool")
    assert [(record.id, record.text) for record in built] == pairs
    assert list(Spool.open(tmp_path / "spool")) == list(built)


@pytest.mark.case("K6-11", "K6-13")
async def test_repeated_ids_are_refused_with_their_places(tmp_path: Path) -> None:
    source = open_source([("a", "x"), ("b", "y"), ("a", "z")])
    with pytest.raises(DuplicateIds, match="'a' at item 3"):
        await build_spool(source, tmp_path / "spool")
