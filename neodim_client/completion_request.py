"""The request of `/complete`: what to go on with, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neodim_client.prompt import Prompt, prompt_json
from neodim_client.wire import given_fields


@dataclass(frozen=True)
class CompletionRequest:
    """Asks for completions of a prompt.

    Of `temperature`, `top_k` and `top_p` those that are 0 are not used; with none of them the
    likeliest token is taken each time.

    Args:
        prompt: what to go on with.
        maximum_tokens: tokens to generate at most; 0 generates nothing, None goes on until the
            text ends or the model's context is full.
        temperature: divides the scores; higher makes unlikely tokens likelier. 0 = off.
        top_k: draw among so many of the likeliest tokens. 0 = off, 1 = the likeliest.
        top_p: draw among the fewest likeliest tokens of this mass, 0 to 1. 0 = off.
        presence_penalty: makes tokens that occurred less likely, negative ones likelier. 0 = off.
        frequency_penalty: the same for each time that a token occurred. 0 = off.
        repetition_penalties_include_prompt: whether tokens of the prompt count as occurred.
        use_multiplicative_presence_penalty: whether it divides scores rather than lowers them.
        penalty_bias: a text whose tokens count as occurred too.
        penalty_exceptions: texts whose tokens are never penalised.
        penalty_exceptions_include_stop_sequences: whether stop sequences are such texts as well;
            None = the server's default, yes.
        best_of: completions to generate, of which those `n` with the highest log-probability per
            token are returned; more than `n`, not with streams. None = off.
        n: completions to return.
        logit_bias: added to the scores of tokens, by id.
        log_probs: so many of the likeliest tokens' log-probabilities are told for each token, with
            that of the token itself; 0 = its own alone, None = none. At most 20.
        stop_sequences: texts that end a completion; neither they nor the tokens that they begin in
            are part of it.
        tokens: whether the completion is returned as tokens too.
        disable_optimizations: whether the prompt is taken exactly as it is.
        minimum_tokens: tokens before which the model may not end the text.
        echo: whether the prompt is put in front of the completion, and its log-probabilities too.
        use_multiplicative_frequency_penalty: as for presence.
        sequence_penalty: makes tokens less likely that complete a sequence that occurred. 0 = off.
        sequence_penalty_min_length: tokens of such a sequence, 2 or more.
        use_multiplicative_sequence_penalty: as for presence.
        completion_bias_inclusion: the completion is one of these texts.
        completion_bias_inclusion_first_token_only: whether only its first token is bound to them.
        completion_bias_exclusion: texts that do not occur in the completion.
        completion_bias_exclusion_first_token_only: whether only its first token is kept from them.
        contextual_control_threshold: controls also reach tokens whose embeddings have at least
            this cosine with that of a controlled one, -1 to 1. None = off.
        control_log_additive: whether a control's logarithm is added to the attention scores;
            otherwise the scores, from the smallest one on, are multiplied.
        repetition_penalties_include_completion: whether generated tokens count as occurred.
        raw_completion: whether the text with special tokens shown is returned too.
    """

    prompt: Prompt
    maximum_tokens: int | None = 64
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalties_include_prompt: bool = False
    use_multiplicative_presence_penalty: bool = False
    penalty_bias: str | None = None
    penalty_exceptions: Sequence[str] | None = None
    penalty_exceptions_include_stop_sequences: bool | None = None
    best_of: int | None = None
    n: int = 1
    logit_bias: Mapping[int, float] | None = None
    log_probs: int | None = None
    stop_sequences: Sequence[str] | None = None
    tokens: bool = False
    disable_optimizations: bool = False
    minimum_tokens: int = 0
    echo: bool = False
    use_multiplicative_frequency_penalty: bool = False
    sequence_penalty: float = 0.0
    sequence_penalty_min_length: int = 2
    use_multiplicative_sequence_penalty: bool = False
    completion_bias_inclusion: Sequence[str] | None = None
    completion_bias_inclusion_first_token_only: bool = False
    completion_bias_exclusion: Sequence[str] | None = None
    completion_bias_exclusion_first_token_only: bool = False
    contextual_control_threshold: float | None = None
    control_log_additive: bool | None = True
    repetition_penalties_include_completion: bool = True
    raw_completion: bool = False

    def to_json(self) -> dict[str, Any]:
        """The request's body, but for the model; what is None is left out."""
        return {**given_fields(self), "prompt": prompt_json(self.prompt)}
