"""Forwards requests for models that other servers registered here."""

from __future__ import annotations

import uuid

from flask import Response
from werkzeug.datastructures import Headers

from api.connection import Connection
from api.node.answer_head import AnswerHead
from api.node.call_address import call_address
from api.node.errand import Errand
from api.node.load import Load
from api.node.registry import Registry
from api.rejections import ForwardedAlready, NoServerLeft
from workers.contract.http_address import HttpAddress
from workers.contract.registrations import Registration

MARK = "X-Neodim-Forwarded"
"""Header of a request that was forwarded, which is never forwarded again."""

REQUEST_HEADERS = ("Content-Type", "Accept")
"""What goes on with a request. The client's key does not: it is for this service alone."""


class Forwarding:
    """Sends requests on.

    Args:
        registry: knows the servers.
        load: knows how busy they are.
        timeout_s: longest wait for the first bytes of a server's body, and between two bytes.
    """

    def __init__(self, registry: Registry, load: Load, timeout_s: float) -> None:
        self._registry = registry
        self._load = load
        self._timeout_s = timeout_s

    def forward(
        self,
        model: str,
        path: str,
        body: bytes,
        headers: Headers,
        connection: Connection,
    ) -> Response | None:
        """Let a server of a model answer the current request; for models not served here.

        Args:
            model: whom the request is for.
            path: at which this service was asked, such as /v1/completions.
            body: of the request, sent on as it is.
            headers: of the request.
            connection: the client's.

        Returns:
            The server's answer, also where it is an error, as it comes; None = no server of the
            model takes such requests.

        Raises:
            NoServerLeft: none of them answers.
            ForwardedAlready: the request comes from another node.
            ClientGone: nobody waits any more.
            redis.RedisError: Redis does not answer.
        """
        left = self._candidates(model, path)
        if not left:
            return None
        if MARK in headers:
            raise ForwardedAlready(model)
        request_id = uuid.uuid4().hex
        while left and (server := self._load.take(list(left), request_id)):
            address = left.pop(server)
            errand = Errand(server, address, request_id, self._load, connection, self._timeout_s)
            head = errand.begin(body, _headers_to_send(headers))
            if head is not None:
                return _response(head, errand)
        raise NoServerLeft(model)

    def _candidates(self, model: str, path: str) -> dict[Registration, HttpAddress]:
        """Who may answer, and where."""
        found = {each: call_address(each, path) for each in self._registry.servers(model)}
        return {each: address for each, address in found.items() if address is not None}


def _headers_to_send(headers: Headers) -> dict[str, str]:
    sent = {name: headers[name] for name in REQUEST_HEADERS if name in headers}
    return {**sent, MARK: "1", "Connection": "close"}


def _response(head: AnswerHead, errand: Errand) -> Response:
    pieces = errand.pieces(head.is_events)
    response = Response(pieces, head.status, head.headers, content_type=head.content_type)
    response.call_on_close(errand.end)
    if head.is_events:
        # Proxies in between would collect the stream otherwise. It has no length, since an error
        # event may have to end it.
        response.headers["X-Accel-Buffering"] = "no"
    elif head.length is not None:
        response.content_length = head.length
    return response
