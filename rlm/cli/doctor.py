"""`rlm doctor`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from rlm.cli.exits import Exit
from rlm.cli.options import Json, KeyEnv, ModelSpec
from rlm.cli.printing import print_json

if TYPE_CHECKING:
    from rlm.doctor import Finding, Status
    from rlm.render.lines import Line, Style

__all__ = ["doctor"]


def doctor(*, model: ModelSpec = None, key_env: KeyEnv = None, json_: Json = False) -> int:
    """Say what is installed, what is missing, and whether a model answers.

    Exits with 1 when something that is needed does not work.
    """
    # Metadata of every package is read here and nowhere else.
    from rlm.doctor import examine, healthy

    findings = examine()
    if model is not None:
        findings.append(_ask(model, key_env))
    _print(findings, as_json=json_)
    return Exit.DONE if healthy(findings) else Exit.OUR_FAULT


def _ask(spec: str, key_env: str | None) -> Finding:
    import anyio

    from executors.models.registry import resolve_model
    from rlm.cli.watch import bounds_of
    from rlm.probe import PROBE_CAPS, probe
    from rlm.render.safe import plain

    model = resolve_model(spec, key_env=key_env)
    spec = plain(model.info.spec, 80)
    sys.stderr.write(f"asking {spec} once; bounds: {bounds_of(PROBE_CAPS)}\n")
    return anyio.run(probe, model)


def _print(findings: list[Finding], *, as_json: bool) -> None:
    if as_json:
        print_json({"findings": [asdict(finding) for finding in findings]})
        return
    from rlm.render.lines import write_lines

    write_lines([row for finding in findings for row in _lines(finding)], sys.stdout)


def _lines(finding: Finding) -> list[Line]:
    from rlm.render.lines import Piece, line
    from rlm.render.safe import plain

    styles: dict[Status, Style] = {"ok": "good", "note": "dim", "bad": "bad"}
    mark = Piece(f"{finding.status:<4}", styles[finding.status])
    lines = [line(mark, f" {finding.topic}: {plain(finding.text)}")]
    if finding.hint is not None:
        lines.append(line(f"       {plain(finding.hint)}"))
    return lines
