"""Scripted auditors: models that are shown files and quote them."""

import json
import re
from collections.abc import Callable
from typing import Final

from executors.messages import ModelRequest
from rlm.testing import ScriptedModel

_RECORD: Final = re.compile(
    r'^record ("(?:[^"\\]|\\.)*")(?: \(part \d+ of \d+\))?:\n(.*?)(?=\n\nrecord "|\n</records-)',
    re.MULTILINE | re.DOTALL,
)
_FENCED: Final = re.compile(r"<records-(\w+)>\n.*?\n</records-\1>\n*", re.DOTALL)

Look = Callable[[str, str], list[dict[str, object]]]


def files_of(request: ModelRequest) -> dict[str, str]:
    """Return the files that a request shows, by their path."""
    found = _RECORD.findall(request.messages[1].content)
    return {json.loads(name): text for name, text in found}


def unfenced(request: ModelRequest) -> str:
    """Return what a request says outside its fences."""
    return _FENCED.sub("", "\n".join(message.content for message in request.messages))


def auditor(look: Look) -> ScriptedModel:
    """A model that says of each file (path, text) what `look` does."""

    def turn(request: ModelRequest) -> str:
        shown = files_of(request).items()
        return json.dumps([one for path, text in shown for one in look(path, text)])

    return ScriptedModel(turn)


def finding(
    path: str, quote: str, what: str = "a fault", severity: str = "high"
) -> dict[str, object]:
    """A finding as models write it."""
    return {"record": path, "quote": quote, "finding": what, "severity": severity}


def sees(word: str) -> Look:
    """Report each line that holds a word."""
    return lambda path, text: [finding(path, one) for one in text.splitlines() if word in one]
