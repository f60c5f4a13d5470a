# SPDX-License-Identifier: Apache-2.0
"""Mixed precision: autocast with CUDA's lists, and GradScaler."""

import pytest
import torch
import torch_lazy
from outcomes import assert_like_eager
from torch import nn
from torch.testing._internal.autocast_test_lists import AutocastTestLists
from torch.utils import _pytree as pytree

LOW = [torch.bfloat16, torch.float16]


def autocast(dtype=torch.bfloat16, **keywords):
    return torch.autocast("lazy", dtype=dtype, **keywords)


# --- CUDA's lists ---


def test_autocast_covers_what_cudas_does():
    cuda, lazy = (set(torch._C._dispatch_get_registrations_for_dispatch_key(f"Autocast{key}")) for key in ("CUDA", "PrivateUse1"))
    # Convolutions of cuDNN's are none of ours; on the CPU, LSTMs are what eager's policy for the CPU takes. torchvision's
    # operators are CUDA's only where torchvision is loaded.
    assert {name for name in cuda if "cudnn_convolution" not in name} | {"aten::mkldnn_rnn_layer"} == {name for name in lazy if name.startswith("aten::")}


# PyTorch's own table of calls: what they run as.
LISTS = {"torch_fp16": "low", "nn_fp16": "low", "torch_fp32": torch.float32, "nn_fp32": torch.float32,
         "methods_fp32": torch.float32, "torch_need_autocast_promote": torch.float32}
# Libraries of CUDA's; and an entry that is no call.
NOT_CALLED = {"einsum", "_scaled_dot_product_flash_attention", "cudnn_convolution", "cudnn_convolution_transpose"}


def function_of(name):
    """As PyTorch's own test looks it up: in torch, in torch._C._nn, or a method."""
    for place in (torch, torch._C._nn, torch.nn.functional):
        if hasattr(place, name):
            return getattr(place, name)
    return getattr(torch.Tensor, name)


def cast(arguments, dtype):
    return pytree.tree_map(lambda leaf: leaf.to(dtype) if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf,
                           arguments)


def dtypes(result):
    return [leaf.dtype for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()]


@pytest.mark.parametrize("low", LOW)
@pytest.mark.parametrize("name", LISTS)
def test_every_call_of_the_lists_runs_as_on_cuda(name, low):
    torch_lazy.set_option("compile", "off")
    for entry in getattr(AutocastTestLists(torch.device("lazy:0")), name):
        operator, arguments, keywords = entry[0], entry[1], next((e for e in entry[2:] if isinstance(e, dict)), {})
        if operator in NOT_CALLED:
            continue
        dtype = low if LISTS[name] == "low" else LISTS[name]
        if low == torch.bfloat16:
            arguments = pytree.tree_map(
                lambda leaf: leaf.bfloat16() if getattr(leaf, "dtype", None) == torch.float16 else leaf, arguments)
        function = function_of(operator)
        with autocast(low):
            actual = function(*arguments, **keywords)
        assert set(dtypes(actual)) <= {dtype}, operator
        expected = function(*cast(arguments, dtype), **keywords)
        for a, e in zip(pytree.tree_leaves(actual), pytree.tree_leaves(expected), strict=True):
            torch.testing.assert_close(a, e, rtol=0, atol=0, equal_nan=True, msg=operator)
    torch_lazy.set_option("compile", "async")


def test_dtypes_beside_the_lists():
    x = torch.ones(3, 3, device="lazy")
    with autocast():
        assert torch.einsum("ij,jk->ik", x, x).dtype == torch.bfloat16
        assert (x + x).dtype == torch.float32
        assert torch.relu(x.bfloat16()).dtype == torch.bfloat16
        assert (x.double() @ x.double()).dtype == torch.float64
        assert torch.cat([x, x.bfloat16()]).dtype == torch.float32
        assert torch.sum(x.bfloat16(), dtype=torch.float64).dtype == torch.float64
        assert x.norm().dtype == x.bfloat16().norm(2, dim=1).dtype == torch.float32


def test_binary_cross_entropy_is_refused():
    x = torch.rand(3, device="lazy")
    with autocast(), pytest.raises(RuntimeError, match="unsafe to autocast"):
        nn.functional.binary_cross_entropy(x, x)


# --- The context ---


def test_regions_nest():
    x = torch.ones(3, 3, device="lazy")
    assert not torch.is_autocast_enabled("lazy")
    with autocast(torch.float16):
        assert torch.is_autocast_enabled("lazy") and torch.get_autocast_dtype("lazy") == torch.float16
        with autocast(enabled=False):
            assert (x @ x).dtype == torch.float32
            with autocast(torch.bfloat16):
                assert (x @ x).dtype == torch.bfloat16
        assert (x @ x).dtype == torch.float16
    assert (x @ x).dtype == torch.float32
    with torch.autocast("lazy"):
        assert (x @ x).dtype == torch.float16  # CUDA's default
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (x @ x).dtype == torch.float32


def test_other_dtypes_are_refused_with_a_warning():
    with pytest.warns(UserWarning, match="not support"), torch.autocast("lazy", dtype=torch.float32):
        assert not torch.is_autocast_enabled("lazy")


def test_a_decorated_function_runs_in_its_region():
    @autocast()
    def product(x):
        return x @ x

    assert product(torch.ones(3, 3, device="lazy")).dtype == torch.bfloat16


class Product(torch.autograd.Function):
    """Runs forward as float32 within autocast, and backward in the state that forward had."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="lazy", cast_inputs=torch.float32)
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        ctx.dtypes = (x @ y).dtype, torch.is_autocast_enabled("lazy")
        return x @ y

    @staticmethod
    @torch.amp.custom_bwd(device_type="lazy")
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        assert ctx.dtypes == (torch.float32, False) and (grad @ y.t()).dtype == torch.float32
        return grad @ y.t(), x.t() @ grad


class ProductInForwardsState(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="lazy")
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x @ x

    @staticmethod
    @torch.amp.custom_bwd(device_type="lazy")
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        product = x @ x
        assert product.dtype == torch.bfloat16
        return grad * product.float()


def test_functions_of_ones_own_choose_their_precision():
    x, y = (torch.rand(3, 3, device="lazy", requires_grad=True) for _ in range(2))
    with autocast():
        whole, low = Product.apply(x.bfloat16(), y), ProductInForwardsState.apply(x)
    assert (whole.dtype, low.dtype) == (torch.float32, torch.bfloat16)
    (whole.sum() + low.float().sum()).backward()
    assert x.grad.dtype == y.grad.dtype == torch.float32


def casts_of_weight(cache_enabled):
    layer, x = nn.Linear(4, 4, bias=False).to("lazy"), torch.rand(2, 4, device="lazy")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        with autocast(cache_enabled=cache_enabled):
            for _ in range(3):
                x = layer(x)
            x.float().sum().backward()
    assert layer.weight.grad.dtype == torch.float32
    return sum(event.count for event in profile.key_averages() if event.key == "aten::_to_copy")


def test_a_weight_is_cast_once():
    assert casts_of_weight(cache_enabled=False) - casts_of_weight(cache_enabled=True) == 4  # two casts, two gradients


def test_a_cached_weight_is_cast_anew_after_its_region():
    layer, x = nn.Linear(4, 4).to("lazy"), torch.ones(1, 4, device="lazy")
    results = []
    for _ in range(2):
        with autocast():
            results.append(layer(x).float())
        with torch.no_grad():
            layer.weight.add_(1)
    torch.testing.assert_close(results[1] - results[0], torch.full_like(results[0], 4), rtol=0.05, atol=0.05)


# --- Training ---


def train_in_low_precision(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(8):
        x, target = torch.randn(32, 8).to(device), torch.rand(32, 4).to(device)
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.bfloat16):
            output = model(x)
            loss = nn.functional.mse_loss(output.float(), target)
        assert output.dtype == torch.bfloat16
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return losses


def test_training_in_low_precision_is_eagers(compile_mode):
    assert_like_eager(train_in_low_precision, rtol=1e-3, atol=1e-4)


def train_with_scaler(device, syncs=None, bad_steps=(2, 5), optimizer_class=torch.optim.SGD, **keywords):
    """Scales, unscales and clips; the gradients of bad steps are infinite."""
    torch.manual_seed(0)
    model = nn.Linear(6, 3).to(device)
    optimizer = optimizer_class(model.parameters(), lr=0.1, **keywords)
    scaler = torch.amp.GradScaler(device, init_scale=2.0**10, growth_interval=2)
    seen = []
    for step in range(8):
        x = torch.randn(5, 6).to(device)
        torch_lazy.sync()
        before = sum(torch_lazy.metrics()["syncs"].values())
        optimizer.zero_grad()
        loss = model(x).square().mean() * (torch.inf if step in bad_steps else 1)
        scaler.scale(loss).backward()
        if step % 2:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
        if syncs is not None:
            syncs.append(sum(torch_lazy.metrics()["syncs"].values()) - before)
        seen += [scaler.get_scale(), scaler._growth_tracker.clone(), *(p.detach().clone() for p in model.parameters())]
    return seen, scaler.state_dict()


@pytest.mark.parametrize("optimizer_class,keywords", [
    (torch.optim.SGD, {"momentum": 0.9}), (torch.optim.Adam, {}), (torch.optim.AdamW, {"fused": True}),
    (torch.optim.SGD, {"foreach": False}),
])
def test_the_scaler_skips_and_scales_as_eagers(compile_mode, optimizer_class, keywords):
    assert_like_eager(lambda device: train_with_scaler(device, optimizer_class=optimizer_class, **keywords), rtol=1e-5, atol=1e-6)


def test_the_scaler_waits_at_most_once_a_step(compile_mode):
    syncs = []
    train_with_scaler("lazy", syncs)
    assert max(syncs) <= 1, syncs


def test_the_scaler_unscales_what_is_finite(compile_mode):
    p = nn.Parameter(torch.zeros(3, device="lazy"))
    optimizer, scaler = torch.optim.SGD([p], lr=1.0), torch.amp.GradScaler("lazy", init_scale=4.0)
    scaler.scale((p * torch.tensor([1.0, 2.0, 3.0], device="lazy")).sum()).backward()
    assert p.grad.tolist() == [4, 8, 12]
    scaler.unscale_(optimizer)
    assert p.grad.tolist() == [1, 2, 3]
    with pytest.raises(RuntimeError, match=r"unscale_\(\) has already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    assert p.tolist() == [-1, -2, -3]
    scaler.load_state_dict(scaler.state_dict())


def test_torchvisions_operators_are_in_float():
    """As its own kernels for the CPU and CUDA have it: boxes of 16 bits, scores of 32."""
    torchvision = pytest.importorskip("torchvision")
    if not torchvision.extension._has_ops():
        pytest.skip("this torchvision is built for another PyTorch")
    ops = torchvision.ops
    generator = torch.Generator().manual_seed(0)
    boxes = torch.rand(20, 4, generator=generator).cumsum(1).bfloat16()
    scores, image = torch.rand(20, generator=generator), torch.rand(1, 2, 8, 8, generator=generator).bfloat16()

    def run(device):
        with torch.autocast(device, torch.bfloat16):
            kept = ops.nms(boxes.to(device), scores.to(device), 0.3)
            cut = ops.roi_align(image.to(device), [boxes.float().to(device)], (2, 2))
        return kept.cpu(), cut.cpu()

    ours, eager = run("lazy"), run("cpu")
    assert ours[0].tolist() == eager[0].tolist()
    assert ours[1].dtype == eager[1].dtype
    torch.testing.assert_close(ours[1], eager[1])
