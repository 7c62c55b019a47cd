"""Which judge a count gets, decided and checked before anything is read or spent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, assert_never

import anyio
import anyio.to_thread

from corpus.criterion import Criterion
from corpus.exact import terms_predicate
from corpus.judges.base import AskingJudge, JudgeInfo, JudgeKind
from corpus.judges.rule import Rule, RuleJudge
from corpus.questions import OneOf, Question
from corpus.windows import Cut
from executors.calls.calls import Calls
from executors.errors import ConfigError, ValidationError
from executors.events import Emit
from executors.ids import NodeId
from executors.models.base import Model
from executors.models.registry import is_encoder, resolve_model
from rlm.options.options import CountOptions

if TYPE_CHECKING:
    from executors.models.encoders.load import Encoder

__all__ = ["Asking", "Encoding", "JudgePlan", "Ruling", "cut_for", "let_go", "plan_judge"]

_ENCODER: Final = "encoder"
# Seconds that a model gets to let go of its sockets.
_GRACE: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A model is asked."""

    kind: JudgeKind
    model: Model
    owned: bool
    """We made the model, so we close it."""

    def judge(
        self, calls: Calls, criterion: Criterion, options: CountOptions, node: NodeId, emit: Emit
    ) -> AskingJudge:
        """Return the judge that asks."""
        # Each judge brings its prompts and parsers; only the one that is used is loaded.
        if self.kind == "logprob":
            from corpus.judges.logprob import LogprobJudge

            return LogprobJudge(calls, self.model, criterion, node=node, emit=emit)
        from corpus.judges.chat import ChatJudge

        return ChatJudge(calls, self.model, criterion, node=node, emit=emit, quotes=options.quotes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """Code decides."""

    rule: Rule
    name: str

    def judge(self, question: Question, node: NodeId, emit: Emit) -> RuleJudge:
        """Return the judge that runs the rule."""
        return RuleJudge(self.rule, question=question, name=self.name, node=node, emit=emit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """An encoder decides under a head taught by labels, or ranks without."""

    encoder: Encoder
    owned: bool
    """We made the encoder, so we close it."""


JudgePlan = Asking | Ruling | Encoding


async def let_go(plan: JudgePlan) -> None:
    """Close the model or the encoder that a plan made for itself; bounded, also when cancelled."""
    match plan:
        case Asking(owned=True):
            with anyio.move_on_after(_GRACE, shield=True):
                await plan.model.aclose()
        case Encoding(owned=True):
            await anyio.to_thread.run_sync(plan.encoder.close)
        case _:
            pass


def plan_judge(
    options: CountOptions,
    question: Question,
    *,
    warn: Callable[[str], None] | None = None,
    asks: bool = True,
) -> JudgePlan:
    """Choose the judge and check that it can work: its spec, key and extra.

    Args:
        warn: hears what the user should know of a model that is made here; None logs it.
        asks: False where no model will be asked, so that none needs a key.

    Raises:
        ConfigError: a model spec or key cannot work.
        MissingExtra: what the judge needs is not installed.
        ValidationError: options that exclude each other.
    """
    kind = _kind(options)
    if options.replay is not None and kind in {"rule", "encoder"}:
        raise ValidationError(
            f"replay (--replay) has no effect: the {kind} judge asks no model",
            hint="leave it out, or name the model that the recorded run asked",
        )
    match kind:
        case "rule":
            return _rule(options, question)
        case "encoder":
            return _encoding(options)
        case "chat" | "logprob":
            model, owned = _model(options, kind, warn, asks=asks)
            return Asking(kind=kind, model=model, owned=owned)
        case _:
            assert_never(kind)


def cut_for(options: CountOptions, plan: JudgePlan, info: JudgeInfo) -> Cut:
    """Return how windows are cut for a judge; half of a known context is left to what is no text."""
    known = plan.model.info.context_window if isinstance(plan, Asking) else None
    wanted = options.window_tokens
    tokens = wanted if known is None else max(16, min(wanted, known // 2))
    return Cut(
        items=options.window or info.window,
        tokens=tokens,
        overlap=min(60, tokens // 4),
        whole=info.pools,
    )


def _kind(options: CountOptions) -> JudgeKind:
    judge, model = options.judge, options.model
    if callable(judge):
        return "rule"
    if judge is not None:
        return judge
    if options.terms:
        return "rule"
    if model is None or (isinstance(model, str) and is_encoder(model)):
        return "encoder"
    return "chat"


def _rule(options: CountOptions, question: Question) -> Ruling:
    if callable(options.judge):
        name = getattr(options.judge, "__name__", "predicate")
        plan = Ruling(rule=options.judge, name=f"rule {name}")
        RuleJudge(plan.rule, question=question, name=plan.name)  # refuses what can be no rule
        return plan
    if not options.terms:
        raise ValidationError(
            "the rule judge has no rule",
            hint="give terms=('word', …) (--terms word,…) or a predicate as judge=",
        )
    if isinstance(question, OneOf):
        raise ValidationError(
            "terms make a yes/no rule, and the question asks for one of several labels",
            hint="give a predicate that returns a label as judge=",
        )
    name = f"rule any of {', '.join(options.terms)}"
    return Ruling(rule=terms_predicate(options.terms), name=name)


def _encoding(options: CountOptions) -> Encoding:
    # numpy and the encoder's run time load only where an encoder judges.
    from executors.models.encoders.cache import CachedEncoder, default_cache_path
    from executors.models.encoders.load import load_encoder

    if isinstance(options.model, Model):
        raise ValidationError(
            f"the encoder judge does not ask the model {options.model.info.spec!r}",
            hint="leave model out, or choose judge='chat' or 'logprob'",
        )
    spec = options.encoder or options.model or _ENCODER
    encoder = load_encoder(spec, max_words=options.words) if isinstance(spec, str) else spec
    owned = isinstance(spec, str)
    path = default_cache_path() if options.cache else None
    return Encoding(encoder=CachedEncoder(encoder, path), owned=owned)


def _model(
    options: CountOptions, kind: JudgeKind, warn: Callable[[str], None] | None, *, asks: bool
) -> tuple[Model, bool]:
    model = options.model
    if model is None or (isinstance(model, str) and is_encoder(model)):
        raise ConfigError(
            f"the {kind} judge needs a model, and model={model!r} names none that answers",
            hint="name one, as in model='openai:gpt-x' (--model openai:gpt-x); see: rlm models",
        )
    if isinstance(model, str):
        return resolve_model(model, key_env=options.key_env, warn=warn, asks=asks), True
    return model, False
