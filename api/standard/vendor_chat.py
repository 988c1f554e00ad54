"""Chats as Aleph Alpha's clients have them: which requests are theirs, and how those are streamed.

Their reader takes a chunk for one thing alone (a usage hides the reason why the text ended), wants
a content in every part of a text, and no lines but those of data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from api.answer_stream import break_off
from api.errors import Problem
from api.standard.renderer import chat_head
from api.standard.stream import ChunkWriter, chat_part
from workers.contract.job_record import JobRecord

PROGRAM = "aleph-alpha-"
"""What the vendor's clients call themselves begins so; their versions in Python and Rust do."""

OWN_FIELDS = ("maximum_tokens", "steering_concepts")
"""Fields that only their requests have."""


def is_vendors(body: Mapping[str, Any], user_agent: str) -> bool:
    """Whether a chat is asked for by one of the vendor's clients, or as they do it.

    Args:
        body: the request's JSON object.
        user_agent: what the client calls itself, "" = it does not say.
    """
    is_known = user_agent.lower().startswith(PROGRAM)
    return is_known or any(body.get(name) is not None for name in OWN_FIELDS)


class VendorChatWriter(ChunkWriter):
    """Writes the chunks of one answer.

    Args:
        record: the answer's job, as it was made.
        n_texts: its texts.
        tells_scores: whether log-probabilities are asked for.
        repeats_usage: whether the usage comes at the end, in a chunk of its own.
    """

    keep_alive = b"\n"
    is_patient = True
    ends_with_usage = False

    def __init__(
        self, record: JobRecord, *, n_texts: int, tells_scores: bool, repeats_usage: bool
    ) -> None:
        super().__init__(
            [record],
            head={**chat_head(record, "chat.completion.chunk"), "usage": None},
            n_texts=n_texts,
            write=chat_part,
            opening={"delta": {"role": "assistant", "content": ""}, "logprobs": None},
            tells_scores=tells_scores,
            repeats_usage=repeats_usage,
        )

    def failure(self, problem: Problem) -> Iterator[bytes]:
        """Break off: the client knows nothing that tells of a failure.

        Raises:
            ConnectionResetError: always.
        """
        break_off(problem)
