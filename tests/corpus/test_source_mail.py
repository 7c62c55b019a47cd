"""Mail: subject and body are the text, whatever a message does to hide them."""

from pathlib import Path

import pytest

from corpus.sources import open_source
from executors.errors import SourceError
from tests.support.reading import counted, pairs, records_of, stored

PLAIN = b"Subject: hello\nFrom: a@b.example\nMessage-ID: <1@x>\n\nthe body\n"
BOX = (
    b"From a@b Mon\n" + PLAIN + b"\nFrom c@d Tue\nSubject: two\n\nline\n\n>From here on\nFrom me\n"
)
PARTS = b"""Subject: =?utf-8?q?caf=C3=A9?= and =?iso-8859-1?b?6Q==?=
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=B

--B
Content-Type: multipart/alternative; boundary=C

--C
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

caf=C3=A9
--C
Content-Type: text/html

<p>no</p>
--C--
--B
Content-Type: application/pdf
Content-Disposition: attachment

xx
--B--
"""


def test_a_mailbox_holds_many_messages(tmp_path: Path) -> None:
    source = open_source(stored(tmp_path, "t.mbox", BOX))
    assert pairs(source) == [
        ("1", "hello\n\nthe body\n"),
        ("2", "two\n\nline\n\nFrom here on\nFrom me\n"),
    ]
    assert [record.where for record in records_of(source)] == ["t.mbox:1", "t.mbox:8"]


def test_ids_may_be_the_messages_own(tmp_path: Path) -> None:
    source = open_source(stored(tmp_path, "t.mbox", BOX), id="message-id", text="subject")
    assert pairs(source) == [("<1@x>", "hello"), ("", "two")]
    with pytest.raises(SourceError, match=r"(?s)no column 'topic'.*subject"):
        open_source(tmp_path / "t.mbox", text="topic")


def test_folders_of_messages_and_maildirs(tmp_path: Path) -> None:
    stored(tmp_path, "mails/1.eml", PLAIN)
    assert pairs(open_source(tmp_path / "mails")) == [("1.eml", "hello\n\nthe body\n")]
    for name in ("cur/1:2,S", "new/2", "tmp/3"):
        stored(tmp_path, f"dir/{name}", PLAIN)
    assert [id_ for id_, _ in pairs(open_source(tmp_path / "dir"))] == ["cur/1:2,S", "new/2"]


def test_words_are_decoded_and_attachments_counted(tmp_path: Path) -> None:
    source = open_source(stored(tmp_path, "t.eml", PARTS))
    assert pairs(source) == [("t.eml", "café and é\n\ncafé")]
    assert counted(source) == {"other-parts": 1}


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (
            b"Subject: x\nContent-Type: text/html\n\n<style>p{}</style><p>a&amp;b<br>c</p>",
            "x\n\na&b\nc",
        ),
        (b"Subject: x\nContent-Type: text/html\n\n<title>never closed <p>a", "x\n\nnever closed a"),
        (b"Subject: x\nContent-Type: text/html\n\n<![nope[ <p>a</p>", None),
        (b"Subject: =?utf-8?b?!!?=\n\nb", None),
        (b"Subject: caf\xe9\n\nb", "café\n\nb"),
        (b"Subject: x\nContent-Type: text/plain; charset=klingon\n\ncaf\xe9", "x\n\ncafé"),
        (b"Subject: x\nContent-Type: text/plain; charset=utf-8\n\ncaf\xe9", "x\n\ncafé"),
        (b"Subject: one\n two\n\nb", "one two\n\nb"),
        (b"Content-Type: multipart/mixed\n\nno boundary", None),
        (b"\n\n", None),
        (b"", None),
        (b"\xff\xfe not a mail \x00", None),
        (b"Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\n%%%", None),
    ],
)
def test_no_message_is_an_exception(tmp_path: Path, raw: bytes, text: str | None) -> None:
    found = pairs(open_source(stored(tmp_path, "t.eml", raw)))
    assert len(found) == 1
    assert text is None or found == [("t.eml", text)]
