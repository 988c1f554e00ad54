"""Reading jobs of every kind, done with one model."""

from __future__ import annotations

from neodim_sampling.text.codec import TextCodec
from workers.contract.reading_job import (
    EvaluationJob,
    ExplanationJob,
    ReadingJob,
    ReadingResult,
)
from workers.engine.prepare import Preparer
from workers.reading.embedding import embed
from workers.reading.evaluation import evaluate
from workers.reading.explanation import explain
from workers.reading.passes import Passes


class Reader:
    """Does what is asked of a model that only reads.

    Args:
        preparer: of the model.
        codec: of the model.
        n_layers: of the model.
    """

    def __init__(self, preparer: Preparer, codec: TextCodec, n_layers: int) -> None:
        self._preparer = preparer
        self._codec = codec
        self._n_layers = n_layers

    def do(self, job: ReadingJob, passes: Passes) -> ReadingResult | None:
        """Do a job; an earlier attempt at it left nothing that could be used.

        Args:
            job: what was asked for.
            passes: reads what the job needs to be read.

        Returns:
            None where it was cancelled.

        Raises:
            EngineStopped: the engine is going away.
            NeodimError: it cannot be done, or failed.
        """
        if isinstance(job, EvaluationJob):
            return evaluate(job, self._preparer, self._codec, passes)
        if isinstance(job, ExplanationJob):
            return explain(job, self._preparer, self._codec, passes)
        return embed(job, self._preparer, self._codec, self._n_layers, passes)
