"""The root of the project's error tree, and the refusals that sampling itself can raise.

`workers.contract.errors` grows the rest of the tree; `code` is stable and travels in job records.
"""

from __future__ import annotations


class NeodimError(Exception):
    """Anything this project raises on purpose."""

    code = "internal_error"


class RequestRejected(NeodimError):
    """What was asked for cannot be done as asked; asking again changes nothing."""

    code = "invalid_request"


class InvalidParams(RequestRejected):
    """A field of the request has a value that is not allowed.

    Args:
        field: the field's name, as the client wrote it.
        problem: what is wrong and what is allowed.
    """

    code = "invalid_request"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class PromptTooLong(RequestRejected):
    """The text to complete does not fit where it has to fit."""

    code = "prompt_too_long"


class NoTokenLeft(RequestRejected):
    """The request's own constraints forbid every token of the vocabulary."""

    code = "no_token_left"


class StopPatternTimeout(RequestRejected):
    """A regular expression among the stop strings took too long on the generated text."""

    code = "stop_pattern_timeout"
