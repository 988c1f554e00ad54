from __future__ import annotations

import pytest

from workers.contract.public_url import public_url
from workers.contract.settings import Settings


@pytest.mark.parametrize(
    ("address", "given", "expected"),
    [
        ("127.0.0.1", None, "http://127.0.0.1:8787"),
        ("10.0.0.5", None, "http://10.0.0.5:8787"),
        ("0.0.0.0", None, "http://127.0.0.1:8787"),
        ("::", None, "http://[::1]:8787"),
        ("0.0.0.0", "https://example.org/ai/", "https://example.org/ai"),
    ],
)
def test_the_public_url_is_what_was_given_or_where_the_service_listens(
    address: str, given: str | None, expected: str
) -> None:
    assert public_url(Settings(listen_address=address, public_url=given)) == expected
