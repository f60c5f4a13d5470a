# SPDX-License-Identifier: Apache-2.0
"""Single operators on the CPU, eager against lazy: what a program pays whose calls fuse with nothing.

    operators.py [PATTERN ...] [--sizes 1024 1024] [--dtype float32] [--rounds 10] [--threads 1]

Sizes such as 65536 3 show rows that are short.

Runs each operator on numbers from -5 to 5, in turns on both devices, and waits after each call. Prints times of the fastest
round and how many times as fast lazy is, worst first; kernels are compiled before. Ends with the geometric mean.
"""
import argparse
import fnmatch
import math
import os
import tempfile
import time
import warnings

os.environ.setdefault("LAZY_COMPILE", "sync")
os.environ.setdefault("LAZY_CACHE_DIR", tempfile.mkdtemp())

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
import torch_lazy  # noqa: E402, F401

UNARY = """abs acos acosh asin asinh atan atanh ceil cos cosh digamma erf erfc erfinv exp exp2 expm1 floor frac i0 isfinite
    isnan lgamma log log10 log1p log2 logit nan_to_num neg reciprocal round rsqrt sgn sigmoid sign sin sinc sinh sqrt square
    tan tanh trunc""".split()
ACTIVATIONS = """celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu relu6 selu silu softplus
    softshrink softsign tanhshrink""".split()
BINARY = """add atan2 copysign div eq floor_divide fmax fmin fmod heaviside hypot logaddexp lt maximum minimum mul nextafter pow
    remainder sub xlogy""".split()
IMAGES = (-1, 16, 32, 32)


def images(x):
    return x.view(IMAGES)


def rows(x, stop=None):
    return torch.arange(0, stop or x.size(0), device=x.device)


OTHERS = {
    "addcmul": lambda x: torch.addcmul(x, x, x), "amax": lambda x: x.amax(-1), "argmax": lambda x: x.argmax(-1),
    "avg_pool2d": lambda x: F.avg_pool2d(images(x), 2), "batch_norm": lambda x: F.batch_norm(images(x), None, None, training=True),
    "bernoulli": lambda x: torch.bernoulli(torch.full_like(x, 0.5)), "bfloat16": lambda x: (x.bfloat16() * 2 + 1).float(),
    "cat": lambda x: torch.cat([x, x], 1), "clamp": lambda x: x.clamp(-1, 1), "column sums": lambda x: x.sum(0),
    "conv2d": lambda x: F.conv2d(images(x), torch.ones(16, 16, 3, 3, device=x.device, dtype=x.dtype), padding=1),
    "conv2d depthwise": lambda x: F.conv2d(images(x), torch.ones(16, 1, 3, 3, device=x.device, dtype=x.dtype), padding=1, groups=16),
    "cosine_similarity": lambda x: F.cosine_similarity(x, x + 1), "cross_entropy": lambda x: F.cross_entropy(x, rows(x) % x.size(1)),
    "cumsum": lambda x: x.cumsum(-1), "cumsum of columns": lambda x: x.cumsum(0), "dropout": lambda x: F.dropout(x, 0.5),
    "embedding": lambda x: F.embedding(rows(x), x), "flip": lambda x: x.flip(-1), "float16": lambda x: (x.half() * 2 + 1).float(),
    "gather": lambda x: x.gather(1, (rows(x) % x.size(1))[:, None]), "glu": F.glu,
    "group_norm": lambda x: F.group_norm(images(x), 8), "index": lambda x: x[rows(x)], "index_select": lambda x: x.index_select(0, rows(x)),
    "interpolate": lambda x: F.interpolate(images(x), scale_factor=2), "layer_norm": lambda x: F.layer_norm(x, x.shape[1:]),
    "lerp": lambda x: torch.lerp(x, x + 1, 0.3), "log_softmax": lambda x: x.log_softmax(-1), "logsumexp": lambda x: x.logsumexp(-1),
    "masked_fill": lambda x: x.masked_fill(x > 0, 0.0), "max_pool2d": lambda x: F.max_pool2d(images(x), 3, 2, 1), "mean": lambda x: x.mean(0),
    "mm": lambda x: x.t() @ x if x.size(0) > x.size(1) else x @ x.t(), "mse_loss": lambda x: F.mse_loss(x, x + 1), "norm": lambda x: x.norm(dim=-1), "normalize": F.normalize,
    "pad": lambda x: F.pad(images(x), (1, 1, 1, 1)), "permute of images": lambda x: images(x).permute(0, 2, 3, 1).contiguous(),
    "prod": lambda x: x.prod(-1), "randn_like": torch.randn_like, "repeat": lambda x: x.repeat(2, 1), "rms_norm": lambda x: F.rms_norm(x, x.shape[1:]),
    "roll": lambda x: x.roll(3, -1), "row sums": lambda x: x.sum(-1), "scatter_add": lambda x: torch.zeros_like(x).scatter_add(0, rows(x)[:, None].expand_as(x), x),
    "smooth_l1_loss": lambda x: F.smooth_l1_loss(x, x + 1), "softmax": lambda x: x.softmax(-1), "softmax of columns": lambda x: x.softmax(0),
    "sort": lambda x: x.sort(-1)[0], "std": lambda x: x.std(0), "topk": lambda x: x.topk(8)[0], "transpose": lambda x: x.t().contiguous(),
    "tril": lambda x: x.tril(), "var": lambda x: x.var(-1), "where": lambda x: torch.where(x > 0, x, -x),
}


def operators():
    found = {name: getattr(torch, name) for name in UNARY} | {name: getattr(F, name) for name in ACTIVATIONS} | OTHERS
    for name in BINARY:
        found[name] = lambda x, function=getattr(torch, name): function(x, x + 1)
    return found


def seconds(function, x, rounds):
    """Of the fastest of `rounds` rounds on each device, in turns; the first calls are not counted."""
    tensors = {"cpu": x, "lazy": x.to("lazy")}
    times = {device: [] for device in tensors}
    for k in range(rounds + 5):
        for device, tensor in tensors.items():
            started = time.perf_counter()
            result = function(tensor)
            torch.lazy.synchronize()
            if k >= 5:
                times[device].append(time.perf_counter() - started)
            del result
    return [min(times[device]) for device in tensors]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1024, 1024])
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    warnings.simplefilter("ignore")
    x = torch.linspace(-5, 5, math.prod(arguments.sizes), dtype=getattr(torch, arguments.dtype)).view(arguments.sizes)
    results = []
    for name, function in operators().items():
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in arguments.patterns):
            try:
                eager, lazy = seconds(function, x, arguments.rounds)
            except (RuntimeError, IndexError) as error:  # of sizes that eager refuses
                print(f"{name}: {str(error).splitlines()[0]}")
                continue
            results.append((eager / lazy, name, eager, lazy))
    for ratio, name, eager, lazy in sorted(results):
        print(f"{ratio:6.2f}  {name:20} eager {eager * 1e3:8.3f} ms, lazy {lazy * 1e3:8.3f}")
    mean = math.exp(sum(math.log(ratio) for ratio, *_ in results) / len(results))
    print(f"{mean:6.2f}  geometric mean of {len(results)}; {sum(ratio < 0.9 for ratio, *_ in results)} below 0.9")


main()
