"""Where a webhook may go, as far as its address says: each way to write an address inside is refused."""

import ipaddress

import pytest

from agentjobs.webhooks.addresses import is_inside, is_public
from agentjobs.webhooks.places import Forbidden, Place, Reach, check_address, checked_place

TENANTS = Reach.of_tenants(private=False)
TRIAL = Reach.of_tenants(private=True)
OPERATORS = Reach.of_operators(private=False)

NOT_PUBLIC = [
    *(
        "10.1.2.3",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",
        "192.168.0.1",
        "172.16.0.1",
        "172.31.255.255",
    ),
    *("100.64.0.1", "100.100.100.200", "168.63.129.16", "0.0.0.0", "0.1.2.3", "224.0.0.1", "239.255.255.255"),
    *("240.0.0.1", "255.255.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1", "198.18.0.1", "203.0.113.1"),
    *(
        "::",
        "::1",
        "fe80::1",
        "fec0::1",
        "fd00::1",
        "fd00:ec2::254",
        "ff02::1",
        "100::1",
        "2001:db8::1",
        "3fff::1",
    ),
    *("::ffff:10.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:0:0", "::127.0.0.1", "::10.0.0.1"),
    *("64:ff9b::a00:1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::1", "5f00::1", "4000::1"),
    "2001:0:4136:e378:8000:63bf:f5ff:fffe",  # Teredo, to 10.0.0.1
]
PUBLIC = ["8.8.8.8", "93.184.215.14", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]

SPELLINGS = [
    *("2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "017700000001", "127.1", "127.0.1", "0", "0x0"),
    *("127.0.0.01", "0251.0376.0251.0376", "2852039166", "0xa9fea9fe", "1.2.3.4.5", "256.1.1.1", "hooks.0x7f"),
    *("localhost", "LOCALHOST", "localhost.", "a.localhost", "metadata", "db", "printer.local", "vault.internal"),
    *(
        "router.home.arpa",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[fe80::1%25eth0]",
        "[::127.1]",
    ),
    *(
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "\uff11\uff12\uff17.0.0.1",
        "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
        "例え.jp",
        "-a.example.org",
        "a..example.org",
    ),
    *("user@example.org", "user:pass@example.org", "@example.org", "a_b@127.0.0.1", "example.org\\@127.0.0.1", ""),
    *("127.0.0.1\t", "exa mple.org", "x" * 64 + ".org", "169.254.169.254", "10.0.0.1", "100.100.100.200"),
]


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_inside_or_of_no_use_is_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("host", [*NOT_PUBLIC, *SPELLINGS])
def test_a_tenant_cannot_name_a_place_inside_however_it_is_written(host: str) -> None:
    bare_ipv6 = ":" in host and not host.startswith("[") and "@" not in host

    with pytest.raises(Forbidden) as caught:
        checked_place(f"https://[{host}]/hook" if bare_ipv6 else f"https://{host}/hook", TENANTS)

    assert host == "" or host not in str(caught.value) or len(host) < 3


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.org/", "ftp://example.org/", "gopher://example.org/", "file:///etc/passwd",
        "//example.org/",
        "https:///path", "https://example.org/#part", "https://example.org:80/", "https://example.org:22/",
        "https://example.org:0/", "https://example.org:65536/", "https://example.org:x/", "https://[::1/",
        "https://example.org/a b", "https://example.org/\r\nHost: inside", "https://example.org/" + "x" * 2_048,
        "http://127.0.0.1/", "http://localhost:443/", "javascript:alert(1)", "https://example.org/\N{SNOWMAN}",
    ],
)  # fmt: skip
def test_a_tenants_address_is_https_on_its_ports_and_well_formed_or_refused_unquoted(url: str) -> None:
    with pytest.raises(Forbidden, match="a webhook") as caught:
        checked_place(url, TENANTS)

    assert "example" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "at"),
    [
        ("https://hooks.example.org", "https://8.8.8.8:443/"),
        ("https://HOOKS.example.org.:8443/a?b=c", "https://8.8.8.8:8443/a?b=c"),
        ("https://xn--r8jz45g.jp/", "https://8.8.8.8:443/"),
        ("https://93.184.215.14/", "https://8.8.8.8:443/"),
        ("https://[2606:4700:4700::1111]/", "https://8.8.8.8:443/"),
    ],
)
def test_a_public_address_is_taken_and_connected_to_by_what_was_checked(url: str, at: str) -> None:
    place = checked_place(url, TENANTS)

    assert place.at(ipaddress.ip_address("8.8.8.8")) == at
    assert place.host == place.host.lower().rstrip(".")


@pytest.mark.parametrize(
    ("url", "address", "allowed"),
    [
        ("http://hooks.corp/", "10.0.0.7", True),
        ("https://hooks.corp/", "fd00::7", True),
        ("http://localhost:9000/", "127.0.0.1", True),
        ("http://localhost:9000/", "10.0.0.7", False),
        ("http://hooks.corp/", "127.0.0.1", False),
        ("http://hooks.corp/", "93.184.215.14", False),
        ("https://hooks.corp/", "169.254.169.254", False),
        ("https://hooks.corp/", "::ffff:169.254.169.254", False),
        ("https://hooks.corp/", "::ffff:127.0.0.1", False),
        ("https://hooks.corp/", "fd00:ec2::254", False),
        ("https://hooks.corp/", "100.100.100.200", False),
        ("https://hooks.corp/", "224.0.0.1", False),
        ("https://hooks.corp/", "0.0.0.0", False),
    ],
)
def test_in_a_trial_a_webhook_goes_inside_but_never_to_metadata_nor_openly_outside(
    url: str, address: str, allowed: bool
) -> None:
    place = checked_place(url, TRIAL)

    try:
        check_address(place, ipaddress.ip_address(address), TRIAL)
    except Forbidden:
        assert not allowed
    else:
        assert allowed


def test_an_operators_address_may_be_of_this_machine_and_of_any_port() -> None:
    places = [
        checked_place(url, OPERATORS).port for url in ("http://localhost:9000/", "https://example.org:9000/")
    ]

    assert places == [9000, 9000]
    for url in ("http://example.org/", "https://10.0.0.1/", "https://169.254.169.254/"):
        with pytest.raises(Forbidden):
            checked_place(url, OPERATORS)


def test_what_is_inside_is_inside_also_when_it_is_written_as_ipv6() -> None:
    found = {
        address: is_inside(ipaddress.ip_address(address)) for address in ("::ffff:10.0.0.1", "8.8.8.8", "::1")
    }

    assert found == {"::ffff:10.0.0.1": True, "8.8.8.8": False, "::1": False}


def test_the_header_host_keeps_the_name() -> None:
    assert Place.of("https://hooks.example.org/x").authority == "hooks.example.org:443"
    assert Place.of("https://[2606:4700:4700::1111]/").authority == "[2606:4700:4700::1111]:443"
