"""Where records come from: one module a format, all behind `open_source`.

open        the one entry: what a caller calls a corpus becomes a source
options     how it is to be read, as the caller told
base        the source protocol, what was decided, oddities counted
formats     which format a file has
columns     which columns are the id and the text
intake      from a row to a record
rows        sources made of rows
origin      bytes of files and standard input, unpacked by `packed`
piped       pipes and descriptors, read but once
lines       physical lines, split at line feeds alone, decoded strictly first
folder      files below a folder, or of a pattern
tables      files of rows: `jsonl` and `json_array` over `json_rows`, `delimited`, `plain`
files       each file is a record
mail        mailboxes, folders of messages, maildirs; `html_text`
sql         SQLite files and open database connections
arrow       Parquet and Arrow tables
frames      data frames of pandas and polars
memory      what the caller holds, also asynchronously
"""

from corpus.sources.base import OnBad, Source, SourceInfo, SourceWarning, SourceWarnings
from corpus.sources.open import SourceLike, open_source
from corpus.sources.options import FORMATS, Format

__all__ = [
    "FORMATS",
    "Format",
    "OnBad",
    "Source",
    "SourceInfo",
    "SourceLike",
    "SourceWarning",
    "SourceWarnings",
    "open_source",
]
