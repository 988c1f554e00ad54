from __future__ import annotations

import pytest

from api.public_url import public_url
from workers.contract.settings import Settings


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("::", "http://[::1]:8000"),
        ("::1", "http://[::1]:8000"),
        ("example.org", "http://example.org:8000"),
    ],
)
def test_links_begin_with_an_address_that_can_be_connected_to(address, expected):
    assert public_url(Settings(listen_address=address, listen_port=8000)) == expected
