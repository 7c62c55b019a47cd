"""Honest answers over more text than one model call can hold, with a receipt anyone can check.

Layout:

- `counting` `resuming`: the fronts for `count` and `resume`; `options` checks
- `recursion`: the front for `recurse`; `recursions` is one session of it; `corpus_tools`: a corpus
  within reach of any worker
- `synthesis`: how the answers to parts become one
- `dry_run` `rehearsal` `forecast`: what a count would take, without taking it
- `counts`: one session of a count, from its directory to its outcome
- `cluster` `units`: a count on many processes: who coordinates, and what workers do
- `judging` `teaching` `labels` `labelling`: which judge, and how labels teach the encoder's head
- `verdict` `grades`: what a check says of a result, as a value and out of a grader's text
- `evaluator` `exhibit` `prompts`: who grades a result, what is shown of it, in which words
- `honouring` `calibration`: whether a request was honoured, and whether a judge of that can be trusted
- `arbiters` `sensors` `refinement`: checks by code, with a deadline, and trying again until they hold
- `lone_calls`: a pipeline for calls that belong to no run
- `critic`: a grader with tools
- `outcome` `events`: how a run ends, and what happens in it
- `receipts` `nodes` `sittings` `totals`: the folds that say what was done, by whom, when, at what cost
- `lineage`: the nodes of a run as a graph
- `runs`: their directories, sessions, logs and roots; which are kept, and what is forgotten
- `outputs` `summary`: results as files and as numbers
- `cli` `render`: the command line, and what people see
- `testing`: public fakes, among them a scripted model and a fake server on loopback
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
    from executors.gate.decisions import Allow, Ask, Deny, Halt
    from executors.loop.worker import ToolRequest
    from executors.messages import Message, ModelReply, ModelRequest, ToolCall
    from executors.models.base import Model, ModelInfo
    from executors.models.breaker import Breaker
    from executors.models.fallback import Fallback
    from executors.models.openai.model import OpenAIModel
    from executors.models.prices import Price, PriceTable
    from executors.secrets import Secret
    from executors.tools.base import Tool, ToolContext, tool
    from executors.usage import Usage
    from planner.complexity import Complexity, assess
    from planner.plan import Plan, PlanError, Step
    from planner.plan_cache import PlanCache
    from planner.results import StepDone, StepFailed, StepRetry, StepSkipped
    from planner.running import run_plan
    from rlm.arbiters import Broken
    from rlm.auditing.audit import AuditOutcome, audit, audit_sync
    from rlm.auditing.findings import Finding
    from rlm.auditing.report import AuditReport
    from rlm.calibration import calibrate
    from rlm.corpora import Corpus, open_corpus
    from rlm.corpus_tools import build_exact_tool, build_scan_tool, build_search_tool
    from rlm.counting import CountOutcome, count, count_sync
    from rlm.critic import critic
    from rlm.dry_run import plan_count, plan_count_sync
    from rlm.evaluator import Agentic, EvaluationContext, Evaluator
    from rlm.forecast import CountPlan
    from rlm.honouring import Broke, Honoured, honours, judge
    from rlm.labelling.file import read_labels
    from rlm.labels import Label
    from rlm.lineage import lineage
    from rlm.nodes import TaskReceipt
    from rlm.outcome import Blocker, Completed, Incomplete
    from rlm.receipts import NodeReceipt, Receipts, Totals
    from rlm.recursion import RecurseOutcome, recurse, recurse_sync
    from rlm.recursion_plan import RecursionPlan, plan_recursion, plan_recursion_sync
    from rlm.recursions.wiring import Wiring
    from rlm.refinement import RefineLeaf, refine
    from rlm.resuming import resume, resume_sync
    from rlm.runs.results import load_result
    from rlm.sensors.base import SensorContext
    from rlm.sensors.cited import citations
    from rlm.sensors.schema import json_schema
    from rlm.sensors.trial import python_tests
    from rlm.sync import close
    from rlm.synthesis import SynthesisInput
    from rlm.verdict import Failed, NeedsRevision, Satisfied, Verdict

__all__ = [
    "Agentic",
    "AllFailed",
    "Allow",
    "Ask",
    "AuditOutcome",
    "AuditReport",
    "AuthError",
    "Blocker",
    "Breaker",
    "Broke",
    "Broken",
    "Caps",
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
    "Finding",
    "Halt",
    "Halted",
    "HeadersTimeout",
    "Honoured",
    "IdleTimeout",
    "Incomplete",
    "InternalError",
    "Interrupted",
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
    "Receipts",
    "Record",
    "RecordState",
    "RecurseOutcome",
    "RecursionPlan",
    "RefineLeaf",
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
    "SourceError",
    "Step",
    "StepDone",
    "StepFailed",
    "StepRetry",
    "StepSkipped",
    "Stop",
    "SynthesisInput",
    "Tally",
    "TaskReceipt",
    "Tool",
    "ToolBroken",
    "ToolCall",
    "ToolContext",
    "ToolRequest",
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
    "honours",
    "json_schema",
    "judge",
    "lineage",
    "load_result",
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
    "tool",
]

__rlm_distribution__ = _siblings.DISTRIBUTION

# The module that each public name is loaded from when it is first asked for. Type checkers read the
# same list as imports under `if TYPE_CHECKING:`; a test holds the two and `__all__` together.
_HOMES = {
    "Agentic": "rlm.evaluator",
    "AllFailed": "executors.errors",
    "Allow": "executors.gate.decisions",
    "Ask": "executors.gate.decisions",
    "AuditOutcome": "rlm.auditing.audit",
    "AuditReport": "rlm.auditing.report",
    "AuthError": "executors.errors",
    "Blocker": "rlm.outcome",
    "Breaker": "executors.models.breaker",
    "Broke": "rlm.honouring",
    "Broken": "rlm.arbiters",
    "Caps": "executors.gate.allowance",
    "CircuitOpen": "executors.errors",
    "Completed": "rlm.outcome",
    "Complexity": "planner.complexity",
    "ConfigError": "executors.errors",
    "ConnectFault": "executors.errors",
    "ConnectTimeout": "executors.errors",
    "ContextExceeded": "executors.errors",
    "Corpus": "rlm.corpora",
    "CountOutcome": "rlm.counting",
    "CountPlan": "rlm.forecast",
    "DeadlineExceeded": "executors.errors",
    "Deny": "executors.gate.decisions",
    "DiskFault": "executors.errors",
    "DuplicateIds": "executors.errors",
    "EvaluationContext": "rlm.evaluator",
    "Evaluator": "rlm.evaluator",
    "Event": "executors.events",
    "Failed": "rlm.verdict",
    "Fallback": "executors.models.fallback",
    "Finding": "rlm.auditing.findings",
    "Halt": "executors.gate.decisions",
    "Halted": "executors.errors",
    "HeadersTimeout": "executors.errors",
    "Honoured": "rlm.honouring",
    "IdleTimeout": "executors.errors",
    "Incomplete": "rlm.outcome",
    "InternalError": "executors.errors",
    "Interrupted": "executors.errors",
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
    "NeedsRevision": "rlm.verdict",
    "NoQuota": "executors.errors",
    "NodeReceipt": "rlm.receipts",
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
    "Receipts": "rlm.receipts",
    "Record": "corpus.records",
    "RecordState": "corpus.records",
    "RecurseOutcome": "rlm.recursion",
    "RecursionPlan": "rlm.recursion_plan",
    "RefineLeaf": "rlm.refinement",
    "ReplayMiss": "executors.errors",
    "RequestRejected": "executors.errors",
    "RetriesExhausted": "executors.errors",
    "RlmError": "executors.errors",
    "Row": "corpus.results",
    "RunDirError": "executors.errors",
    "Satisfied": "rlm.verdict",
    "Secret": "executors.secrets",
    "SensorContext": "rlm.sensors.base",
    "ServerFault": "executors.errors",
    "SourceError": "executors.errors",
    "Step": "planner.plan",
    "StepDone": "planner.results",
    "StepFailed": "planner.results",
    "StepRetry": "planner.results",
    "StepSkipped": "planner.results",
    "Stop": "executors.engine.stop",
    "SynthesisInput": "rlm.synthesis",
    "Tally": "corpus.results",
    "TaskReceipt": "rlm.nodes",
    "Tool": "executors.tools.base",
    "ToolBroken": "executors.errors",
    "ToolCall": "executors.messages",
    "ToolContext": "executors.tools.base",
    "ToolRequest": "executors.loop.worker",
    "Totals": "rlm.receipts",
    "TransportFault": "executors.errors",
    "Usage": "executors.usage",
    "UsageError": "executors.errors",
    "ValidationError": "executors.errors",
    "Verdict": "rlm.verdict",
    "Wiring": "rlm.recursions.wiring",
    "YesNo": "corpus.questions",
    "assess": "planner.complexity",
    "audit": "rlm.auditing.audit",
    "audit_sync": "rlm.auditing.audit",
    "build_exact_tool": "rlm.corpus_tools",
    "build_scan_tool": "rlm.corpus_tools",
    "build_search_tool": "rlm.corpus_tools",
    "calibrate": "rlm.calibration",
    "citations": "rlm.sensors.cited",
    "close": "rlm.sync",
    "count": "rlm.counting",
    "count_sync": "rlm.counting",
    "critic": "rlm.critic",
    "honours": "rlm.honouring",
    "json_schema": "rlm.sensors.schema",
    "judge": "rlm.honouring",
    "lineage": "rlm.lineage",
    "load_result": "rlm.runs.results",
    "open_corpus": "rlm.corpora",
    "plan_count": "rlm.dry_run",
    "plan_count_sync": "rlm.dry_run",
    "plan_recursion": "rlm.recursion_plan",
    "plan_recursion_sync": "rlm.recursion_plan",
    "python_tests": "rlm.sensors.trial",
    "read_labels": "rlm.labelling.file",
    "recurse": "rlm.recursion",
    "recurse_sync": "rlm.recursion",
    "refine": "rlm.refinement",
    "resume": "rlm.resuming",
    "resume_sync": "rlm.resuming",
    "run_plan": "planner.running",
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
