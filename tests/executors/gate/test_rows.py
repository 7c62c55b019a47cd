"""Each row of the case table of gates is shown to hold by a test, and each safeguard has one that sees it gone.

The safeguards, and a test that turns red when one is taken away (each was taken away, and did):

order
    questions stand before the list of allowed names         rules_order: a_row_of_the_order
    what cannot be read whole is denied                       rules_order: a_row_of_the_order
names
    an empty list permits nothing                             rules_tools: a_name_is_held_against_the_lists
    a name is matched to its last character                   rules_tools: a_name_is_held_against_the_lists
    a list that is swapped allows nothing any more            rules_tools: a_list_that_is_swapped_…
    arguments are judged by the tool's name too               rules_tools: patterns_of_arguments_see_…
content
    texts are read as they are, not as JSON escapes them      rules_content: what_destroys_is_denied_…
    a program and its list of arguments are put together      actions: texts_are_leaves_keys_and_…
    characters are compared as they are                       actions: json_is_compact_and_shows_…
    a pattern that matches every text is refused              rules_content: a_pattern_that_cannot_be_…
files
    what is denied is denied by where it leads                rules_fs: what_is_denied_before_it_is_there_…
    what is allowed is allowed by where it leads              rules_fs: a_path_is_judged_by_where_it_leads
    names with the same beginning are others                  rules_fs: a_path_is_judged_by_where_it_leads
    a link that leads nowhere is no way in                    rules_fs: a_path_is_judged_by_where_it_leads
    a scope is no link, and becomes none                      rules_fs: a_scope_over_a_link_…, …_became_a_link_…
    no scope permits nothing                                  rules_fs: each_kind_has_its_own_scope
    a second path beside the first denies                     rules_fs: every_path_of_an_action_has_to_pass_…
    a zero byte is no path                                    rules_fs: what_is_no_absolute_path_is_refused
commands
    operators of a shell are no part of what is allowed       rules_bash: a_list_allows_whole_words_…
    beginnings are compared by words                          rules_bash: a_list_allows_whole_words_…
    commands behind others are judged as well                 rules_bash: a_list_allows_whole_words_…
    no entry allows every command                             rules_bash: an_entry_that_would_allow_more_…
    what cannot be read is asked about                        rules_bash: what_cannot_be_read_is_asked_about
    a list of words beside a line is no second command        rules_bash: what_is_no_command_or_two_is_refused
hosts
    addresses of this machine and its network are refused     rules_net: a_url_is_judged_by_its_host
    what two readers read in two ways is refused              rules_net: a_url_is_judged_by_its_host
    an empty list permits nothing                             rules_net: a_url_is_judged_by_its_host
    ends of names are compared at dots                        rules_net: a_name_is_listed_with_its_subdomains_…
    `fetch.get` is a fetch                                    rules_net: each_kind_of_fetch_is_judged
    each hop of a redirect is judged                          tool_fetch: each_hop_passes_the_gates_rule_again
    texts go to the hosts that are listed                     data_hosts: texts_may_not_go_there
budget
    looking and writing are one transaction                   ledger_at_once: four_processes_with_200_…
    what others set aside counts                              ledger_at_once: of_256_threads_at_a_barrier_…
    calls without a price wait, or do not go                  ledger_at_once, ledger: …_without_a_price_…
    the tighter of two bounds holds                           ledger: of_two_bounds_the_tighter_holds_…
    what is refused is not counted, and what is over refused  gate, ledger: of_many_children_at_once_…
    the end is final                                          gate: the_end_is_final_and_nobody_is_asked
    what is negative, no number or infinite draws nothing     gate_results: a_report_is_made_plain
audit
    what is written is redacted                               audit, gate: rules_see_what_the_log_does_not
    known secrets are masked, and what keys call secret       redaction
    a line is bounded in bytes                                audit
    a line is bound to the one before it                      audit_chain
    the file is no link, and no line joins half a one         audit
    what was set aside is not added twice                     audit_rebuilding
people
    only a clear yes is one                                   human, checkpoint, gate_terminal
    silence is a no, and a yes behind it too                  human: silence_denies_in_time_and_…
    what was typed before a question is no answer             gate_terminal: what_was_typed_before_…
    what comes through a pipe is no person                    gate_terminal: where_there_is_no_terminal_…
    nothing that is shown moves a cursor                      gate_terminal: nothing_that_is_shown_…
    one question at a time, and judged anew after waiting     turnstile, human: one_top_up_does_for_all_…
    one absence is waited for once                            human: an_absent_person_holds_nobody_up_…
    caps are raised so often, and those of the budget alone   human: caps_are_raised_five_times_…
    a halt that a channel raises is no halt                   human: a_channel_that_raises_denies_…
the gate
    an audit or a ledger that fails lets nothing through      gate: where_the_audit_cannot_be_written_…
    a fault of its own lets nothing through                   gate: a_fault_of_the_gate_itself_halts
    a check that fails gives back what it set aside           gate: what_was_set_aside_for_a_check_that_failed_…
    an action that fails is charged at its worst              gate: a_call_that_fails_or_is_cancelled_…
"""

import ast
from collections import defaultdict
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).resolve().parents[2]

# The rows of the table, by their numbers.
ROWS: Final = """
001 003 004 005 006 008 009 010 011 013 014 015 016 018 019 020 021 023 024 025 026 028 029 030 031
033 034 035 036 038 039 040 041 043 044 045 046 048 049 050 051 053 054 055 056 058 059 060 061 063
064 065 066 068 069 070 071 073 074 075 076 078 079 080 081 083 084 085 086 088 089 090 091 093 094
095 096 098 099 100 101 103 104 105 106 108 109 110 111 113 114 115 116 118 119 120 121 123 124 125
126 128 129 130 131 133 134 135 136 138 139 140 141 143 144 145 146 148 149 150 151 153 154 155 156
158 159 160 161 163 164 165 166 168 169 170 171 173 174 175 176 178 179 180 181 183 184 185 186 188
189 190 191 193 194 195 196 198 199 200 201 203 204 205 206 208 209 210 211 213 214 215 216 218 219
220 221
"""
SPENDING: Final = "1 2 4 5 7 8 10 11 13 14 16 17 19 20"
SAFETY: Final = "1 2 4 5 7 8 10 11 13 14 16 17 19 20 22 23 25 26"
IDS: Final = [
    *(f"G-{number}" for number in ROWS.split()),
    *(f"K8-{number}" for number in SPENDING.split()),
    *(f"K15-{number}" for number in SAFETY.split()),
]


@pytest.fixture(scope="module")
def carried() -> dict[str, set[str]]:
    """The files by the rows that stand in them as data: in marks, or in tables that marks are made of."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    wanted = set(IDS)
    for file in TESTS.rglob("test_*.py"):
        if file != Path(__file__).resolve():
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and node.value in wanted:
                    found[str(node.value)].add(file.name)
    return found


@pytest.mark.parametrize("row", IDS)
def test_a_row_is_shown_to_hold_by_a_test(row: str, carried: dict[str, set[str]]) -> None:
    assert carried[row]
