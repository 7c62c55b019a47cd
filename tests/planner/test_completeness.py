"""Words that ask for everything, in many languages, and words that only look like them."""

import unicodedata

import pytest

from planner.completeness import implies_completeness
from planner.routes import route

ENGLISH = [
    "what share of the tickets is angry",
    "what proportion of users churned",
    "which fraction of the mails is spam",
    "the median delay",
    "how frequently does it fail",
    "tally the votes",
    "the totals by month",
    "sum up the refunds",
    "add up the amounts",
    "the distribution of labels",
    "a breakdown by category",
    "the most common complaint",
    "top 10 complaints",
    "the full list of vendors",
    "across the corpus, who complains?",
    "cite them without exception",
    "none of the records mentions it",
    "unique customers",
    "what % of mails is spam",
    "everyone who signed",
    "HOW\nMANY",
    "\uff28\uff2f\uff37 \uff2d\uff21\uff2e\uff39",
]
ELSEWHERE = [
    "sämtliche Verträge",
    "zähle die Mails",
    "Wie oft wird gekündigt?",
    "Anteil der Beschwerden",
    "quelle moyenne ?",
    "somme des montants",
    "à quelle fréquence",
    "número de correos",
    "porcentaje de quejas",
    "lista completa",
    "numero di reclami",
    "elenco completo",
    "porcentagem de erros",
    "elke klacht",
    "liczba umów",
    "każdy klient",
    "wszystkich umów",
    "kolik smluv",
    "hur många avtal",
    "hvor mange avtaler",
    "kuinka monta",
    "kaç tane",
    "bütün sözleşmeler",
    "hány szerződés",
    "câte contracte",
    "berapa banyak",
    "bao nhiêu hợp đồng",
    "всех клиентов",
    "количество договоров",
    "скільки договорів",
    "πόσα συμβόλαια",
    "كم عدد العقود",
    "جميع العقود",
    "כמה חוזים",
    "כל החוזים",
    "कितने अनुबंध",
    "सभी अनुबंध",
    "每个合同",
    "总数是",
    "契約は何件",
    "全ての契約",
    "전체 계약",
    "สัญญาทั้งหมด",
]
NEEDLES = [
    "Who spoke at the all-hands?",
    "notes of the all hands meeting",
    "the all\u2011hands in May",
    "an all-inclusive holiday",
    "the catch-all address",
    "he was not at all happy; why?",
    "first of all, who signed?",
    "above all, where is it?",
    "after all, who left?",
    "do they know each other?",
    "can we count on Bob?",
    "is that all right?",
    "the accountant of the county",
    "the discount of a teacher",
    "everyday life",
    "allow the caller",
    "Wer ist allerdings zuständig?",
    "número de teléfono de Ana",
    "شكل العقد",
]


@pytest.mark.case("R-092")
@pytest.mark.parametrize("text", [*ENGLISH, *ELSEWHERE])
def test_a_question_for_everything_is_seen_however_it_is_put(text: str) -> None:
    assert implies_completeness(text)
    assert implies_completeness(text.upper())
    assert implies_completeness(unicodedata.normalize("NFD", text))


@pytest.mark.case("R-092")
@pytest.mark.parametrize("text", NEEDLES)
def test_what_is_only_spelt_alike_asks_for_nothing(text: str) -> None:
    assert not implies_completeness(text)


@pytest.mark.case("R-092")
@pytest.mark.parametrize("given", [None, 42, b"how many", ["all"], {}, float("nan"), ""])
def test_what_is_no_text_asks_for_nothing(given: object) -> None:
    assert not implies_completeness(given)


@pytest.mark.case("R-085", "R-086")
@pytest.mark.parametrize(
    "text", ["what share of the tickets is angry?", "كم عدد العقود", "全ての契約"]
)
def test_task_and_contract_both_turn_a_search_into_a_scan(text: str) -> None:
    by_task = route(text, has_corpus=True, retrieval="search")
    by_contract = route("who signed?", has_corpus=True, retrieval="search", contract=text)
    assert (by_task.retrieval, by_task.upgraded) == ("scan", True)
    assert (by_contract.retrieval, by_contract.upgraded) == ("scan", True)
