"""Where records come from: one module a format, all behind `open_source`.

open       the one entry: path, format and columns are decided before anything is read
base       the source protocol, what was decided, oddities counted
origin     bytes of files and standard input, unpacked
lines      physical lines, split at line feeds alone, decoded strictly first
columns    which columns are the id and the text
intake     from a row to a record
rows       sources made of rows
tables     JSONL, CSV, TSV and plain lines (`jsonl`, `delimited`, `plain`)
memory     what the caller holds
"""

from corpus.sources.base import OnBad, Source, SourceInfo, SourceWarning, SourceWarnings
from corpus.sources.open import SourceLike, open_source
from corpus.sources.options import FORMATS, Format, ReadOptions

__all__ = [
    "FORMATS",
    "Format",
    "OnBad",
    "ReadOptions",
    "Source",
    "SourceInfo",
    "SourceLike",
    "SourceWarning",
    "SourceWarnings",
    "open_source",
]
