# SPDX-License-Identifier: Apache-2.0
"""Training torchvision's ResNet-50 with SGD and momentum, channels-last, under autocast to bfloat16: 64 images of 224 x 224."""

import torch
import torchvision

from workloads.train import step_of

IMAGES, SIDE, CLASSES = 64, 224, 1000


def make(variant):
    net = torchvision.models.resnet50().to(variant.device).to(memory_format=torch.channels_last)
    # On the device: copies of images would take longer than the steps.
    images = [torch.randn(IMAGES, 3, SIDE, SIDE).to(variant.device).to(memory_format=torch.channels_last) for _ in range(4)]
    classes = [torch.randint(CLASSES, (IMAGES,)).to(variant.device) for _ in range(4)]
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, **variant.optimizer)

    def loss(x, y):
        with torch.autocast(variant.device, torch.bfloat16):
            return torch.nn.functional.cross_entropy(net(x), y)

    return step_of(loss, optimizer, lambda index: (images[index % 4], classes[index % 4]), variant)
