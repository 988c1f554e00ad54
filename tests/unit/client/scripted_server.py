"""A server that answers one call after another as it is told, and clients of both kinds for it."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

from http_stand_in import Call, StandIn

from neodim_client import AsyncClient, Client, RetryPolicy

Reply = Callable[[BaseHTTPRequestHandler], None]

SWIFT = RetryPolicy(first_wait_s=0.002, longest_wait_s=0.01)
KINDS = ("waiting", "asyncio")

GENERATED = {
    "original_input_tokens_count": 3,
    "used_input_tokens_count": 3,
    "preamble": "",
    "preamble_tokens_count": 0,
    "used_prompt": "One",
    "original_prompt_tokens_count": 3,
    "used_prompt_tokens_count": 3,
    "repetition_penalty_text_at_start": "",
    "used_repetition_penalty_tokens_count_at_start": 0,
    "used_repetition_penalty_range_at_start": 0,
    "used_repetition_penalty_tokens_count_at_end": 0,
    "used_repetition_penalty_range_at_end": 0,
    "generated_tokens_count": 1,
    "output_tokens_count": 4,
    "sequences": [
        {
            "generated_text": " day",
            "output_text": "One day",
            "stop_string": "",
            "stop_string_match": "",
            "trimmed_tail": "",
            "repetition_penalty_text_at_end": "",
        }
    ],
    "gpus": [],
}
"""An answer of `/generate`."""


class ScriptedServer(StandIn):
    """Answers its n-th call with the n-th reply; the last one answers all that follow."""

    def __init__(self, *replies: Reply) -> None:
        super().__init__()
        self.replies = list(replies)

    def answer(self, handler: BaseHTTPRequestHandler, call: Call) -> None:
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        reply(handler)


def says(status: int, body: Any, **headers: str) -> Reply:
    """Answer with JSON, or with bytes as they are."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()

    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(content)))
        for name, value in {"Content_Type": "application/json", **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(content)

    return reply


def streams(*pieces: bytes, is_whole: bool = True) -> Reply:
    """Answer with a chunked event stream; one that is not whole is cut behind its last piece."""

    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream; charset=utf-8")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for piece in pieces:
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        if is_whole:
            handler.wfile.write(b"0\r\n\r\n")
        else:
            handler.close_connection = True

    return reply


def drops(handler: BaseHTTPRequestHandler) -> None:
    """Reset the connection without an answer."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.close_connection = True
    handler.connection.close()


def use(kind: str, url: str, what: Callable[[Any], Any], **options: Any) -> Any:
    """What a client of a kind answers; of a stream all its items.

    Args:
        kind: one of `KINDS`.
        url: of the server.
        what: what is done with the client.
        options: of the client.
    """
    options = {"retries": SWIFT, "timeout_s": 20, **options}
    if kind == "waiting":
        with Client(url, **options) as client:
            made = what(client)
            return list(made) if isinstance(made, Iterator) else made

    async def asked() -> Any:
        async with AsyncClient(url, **options) as client:
            made = what(client)
            if isinstance(made, AsyncIterator):
                return [each async for each in made]
            return await made

    return asyncio.run(asked())


def job_json(**fields: Any) -> dict[str, Any]:
    """A job as `/v1/jobs` shows it: one for a single token, succeeded unless told otherwise."""
    return {
        "id": "job-1",
        "protocol": "neodim",
        "model": "gpt2",
        "state": "succeeded",
        "created_at": "2026-12-01T10:00:00.000Z",
        "started_at": "2026-12-01T10:00:01.000Z",
        "finished_at": "2026-12-01T10:00:02.500Z",
        "attempt": 1,
        "worker": "gpt2-1",
        "is_possible": True,
        "progress": {"tokens_generated": 1, "tokens_expected": 1},
        "result": GENERATED,
        "error": None,
        **fields,
    }


def frame(number: int, kind: str, data: Any) -> bytes:
    """One event of a job's stream."""
    text = json.dumps(data, ensure_ascii=False)
    return f"id: {number}-0\nevent: {kind}\ndata: {text}\n\n".encode()
