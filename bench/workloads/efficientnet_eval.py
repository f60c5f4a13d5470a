# SPDX-License-Identifier: Apache-2.0
"""Inference with torchvision's EfficientNet-B0, one image of 224 x 224 at a time, results collected."""

import torch
import torchvision


def make(variant):
    net = torchvision.models.efficientnet_b0().eval().to(variant.device)
    images = [torch.randn(1, 3, 224, 224).to(variant.device) for _ in range(8)]
    infer = variant.compile(net)

    def step(index):
        with torch.no_grad():
            result = infer(images[index % 8])
            return result.clone() if variant.compile_mode == "reduce-overhead" else result  # its graphs reuse the memory

    return step
