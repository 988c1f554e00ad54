"""The host of a text worker: its model behind the engine, and a job's way through that."""

from __future__ import annotations

import logging

from neodim_sampling.text.codec import TextCodec
from workers.contract.attempts import Attempt
from workers.contract.errors import EngineFailure
from workers.contract.fleet import WorkerKind
from workers.contract.image_job import ImageJob
from workers.contract.job_body import Job
from workers.contract.reading_job import ReadingJob
from workers.contract.settings import Settings
from workers.contract.text_job import TextJob
from workers.contract.tokenizer_store import TokenizerFile, TokenizerStore
from workers.engine.engine import Engine
from workers.engine.parts import cancelling
from workers.engine.results import make_result
from workers.host import Finish, RunningEngine, WorkerHost, end_process
from workers.models.serving import make_ready, preparer_of
from workers.models.tokenizer_file import tokenizer_file
from workers.publisher import Output
from workers.reading.passes import Passes
from workers.reading.reader import Reader

log = logging.getLogger(__name__)


class TextHost(WorkerHost):
    """A worker that generates text, and reads it, many jobs at a time.

    Args:
        settings: of the service.
        name: this worker's name.
        cid: its id at nodes.
    """

    kind = WorkerKind.TEXT

    def __init__(self, settings: Settings, name: str, cid: str) -> None:
        super().__init__(settings, name, cid, model_name=settings.model_name, slots=settings.slots)
        self._tokenizers = TokenizerStore(self._redis)
        self._tokenizer_file: TokenizerFile | None = None

    def _load(self) -> tuple[RunningEngine, int]:
        settings = self._settings
        loaded, model = make_ready(settings)
        log.warning(
            "weights take %.2f GB, the cache %.2f GB for %d sequences of %d tokens",
            model.weights_bytes / 1e9,
            model.cache.n_bytes / 1e9,
            model.slots,
            model.max_length,
        )
        self._reads_pictures = loaded.eye is not None
        self._codec = TextCodec(loaded.tokenizer)
        self._tokenizer_file = tokenizer_file(loaded.tokenizer)
        self._preparer = preparer_of(loaded, self._codec, settings.slots)
        self._reader = Reader(self._preparer, self._codec, model.n_layers)
        self._text_engine = Engine(model, settings.prefill_chunk, on_death=end_process)
        self._text_engine.start()
        return self._text_engine, loaded.max_length

    def _report(self) -> None:
        # First, so that who sees a worker ready finds its tokenizer too.
        if self._tokenizer_file is not None:
            self._tokenizers.keep(self._model_name, self._tokenizer_file)
        super()._report()

    def _do(self, attempt: Attempt, job: Job, output: Output) -> Finish:
        if isinstance(job, ImageJob):
            raise EngineFailure("the job is not one for text")
        if isinstance(job, TextJob):
            return self._generate(attempt, job, output)
        return self._read(attempt, job, output)

    def _generate(self, attempt: Attempt, job: TextJob, output: Output) -> Finish:
        made = self._store.made_so_far(attempt) if attempt.number > 1 else {}
        parts = self._preparer.prepare_parts(job, made, output)
        cancel = cancelling(parts)
        output.connect(cancel)
        if attempt.is_cancelled:
            cancel()
        for part in parts:
            self._text_engine.submit(part)
        output.wait()
        if output.error is not None:
            raise output.error
        result = make_result(parts, self._codec)
        return lambda: self._store.succeed(attempt, result)

    def _read(self, attempt: Attempt, job: ReadingJob, output: Output) -> Finish:
        passes = Passes(self._preparer.prepare_reading, self._text_engine.submit, output.report)
        output.connect(passes.cancel)
        if attempt.is_cancelled:
            passes.cancel()
        result = self._reader.do(job, passes)
        if result is None:
            return lambda: self._store.end_cancelled(attempt)
        return lambda: self._store.succeed(attempt, result)
