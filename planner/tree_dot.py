"""A graph in the language of Graphviz, with labels from outside. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

__all__ = ["dot_of"]

_SHOWN: Final = 120  # characters of a label


def dot_of(nodes: Mapping[str, str], edges: Iterable[tuple[str, str, bool]]) -> str:
    """Return a directed graph.

    Args:
        nodes: label of each; any text, shown as it is as far as its first 120 characters.
        edges: from, to, and whether it is drawn dashed.
    """
    lines = [f"  {_quoted(id_)} [label={_quoted(label)}];" for id_, label in nodes.items()]
    for source, target, dashed in edges:
        style = " [style=dashed]" if dashed else ""
        lines.append(f"  {_quoted(source)} -> {_quoted(target)}{style};")
    return "\n".join(["digraph {", "  node [shape=box];", *lines, "}", ""])


def _quoted(text: str) -> str:
    """Return a string that Graphviz shows as the text: no escape of its language is left in it."""
    short = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    shown = "".join(_shown(character) for character in short)
    return f'"{shown}"'


def _shown(character: str) -> str:
    match character:
        case "\n":
            return "\\n"
        case '"' | "\\":
            return f"\\{character}"
        case _ if character.isprintable():
            return character
        case _:
            return " "
