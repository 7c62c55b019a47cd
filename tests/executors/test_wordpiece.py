"""WordPiece: the ids are those of the reference implementation, for any text."""

import pytest

from executors.errors import ConfigError
from executors.models.encoders.wordpiece import VOCABULARY, WordPiece, read_vocabulary


@pytest.fixture(scope="module")
def pieces() -> WordPiece:
    return WordPiece(read_vocabulary(), max_tokens=256)


# Text -> ids between the two marks, as the `tokenizers` library gives them for BERT uncased.
REFERENCE = {
    "": [],
    "   \t\n": [],
    "Hello, World!": [7592, 1010, 2088, 999],
    "unaffable": [14477, 20961, 3468],
    "Cr\xe8me br\xfbl\xe9e \xe0 la carte": [
        13675,
        21382,
        7987,
        9307,
        2063,
        1037,
        2474,
        11122,
        2063,
    ],
    "\xc5NGSTR\xd6M \u0130stanbul \u03a3\u038a\u03a3\u03a5\u03a6\u039f\u03a3": [
        17076,
        15687,
        9960,
        1173,
        18199,
        29733,
        29735,
        29736,
        29730,
        29733,
    ],
    "\u6df1\u5ea6\u5b66\u4e60 is \u4e2d\u6587": [100, 100, 1817, 100, 2003, 1746, 1861],
    "\ud55c\uad6d\uc5b4 \ud14d\uc2a4\ud2b8": [
        1469,
        30006,
        30021,
        29991,
        30014,
        30020,
        29999,
        30008,
        1467,
        30009,
        30020,
        29997,
        30017,
        30003,
        30017,
    ],
    "don't e-mail me: a_b@c.d": [
        2123,
        1005,
        1056,
        1041,
        1011,
        5653,
        2033,
        1024,
        1037,
        1035,
        1038,
        1030,
        1039,
        1012,
        1040,
    ],
    "price: \u20ac9.99 (50%) \xa33": [
        3976,
        1024,
        1574,
        2683,
        1012,
        5585,
        1006,
        2753,
        1003,
        1007,
        28182,
    ],
    "x\u200by\ufeffz\xadw": [1060, 2100, 2480, 2860],
    "tab\tnew\nline\xa0nbsp\u3000wide": [21628, 2047, 2240, 1050, 5910, 2361, 2898],
    "\x00null\ufffdbad\x07bell": [19701, 9024, 17327],
    "\U0001f389 emoji \u263a\ufe0f text": [100, 7861, 29147, 2072, 100, 3793],
    "na\xefve co\u0301mbining": [15743, 11566],
    "\ufb01 ligature \xbd \xb2": [1984, 8018, 11244, 1092, 1082],
    "antidisestablishmentarianism": [3424, 10521, 4355, 7875, 13602, 3672, 12199, 2964],
    "a\u0600b\ue000c\u0378d": [100],
    "\u201cquotes\u201d \u2014 dash\u2026": [1523, 16614, 1524, 1517, 11454, 1529],
    "\u0639\u0631\u0628\u064a \u0646\u0635": [1288, 17149, 29816, 14498, 1296, 29826],
    "\u0e44\u0e17\u0e22": [100],
    "\ud7a3\uac00": [100],
}


@pytest.mark.parametrize("text", REFERENCE)
def test_ids_are_those_of_the_reference(text: str, pieces: WordPiece) -> None:
    assert pieces.ids(text) == [101, *REFERENCE[text], 102]


def test_marks_inside_a_text_are_plain_text(pieces: WordPiece) -> None:
    """The reference lets a text forge the marks; a record is data here."""
    assert pieces.ids("[SEP]") == [101, 1031, 19802, 1033, 102]


def test_long_texts_are_cut_to_the_room_there_is() -> None:
    short = WordPiece(read_vocabulary(), max_tokens=6)
    assert short.ids("one two three four five six") == [101, 2028, 2048, 2093, 2176, 102]


def test_words_of_a_hundred_characters_and_more_are_unknown(pieces: WordPiece) -> None:
    assert pieces.ids("a" * 101) == [101, 100, 102]
    assert len(pieces.ids("a" * 100)) > 3


def test_a_corpus_of_random_words_does_not_fill_memory(
    pieces: WordPiece, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("executors.models.encoders.wordpiece._KEPT_WORDS", 10)
    pieces.ids(" ".join(f"w{number}" for number in range(100)))
    assert len(pieces._words) <= 10
    assert pieces.ids("hello") == [101, 7592, 102]


def test_a_changed_vocabulary_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("vocabulary") / "vocabulary.txt"
    path.write_bytes(VOCABULARY.read_bytes() + b"more\n")
    with pytest.raises(ConfigError, match="the vocabulary has SHA-256"):
        read_vocabulary(path)


def test_the_vocabulary_ships_with_its_source_and_licence() -> None:
    notice = (VOCABULARY.parent / "NOTICE.md").read_text(encoding="utf-8")
    assert "Apache License, Version 2.0" in notice
    assert len(read_vocabulary()) == 30_522
