# SPDX-License-Identifier: Apache-2.0
"""A Llama of one billion parameters, of the package transformers, writes 32 tokens (decoding.py)."""

import transformers

from workloads import decoding

SIZES = dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8)


def make(variant):
    return decoding.make(variant, lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)))
