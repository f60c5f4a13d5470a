# SPDX-License-Identifier: Apache-2.0
"""Models of torchvision: classifiers, video, segmentation, optical flow and detection."""

import torch
from torch.nn.functional import cross_entropy

from models.row import Model, Row


def classifier(name, images, shape, classes=1000, **arguments):
    import torchvision

    net = torchvision.models.get_model(name, weights=None, num_classes=classes, **arguments)

    def batch(g):
        return torch.randn(images, *shape, generator=g), torch.randint(classes, (images,), generator=g)

    return Model(net, batch, lambda net, x, y: cross_entropy(net(x), y))


def segmentation(name, images, side, classes=21):
    import torchvision

    net = torchvision.models.get_model(name, weights=None, weights_backbone=None, num_classes=classes, aux_loss=True)

    def batch(g):
        return torch.randn(images, 3, side, side, generator=g), torch.randint(classes, (images, side, side), generator=g)

    def loss(net, x, y):
        scores = net(x)
        return cross_entropy(scores["out"], y) + 0.5 * cross_entropy(scores["aux"], y)

    return Model(net, batch, loss)


def optical_flow(name, images, side, updates):
    """The flow between two images, refined `updates` times; every refinement counts."""
    import torchvision

    net = torchvision.models.get_model(name, weights=None)

    def batch(g):
        return (*(torch.randn(images, 3, side, side, generator=g) for _ in range(2)), torch.randn(images, 2, side, side, generator=g))

    def loss(net, first, second, flow):
        flows = net(first, second, num_flow_updates=updates)
        return sum(0.8 ** (updates - 1 - k) * (flow - seen).abs().mean() for k, seen in enumerate(flows))

    return Model(net, batch, loss, lambda net, first, second, flow: net(first, second, num_flow_updates=updates)[-1])


def detection(name, images, side, objects=3, classes=91, **arguments):
    """Boxes and classes of objects; the losses are the model's own."""
    import torchvision

    net = torchvision.models.get_model(name, weights=None, weights_backbone=None, num_classes=classes, **arguments)

    def batch(g):
        corners = torch.rand(images, objects, 2, generator=g) * side / 2
        extents = (0.1 + 0.4 * torch.rand(images, objects, 2, generator=g)) * side
        labels = torch.randint(1, classes, (images, objects), generator=g)
        return torch.rand(images, 3, side, side, generator=g), torch.cat([corners, corners + extents], -1), labels

    def loss(net, x, boxes, labels):
        targets = [{"boxes": boxes[k], "labels": labels[k]} for k in range(images)]
        return sum(net(list(x), targets).values())

    return Model(net, batch, loss, lambda net, x, boxes, labels: net(list(x)))


def row(name, make, small, full, **options):
    return Row(name, "torchvision", make, {"name": name, **small}, {"name": name, **full}, **options)


ROWS = [
    row("densenet121", classifier, dict(images=2, shape=(3, 64, 64)), dict(images=64, shape=(3, 224, 224)), optimizer="sgd"),
    row("shufflenet_v2_x1_0", classifier, dict(images=2, shape=(3, 64, 64)), dict(images=64, shape=(3, 224, 224)), optimizer="sgd"),
    row("r3d_18", classifier, dict(images=1, shape=(3, 8, 32, 32)), dict(images=8, shape=(3, 16, 112, 112)), optimizer="sgd"),
    row("deeplabv3_mobilenet_v3_large", segmentation, dict(images=2, side=64), dict(images=8, side=512), optimizer="sgd"),
    row("raft_small", optical_flow, dict(images=1, side=128, updates=2), dict(images=4, side=256, updates=12)),
    row("ssdlite320_mobilenet_v3_large", detection, dict(images=2, side=320), dict(images=16, side=320), optimizer="sgd",
        needs_values=True),
    row("fasterrcnn_mobilenet_v3_large_320_fpn", detection, dict(images=1, side=96, min_size=96), dict(images=8, side=320),
        optimizer="sgd", needs_values=True),
]
