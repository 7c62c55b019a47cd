"""Honest answers over more text than one model call can hold, with a receipt anyone can check.

Layout:

- `counting` `recursion` `recursion_plan` `resuming`: the fronts for `count`, `recurse`, `plan_recursion`
  and `resume`
- `counts` `recursions` `auditing`: one session of each, from its directory to its outcome
- `options` `judging` `teaching` `labels` `labelling`: what a count is given, which judge it gets, and
  how labels teach the encoder's head
- `forecasts`: what a count would take, without taking it
- `cluster` `units`: a count on many processes: who coordinates, and what workers do
- `corpora` `corpus_tools`: a corpus with its columns chosen, and within reach of any worker
- `checks` `synthesis`: who checks a result and who tries again; how the answers to parts become one
- `outcome` `events`: how a run ends, and what happens in it
- `receipts`: what was done, by whom, when, at what cost
- `runs`: their directories, sessions, logs and roots; which are kept, and what is forgotten
- `outputs` `formats` `summary`: results as files and as numbers
- `lone_calls` `sync`: calls that belong to no run; blocking twins
- `cli` `render`: the command line, and what people see
- `models` `probe` `doctor`: what can be named, whether it answers, and what is installed
- `testing` `fakes`: public fakes, among them a scripted model and a fake server on loopback
- `_early`: answers Ctrl-C while the program loads; runs before anything else
- `_siblings`: refuses foreign packages that hide ours; runs before anything of theirs

This is the only documented import. Its names load on first use, so that `import rlm` stays cheap.
"""

from rlm import _early

# isort: split
from importlib import import_module
from typing import TYPE_CHECKING

from rlm import _siblings
from rlm._version import __version__

_siblings.require_siblings()

if TYPE_CHECKING:
    from corpus.questions import OneOf, YesNo
    from corpus.records import Record, RecordState
    from corpus.results import Ranked, Ranking, Row, Tally
    from corpus.stores import RecallSearch, StoreSource
    from corpus.verdicts import Quote
    from executors.endpoint.buckets import Limits
    from executors.engine.stop import Stop
    from executors.errors import (
        AllFailed,
        AuthError,
        CircuitOpen,
        ConfigError,
        ConnectFault,
        ConnectTimeout,
        ContextExceeded,
        DeadlineExceeded,
        DiskFault,
        DuplicateIds,
        Halted,
        HeadersTimeout,
        IdleTimeout,
        InternalError,
        Interrupted,
        LabelsError,
        MalformedReply,
        MissingExtra,
        ModelError,
        ModelUnusable,
        NoQuota,
        NotEncodable,
        OutOfQuota,
        OutputError,
        PromptCut,
        RateLimited,
        ReplayMiss,
        RequestRejected,
        RetriesExhausted,
        RlmError,
        RunDirError,
        ServerFault,
        SourceError,
        ToolBroken,
        TransportFault,
        UsageError,
        ValidationError,
    )
    from executors.events import Event
    from executors.gate.allowance import Caps
    from executors.gate.config.config import GateConfig
    from executors.gate.decisions import Allow, Ask, Deny, Halt
    from executors.gate.gate import Gate
    from executors.gate.people.checkpoint import Checkpoint
    from executors.gate.people.human import Approve, HumanEvent, Refuse, Terminate, TopUp
    from executors.gate.people.terminal import terminal_human
    from executors.loop.worker import ToolRequest
    from executors.messages import Message, ModelReply, ModelRequest, ToolCall
    from executors.models.base import Model, ModelInfo
    from executors.models.breaker import Breaker
    from executors.models.fallback import Fallback
    from executors.models.masked import masked
    from executors.models.openai.model import OpenAIModel
    from executors.models.prices import KnownPrices, Price, PriceTable
    from executors.secrets import Secret
    from executors.tools.base import Tool, ToolContext, tool
    from executors.tools.fetch import FetchBounds, fetch_tool
    from executors.tools.files import FileBounds, file_tools
    from executors.tools.grepping import GrepBounds
    from executors.tools.shell import ShellBounds, shell_tool
    from executors.usage import Usage
    from planner.complexity import Complexity, assess
    from planner.plan import Plan, PlanError, Step
    from planner.plan_cache import PlanCache
    from planner.results import StepDone, StepFailed, StepRetry, StepSkipped
    from planner.running import run_plan
    from rlm.auditing.audit import AuditOutcome, audit, audit_sync
    from rlm.auditing.findings import Finding
    from rlm.auditing.report import AuditReport
    from rlm.checks.arbiters import Broken
    from rlm.checks.calibration import calibrate
    from rlm.checks.critic import critic
    from rlm.checks.evaluator import Agentic, EvaluationContext, Evaluator
    from rlm.checks.honouring import Broke, Honoured, honours, judge
    from rlm.checks.refinement import RefineLeaf, refine
    from rlm.checks.sensors.base import SensorContext
    from rlm.checks.sensors.cited import citations
    from rlm.checks.sensors.schema import json_schema
    from rlm.checks.sensors.trial import python_tests
    from rlm.checks.verdict import Failed, NeedsRevision, Satisfied, Verdict
    from rlm.corpora import Corpus, open_corpus
    from rlm.corpus_tools import build_exact_tool, build_scan_tool, build_search_tool
    from rlm.counting import CountOutcome, count, count_sync
    from rlm.forecasts.dry_run import plan_count, plan_count_sync
    from rlm.forecasts.forecast import CountPlan
    from rlm.labelling.file import read_labels
    from rlm.labels import Label
    from rlm.options.top_up import BudgetChange
    from rlm.outcome import Blocker, Completed, Incomplete
    from rlm.receipts.lineage import lineage
    from rlm.receipts.nodes import TaskReceipt
    from rlm.receipts.receipts import NodeReceipt, Receipts, Totals
    from rlm.recursion import RecurseOutcome, recurse, recurse_sync
    from rlm.recursion_plan import RecursionPlan, plan_recursion, plan_recursion_sync
    from rlm.recursions.wiring import Wiring
    from rlm.resuming import resume, resume_sync
    from rlm.runs.results import load_result
    from rlm.sync import close
    from rlm.synthesis import SynthesisInput

__all__ = [
    "Agentic",
    "AllFailed",
    "Allow",
    "Approve",
    "Ask",
    "AuditOutcome",
    "AuditReport",
    "AuthError",
    "Blocker",
    "Breaker",
    "Broke",
    "Broken",
    "BudgetChange",
    "Caps",
    "Checkpoint",
    "CircuitOpen",
    "Completed",
    "Complexity",
    "ConfigError",
    "ConnectFault",
    "ConnectTimeout",
    "ContextExceeded",
    "Corpus",
    "CountOutcome",
    "CountPlan",
    "DeadlineExceeded",
    "Deny",
    "DiskFault",
    "DuplicateIds",
    "EvaluationContext",
    "Evaluator",
    "Event",
    "Failed",
    "Fallback",
    "FetchBounds",
    "FileBounds",
    "Finding",
    "Gate",
    "GateConfig",
    "GrepBounds",
    "Halt",
    "Halted",
    "HeadersTimeout",
    "Honoured",
    "HumanEvent",
    "IdleTimeout",
    "Incomplete",
    "InternalError",
    "Interrupted",
    "KnownPrices",
    "Label",
    "LabelsError",
    "Limits",
    "MalformedReply",
    "Message",
    "MissingExtra",
    "Model",
    "ModelError",
    "ModelInfo",
    "ModelReply",
    "ModelRequest",
    "ModelUnusable",
    "NeedsRevision",
    "NoQuota",
    "NodeReceipt",
    "NotEncodable",
    "OneOf",
    "OpenAIModel",
    "OutOfQuota",
    "OutputError",
    "Plan",
    "PlanCache",
    "PlanError",
    "Price",
    "PriceTable",
    "PromptCut",
    "Quote",
    "Ranked",
    "Ranking",
    "RateLimited",
    "RecallSearch",
    "Receipts",
    "Record",
    "RecordState",
    "RecurseOutcome",
    "RecursionPlan",
    "RefineLeaf",
    "Refuse",
    "ReplayMiss",
    "RequestRejected",
    "RetriesExhausted",
    "RlmError",
    "Row",
    "RunDirError",
    "Satisfied",
    "Secret",
    "SensorContext",
    "ServerFault",
    "ShellBounds",
    "SourceError",
    "Step",
    "StepDone",
    "StepFailed",
    "StepRetry",
    "StepSkipped",
    "Stop",
    "StoreSource",
    "SynthesisInput",
    "Tally",
    "TaskReceipt",
    "Terminate",
    "Tool",
    "ToolBroken",
    "ToolCall",
    "ToolContext",
    "ToolRequest",
    "TopUp",
    "Totals",
    "TransportFault",
    "Usage",
    "UsageError",
    "ValidationError",
    "Verdict",
    "Wiring",
    "YesNo",
    "__rlm_distribution__",
    "__version__",
    "assess",
    "audit",
    "audit_sync",
    "build_exact_tool",
    "build_scan_tool",
    "build_search_tool",
    "calibrate",
    "citations",
    "close",
    "count",
    "count_sync",
    "critic",
    "fetch_tool",
    "file_tools",
    "honours",
    "json_schema",
    "judge",
    "lineage",
    "load_result",
    "masked",
    "open_corpus",
    "plan_count",
    "plan_count_sync",
    "plan_recursion",
    "plan_recursion_sync",
    "python_tests",
    "read_labels",
    "recurse",
    "recurse_sync",
    "refine",
    "resume",
    "resume_sync",
    "run_plan",
    "shell_tool",
    "terminal_human",
    "tool",
]

__rlm_distribution__ = _siblings.DISTRIBUTION

# The module that each public name is loaded from when it is first asked for. Type checkers read the
# same list as imports under `if TYPE_CHECKING:`; a test holds the two and `__all__` together.
_HOMES = {
    "Agentic": "rlm.checks.evaluator",
    "AllFailed": "executors.errors",
    "Allow": "executors.gate.decisions",
    "Approve": "executors.gate.people.human",
    "Ask": "executors.gate.decisions",
    "AuditOutcome": "rlm.auditing.audit",
    "AuditReport": "rlm.auditing.report",
    "AuthError": "executors.errors",
    "Blocker": "rlm.outcome",
    "Breaker": "executors.models.breaker",
    "Broke": "rlm.checks.honouring",
    "Broken": "rlm.checks.arbiters",
    "BudgetChange": "rlm.options.top_up",
    "Caps": "executors.gate.allowance",
    "Checkpoint": "executors.gate.people.checkpoint",
    "CircuitOpen": "executors.errors",
    "Completed": "rlm.outcome",
    "Complexity": "planner.complexity",
    "ConfigError": "executors.errors",
    "ConnectFault": "executors.errors",
    "ConnectTimeout": "executors.errors",
    "ContextExceeded": "executors.errors",
    "Corpus": "rlm.corpora",
    "CountOutcome": "rlm.counting",
    "CountPlan": "rlm.forecasts.forecast",
    "DeadlineExceeded": "executors.errors",
    "Deny": "executors.gate.decisions",
    "DiskFault": "executors.errors",
    "DuplicateIds": "executors.errors",
    "EvaluationContext": "rlm.checks.evaluator",
    "Evaluator": "rlm.checks.evaluator",
    "Event": "executors.events",
    "Failed": "rlm.checks.verdict",
    "Fallback": "executors.models.fallback",
    "FetchBounds": "executors.tools.fetch",
    "FileBounds": "executors.tools.files",
    "Finding": "rlm.auditing.findings",
    "Gate": "executors.gate.gate",
    "GateConfig": "executors.gate.config.config",
    "GrepBounds": "executors.tools.grepping",
    "Halt": "executors.gate.decisions",
    "Halted": "executors.errors",
    "HeadersTimeout": "executors.errors",
    "Honoured": "rlm.checks.honouring",
    "HumanEvent": "executors.gate.people.human",
    "IdleTimeout": "executors.errors",
    "Incomplete": "rlm.outcome",
    "InternalError": "executors.errors",
    "Interrupted": "executors.errors",
    "KnownPrices": "executors.models.prices",
    "Label": "rlm.labels",
    "LabelsError": "executors.errors",
    "Limits": "executors.endpoint.buckets",
    "MalformedReply": "executors.errors",
    "Message": "executors.messages",
    "MissingExtra": "executors.errors",
    "Model": "executors.models.base",
    "ModelError": "executors.errors",
    "ModelInfo": "executors.models.base",
    "ModelReply": "executors.messages",
    "ModelRequest": "executors.messages",
    "ModelUnusable": "executors.errors",
    "NeedsRevision": "rlm.checks.verdict",
    "NoQuota": "executors.errors",
    "NodeReceipt": "rlm.receipts.receipts",
    "NotEncodable": "executors.errors",
    "OneOf": "corpus.questions",
    "OpenAIModel": "executors.models.openai.model",
    "OutOfQuota": "executors.errors",
    "OutputError": "executors.errors",
    "Plan": "planner.plan",
    "PlanCache": "planner.plan_cache",
    "PlanError": "planner.plan",
    "Price": "executors.models.prices",
    "PriceTable": "executors.models.prices",
    "PromptCut": "executors.errors",
    "Quote": "corpus.verdicts",
    "Ranked": "corpus.results",
    "Ranking": "corpus.results",
    "RateLimited": "executors.errors",
    "RecallSearch": "corpus.stores",
    "Receipts": "rlm.receipts.receipts",
    "Record": "corpus.records",
    "RecordState": "corpus.records",
    "RecurseOutcome": "rlm.recursion",
    "RecursionPlan": "rlm.recursion_plan",
    "RefineLeaf": "rlm.checks.refinement",
    "Refuse": "executors.gate.people.human",
    "ReplayMiss": "executors.errors",
    "RequestRejected": "executors.errors",
    "RetriesExhausted": "executors.errors",
    "RlmError": "executors.errors",
    "Row": "corpus.results",
    "RunDirError": "executors.errors",
    "Satisfied": "rlm.checks.verdict",
    "Secret": "executors.secrets",
    "SensorContext": "rlm.checks.sensors.base",
    "ServerFault": "executors.errors",
    "ShellBounds": "executors.tools.shell",
    "SourceError": "executors.errors",
    "Step": "planner.plan",
    "StepDone": "planner.results",
    "StepFailed": "planner.results",
    "StepRetry": "planner.results",
    "StepSkipped": "planner.results",
    "Stop": "executors.engine.stop",
    "StoreSource": "corpus.stores",
    "SynthesisInput": "rlm.synthesis",
    "Tally": "corpus.results",
    "TaskReceipt": "rlm.receipts.nodes",
    "Terminate": "executors.gate.people.human",
    "Tool": "executors.tools.base",
    "ToolBroken": "executors.errors",
    "ToolCall": "executors.messages",
    "ToolContext": "executors.tools.base",
    "ToolRequest": "executors.loop.worker",
    "TopUp": "executors.gate.people.human",
    "Totals": "rlm.receipts.receipts",
    "TransportFault": "executors.errors",
    "Usage": "executors.usage",
    "UsageError": "executors.errors",
    "ValidationError": "executors.errors",
    "Verdict": "rlm.checks.verdict",
    "Wiring": "rlm.recursions.wiring",
    "YesNo": "corpus.questions",
    "assess": "planner.complexity",
    "audit": "rlm.auditing.audit",
    "audit_sync": "rlm.auditing.audit",
    "build_exact_tool": "rlm.corpus_tools",
    "build_scan_tool": "rlm.corpus_tools",
    "build_search_tool": "rlm.corpus_tools",
    "calibrate": "rlm.checks.calibration",
    "citations": "rlm.checks.sensors.cited",
    "close": "rlm.sync",
    "count": "rlm.counting",
    "count_sync": "rlm.counting",
    "critic": "rlm.checks.critic",
    "fetch_tool": "executors.tools.fetch",
    "file_tools": "executors.tools.files",
    "honours": "rlm.checks.honouring",
    "json_schema": "rlm.checks.sensors.schema",
    "judge": "rlm.checks.honouring",
    "lineage": "rlm.receipts.lineage",
    "load_result": "rlm.runs.results",
    "masked": "executors.models.masked",
    "open_corpus": "rlm.corpora",
    "plan_count": "rlm.forecasts.dry_run",
    "plan_count_sync": "rlm.forecasts.dry_run",
    "plan_recursion": "rlm.recursion_plan",
    "plan_recursion_sync": "rlm.recursion_plan",
    "python_tests": "rlm.checks.sensors.trial",
    "read_labels": "rlm.labelling.file",
    "recurse": "rlm.recursion",
    "recurse_sync": "rlm.recursion",
    "refine": "rlm.checks.refinement",
    "resume": "rlm.resuming",
    "resume_sync": "rlm.resuming",
    "run_plan": "planner.running",
    "shell_tool": "executors.tools.shell",
    "terminal_human": "executors.gate.people.terminal",
    "tool": "executors.tools.base",
}


if not TYPE_CHECKING:  # or type checkers would believe in any name

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(home), name)
        globals()[name] = value  # the next look-up does not come here
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


_early.release()
