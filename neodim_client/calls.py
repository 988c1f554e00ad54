"""The calls of the API: method, path and body of each, and how its answer is read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeAlias, TypeVar
from urllib.parse import quote

from neodim_client.answers import SHOWN_CHARACTERS, Answer, reading
from neodim_client.completion_request import CompletionRequest
from neodim_client.embedding import EmbeddingRequest
from neodim_client.errors import InvalidAnswer
from neodim_client.evaluation import EvaluationRequest
from neodim_client.explanation import ExplanationRequest
from neodim_client.generate import GenerateRequest, GenerateResponse
from neodim_client.jobs import COMPLETION, EMBEDDING, EVALUATION, EXPLANATION, NEODIM, Job
from neodim_client.models import ModelInfo
from neodim_client.wire import Json

T = TypeVar("T")

STREAM_HEADERS = {"Accept": "text/event-stream", "Accept-Encoding": "identity"}
"""A compressed stream could keep back what is already there."""


_VERSION = re.compile(r"\d+(\.\d+)*\S*")

Submitted: TypeAlias = (
    GenerateRequest
    | CompletionRequest
    | EmbeddingRequest
    | EvaluationRequest
    | ExplanationRequest
    | Json
)
"""What can be a job; JSON where this package has no type for it."""

_PROTOCOLS: Mapping[type[Any], str] = {
    CompletionRequest: COMPLETION,
    EmbeddingRequest: EMBEDDING,
    EvaluationRequest: EVALUATION,
    ExplanationRequest: EXPLANATION,
}
"""Of requests that do not name their model."""


@dataclass(frozen=True, kw_only=True)
class Call(Generic[T]):
    """One call.

    Args:
        method: GET, POST or DELETE.
        path: from the server's address on.
        read: makes a good answer what the caller wants.
        content: the body.
        headers: beside those of every call.
        is_repeatable: whether nothing changes when the server gets it twice.
        job_id: the job that it is about.
        silence_s: seconds without a byte after which it is given up, None = the client's own.
    """

    method: str
    path: str
    read: Callable[[Answer], T]
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_repeatable: bool = True
    job_id: str | None = None
    silence_s: float | None = None


class ModelRequest(Protocol):
    """A request that does not name its model itself."""

    def to_json(self) -> dict[str, Any]:
        """The body, but for the model."""


def ask(path: str, request: ModelRequest, model: str, from_json: Callable[[Any], T]) -> Call[T]:
    """A call that asks a model something.

    Whatever it costs twice, it leaves nothing behind, so it may be repeated.

    Args:
        path: of the endpoint.
        request: what is asked.
        model: the model's name.
        from_json: makes the answer.
    """
    body = {**request.to_json(), "model": model}
    return Call(method="POST", path=path, content=encode(body), read=reading(from_json))


def generate(request: GenerateRequest) -> Call[GenerateResponse]:
    """`POST /generate`: a client that leaves cancels its job, so it may be repeated."""
    read = reading(GenerateResponse.from_json)
    return Call(method="POST", path="/generate", content=encode(request.to_json()), read=read)


def stream(request: CompletionRequest, model: str) -> Call[None]:
    """`POST /complete` as a stream."""
    body = {**request.to_json(), "model": model, "stream": True}
    return Call(
        method="POST",
        path="/complete",
        content=encode(body),
        headers=STREAM_HEADERS,
        read=lambda _: None,
    )


def models() -> Call[list[ModelInfo]]:
    """`GET /models_available`."""
    read = reading(lambda found: [ModelInfo.from_json(each) for each in found])
    return Call(method="GET", path="/models_available", read=read)


def version() -> Call[str]:
    """`GET /version`, which is plain text."""
    return Call(method="GET", path="/version", read=_read_version)


def _read_version(answer: Answer) -> str:
    text = answer.content[:SHOWN_CHARACTERS].decode(errors="replace").strip()
    if not _VERSION.fullmatch(text):
        raise InvalidAnswer(f"the server's answer is no version: {text!r}")
    return text


def submit(request: Submitted, model: str | None, protocol: str | None) -> Call[Job[Any]]:
    """`POST /v1/jobs`. It may not be repeated once it was sent: there would be two jobs.

    Args:
        request: what is to be done.
        model: that of a request which does not name it itself.
        protocol: that of a request in JSON.

    Raises:
        ValueError: model or protocol is missing.
    """
    if isinstance(request, GenerateRequest):
        protocol, fields = NEODIM, request.to_json()
    elif isinstance(request, Mapping):
        if protocol is None:
            raise ValueError("protocol: a request in JSON needs the name of one, such as 'chat'")
        fields = dict(request)
    else:
        if model is None:
            raise ValueError(f"model: {type(request).__name__} needs the name of one")
        protocol, fields = _PROTOCOLS[type(request)], {**request.to_json(), "model": model}
    body = {"protocol": protocol, "request": fields}
    return Call(
        method="POST",
        path="/v1/jobs",
        content=encode(body),
        read=reading(Job.from_json),
        is_repeatable=False,
    )


def get_job(job_id: str) -> Call[Job[Any]]:
    """`GET /v1/jobs/{id}`."""
    return Call(method="GET", path=_path(job_id), read=reading(Job.from_json), job_id=job_id)


def cancel(job_id: str) -> Call[Job[Any]]:
    """`DELETE /v1/jobs/{id}`, which leaves a job that has ended as it is."""
    return Call(method="DELETE", path=_path(job_id), read=reading(Job.from_json), job_id=job_id)


def events(job_id: str, after: str | None, silence_s: float) -> Call[None]:
    """`GET /v1/jobs/{id}/events`.

    Args:
        job_id: which job.
        after: id of the last event that is known, None = from the first one.
        silence_s: seconds without a byte after which the stream is given up.
    """
    return Call(
        method="GET",
        path=_path(job_id) + "/events",
        headers={**STREAM_HEADERS, **({"Last-Event-ID": after} if after else {})},
        read=lambda _: None,
        job_id=job_id,
        silence_s=silence_s,
    )


def encode(body: Json) -> bytes:
    """A body as JSON.

    Raises:
        ValueError: naming the field that JSON cannot hold.
        TypeError: likewise.
    """
    for name, value in body.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}: cannot be sent as JSON: {error}") from error
    return json.dumps(body, separators=(",", ":")).encode()


def _path(job_id: str) -> str:
    return f"/v1/jobs/{quote(job_id, safe='')}"
