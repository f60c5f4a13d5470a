# SPDX-License-Identifier: Apache-2.0
"""Greedy decoding by transformers' `generate`: batch 1, 32 tokens after 16; a dynamic cache, as it comes, or a static one."""

import torch

TOKENS, PROMPT = 32, 16


class _Counter:
    """A streamer that ends `generate` after so many tokens."""

    class Ended(Exception):
        pass

    def __init__(self):
        self.left = TOKENS + 1  # the prompt is told, too

    def put(self, _):
        self.left -= 1
        if self.left == 0:
            raise self.Ended

    def end(self):
        pass


def in_bfloat16(variant, build):
    """The network on the variant's device. build(): makes it on the CPU."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        return build().to(variant.device).eval()
    finally:
        torch.set_default_dtype(before)


def make(variant, build, **settings):
    """A step returns the last token. build(): as in_bfloat16 has it. settings: of `generate`, more of them."""
    net = in_bfloat16(variant, build)
    prompts = variant.batches(lambda g: (torch.randint(net.config.vocab_size, (1, PROMPT), generator=g),))
    settings.update(max_new_tokens=TOKENS, min_new_tokens=TOKENS, do_sample=False, pad_token_id=0)

    @torch.no_grad()
    def step(index):
        return net.generate(*prompts(index), **settings)[:, -1]

    @torch.no_grad()
    def step_without_values(index):  # which no value ends
        try:
            net.generate(*prompts(index), streamer=_Counter(), **settings)
        except _Counter.Ended:
            pass

    return step_without_values if variant.device == "null" else step
