# SPDX-License-Identifier: Apache-2.0
"""Inference with torchvision's ResNet-50, channels-last, in bfloat16: 64 images of 224 x 224, results collected."""

import torch
import torchvision

IMAGES, SIDE = 64, 224


def make(variant):
    net = torchvision.models.resnet50().eval().to(torch.bfloat16).to(variant.device).to(memory_format=torch.channels_last)
    images = [torch.randn(IMAGES, 3, SIDE, SIDE).to(torch.bfloat16).to(variant.device).to(memory_format=torch.channels_last) for _ in range(4)]
    infer = variant.compile(net)

    def step(index):
        with torch.no_grad():
            return infer(images[index % 4])

    return step
