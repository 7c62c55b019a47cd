"""The committed demo corpus, and the script that makes it."""

import csv
import gzip
import hashlib
import importlib.util
import json
import re
import sys
import tarfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

ROOT = Path(__file__).parents[2]
DATA = ROOT / "examples" / "data"

if TYPE_CHECKING:
    from examples import make_demo_corpus as demo
else:  # a script, not a package that can be imported by name
    _spec = importlib.util.spec_from_file_location(
        "make_demo_corpus", ROOT / "examples" / "make_demo_corpus.py"
    )
    demo = sys.modules["make_demo_corpus"] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(demo)


@pytest.fixture(scope="module")
def text() -> bytes:
    return gzip.decompress((DATA / "spamassassin.jsonl.gz").read_bytes())


@pytest.fixture(scope="module")
def corpus(text: bytes) -> list[dict[str, str]]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_corpus_is_the_pinned_one_and_small(text: bytes) -> None:
    packed = (DATA / "spamassassin.jsonl.gz").read_bytes()
    assert hashlib.sha256(text).hexdigest() == demo.TEXT_SHA256
    assert packed[4:8] == bytes(4), "a time in the gzip head would change the bytes at each making"
    assert len(packed) < 3_000_000


def test_the_corpus_holds_the_true_counts(corpus: list[dict[str, str]]) -> None:
    assert Counter(mail["truth"] for mail in corpus) == {"ham": 4150, "spam": 1896}
    assert {tuple(mail) for mail in corpus} == {("id", "subject", "body", "truth")}
    assert max(len(mail["body"]) for mail in corpus) <= demo.BODY_CHARACTERS
    assert max(len(mail["subject"]) for mail in corpus) <= demo.SUBJECT_CHARACTERS


def test_neither_id_nor_place_tells_the_class(corpus: list[dict[str, str]]) -> None:
    """Each tenth of the file holds about the share of spam that the whole file holds."""
    assert [mail["id"] for mail in corpus] == [f"m{n:04}" for n in range(1, 6047)]
    for start in range(0, 6040, 604):
        spam = sum(mail["truth"] == "spam" for mail in corpus[start : start + 604])
        assert 189 - 45 < spam < 189 + 45, "four standard errors"


def test_no_address_phone_number_or_collector_is_left(corpus: list[dict[str, str]]) -> None:
    address = re.compile(r"[\w.+-]+@[\w-]+\.[a-z]{2,}", re.IGNORECASE)
    phone = re.compile(r"\b\d{3}[-. ]\d{3}[-. ]\d{4}\b|\(\d{3}\) ?\d{3}-\d{4}")
    for mail in corpus:
        both = f"{mail['subject']}\n{mail['body']}"
        assert not address.search(both), mail["id"]
        assert not phone.search(both), mail["id"]
        assert not re.search(r"(?i)taint\.org|netnoteinc|deathtospam", both), mail["id"]


def test_no_list_tag_or_footer_is_left(corpus: list[dict[str, str]]) -> None:
    """They stand on one class far more often than on the other; quoted ones belong to a reply."""
    assert not [mail["id"] for mail in corpus if demo.LIST_TAG.search(mail["subject"])]
    footer = re.compile(
        r"(?m)^_{40,}\n.{0,80}mailing list$|^This sf\.net email is sponsored|^Irish Linux Users' Group:"
    )
    assert sum(bool(footer.search(mail["body"])) for mail in corpus) <= 10


def test_the_labels_are_true_answers_for_80_of_its_mails(corpus: list[dict[str, str]]) -> None:
    with (DATA / "labels-80.csv").open(encoding="utf-8", newline="") as file:
        labels = list(csv.DictReader(file))
    truths = {mail["id"]: mail["truth"] for mail in corpus}
    assert len({row["id"] for row in labels}) == 80
    assert all(row["label"] == demo.ANSWERS[truths[row["id"]]] for row in labels)
    assert Counter(row["label"] for row in labels) == {"no": 61, "yes": 19}


def test_the_draw_of_the_labels_looks_at_ids_alone(corpus: list[dict[str, str]]) -> None:
    """Turning every truth round moves no id."""
    turned = [{**mail, "truth": "ham" if mail["truth"] == "spam" else "spam"} for mail in corpus]
    made = demo.labels_csv([demo.Mail(**mail) for mail in turned])  # type: ignore[typeddict-item]
    kept = (DATA / "labels-80.csv").read_bytes()
    assert [row[:5] for row in made.splitlines()] == [row[:5] for row in kept.splitlines()]


def test_the_notice_states_hashes_and_licence() -> None:
    notice = (DATA / "NOTICE.md").read_text(encoding="utf-8")
    assert demo.TEXT_SHA256 in notice
    assert demo.PACKAGE_SHA256 in notice
    assert "PDDL 1.0" in notice
    assert "CC0 1.0" in notice


@pytest.mark.parametrize(
    ("raw", "masked"),
    [
        ("write to Joe <joe.b+x@mail.example.com>, please", "write to Joe <address>, please"),
        ("root@localhost and mailto:a@b.ie", "<address> and <address>"),
        ("joe (at) mail {dot} org", "<address>"),
        ("joe at mail dot org", "<address>"),
        ("a@b.com|c@d.com", "<address>|<address>"),
        ("tickets only @19.95, at 12 @ 3", "tickets only @19.95, at 12 @ 3"),
        ("call (800) 555-0100 now", "call <phone> now"),
        ("1-800-CALL-NOW!", "<phone>!"),
        ("+353 1 234 5678, fax: 01 2345678", "<phone>, fax: <phone>"),
        ("ICQ: 132152059", "ICQ: <phone>"),
        ("CAN-2002-0384 on 2002-08-22 from 192.168.100.200", None),
        ("http://joe:pw@host.com/~joe/a?id=joe", "http://<user>@host.com/~<user>/a?<query>"),
        ("to zzzz@x.org at lists.spamassassin.taint.org", "to <address> at <name>"),
    ],
)
def test_masking_takes_what_names_a_person(raw: str, masked: str | None) -> None:
    assert demo.mask(raw) == (raw if masked is None else masked)


def _mail(head: str, body: bytes) -> bytes:
    return f"Subject: Re: [ILUG] Hello\nTo: a@b.org\n{head}\n\n".encode() + body


@pytest.mark.parametrize(
    ("head", "body", "text"),
    [
        ("Content-Type: text/plain; charset=koi8-r", "привет".encode("koi8-r"), "привет"),
        ("Content-Type: text/plain; charset=nonsense", "naïve".encode("cp1252"), "naïve"),
        (
            "Content-Type: text/html",
            b"<p>Buy<style>x{}</style> &amp;<br>go<!-- no -->",
            "Buy &\ngo",
        ),
        ("Content-Type: text/html", b"<style>a <p>shown all the same", "a\nshown all the same"),
        ("Content-Transfer-Encoding: base64", b"aGVsbG8=", "hello"),
        (
            'Content-Type: multipart/alternative; boundary="lost"',
            b"no such boundary\n<html><p>page</html>",
            "page",
        ),
        (
            'Content-Type: multipart/mixed; boundary="x"',
            b"--x\nContent-Type: text/html\n\n<p>page\n--x\n\nplain\n--x--\n",
            "plain",
        ),
        ("X: y", b"hi\n" + b"_" * 47 + b"\nExmh-users mailing list\nurl\n", "hi"),
        ("X: y", b"URL: http://n.org/1\nDate: Not supplied\n\nnews", "news"),
        ("X: y", b"ab " * 600, ("ab " * 500).strip()),
    ],
)
def test_a_mail_becomes_its_text(head: str, body: bytes, text: str) -> None:
    """Decoded, without markup and list furniture, cut; the list's tag is off the subject."""
    assert demo.read_mail(_mail(head, body)) == ("Re: Hello", text)


def test_a_package_with_another_hash_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "other.tgz", "w:gz"):
        pass
    with pytest.raises(SystemExit, match=demo.PACKAGE_SHA256):
        demo.raw_mails(tmp_path / "other.tgz")
