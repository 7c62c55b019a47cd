"""Honest answers over more text than one model call can hold, with a receipt anyone can check.

Layout:

- `counting`: the front for `count` and `count_sync`
- `receipts`: what was asked, answered and paid, folded from events
- `cli`: the command line
- `testing`: public fakes, among them a scripted model and a fake server on loopback
- `_siblings`: refuses foreign packages that hide ours; runs before anything else

This is the only documented import. Its names load on first use, so that `import rlm` stays cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from rlm import _siblings
from rlm._version import __version__

_siblings.require_siblings()

__all__ = ["__rlm_distribution__", "__version__"]

__rlm_distribution__ = _siblings.DISTRIBUTION

# The module that each public name is loaded from when it is first asked for. Type checkers read the
# same list as imports under `if TYPE_CHECKING:`; a test holds the two and `__all__` together.
_HOMES: dict[str, str] = {}


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
