# SPDX-License-Identifier: Apache-2.0
"""The Llama of generate_llama.py decodes 32 tokens of one text over a static cache, its prompt too by one call of a compiled function; nobody reads them."""

import torch
import transformers

from workloads.decoding import PROMPT, TOKENS, in_bfloat16
from workloads.generate_llama import SIZES


def make(variant, sizes=SIZES):
    config = transformers.LlamaConfig(**sizes)
    net = in_bfloat16(variant, lambda: transformers.LlamaForCausalLM(config))
    cache = transformers.StaticCache(config=config, max_cache_len=PROMPT + TOKENS)
    prompts = variant.batches(lambda g: (torch.randint(config.vocab_size, (1, PROMPT), generator=g),))

    def decode(ids, places):
        """The next token, (1, 1), and its place, (1,): of ids, (1, n), at places, (n,)."""
        logits = net(ids, position_ids=places[None], past_key_values=cache, use_cache=True, logits_to_keep=1).logits
        return logits.argmax(-1), places[-1:] + 1

    decode = variant.compile(decode, dynamic=False)  # once for a prompt, once for a token

    @torch.no_grad()
    def step(index):
        cache.reset()
        ids, places = *prompts(index), torch.arange(PROMPT, device=variant.device)
        tokens = []
        for _ in range(TOKENS):
            ids, places = decode(ids, places)
            tokens.append(ids.clone() if variant.compile_mode == "reduce-overhead" else ids)
        return torch.cat(tokens, 1)

    return step
