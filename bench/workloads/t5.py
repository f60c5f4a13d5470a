# SPDX-License-Identifier: Apache-2.0
"""Training T5-small of the package transformers, from its configuration, with AdamW under autocast to bfloat16: 16 x 128 to 64."""

import torch
import transformers

from workloads.train import step_of

BATCH, SOURCE, TARGET = 16, 128, 64


def make(variant):
    config = transformers.T5Config(d_model=512, d_ff=2048, num_layers=6, num_heads=8, decoder_start_token_id=0)
    net = transformers.T5ForConditionalGeneration(config).to(variant.device).train()
    sizes = ((BATCH, SOURCE), (BATCH, TARGET))
    batches = variant.batches(lambda g: tuple(torch.randint(config.vocab_size, size, generator=g) for size in sizes))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, **variant.optimizer)

    def loss(source, target):
        with torch.autocast(variant.device, torch.bfloat16):
            return net(input_ids=source, labels=target).loss

    return step_of(loss, optimizer, batches, variant)
