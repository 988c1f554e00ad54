from __future__ import annotations

import pytest

from api.node.call_address import call_address
from workers.contract.registrations import ModelType, Registration

TEXT, IMAGE, EDITING = ModelType
BASE = "http://h:1/x/v1"


def address_of(api, kind, path):
    address = call_address(Registration(project="p", model="m", api=api, type=kind), path)
    return None if address is None else str(address)


@pytest.mark.parametrize(
    ("api", "kind", "path", "expected"),
    [
        ("/chat/completions", TEXT, "/v1/chat/completions", "/chat/completions"),
        ("/chat/completions", TEXT, "/chat/completions", "/chat/completions"),
        ("/chat/completions", TEXT, "/v1/completions", "/completions"),
        ("/completions", TEXT, "/v1/chat/completions", "/chat/completions"),
        ("/images/generations", IMAGE, "/v1/images/generations", "/images/generations"),
        ("/images/generations", IMAGE, "/v1/images/edits", "/images/edits"),
        ("/images/generations", EDITING, "/v1/images/edits", "/images/edits"),
        ("/chat/completions?k=v", TEXT, "/v1/completions", "/completions?k=v"),
        ("/answer", TEXT, "/v1/chat/completions", "/answer"),
        ("/draw", IMAGE, "/v1/images/generations", "/draw"),
        ("/change", EDITING, "/v1/images/edits", "/change"),
    ],
)
def test_the_registered_url_says_where_each_call_goes(api, kind, path, expected):
    assert address_of(BASE + api, kind, path) == BASE + expected


@pytest.mark.parametrize(
    ("api", "kind", "path"),
    [
        ("/chat/completions", TEXT, "/v1/images/generations"),
        ("/images/generations", IMAGE, "/v1/chat/completions"),
        ("/answer", TEXT, "/v1/completions"),
        ("/chat/completions", TEXT, "/v1/embeddings"),
    ],
)
def test_a_call_that_a_server_is_not_known_to_take_goes_nowhere(api, kind, path):
    assert address_of(BASE + api, kind, path) is None
