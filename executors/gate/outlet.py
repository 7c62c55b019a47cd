"""Which models texts may go to: asked once of each model, before anything is sent to it."""

from __future__ import annotations

from collections.abc import Mapping

from executors.gate.config.data import DataSection
from executors.gate.decisions import Halt
from executors.gate.governor import halted_by
from executors.gate.rules.hosts import DataRule
from executors.models.base import Model
from executors.replies import JsonValue

__all__ = ["DataOutlet", "outlet_of"]


class DataOutlet:
    """Keeps texts to the hosts of a configuration.

    Raises:
        ConfigError: an entry of it is no host.
    """

    def __init__(self, section: DataSection) -> None:
        self._section = section
        self._rule = DataRule(section)

    @property
    def data(self) -> dict[str, JsonValue]:
        """The section as JSON, for other processes of the run."""
        return self._section.model_dump(mode="json")

    def model(self, model: Model) -> Model:
        """Return the model to send to: behind a mask, where that is asked for and it is elsewhere.

        Raises:
            Halted: its host, or that of one that may stand in for it, is not listed.
        """
        denied = self._rule.deny_model(model.info)
        if denied is None:
            return self._rule.masked(model)  # what is masked comes by again, when it is asked
        raise halted_by(
            Halt(
                rule=denied.rule,
                reason=f"{model.info.spec}: {denied.reason}",
                hint="name a model on a host that is listed, or list this one in data.hosts",
            )
        )

    def place(self, origin: str) -> None:
        """Let texts go to workers elsewhere.

        Raises:
            Halted: their host is not listed.
        """
        denied = self._rule.deny_host(origin)
        if denied is not None:
            hint = "name an engine on this machine, or list the host in data.hosts"
            raise halted_by(Halt(rule=denied.rule, reason=denied.reason, hint=hint))


def outlet_of(data: Mapping[str, JsonValue]) -> DataOutlet:
    """Return the outlet of another process of the same run, of what `data` gave there."""
    return DataOutlet(DataSection.model_validate(dict(data)))
