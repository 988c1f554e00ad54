"""The client for programs that wait for its answers."""

from __future__ import annotations

from collections.abc import Generator
from types import TracebackType
from typing import TypeVar

import httpx

from neodim_client import calls
from neodim_client.calls import Call
from neodim_client.completion import CompletionResponse, StreamItem
from neodim_client.completion_request import CompletionRequest
from neodim_client.driver import Driver
from neodim_client.embedding import EmbeddingRequest, EmbeddingResponse
from neodim_client.evaluation import EvaluationRequest, EvaluationResponse
from neodim_client.exchange import Server
from neodim_client.explanation import ExplanationRequest, ExplanationResponse
from neodim_client.generate import GenerateRequest, GenerateResponse
from neodim_client.job_calls import Jobs
from neodim_client.models import ModelInfo
from neodim_client.retrying import RetryPolicy
from neodim_client.steps import result_of
from neodim_client.streams import completion_items
from neodim_client.tokenization import (
    DetokenizationRequest,
    DetokenizationResponse,
    TokenizationRequest,
    TokenizationResponse,
)

T = TypeVar("T")

DEFAULT_URL = "http://127.0.0.1:8787"
DEFAULT_TIMEOUT_S = 600.0
DEFAULT_RETRIES = RetryPolicy()


class Client:
    """A client of one server; may be shared by threads, and used in a `with` block.

    Every call raises `NeodimClientError`, or what is below it in its tree.

    Args:
        base_url: where the server is.
        api_key: sent with every request, None = none.
        timeout_s: seconds without a byte after which a call is given up, None = never. Calls wait
            in the server's line, so it should be long.
        retries: when requests are sent again.
        show_progress: whether waiting for a job shows a progress bar, where stderr is a terminal.
        http_client: does HTTP, for proxies, certificates and the like; it stays open. None = one
            of its own.

    Raises:
        ValueError: naming the argument.
    """

    def __init__(
        self,
        base_url: str = DEFAULT_URL,
        api_key: str | None = None,
        *,
        timeout_s: float | None = DEFAULT_TIMEOUT_S,
        retries: RetryPolicy = DEFAULT_RETRIES,
        show_progress: bool = True,
        http_client: httpx.Client | None = None,
    ) -> None:
        server = Server(base_url, api_key, timeout_s)
        self._http = httpx.Client() if http_client is None else http_client
        self._is_own_http = http_client is None
        self._driver = Driver(self._http, server)
        self._retries = retries
        self.jobs = Jobs(self._driver, retries, is_progress_wanted=show_progress)

    def __enter__(self) -> Client:
        """Begin a block at whose end the connections are closed."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections; an `http_client` that was given stays open."""
        if self._is_own_http:
            self._http.close()

    def generate(self, request: GenerateRequest) -> GenerateResponse:
        """Texts that go on with a prompt, as the Neodim protocol has them."""
        return self._ask(calls.generate(request))

    def complete(self, request: CompletionRequest, model: str) -> CompletionResponse:
        """Completions of a prompt."""
        return self._ask(calls.ask("/complete", request, model, CompletionResponse.from_json))

    def complete_with_streaming(
        self, request: CompletionRequest, model: str
    ) -> Generator[StreamItem, None, None]:
        """Completions of a prompt, piece by piece.

        Nothing is sent before the first item is asked for. Leaving the stream, or its
        `close()`, cancels the rest. One that breaks off raises `BrokenStream`.
        """
        return self._driver.iterate(completion_items(calls.stream(request, model), self._retries))

    def evaluate(self, request: EvaluationRequest, model: str) -> EvaluationResponse:
        """How likely an expected completion is."""
        return self._ask(calls.ask("/evaluate", request, model, EvaluationResponse.from_json))

    def explain(self, request: ExplanationRequest, model: str) -> ExplanationResponse:
        """Which parts of a prompt speak for a target."""
        return self._ask(calls.ask("/explain", request, model, ExplanationResponse.from_json))

    def embed(self, request: EmbeddingRequest, model: str) -> EmbeddingResponse:
        """What the model makes of a prompt, as vectors."""
        return self._ask(calls.ask("/embed", request, model, EmbeddingResponse.from_json))

    def tokenize(self, request: TokenizationRequest, model: str) -> TokenizationResponse:
        """The tokens of a text."""
        return self._ask(calls.ask("/tokenize", request, model, TokenizationResponse.from_json))

    def detokenize(self, request: DetokenizationRequest, model: str) -> DetokenizationResponse:
        """The text of tokens."""
        return self._ask(calls.ask("/detokenize", request, model, DetokenizationResponse.from_json))

    def models(self) -> list[ModelInfo]:
        """The models that requests can name."""
        return self._ask(calls.models())

    def version(self) -> str:
        """The version of the completion API that the server speaks."""
        return self._ask(calls.version())

    def _ask(self, call: Call[T]) -> T:
        return self._driver.run(result_of(call, self._retries))
