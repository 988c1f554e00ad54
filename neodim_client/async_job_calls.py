"""Jobs of `/v1/jobs`, within asyncio."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, TypeVar, overload

from neodim_client import calls
from neodim_client.async_driver import AsyncDriver
from neodim_client.completion import CompletionResponse
from neodim_client.completion_request import CompletionRequest
from neodim_client.embedding import EmbeddingRequest, EmbeddingResponse
from neodim_client.evaluation import EvaluationRequest, EvaluationResponse
from neodim_client.explanation import ExplanationRequest, ExplanationResponse
from neodim_client.generate import GenerateRequest, GenerateResponse
from neodim_client.job_calls import id_of
from neodim_client.jobs import Job, JobEvent
from neodim_client.progress_bar import shown_progress
from neodim_client.retrying import RetryPolicy
from neodim_client.steps import result_of
from neodim_client.streams import job_events
from neodim_client.waiting import ended_job
from neodim_client.wire import Json

R = TypeVar("R")


class AsyncJobs:
    """The jobs of one client: `client.jobs`.

    Args:
        driver: does what is to be done.
        retries: of every request.
        is_progress_wanted: whether waiting shows a progress bar on a terminal.
    """

    def __init__(
        self, driver: AsyncDriver, retries: RetryPolicy, *, is_progress_wanted: bool
    ) -> None:
        self._driver = driver
        self._retries = retries
        self._is_progress_wanted = is_progress_wanted

    @overload
    async def submit(self, request: GenerateRequest) -> Job[GenerateResponse]: ...

    @overload
    async def submit(
        self, request: CompletionRequest, *, model: str
    ) -> Job[CompletionResponse]: ...

    @overload
    async def submit(self, request: EmbeddingRequest, *, model: str) -> Job[EmbeddingResponse]: ...

    @overload
    async def submit(
        self, request: EvaluationRequest, *, model: str
    ) -> Job[EvaluationResponse]: ...

    @overload
    async def submit(
        self, request: ExplanationRequest, *, model: str
    ) -> Job[ExplanationResponse]: ...

    @overload
    async def submit(self, request: Json, *, protocol: str) -> Job[dict[str, Any]]: ...

    async def submit(
        self,
        request: calls.Submitted,
        *,
        model: str | None = None,
        protocol: str | None = None,
    ) -> Job[Any]:
        """Submit a request without waiting for its result.

        It is not sent a second time when the connection breaks behind it: the server may have it.

        Args:
            request: what is to be done, as JSON for a protocol that has no type here.
            model: that of a request which does not name it itself.
            protocol: that of a request in JSON, such as `chat`.

        Raises:
            ValueError: model or protocol is missing.
            NeodimClientError: the server refuses it, or cannot be asked.
        """
        return await self._driver.run(
            result_of(calls.submit(request, model, protocol), self._retries)
        )

    @overload
    async def get(self, job: Job[R]) -> Job[R]: ...

    @overload
    async def get(self, job: str) -> Job[Any]: ...

    async def get(self, job: Job[Any] | str) -> Job[Any]:
        """A job as it stands now.

        Args:
            job: which one, or its id.

        Raises:
            JobNotFound: there is none of that id.
            NeodimClientError: the server cannot be asked.
        """
        return await self._driver.run(result_of(calls.get_job(id_of(job)), self._retries))

    @overload
    async def wait(self, job: Job[R], *, timeout_s: float | None = None) -> Job[R]: ...

    @overload
    async def wait(self, job: str, *, timeout_s: float | None = None) -> Job[Any]: ...

    async def wait(self, job: Job[Any] | str, *, timeout_s: float | None = None) -> Job[Any]:
        """The job when it has ended, however it ended: `answer()` of it raises if it failed.

        On a terminal a progress bar is shown meanwhile.

        Args:
            job: which one, or its id.
            timeout_s: longest wait, None = until it has ended.

        Raises:
            TimedOut: it has not ended by then; it goes on.
            NeodimClientError: the server cannot be asked, or has no such job.
        """
        with shown_progress(is_wanted=self._is_progress_wanted) as show:
            return await self._driver.run(ended_job(id_of(job), self._retries, timeout_s, show))

    @overload
    def events(
        self, job: Job[R], *, after: str | None = None
    ) -> AsyncGenerator[JobEvent[R], None]: ...

    @overload
    def events(
        self, job: str, *, after: str | None = None
    ) -> AsyncGenerator[JobEvent[Any], None]: ...

    def events(
        self, job: Job[Any] | str, *, after: str | None = None
    ) -> AsyncGenerator[JobEvent[Any], None]:
        """What happens to a job, to its end, each event once.

        When the connection breaks the stream is taken up behind the last event. Leaving it, or
        `aclose()`, does nothing to the job.

        Args:
            job: which one, or its id.
            after: id of the last event that is known, None = from the first one.

        Raises:
            NeodimClientError: the server cannot be asked, or has no such job.
        """
        return self._driver.iterate(job_events(id_of(job), after, self._retries))

    @overload
    async def cancel(self, job: Job[R]) -> Job[R]: ...

    @overload
    async def cancel(self, job: str) -> Job[Any]: ...

    async def cancel(self, job: Job[Any] | str) -> Job[Any]:
        """Cancel a job; what was made so far stays as its result.

        A running job ends at its worker's next step, so the answer may still show it running.

        Args:
            job: which one, or its id.

        Raises:
            NeodimClientError: the server cannot be asked, or has no such job.
        """
        return await self._driver.run(result_of(calls.cancel(id_of(job)), self._retries))
