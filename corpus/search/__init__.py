"""Finding records: the best hits for some words, never all of them. Who counts, scans.

base       a hit, and the protocol of whatever finds some
words      how texts and queries become words, the same way for both
passages   the piece of a text that shows a hit
drafts     derived files on their way
index      the words of a spool in one SQLite file, built once and rebuilt when it does not fit
terms      search by words, on that file
vectors    search by meaning, on an encoder's vectors
hybrid     several searches as one, and the choice of one
"""

from corpus.search.base import Hit, How, Searcher
from corpus.search.hybrid import HybridSearch, open_search
from corpus.search.terms import TermSearch
from corpus.search.vectors import VectorSearch

__all__ = [
    "Hit",
    "How",
    "HybridSearch",
    "Searcher",
    "TermSearch",
    "VectorSearch",
    "open_search",
]
