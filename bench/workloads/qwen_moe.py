# SPDX-License-Identifier: Apache-2.0
"""Training transformers' Qwen3-MoE, 8 experts, 6 layers, with AdamW: each layer asks which experts have tokens (`nonzero`). 4 x 128 tokens."""

import torch
import transformers

from workloads.train import step_of

BATCH, LENGTH = 4, 128


def make(variant):
    config = transformers.Qwen3MoeConfig(
        vocab_size=8192, hidden_size=256, intermediate_size=512, moe_intermediate_size=256, num_hidden_layers=6, num_attention_heads=8,
        num_key_value_heads=4, head_dim=32, num_experts=8, num_experts_per_tok=2, experts_implementation="eager")
    net = transformers.Qwen3MoeForCausalLM(config).to(variant.device).train()
    batches = variant.batches(lambda g: (torch.randint(config.vocab_size, (BATCH, LENGTH), generator=g),))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, **variant.optimizer)
    return step_of(lambda ids: net(input_ids=ids, labels=ids).loss, optimizer, batches, variant)
