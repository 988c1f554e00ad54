from __future__ import annotations

import pytest

from workers.contract.http_address import parse_http_url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://a", "http://a:6000"),
        ("http://a:80/x/", "http://a:80/x"),
        ("https://a/x?y=z", "https://a:6000/x?y=z"),
        ("http://[::1]:7/", "http://[::1]:7"),
    ],
)
def test_an_address_is_what_its_url_says(url: str, expected: str) -> None:
    assert str(parse_http_url(url, default_port=6000)) == expected


def test_without_a_port_it_is_that_of_the_scheme() -> None:
    ports = [parse_http_url(url).port for url in ("http://a", "https://a")]

    assert ports == [80, 443]


def test_a_key_is_read_and_not_shown() -> None:
    address = parse_http_url("http://secret@a:1")

    assert address.key == "secret"
    assert str(address) == "http://a:1"


@pytest.mark.parametrize(
    "url",
    [
        "", "a", "a:80", "//a", "file:///etc/passwd", "ftp://a", "http://", "http:///x",
        "http://a b", "http://a\n", "http://a:x", "http://a:0", "http://a:70000", "http://[::1",
        "http://u:p@a", "http://a..b", "http://\u00e4",
    ],
)  # fmt: skip
def test_what_is_no_url_of_http_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="must be an http:// or https:// URL with a host"):
        parse_http_url(url)
