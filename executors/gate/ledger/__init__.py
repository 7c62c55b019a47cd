"""The books of a run family: what may be spent, was spent, and is set aside.

The layout, from below: `amounts` (whole units) · `totals` (sums that add) · `bounds` (what holds) ·
`schema`, `header`, `file` (SQLite) · `state` (one moment of it) · `blocks`, `rates` · `halts`,
`lending` (what may still be) · `books`, `counting`, `ledger` (each method one transaction) · `slice`,
`allowance` (one process, in memory).

Definitions.

Time. Wall time runs from the first reservation of a process on. Pauses, waiting for a person, for
room or for a server count: whatever ends a run by time ends it then.

Retries. A logical call counts once, as one call and one turn, however many tries it took. Each try
that may have been billed keeps its tokens and cost, at the worst case where nobody knows them.

Cached tokens. All four tiers count as tokens: read, read from a cache, written to one, put out.
What they cost is a matter of prices. An answer that is taken from the journal costs nothing.

What is reserved is the worst case. What was used replaces it: more than that is charged, told as an
overrun, and at the bound halts the run; less goes back; a cancelled call that may have been billed
is charged whole, one that never left is not charged.

A halt. Calls in flight may end, and are charged. In the process that halts nothing else leaves; the
other processes of the family hear of it when their block is used up or when they next check an
action, so they send at most what their blocks hold: 64 calls, and a tenth of what was left. That is
set aside beforehand, so no bound is passed by it.

Unknown prices. A call without a price draws on calls and tokens alone. Where the configuration sets
`max_cost_usd`, such calls go one at a time over the whole family; with `fail_closed_on_unpriced`
none goes. The slices of a distributed count are bounded by calls and tokens only.
"""

from executors.gate.ledger.allowance import LedgerAllowance
from executors.gate.ledger.blocks import Block
from executors.gate.ledger.books import SoftWarning
from executors.gate.ledger.counting import Kind, Refused
from executors.gate.ledger.halts import Stop
from executors.gate.ledger.ledger import Ledger
from executors.gate.ledger.totals import Totals, recorded

__all__ = [
    "Block",
    "Kind",
    "Ledger",
    "LedgerAllowance",
    "Refused",
    "SoftWarning",
    "Stop",
    "Totals",
    "recorded",
]
