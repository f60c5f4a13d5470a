# SPDX-License-Identifier: Apache-2.0
"""Training BERT-base of the package transformers, from its configuration, with AdamW under autocast to bfloat16: 16 x 128."""

import torch
import transformers

from workloads.train import step_of

BATCH, LENGTH = 16, 128


def make(variant):
    config = transformers.BertConfig(attn_implementation="sdpa")
    net = transformers.BertForMaskedLM(config).to(variant.device).train()
    batches = variant.batches(lambda g: (torch.randint(config.vocab_size, (BATCH, LENGTH), generator=g),))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, **variant.optimizer)

    def loss(ids):
        with torch.autocast(variant.device, torch.bfloat16):
            return net(input_ids=ids, labels=ids).loss

    return step_of(loss, optimizer, batches, variant)
