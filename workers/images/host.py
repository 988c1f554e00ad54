"""The host of an image worker: its model, and a job's way through that."""

from __future__ import annotations

from workers.contract.attempts import Attempt
from workers.contract.errors import EngineFailure
from workers.contract.fleet import WorkerKind
from workers.contract.image_job import ImageJob, ImageResult
from workers.contract.job_body import Job
from workers.contract.pictures import PictureStore
from workers.contract.settings import Settings
from workers.host import Finish, RunningEngine, WorkerHost
from workers.images.engine import Drawing, ImageEngine
from workers.images.loader import load_pipelines
from workers.publisher import Output

SLOTS = 1
"""Jobs at a time: a second one would only make the first one slower."""


class ImageHost(WorkerHost):
    """A worker that draws pictures, one job at a time.

    Args:
        settings: of the service.
        name: this worker's name.
        cid: its id at nodes.
    """

    kind = WorkerKind.IMAGE
    stuck_s = 600.0
    """A step of a large model on a CPU takes minutes, and so does decoding its picture."""

    def __init__(self, settings: Settings, name: str, cid: str) -> None:
        assert settings.image_model_name is not None, "the launcher names an image model"
        super().__init__(settings, name, cid, model_name=settings.image_model_name, slots=SLOTS)
        self._pictures = PictureStore(self._redis, settings.result_ttl_s)

    def _load(self) -> tuple[RunningEngine, int]:
        self._image_engine = ImageEngine(load_pipelines(self._settings))
        return self._image_engine, self._settings.image_max_size

    def _do(self, attempt: Attempt, job: Job, output: Output) -> Finish:
        if not isinstance(job, ImageJob):
            raise EngineFailure("the job is not one for pictures")
        drawing = Drawing(job, lambda n_steps: output.add((), n_steps))
        output.connect(drawing.cancel)
        if attempt.is_cancelled:
            drawing.cancel()
        self._image_engine.draw(drawing)
        result = ImageResult(
            n_pictures=len(drawing.files),
            prompt=job.prompt,
            width=job.width,
            height=job.height,
            response_format=job.response_format,
            is_partial=len(drawing.files) < job.n_pictures,
        )

        def finish() -> None:
            self._pictures.put(attempt.job_id, drawing.files)
            self._store.succeed(attempt, result)

        return finish
