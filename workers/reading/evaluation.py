"""How likely a text is behind a prompt."""

from __future__ import annotations

from math import fsum

from neodim_sampling.text.codec import TextCodec
from workers.contract.reading_job import EvaluationJob, EvaluationResult
from workers.engine.prepare import Preparer
from workers.reading.passes import Passes
from workers.reading.targets import read_target


def evaluate(
    job: EvaluationJob, preparer: Preparer, codec: TextCodec, passes: Passes
) -> EvaluationResult | None:
    """Read prompt and text once.

    Args:
        job: what was asked for.
        preparer: of the model.
        codec: of the model.
        passes: reads.

    Returns:
        None where it was cancelled.

    Raises:
        NeodimError: it cannot be done, or failed.
    """
    target = read_target(preparer, codec, job.prompt, job.expected, "completion_expected")
    text = target.to_read(target.prompt.factors, n_top=1)
    read = passes.run([text], lambda generation: generation.prompt_likelihoods)
    if read is None:
        return None
    (likelihoods,) = read
    likeliest = [each.top[0][0] for each in likelihoods]
    return EvaluationResult(
        n_prompt=target.n_prompt,
        n_expected=len(target.text.ids),
        n_characters=len(job.expected),
        log_prob=fsum(each.log_prob for each in likelihoods),
        is_greedy=likeliest == list(target.text.ids),
        likeliest_text=codec.decode(likeliest),
    )
