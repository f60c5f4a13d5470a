# SPDX-License-Identifier: Apache-2.0
"""Calls with arguments that nobody means, drawn from a seed: the same ones on every device."""
import random

import torch
import torch.nn.functional as F

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
          torch.bool, torch.complex64]
SHAPES = [(), (0,), (1,), (3,), (2, 3), (0, 3), (3, 0, 2), (2, 1, 3), (1,) * 64, (0,) + (2,) * 40, (2,) * 12, (4, 4), (2, 3, 4, 4)]
NUMBERS = [0, 1, -1, 2, 255, 2**31, -(2**31), 2**62, -(2**63), 2**63 - 1, 0.0, -0.0, 0.5, 1e-46, 5e-324, 1e39, -1e308, float("nan"),
           float("inf"), -float("inf"), True, False, 1j]
SIZES = [0, 1, 2, 3, 5, 17, 2**31, 2**33, 2**62, 2**63 - 1, -1, -2, -(2**31), -(2**63)]
DIMS = [0, 1, 2, 3, -1, -2, -5, 63, 64, -65, 2**31, 2**63 - 1, -(2**63)]


class Draw:
    """What a call is made of. The same seed gives the same arguments in the same order."""

    def __init__(self, seed, device):
        self._random = random.Random(seed)
        self.device = device
        self.chance = self._random.random

    def of(self, values):
        return self._random.choice(values)

    def number(self):
        return self.of(NUMBERS)

    def dim(self):
        return self.of(DIMS[:5] if self.chance() < 0.6 else DIMS)

    def size(self):
        return self.of(SIZES[:6] if self.chance() < 0.6 else SIZES)

    def sizes(self):
        return [self.size() for _ in range(self.of([0, 1, 1, 2, 2, 3, 5]))]

    def dtype(self):
        return self.of(DTYPES[:1] * 8 + DTYPES)

    def tensor(self, shape=None, dtype=None):
        shape = self.of(SHAPES) if shape is None else shape
        dtype = self.dtype() if dtype is None else dtype
        generator = torch.Generator().manual_seed(self._random.randrange(1 << 30))
        values = torch.randint(-3, 4, shape, generator=generator).to(dtype).to(self.device)
        how = self.chance()
        if how < 0.15 and values.dim() > 1:
            return values.mT
        if how < 0.25 and values.dim() > 0:
            return values[..., ::2]
        if how < 0.3:
            return values.unsqueeze(0).expand(3, *shape)
        return values

    def alike(self, tensor):
        """Beside the tensor: of its shape mostly, or of one that fits or does not."""
        if self.chance() < 0.7:
            return self.tensor(tuple(tensor.shape), tensor.dtype if self.chance() < 0.7 else None)
        return self.tensor()

    def indices(self):
        return self.tensor(self.of([(0,), (2,), (3, 2), ()]), self.of([torch.int64, torch.int64, torch.int32, torch.float32]))


def _with_number(name):
    return lambda d: getattr(torch, name)(d.tensor(), d.number())


def _with_tensor(name):
    def call(d):
        x = d.tensor()
        return getattr(torch, name)(x, d.alike(x))

    return call


def _with_dim(name):
    return lambda d: getattr(torch, name)(d.tensor(), d.dim())


def _written_with(name):
    def call(d):
        x = d.tensor().clone()
        getattr(x, name)(d.number() if d.chance() < 0.5 else d.alike(x))
        return x

    return call


def _image(d):
    return d.tensor((2, 3, 5, 4), d.of([torch.float32, torch.float32, torch.float64, torch.int64]))


CALLS = {
    **{f"{name} of a number": _with_number(name) for name in (
        "add", "sub", "mul", "div", "pow", "remainder", "fmod", "floor_divide", "eq", "lt", "clamp_min", "bitwise_and", "heaviside",
        "tril", "triu", "cumsum", "topk", "flip", "movedim")},
    **{f"{name} of two": _with_tensor(name) for name in (
        "add", "sub", "mul", "div", "pow", "remainder", "floor_divide", "atan2", "maximum", "logaddexp", "bitwise_or", "gcd", "matmul",
        "mv", "dot", "outer", "ne", "copysign", "nextafter", "ldexp", "cross", "isin", "equal")},
    **{f"{name} along a dim": _with_dim(name) for name in (
        "sum", "mean", "prod", "amax", "argmin", "cumsum", "cumprod", "softmax", "log_softmax", "logsumexp", "sort", "median", "mode",
        "any", "std", "var", "unbind", "squeeze", "unsqueeze", "norm", "diff", "logcumsumexp", "renorm")},
    **{f"{name} written": _written_with(name) for name in ("add_", "mul_", "div_", "sub_", "copy_", "fill_", "pow_", "clamp_", "fmod_")},
    "full": lambda d: torch.full(d.sizes(), d.number(), dtype=d.dtype(), device=d.device),
    "zeros": lambda d: torch.zeros(d.sizes(), dtype=d.dtype(), device=d.device),
    "arange": lambda d: torch.arange(d.of(SIZES[:8]), d.number(), d.number(), device=d.device),
    "linspace": lambda d: torch.linspace(d.number(), d.number(), d.size(), device=d.device),
    "eye": lambda d: torch.eye(d.size(), d.of(SIZES[:6]), device=d.device),
    "reshape": lambda d: d.tensor().reshape(d.sizes()),
    "view": lambda d: d.tensor().view(d.of([torch.int8, torch.int64, torch.float32])) + 0,
    "expand": lambda d: d.tensor().expand(d.sizes()).sum(),
    "permute": lambda d: d.tensor().permute(d.sizes()) * 1,
    "repeat": lambda d: d.tensor().repeat(d.sizes()),
    "repeat_interleave": lambda d: torch.repeat_interleave(d.tensor(), d.size(), d.dim()),
    "roll": lambda d: torch.roll(d.tensor(), d.size(), d.dim()),
    "narrow": lambda d: d.tensor().narrow(d.dim(), d.size(), d.size()) + 1,
    "select": lambda d: d.tensor().select(d.dim(), d.size()) + 1,
    "slice": lambda d: d.tensor()[d.size():d.size():max(1, d.size())] + 1,
    "as_strided": lambda d: d.tensor().as_strided(d.sizes(), d.sizes(), d.of(SIZES[:4])) + 1,
    "unfold": lambda d: d.tensor().unfold(d.dim(), d.size(), d.size()) + 1,
    "diagonal": lambda d: torch.diagonal(d.tensor(), d.size(), d.dim(), d.dim()) + 1,
    "diag_embed": lambda d: torch.diag_embed(d.tensor(), d.of(SIZES[:4])),
    "pad": lambda d: F.pad(d.tensor(), [d.of([0, 1, 2, -1, -2, -7]) for _ in range(d.of([2, 4, 3]))], value=d.number()),
    "reflected": lambda d: F.pad(d.tensor(), [d.of([0, 1, 2, -1, 9]) for _ in range(d.of([2, 4]))], mode="reflect"),
    "index": lambda d: d.tensor()[d.indices()],
    "index_select": lambda d: torch.index_select(d.tensor(), d.dim(), d.indices()),
    "gather": lambda d: torch.gather(d.tensor(), d.dim(), d.indices()),
    "scatter": lambda d: d.tensor().clone().scatter(d.dim(), d.indices(), d.number()),
    "index_put": lambda d: d.tensor().clone().index_put_((d.indices(),), d.tensor(())),
    "take": lambda d: torch.take(d.tensor(), d.indices()),
    "embedding": lambda d: F.embedding(d.indices(), d.tensor((4, 4))),
    "one_hot": lambda d: F.one_hot(d.indices(), d.of([-1, 0, 1, 5])),
    "bincount": lambda d: torch.bincount(d.indices()),
    "cross_entropy": lambda d: F.cross_entropy(d.tensor((3, 4)), d.indices()),
    "nll_loss": lambda d: F.nll_loss(d.tensor((2, 4)), d.tensor((2,), torch.int64)),
    "masked_fill": lambda d: d.tensor((3,)).masked_fill(d.tensor((3,), torch.bool), d.number()),
    "masked_select": lambda d: torch.masked_select(d.tensor((2, 3)), d.tensor(d.of([(2, 3), (3,), (5,)]), torch.bool)),
    "where": lambda d: torch.where(d.tensor((2, 3), d.of([torch.bool, torch.uint8, torch.float32])), d.tensor(), d.number()),
    "clamp": lambda d: torch.clamp(d.tensor(), d.number(), d.number()),
    "addcmul": lambda d: torch.addcmul(d.tensor((3,)), d.tensor((3,)), d.tensor((3,)), value=d.number()),
    "lerp": lambda d: torch.lerp(d.tensor((3,)), d.tensor((3,)), d.number()),
    "addmm": lambda d: torch.addmm(d.tensor((2,)), d.tensor((3, 4)), d.tensor((4, 2)), beta=d.number(), alpha=d.number()),
    "baddbmm": lambda d: torch.baddbmm(d.tensor((2, 0, 3)), d.tensor((2, 0, 4)), d.tensor((2, 4, 3)), beta=d.number()),
    "bmm": lambda d: torch.bmm(d.tensor((2, 3, 0)), d.tensor((2, 0, 4))),
    "linear": lambda d: F.linear(d.tensor((2, 4)), d.tensor(d.of([(3, 4), (3, 5), (0, 4)])), d.tensor((3,))),
    "convolution": lambda d: F.conv2d(_image(d), d.tensor((4, 3, 3, 2), torch.float32), stride=d.size(), padding=d.of([0, 1, -1, 2**31]),
                                      dilation=d.of([1, 2, 0, 2**31])),
    "max_pool": lambda d: F.max_pool2d(_image(d), d.size(), d.size(), d.of([0, 1, -1])),
    "avg_pool": lambda d: F.avg_pool2d(_image(d), d.size(), d.size(), d.of([0, 1, -1])),
    "adaptive": lambda d: F.adaptive_avg_pool2d(_image(d), d.of(SIZES[:6])),
    "interpolate": lambda d: F.interpolate(_image(d), d.of([0, 1, 7, -1, (3, 0)])),
    "layer_norm": lambda d: F.layer_norm(d.tensor((2, 3, 4), torch.float32), d.sizes(), eps=float(d.of(NUMBERS[:18]))),
    "batch_norm": lambda d: F.batch_norm(_image(d), None, None, training=True, eps=d.of([1e-5, 0.0, -1.0])),
    "group_norm": lambda d: F.group_norm(_image(d), d.of([1, 3, 2, 0, -1])),
    "normalize": lambda d: F.normalize(d.tensor(), d.of([2.0, 0.0, -1.0, float("inf"), float("nan")]), d.dim()),
    "stack": lambda d: torch.stack([d.tensor((2,)) for _ in range(d.of([0, 1, 3]))], d.dim()),
    "cat": lambda d: torch.cat([d.tensor() for _ in range(d.of([0, 1, 2]))], d.dim()),
    "foreach": lambda d: torch._foreach_add([d.tensor() for _ in range(d.of([0, 1, 3]))], d.number()),
    "foreach of lists": lambda d: torch._foreach_mul([d.tensor((2,)), d.tensor((0,))], [d.tensor((2,)) for _ in range(d.of([1, 2, 2]))]),
    "cast": lambda d: d.tensor().to(d.dtype()).to(d.dtype()),
    "complex": lambda d: torch.complex(d.tensor((2,)), d.tensor((2,))).conj() * d.number(),
    "einsum": lambda d: torch.einsum(d.of(["ij,jk->ik", "ii->i", "ij->", "ij,kj", "ij,jj"]), *[d.tensor((4, 4)) for _ in range(d.of([1, 2]))]),
    "item": lambda d: d.tensor().item(),
    "resized": lambda d: d.tensor().clone().resize_(d.sizes()).shape.numel(),
    "out": lambda d: torch.add(d.tensor((2, 3)), d.number(), out=d.tensor((2, 3), torch.float32).clone()),
    "cholesky": lambda d: torch.linalg.cholesky(d.tensor((4, 4))),
    "inverse": lambda d: torch.linalg.inv(torch.zeros(d.of([2, 3]), 2, device=d.device)),
}
