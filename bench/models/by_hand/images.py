# SPDX-License-Identifier: Apache-2.0
"""Images and points: a U-Net that segments, and PointNet."""

import torch
from torch import nn
from torch.nn import functional as F

from models.row import Model, Row


def double_convolution(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
        nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    """Halves the image `depth` times, doubles it as often, with shortcuts between equal sizes."""

    def __init__(self, width, depth, classes):
        super().__init__()
        widths = [width << k for k in range(depth + 1)]
        self.down = nn.ModuleList(double_convolution(a, b) for a, b in zip([3, *widths], widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in zip(widths, widths[1:]))
        self.join = nn.ModuleList(double_convolution(2 * a, a) for a in widths[:-1])
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        kept = []
        for k, block in enumerate(self.down):
            x = block(x if k == 0 else F.max_pool2d(x, 2))
            kept.append(x)
        kept.pop()
        for up, join in zip(reversed(self.up), reversed(self.join)):
            x = join(torch.cat([kept.pop(), up(x)], 1))
        return self.head(x)


def unet(images, side, width, depth, classes):
    def make(g):
        return torch.randn(images, 3, side, side, generator=g), torch.randint(classes, (images, side, side), generator=g)

    def loss(net, x, y):
        """Cross-entropy and Dice."""
        scores = net(x)
        shares = scores.float().softmax(1)
        truth = F.one_hot(y, classes).movedim(-1, 1)
        common = 2 * (shares * truth).sum((0, 2, 3)) / ((shares + truth).sum((0, 2, 3)) + 1)
        return F.cross_entropy(scores, y) + 1 - common.mean()

    return Model(UNet(width, depth, classes), make, loss)


def point_layers(*widths):
    layers = [nn.Sequential(nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU()) for a, b in zip(widths, widths[1:])]
    return nn.Sequential(*layers)


class Turn(nn.Module):
    """A square matrix for each cloud, that starts as the identity."""

    def __init__(self, size, width):
        super().__init__()
        self.size = size
        self.points = point_layers(size, width, 4 * width)
        self.head = nn.Sequential(nn.Linear(4 * width, 2 * width), nn.ReLU(), nn.Linear(2 * width, size * size))

    def forward(self, x):
        turn = self.head(self.points(x).amax(2)).view(-1, self.size, self.size)
        return turn + torch.eye(self.size, device=x.device, dtype=turn.dtype)


class PointNet(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.input_turn, self.inner_turn = Turn(3, width), Turn(width, width)
        self.first, self.rest = point_layers(3, width), point_layers(width, 2 * width, 8 * width)
        self.head = nn.Sequential(
            nn.Linear(8 * width, 4 * width), nn.BatchNorm1d(4 * width), nn.ReLU(), nn.Dropout(0.3), nn.Linear(4 * width, classes)
        )

    def forward(self, x):
        x = self.first(self.input_turn(x) @ x)
        turn = self.inner_turn(x)
        return self.head(self.rest(turn @ x).amax(2)), turn


def pointnet(clouds, points, width, classes):
    def make(g):
        return torch.randn(clouds, 3, points, generator=g), torch.randint(classes, (clouds,), generator=g)

    def loss(net, x, y):
        """Also that matrices be rotations."""
        scores, turn = net(x)
        turn = turn.float()
        error = torch.eye(turn.shape[1], device=x.device) - turn @ turn.mT
        return F.cross_entropy(scores, y, label_smoothing=0.1) + 0.001 * torch.linalg.matrix_norm(error).mean()

    return Model(PointNet(width, classes), make, loss, lambda net, x, y: net(x)[0])


ROWS = [
    Row("unet", "hand", unet, dict(images=2, side=32, width=8, depth=2, classes=3), dict(images=16, side=256, width=64, depth=4, classes=3), "adam"),
    Row("pointnet", "hand", pointnet, dict(clouds=4, points=64, width=16, classes=10), dict(clouds=32, points=1024, width=64, classes=40), "adam"),
]
