"""What is read, judged and counted; stands on `executors`, knows nothing of the floors above.

Layout:

- `records`: the record (unit of every count), its parts, the corpus protocol
- `sources`: JSONL, JSON, CSV, files, mail, SQL, Parquet and data frames, standard input
- `spool` `erasing`: pass 0, which reads a source once and finds duplicates before any call; and texts
  that are erased from it on request
- `chunks` `windows`: parts of long records; what one call is shown
- `questions` `criterion`: typed questions and what a judge is told
- `prompts` `quotes`: how texts are shown to a model, and whether what it quotes stands in them
- `judges`: encoder, chat, log-probability and rule judges behind one protocol
- `agenda` `filing`: what a session sets out to judge, and what the journal knows of it already
- `codes` `votes`: verdicts in two bytes, and the passes of a record folded into one
- `ledger` `scan` `exact`: each record comes out exactly once, in one of six states
- `results` `tally_file`: what came out, in memory and on disk
- `search` `scripts`: the best hits for some words; which scripts write no spaces
- `shelf`: a corpus within reach of tools: read once, searchable when it is searched
- `stores`: stores of memories as sources and as searches
- `tools` `tool_texts`: what a worker may ask of a corpus (count by judging, search, match exactly),
  and what it reads of that

Internal: the documented import is `rlm`.
"""

__all__ = ["__rlm_distribution__"]

__rlm_distribution__ = "rlm-recurse"
