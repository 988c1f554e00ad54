"""Where a server is called for a path, given the one URL that it registered."""

from __future__ import annotations

from dataclasses import replace

from workers.contract.http_address import HttpAddress, parse_http_url
from workers.contract.registrations import ModelType, Registration

ENDINGS = {
    "/chat/completions": {ModelType.TEXT},
    "/completions": {ModelType.TEXT},
    "/images/generations": {ModelType.TEXT_TO_IMAGE, ModelType.IMAGE_EDITING},
    "/images/edits": {ModelType.TEXT_TO_IMAGE, ModelType.IMAGE_EDITING},
}
"""What the paths of calls end in, longest first where one ends in another, and who takes them."""

_OWN = {
    ModelType.TEXT: "/chat/completions",
    ModelType.TEXT_TO_IMAGE: "/images/generations",
    ModelType.IMAGE_EDITING: "/images/edits",
}
"""The call that a URL of another form is for."""


def call_address(server: Registration, path: str) -> HttpAddress | None:
    """Where to send a request.

    Args:
        server: who is to answer.
        path: at which this service was asked.

    Returns:
        None = the server is not known to take such requests.
    """
    wanted = _ending_of(path)
    if wanted is None or server.type not in ENDINGS[wanted]:
        return None
    address = parse_http_url(server.api)
    found = _ending_of(address.path)
    if found is None:
        return address if wanted == _OWN[server.type] else None
    return replace(address, path=address.path.removesuffix(found) + wanted)


def _ending_of(path: str) -> str | None:
    return next((each for each in ENDINGS if path.endswith(each)), None)
