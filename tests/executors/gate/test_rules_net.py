"""Hosts of tools, by their URLs. What each of these holds shut was opened once, and turned a test red: a list
that is empty, the table of addresses (and the addresses inside of addresses), URLs read otherwise than by
browsers, URLs that two readers read in two ways, trailing dots, ends of names, and actions called `fetch.get`.
"""

import pytest
from _pytest.mark import ParameterSet
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError as Refused

from executors.errors import ConfigError
from executors.gate.actions import plain
from executors.gate.config.net import NetSection
from executors.gate.rules.net import NetRule
from executors.models.wire.addresses import address_of, why_not_public
from executors.models.wire.destinations import NoDestination, destination_of

PRIVATE = "net.denyPrivateIps"
INVALID = "net.invalidUrl"
LISTED = "net.allowDomains"


def rule(**config: object) -> NetRule:
    return NetRule(NetSection.model_validate(config))


def denied(action: object, **config: object) -> str | None:
    """Return the name of the rule that denies an action."""
    found = rule(**config).deny(plain(action))
    return None if found is None else found.rule


def fetch(url: object, **config: object) -> str | None:
    return denied({"type": "fetch", "url": url}, **config)


def case(id_: str, *values: object) -> ParameterSet:
    return pytest.param(*values, marks=pytest.mark.case(id_), id=f"{id_} {values[0]!r}"[:60])


@pytest.mark.parametrize(
    ("url", "config", "by"),
    [
        case("G-158", "http://example.com/", {"allow_domains": []}, LISTED),
        case("G-158", "http://8.8.8.8/", {"allow_domains": ()}, LISTED),
        case("G-159", "not a url", {}, INVALID),
        case("G-159", "", {}, INVALID),
        case("G-159", "/relative", {}, INVALID),
        case("G-159", "http://", {}, INVALID),
        case("G-159", "http://a..b/", {}, INVALID),
        case("G-159", "http://256.1.1.1/", {}, INVALID),
        case("G-159", "http://[fe80::1%25eth0]/", {}, INVALID),
        case("G-159", "file:/etc/passwd", {}, INVALID),
        case("G-159", "gopher://8.8.8.8/", {}, INVALID),
        case("G-159", "javascript:alert(1)", {}, INVALID),
        case("G-159", "http://\ud800.example/", {}, INVALID),
        case("G-159", "http://a/" + "x" * 70_000, {}, INVALID),
        case("G-159", None, {}, INVALID),
        case("G-159", 3, {}, INVALID),
        case("G-159", ["http://example.com/"], {}, INVALID),
        case("G-159", {"href": "http://example.com/"}, {}, INVALID),
        case("G-159", b"http://example.com/", {}, INVALID),
        case("G-164", "http://8.8.8.8/", {}, None),
        case("G-164", "http://[2606:4700::1]/", {}, None),
        case("G-164", "https://example.com/a?b#c", {}, None),
        case("G-164", "https://example.com/", {"allow_domains": ["example.com"]}, None),
        case("G-164", "http://[64:ff9b::808:808]/", {}, None),
        case("G-165", "http://example.com@127.0.0.1/", {}, PRIVATE),
        case("G-165", "http://127.0.0.1\\@example.com/", {}, PRIVATE),
        case("G-165", "http://example.com\\@127.0.0.1/", {}, PRIVATE),
        case("G-165", "http://１２７.０.０.１/", {}, PRIVATE),
        case("G-165", "http://127。0。0。1/", {}, PRIVATE),
        case("G-165", "http://①②⑦.0.0.1/", {}, PRIVATE),
        case("G-165", "http://%31%32%37.0.0.1/", {}, PRIVATE),
        case("G-165", "http:127.0.0.1", {}, PRIVATE),
        case("G-165", " http://127.0.0.1 ", {}, PRIVATE),
        case("G-165", "http://127.\t0.0\n.1/", {}, PRIVATE),
        case("G-165", "http://a.example\\@b.example/", {}, INVALID),
        case("K15-13", "http://2130706433/", {}, PRIVATE),
        case("K15-13", "http://0x7f.0.0.1/", {}, PRIVATE),
        case("K15-13", "http://0x7f000001/", {}, PRIVATE),
        case("K15-13", "http://0177.0.0.1/", {}, PRIVATE),
        case("K15-13", "http://127.1/", {}, PRIVATE),
        case("K15-13", "http://[::ffff:127.0.0.1]/", {}, PRIVATE),
        case("K15-13", "http://0.0.0.0/", {}, PRIVATE),
        case("K15-13", "http://0/", {}, PRIVATE),
        case("G-166", "http://EXAMPLE.com./", {"allow_domains": ["example.com"]}, None),
        case("G-166", "http://example.com/", {"allow_domains": ["EXAMPLE.com."]}, None),
        case("G-166", "http://Sub.Example.Com.:80/", {"allow_domains": ["example.com"]}, None),
        case("G-166", "http://LOCALHOST./", {}, PRIVATE),
        case("G-166", "http://127.0.0.1./", {}, PRIVATE),
        case("G-166", "http://BÜCHER.example/", {"allow_domains": ["bücher.example"]}, None),
        case("G-170", "http://inside.example/", {"allow_domains": ["inside.example"]}, None),
        case("G-171", "http://169.254.169.254/latest/", {"allow_domains": ["a.example"]}, PRIVATE),
    ],
)
def test_a_url_is_judged_by_its_host(
    url: object, config: dict[str, object], by: str | None
) -> None:
    assert fetch(url, **config) == by


@pytest.mark.parametrize(
    "host",
    [
        *(
            case("G-160", host)
            for host in (
                "[::1]",
                "[0:0:0:0:0:0:0:1]",
                "[::]",
                "[fd00::1]",
                "[fe80::1]",
                "[::ffff:127.0.0.1]",
                "[::127.0.0.1]",
                "[fec0::1]",
            )
        ),
        *(
            case("G-161", host)
            for host in (
                "169.254.169.254",
                "0.0.0.0",
                "127.0.0.1",
                "127.255.255.254",
                "10.0.0.1",
                "172.16.0.1",
                "172.31.255.255",
                "192.168.1.1",
            )
        ),
        *(
            case("G-163", host)
            for host in (
                "100.64.0.1",
                "100.127.255.255",
                "198.18.0.1",
                "198.19.255.255",
                "192.0.0.8",
                "224.0.0.1",
                "255.255.255.255",
                "240.0.0.1",
                "203.0.113.9",
                "168.63.129.16",
                "[64:ff9b::7f00:1]",
                "[64:ff9b::a9fe:a9fe]",
                "[64:ff9b:1::1]",
                "[2002:7f00:1::]",
                "[2002:c0a8:101::1]",
                "[::ffff:0:7f00:1]",
                "[2001::1]",
                "[2001:db8::1]",
                "[3fff::1]",
                "[100::1]",
                "[5f00::1]",
                "[ff02::1]",
                "[fc00::1]",
            )
        ),
        "localhost",
        "a.localhost",
        "printer.local",
        "metadata.google.internal",
        "ip6-loopback",
    ],
)
def test_what_is_of_this_machine_or_network_or_of_nobody_is_private(host: str) -> None:
    assert fetch(f"http://{host}/") == PRIVATE
    assert fetch(f"http://{host}/", allow_domains=[host]) == PRIVATE
    assert fetch(f"http://{host}/", deny_private_ips=False) is None


@pytest.mark.parametrize(
    "address", ["11.0.0.1", "172.32.0.1", "100.128.0.1", "192.0.1.1", "223.255.255.255"]
)
def test_right_beside_a_range_everybody_may_be_asked(address: str) -> None:
    assert fetch(f"http://{address}/") is None
    assert fetch(f"http://[::ffff:{address}]/") is None
    assert fetch(f"http://[64:ff9b::{address}]/") is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2002:808:808::", None),
        ("2002:7f00:1::", "6to4, loopback"),
        ("::127.0.0.1", "IPv4-compatible"),
        ("::ffff:169.254.169.254", "IPv4-mapped, link-local"),
        ("64:ff9b::a00:1", "translated, private"),
        ("fec0::1", "site-local"),
        ("fe80::1%eth0", "link-local"),
        ("::", "unspecified"),
        ("4000::1", "reserved"),
    ],
)
def test_an_address_that_carries_another_is_judged_by_that_one(text: str, why: str | None) -> None:
    address = address_of(text)
    assert address is not None
    assert why_not_public(address) == why


# ---------------------------------------------------------------- which actions it is about
@pytest.mark.case("G-168")
@pytest.mark.parametrize("kind", ["fetch", "fetch.get", "fetch.post"])
def test_each_kind_of_fetch_is_judged(kind: str) -> None:
    assert denied({"type": kind, "url": "http://169.254.169.254/"}) == PRIVATE


@pytest.mark.case("G-169")
def test_a_fetch_without_a_url_is_not_its_business() -> None:
    assert denied({"type": "fetch"}, allow_domains=[]) is None
    assert denied("fetch", allow_domains=[]) is None


@pytest.mark.case("G-168")
def test_every_url_of_an_action_has_to_pass_wherever_it_stands() -> None:
    good, bad = "http://example.com/", "http://10.0.0.1/"
    assert denied({"type": "fetch", "args": {"url": bad}}) == PRIVATE
    assert denied({"type": "fetch", "url": good, "args": {"url": bad}}) == PRIVATE
    assert denied({"type": "fetch", "url": bad, "args": {"url": good}}) == PRIVATE
    assert denied({"type": "fetch", "url": good, "uri": bad}) == PRIVATE
    assert denied({"type": "fetch", "url": good, "args": {"url": good}}) is None


def test_a_tool_that_is_given_a_url_is_judged_and_other_texts_are_its_own() -> None:
    assert denied({"type": "browse", "args": {"url": "http://10.0.0.1/"}}) == PRIVATE
    assert denied({"type": "browse", "url": "http://a.example/"}, allow_domains=[]) == LISTED
    for own in ("page-7", "file:/a", 3, None, ["x"]):
        assert denied({"type": "browse", "url": own}, allow_domains=[]) is None
    assert denied({"type": "bash", "cmd": "x", "url": "http://10.0.0.1/"}) is None


# ---------------------------------------------------------------- the list
@pytest.mark.parametrize(
    ("host", "listed", "allowed"),
    [
        ("example.com", ["example.com"], True),
        ("a.b.example.com", ["example.com"], True),
        ("badexample.com", ["example.com"], False),
        ("example.com.evil.example", ["example.com"], False),
        ("example.com", ["*.example.com"], False),
        ("a.example.com", ["*.example.com"], True),
        ("8.8.8.8", ["8.8.8.8"], True),
        ("134744072", ["8.8.8.8"], True),
        ("8.8.8.8", ["8"], False),
        ("8.8.8.8", ["8.8"], False),
        ("[2606:4700::1]", ["2606:4700:0:0::1"], True),
        ("[2606:4700::2]", ["2606:4700::1"], False),
        ("example.com", ["other.example", "example.com"], True),
    ],
)
def test_a_name_is_listed_with_its_subdomains_and_an_address_alone(
    host: str, listed: list[str], allowed: bool
) -> None:
    assert (fetch(f"http://{host}/", allow_domains=listed) is None) is allowed


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "*",
        "**",
        "*.",
        "http://example.com",
        "example.com/x",
        "a:80",
        "a b",
        "a*.example",
        "a@b",
    ],
)
def test_an_entry_that_is_no_host_is_refused(entry: str) -> None:
    with pytest.raises(ConfigError, match="is no host"):
        rule(allow_domains=[entry])


@pytest.mark.parametrize(
    "config",
    [
        {"allow_domains": "example.com"},
        {"allow_domains": {"example.com"}},
        {"allow_domains": 0},
        {"allow_domains": [3]},
        {"deny_private_ips": "yes"},
        {"deny_private_ips": 1},
        {"denied": []},
    ],
)
def test_a_section_of_another_shape_is_refused(config: dict[str, object]) -> None:
    with pytest.raises(Refused):
        NetSection.model_validate(config)


def test_the_reason_tells_the_host_and_the_way_out_and_not_the_rest_of_the_url() -> None:
    found = rule().deny(plain({"type": "fetch", "url": "http://u:hidden@10.0.0.1/?key=hidden"}))
    assert found is not None
    assert "'10.0.0.1'" in found.reason
    assert "deny_private_ips" in found.reason
    assert "hidden" not in found.reason
    assert rule().why_not("http://10.0.0.1/") == f"[deny: {PRIVATE}] {found.reason}"


# ---------------------------------------------------------------- no input raises
@given(st.text() | st.binary() | st.integers() | st.none() | st.lists(st.text(max_size=3)))
def test_no_url_raises(url: object) -> None:
    fetch(url, allow_domains=["example.com"])


@given(st.text(alphabet="ahtp:/\\@[]%.0127xX#?&:f。１\t ", max_size=40))
def test_no_text_that_looks_like_a_url_gets_past_both_the_table_and_the_list(url: str) -> None:
    if fetch(url, allow_domains=["example.com"]) is None:
        there = destination_of(url)
        assert there.host.endswith("example.com")
        assert there.otherwise is None


@given(st.integers(0, (1 << 32) - 1))
def test_an_address_is_judged_alike_in_each_of_its_spellings(number: int) -> None:
    dotted = ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))
    address = address_of(dotted)
    assert address is not None
    public = why_not_public(address) is None
    for host in (dotted, str(number), hex(number), f"[::ffff:{dotted}]", f"[64:ff9b::{dotted}]"):
        assert (fetch(f"http://{host}/") is None) is public
    assert address.is_global or not public


def test_a_destination_is_what_is_asked() -> None:
    there = destination_of("HTTP://user:pw@Example.COM.:8080/a b?c#d")
    assert (there.scheme, there.host, there.port, there.target) == (
        "http",
        "example.com",
        8080,
        "/a%20b?c",
    )
    assert there.credentials
    assert destination_of("../x", base="http://a.example/b/c/d").url == "http://a.example/b/x"
    with pytest.raises(NoDestination):
        destination_of("../x")
