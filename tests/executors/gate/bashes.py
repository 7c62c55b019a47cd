"""Commands as actions, and what the rule for commands says of them."""

from executors.gate.actions import Action, plain
from executors.gate.config.bash import BashSection
from executors.gate.decisions import Ask
from executors.gate.rules.bash import BashRule

__all__ = ["asked", "denied", "rule", "tier"]


def rule(**keys: object) -> BashRule:
    return BashRule(BashSection.model_validate({"platform": "linux", **keys}))


def asked(cmd: object = None, **fields: object) -> Action:
    return plain({"type": "bash", **({} if cmd is None else {"cmd": cmd}), **fields})


def denied(judge: BashRule, action: Action) -> str:
    found = judge.deny(action)
    if found is None:
        return ""
    assert found.reason
    return found.rule


def tier(cmd: object, **keys: object) -> int:
    found = rule(classify=True, **keys).ask(asked(cmd) if isinstance(cmd, str) else plain(cmd))
    if found is None:
        return 1
    assert isinstance(found, Ask)
    assert found.rule == "bash.classify"
    return found.tier or 0
