# SPDX-License-Identifier: Apache-2.0
"""Models of timm: classifiers of images, by their names there."""

import torch

from models.row import Model, Row

CLASSES = 1000


def classifier(name, images, side, **arguments):
    import timm

    net = timm.create_model(name, num_classes=CLASSES, **arguments)

    def batch(g):
        return torch.randn(images, 3, side, side, generator=g), torch.randint(CLASSES, (images,), generator=g)

    return Model(net, batch, lambda net, x, y: torch.nn.functional.cross_entropy(net(x), y))


def row(name, small, full=(64, 224), **options):
    """`small` and `full`: images of a batch, their side, and what timm is told beside."""

    def sizes(images, side, arguments={}):
        return {"name": name, "images": images, "side": side, **arguments}

    return Row(name, "timm", classifier, sizes(*small), sizes(*full), **options)


ROWS = [
    row("mixer_s32_224", (4, 64, {"img_size": 64}), optimizer="sgd"),
    row("vit_tiny_patch16_224", (2, 64, {"img_size": 64, "depth": 3, "drop_path_rate": 0.1})),
    row("swin_tiny_patch4_window7_224", (2, 56, {"img_size": 56, "depths": (2, 2), "num_heads": (3, 6)})),
    row("convnextv2_atto", (2, 64)),
    row("efficientnet_b0", (2, 64, {"drop_rate": 0.2}), optimizer="sgd"),
    row("nf_regnet_b0", (2, 64), optimizer="sgd"),
    row("poolformer_s12", (2, 64)),
    row("levit_128s", (2, 224)),
]
