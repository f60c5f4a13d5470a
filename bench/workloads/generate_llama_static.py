# SPDX-License-Identifier: Apache-2.0
"""The Llama of generate_llama.py writes 32 tokens into a static cache."""

import transformers

from workloads import decoding
from workloads.generate_llama import SIZES


def make(variant):
    net = lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES))  # noqa: E731
    return decoding.make(variant, net, cache_implementation="static", disable_compile=True)
