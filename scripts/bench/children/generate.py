"""transformers' `generate` as a child process: one static batch of prompts of equal length."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from bench.children.protocol import Message, serve


def main() -> None:
    """Serve the model that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("--precision", required=True)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()

    def load() -> Callable[[Message], int]:
        dtype = getattr(torch, arguments.precision)
        model: Any = AutoModelForCausalLM.from_pretrained(arguments.source, dtype=dtype)
        model = model.to(arguments.device).eval()
        # Without an end of text there is nothing to look for, so this costs no time.
        model.generation_config.eos_token_id = None
        model.generation_config.pad_token_id = 0
        return lambda message: _run(model, message)

    serve(load, ("torch", "transformers"))


@torch.inference_mode()
def _run(model: Any, message: Message) -> int:
    ids = torch.tensor(message["prompts"], device=model.device)
    reply = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        max_new_tokens=message["new_tokens"],
    )
    return int(reply.numel() - ids.numel())


if __name__ == "__main__":
    main()
