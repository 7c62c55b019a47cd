"""What would change a decision, by its rule: which key of the configuration, and how."""

from __future__ import annotations

from typing import Final

__all__ = ["remedy"]

_SCOPES: Final = {"fs.readScope": "fs.read_scope", "fs.writeScope": "fs.write_scope"}
_REMEDIES: Final = {
    "default": "nothing speaks against it; tools.denylist would, by its name",
    "tools.denylist": "take the name off tools.denylist",
    "tools.allowlist.exclusive": "put the name on tools.allowlist, or leave that key out",
    "tools.allowlist.invalid": "build the gate again after a change",
    "tools.denyArgPatterns": "call it with other arguments, or change tools.deny_arg_patterns",
    "content.denyPatterns": "set content.deny_patterns: what stands there replaces the defaults, "
    "[] denies nothing",
    "content.askPatterns": "set content.ask_patterns: what stands there replaces the defaults, "
    "[] asks about nothing",
    "content.unserializable": "give a mapping with texts, numbers, true, false, null, lists and "
    "mappings of them alone",
    "tool.judged": "mend the tool: what it says of its calls is looked at",
    "fs.deny": "take the folder off fs.deny",
    "fs.readScope": "put a folder that holds it on fs.read_scope",
    "fs.writeScope": "put a folder that holds it on fs.write_scope",
    "fs.invalidPath": "give one path, as a text",
    "fs.relativePath": "give the whole path, from /",
    "fs.homePath": "give the whole path, from /",
    "bash.allow": "put the beginning of the command on bash.allow, or leave that key out",
    "bash.allow.shellMeta": "give one plain command: with bash.allow set, nothing else is looked at",
    "bash.denyPatterns": "change bash.deny_patterns",
    "bash.invalidCmd": "give one command, as a text or a list of words",
    "bash.classify": "a person allows it, or bash.classify: false asks about no command",
    "net.invalidUrl": "give one whole URL with http:// or https://",
    "net.denyPrivateIps": "net.deny_private_ips: false allows hosts of this machine and its network",
    "net.allowDomains": "put its host on net.allow_domains, or leave that key out",
    "limits.maxChildren": "raise limits.max_children",
    "limits.maxDepth": "raise limits.max_depth",
    "limits.maxTurns": "raise limits.max_turns",
    "limits.maxToolRounds": "raise limits.max_tool_rounds",
    "spawn.ratePerMinute": "raise spawn.rate_per_minute, or wait a minute",
    "defer.ratePerMinute": "raise defer.rate_per_minute, or wait a minute",
    "budget.maxCostUsd": "raise budget.max_cost_usd",
    "budget.maxTokens": "raise budget.max_tokens",
    "budget.maxCalls": "raise budget.max_calls",
    "budget.unpriced": "give the model's price, or set budget.fail_closed_on_unpriced: false",
}


def remedy(rule: str) -> str:
    """Return what would change what a rule decides."""
    if (known := _REMEDIES.get(rule)) is not None:
        return known
    section, _, rest = rule.partition(".")
    match section:
        case "flags":
            return f"change what flags.{rest} says of the value of that field"
        case "budget":
            return f"raise budget.resources.{rest.removeprefix('resource.')}"
        case "fs":
            scope = rule.rpartition(".")[0]
            return f"name real folders, without links on the way, on {_SCOPES.get(scope, scope)}"
        case _:
            return "change the configuration"
