# SPDX-License-Identifier: Apache-2.0
"""Loops on any device. Each returns its numbers, and how many graphs had been replayed after each step."""

import torch
from torch import nn

from devices import EAGER, early_reads, replays, results_copied, traces_ahead, traces_taken_back, wait_for


def _net(device, seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 8)).to(device)


def _batch(step, device, rows=16):
    return torch.sin(torch.arange(rows * 32.0).view(rows, 32) * (step + 1)).to(device)


def _values(net):
    return [value.tolist() for value in net.parameters()]


def _train(device, steps, make_optimizer, before_update=lambda net, step: None, after_step=lambda step, optimizer, loss: None):
    net = _net(device)
    optimizer = make_optimizer(net.parameters())
    losses, counts = [], []
    for step in range(steps):
        optimizer.zero_grad()
        loss = net(_batch(step, device)).square().mean()
        loss.backward()
        before_update(net, step)
        optimizer.step()
        losses.append(loss.detach())
        after_step(step, optimizer, loss)
        wait_for(device)
        counts.append(replays())
    return [[loss.item() for loss in losses], _values(net)], counts


def adam(device):
    return _train(device, 16, lambda parameters: torch.optim.Adam(parameters, lr=1e-3))


def momentum(device):
    return _train(device, 16, lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9))


def fused_adamw(device):
    return _train(device, 16, lambda parameters: torch.optim.AdamW(parameters, lr=1e-3, foreach=True))


def reads_each_loss(device):
    return _train(device, 16, lambda parameters: torch.optim.Adam(parameters, lr=1e-3), after_step=lambda step, optimizer, loss: loss.item())


def schedule(device):
    """An optimizer's numbers are no part of a graph."""

    def change(step, optimizer, loss):
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * 0.9**step

    return _train(device, 16, lambda parameters: torch.optim.Adam(parameters, lr=1e-3), after_step=change)


def clipping(device):
    """Some of the gradients' norms are above, some below the limit."""

    def clip(net, step):
        nn.utils.clip_grad_norm_(net.parameters(), 0.3)

    return _train(device, 16, lambda parameters: torch.optim.SGD(parameters, lr=0.05), before_update=clip)


def accumulated_gradients(device):
    net = _net(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    norms, counts = [], []
    for step in range(32):
        net(_batch(step, device)).square().mean().backward()
        if step % 4 == 3:
            norms.append(nn.utils.clip_grad_norm_(net.parameters(), 0.1).item())
            optimizer.step()
            optimizer.zero_grad()
        wait_for(device)
        counts.append(replays())
    return [norms, _values(net)], counts


def inference(device):
    net, results, counts = _net(device), [], []
    with torch.no_grad():
        for step in range(12):
            y = net(_batch(step % 3, device))
            wait_for(device)
            results.append(y.tolist())
            del y
            counts.append(replays())
    return results, counts


def held_results(device):
    """Every result that is held keeps its value and its address."""
    net, held, addresses, counts = _net(device), [], [], []
    with torch.no_grad():
        for step in range(12):
            held.append(net(_batch(step, device)))
            wait_for(device)
            addresses.append(held[-1].data_ptr() if step % 2 else None)
            counts.append(replays())
    values = [y.tolist() for y in held]
    stayed = [y.data_ptr() == address for y, address in zip(held, addresses, strict=True) if address is not None]
    return [values, stayed, len({y.data_ptr() for y in held})], counts


def results_of_convolutions(device):
    """A convolution's result is the program's. Beside the numbers: how many results a graph copies."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.Tanh(), nn.Conv2d(8, 8, 3, stride=2)).to(device)
    results, counts = [], []
    with torch.no_grad():
        for step in range(6):
            x = torch.sin(torch.arange(2 * 4 * 8 * 8.0).view(2, 4, 8, 8) * (step + 1)).to(device)
            wait_for(device)
            y = net(x * 0.5)
            wait_for(device)
            results.append(y.tolist())
            del y
            counts.append((replays(), results_copied()))
    return results, counts


def after_a_call_that_waits(device):
    """Six steps with a call that cannot be captured, since it reads its operand's least value; then those of adam()."""
    x = torch.linspace(0, 1, 64 * 64).view(64, 64).to(device)
    for _ in range(6):
        torch.histc(torch.sin(x @ x) @ x, 16)
        wait_for(device)
    before = replays()
    results, counts = adam(device)
    return results, [count - before for count in counts]


def reads_the_loss_of_large_steps(device):
    """Steps that are cut early, and whose loss is read after the update. Beside the losses: how many were read early."""
    torch.manual_seed(0)
    net = nn.Sequential(*[part for _ in range(24) for part in (nn.Linear(512, 512), nn.GELU(), nn.LayerNorm(512))]).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)
    losses, counts = [], []
    for step in range(24):
        x = torch.sin(torch.arange(4096 * 512.0).view(4096, 512) * 0.01 * (step + 1)).to(device)
        optimizer.zero_grad()
        loss = (net(x) - x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        counts.append(early_reads())
    return losses, counts


class _Attends(nn.Module):
    """Attention that drops weights: a library's call, which draws."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.into, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        heads = [part.unflatten(2, (4, -1)).transpose(1, 2) for part in self.into(self.norm(x)).chunk(3, dim=2)]
        mixed = nn.functional.scaled_dot_product_attention(*heads, dropout_p=0.2)
        return x + self.out(mixed.transpose(1, 2).flatten(2))


def attention_that_draws(device):
    """Steps that are cut early, and draw. Beside the losses: traces that were given to the library's thread, and a number that the program draws in between."""
    torch.manual_seed(0)
    net = nn.Sequential(*[_Attends(256) for _ in range(16)]).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
    losses, counts = [], []
    for step in range(24):
        x = torch.sin(torch.arange(32 * 128 * 256.0).view(32, 128, 256) * 0.01 * (step % 4 + 1)).to(device)
        optimizer.zero_grad()
        loss = (net(x) - x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append([loss.item(), torch.rand(1, device=device).item()])
        counts.append(traces_ahead())
    return losses, counts


def draws_while_another_is_captured(device):
    """What draws has a CUDA graph, and waits in the GPU's queue while another function is captured. Beside the sums: replays."""
    torch.manual_seed(0)
    x = torch.randn(256, 256).to(device)
    q, k, v = (torch.randn(8, 4, 128, 64).to(device) for _ in range(3))
    sums, counts = [], []

    for step in range(16):
        if step >= 8 and EAGER == "cuda":
            torch.cuda._sleep(50_000_000)
        drawn = torch.mm(nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.3).sin().sum((0, 1)).T, x[:128]).cos()
        torch.poisson(drawn.abs())  # is not recorded, and runs what is
        if step >= 8:
            other = torch.mm(torch.mm(x.sin(), x).cos(), x).tanh()
            torch.poisson(other.abs())
        sums.append(drawn.double().sum().item())
        counts.append(replays())
    return sums, counts


def weights_of_convolutions_that_move(device):
    """Steps that are cut early. Beside the losses: traces that were given to the library's thread, and that the program took back, after each step."""
    torch.manual_seed(0)
    net = nn.Sequential(*[part for _ in range(24) for part in (nn.Conv2d(32, 32, 3, padding=1), nn.GELU(), nn.GroupNorm(8, 32))]).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
    losses, counts = [], []
    for step in range(24):
        if step == 16:
            for weight in net.parameters():
                weight.data = weight.data.clone()
        x = torch.sin(torch.arange(32 * 32 * 32 * 32.0).view(32, 32, 32, 32) * 0.01 * (step % 4 + 1)).to(device)
        optimizer.zero_grad()
        loss = (net(x) - x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        counts.append((traces_ahead(), traces_taken_back()))
    return losses, counts


def parameters_that_move(device):
    net, results, counts = _net(device), [], []
    with torch.no_grad():
        for step in range(16):
            if step in (6, 10):
                for value in net.parameters():
                    value.data = value.data * 0.5  # new memory
            y = net(_batch(step, device))
            wait_for(device)
            results.append(y.tolist())
            counts.append(replays())
    return results, counts


def changing_sizes(device):
    net, results, counts = _net(device), [], []
    with torch.no_grad():
        for step in range(30):
            y = net(_batch(step, device, rows=8 * (step % 3 + 1)))
            wait_for(device)
            results.append(y.tolist())
            counts.append(replays())
    return results, counts


def two_models_in_turn(device):
    nets = [_net(device, seed) for seed in (0, 1)]
    optimizers = [torch.optim.SGD(net.parameters(), lr=0.05 * (k + 1)) for k, net in enumerate(nets)]
    losses, counts = [], []
    for step in range(24):
        net, optimizer = nets[step % 2], optimizers[step % 2]
        optimizer.zero_grad()
        loss = net(_batch(step, device)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        counts.append(replays())
    return [losses, _values(nets[0]), _values(nets[1])], counts


def a_large_tensor_between(device):
    """Memory that is taken and freed between the steps is no graph's."""

    def take(step, optimizer, loss):
        torch.full((1 << 20,), float(step), device=device).mul_(2).sum().item()

    return _train(device, 16, lambda parameters: torch.optim.Adam(parameters, lr=1e-3), after_step=take)


def dropout(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(32, 64), nn.Dropout(0.3), nn.Tanh(), nn.Dropout(0.5), nn.Linear(64, 8)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    losses, counts = [], []
    torch.manual_seed(7)
    for step in range(16):
        optimizer.zero_grad()
        loss = net(_batch(step, device)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        counts.append(replays())
    return [losses, _values(net)], counts


def under_autocast(device):
    """Many rows, so that activations are the most of what lies in memory. Returns what each step took from the one before, too."""
    import torch_lazy

    net = _net(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    losses, carried = [], []
    for step in range(12):
        torch_lazy.reset_metrics()
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = net(_batch(step, device, rows=1024)).float().square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step == 7:
            net[0].weight.data.mul_(0.5)
        carried.append(torch_lazy.metrics()["values_carried"])
    return [losses, _values(net)], carried


def memory_written_in_parts(device):
    """A graph writes into memory of its own, not into what others have been given since."""
    torch.manual_seed(0)
    weight = (torch.randn(128, 64) / 8).to(device)
    kept, sums, counts = [], [], []
    for step in range(12):
        x = torch.full((64, 64), step + 1.0, device=device)
        whole = torch.empty(64, 128, device=device)
        whole[:, :64] = x
        whole[:, 64:].copy_(x.mul(2).cos())
        sums.append(((whole @ weight).relu().softmax(1) * x).sum())
        del whole
        wait_for(device)
        counts.append(replays())
        kept.append(torch.full((64, 128), float(step), device=device))
        wait_for(device)
    return [[value.item() for value in sums], [(tensor - step).abs().max().item() for step, tensor in enumerate(kept)]], counts


ALL = [adam, momentum, fused_adamw, reads_each_loss, schedule, clipping, accumulated_gradients, inference, held_results,
       parameters_that_move, changing_sizes, two_models_in_turn, a_large_tensor_between, memory_written_in_parts, dropout]
