"""Draws the pictures of one job at a time, one after another.

Pictures drawn together come out a little different from those drawn alone (the last bits of sums,
seen in float32 with diffusers 0.42 and torch 2.13), and on a CPU take as long; so none are.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from PIL import Image

from workers.contract.errors import EngineStopped
from workers.contract.image_job import ImageJob
from workers.engine.failures import as_neodim_error
from workers.images.pictures import encode_png
from workers.images.pipelines import Canvas, Pipelines


class Cancelled(Exception):
    """Ends a picture between two steps; raised through the pipeline, and caught here."""


class Drawing:
    """One job's way through the engine.

    Args:
        job: what to draw.
        report: hears after each step how many were done in all.
    """

    def __init__(self, job: ImageJob, report: Callable[[int], None]) -> None:
        self.job = job
        self.files: list[bytes] = []
        self._report = report
        self._n_steps = 0
        self._cancelled = threading.Event()

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody wants the rest."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Ask it to end at its next step; any thread may call this."""
        self._cancelled.set()

    def advance(self) -> None:
        """Count a step; schedulers that pass a step twice do not count beyond the picture's end."""
        end = (len(self.files) + 1) * self.job.steps_each
        self._n_steps = min(self._n_steps + 1, end)
        self._report(self._n_steps)

    def complete(self, picture: Image.Image) -> None:
        """Take a finished picture."""
        self.files.append(encode_png(picture))
        self._n_steps = len(self.files) * self.job.steps_each
        self._report(self._n_steps)


class ImageEngine:
    """Draws.

    Args:
        pipelines: the model.
    """

    def __init__(self, pipelines: Pipelines) -> None:
        self._pipelines = pipelines
        self._stopping = threading.Event()
        self._busy_since: float | None = None
        # A pipeline's schedule belongs to the picture that is being drawn.
        self._one_at_a_time = threading.Lock()
        self.n_turns = 0

    @property
    def turned_at(self) -> float:
        """When a step last ended, by the monotonic clock; now, while nothing is drawn."""
        since = self._busy_since
        return time.monotonic() if since is None else since

    def stop(self) -> None:
        """End what is being drawn with `EngineStopped`, at its next step."""
        self._stopping.set()

    def draw(self, drawing: Drawing) -> None:
        """Draw all pictures of a job, or those that are finished when it is cancelled.

        Raises:
            EngineStopped: the worker stops.
            InvalidParams: a source is broken, or the model cannot do what is asked.
            EngineFailure: the model failed.
        """
        with self._one_at_a_time:
            self._busy_since = time.monotonic()
            try:
                self._draw(drawing)
            except Cancelled:
                return
            except (RuntimeError, MemoryError) as error:
                raise as_neodim_error(error) from error
            finally:
                self._busy_since = None

    def _draw(self, drawing: Drawing) -> None:
        job = drawing.job
        canvas = Canvas.of(job)

        def on_step() -> None:
            drawing.advance()
            self._turn(drawing)

        for n in range(job.n_pictures):
            self._turn(drawing)
            drawing.complete(self._pipelines.draw(job, job.seed + n, canvas, on_step))

    def _turn(self, drawing: Drawing) -> None:
        """Note that the engine lives, and end what nobody wants any more."""
        self.n_turns += 1
        self._busy_since = time.monotonic()
        if self._stopping.is_set():
            raise EngineStopped("the worker is stopping")
        if drawing.is_cancelled:
            raise Cancelled
