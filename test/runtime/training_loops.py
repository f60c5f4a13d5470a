# SPDX-License-Identifier: Apache-2.0
"""Training loops as authors write them. Each yields after each of its steps; see loops_test.py."""

import copy
import math
import random

import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss, normalize
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import DataLoader, TensorDataset

from loops import batch, network


def classifier(width=12, p=0.0):
    return nn.Sequential(nn.Linear(8, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(p), nn.Linear(width, 4)).to("lazy")


def labels(step, rows=16):
    return torch.arange(rows, device="lazy").add(step) % 4


def train_step(net, optimizer, x, y):
    optimizer.zero_grad()
    loss = cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


def critics(steps, n_critic=3):
    """A Wasserstein GAN: the critic is trained n times for each time the maker is, with a penalty on its gradient."""
    maker, critic = network(outputs=8), network(outputs=1, width=20)
    of_maker, of_critic = (torch.optim.RMSprop(net.parameters(), lr=1e-3) for net in (maker, critic))
    for step in range(steps):
        real, noise = batch(step), torch.randn(16, 8, device="lazy")
        of_critic.zero_grad()
        made = maker(noise).detach()
        share = torch.rand(16, 1, device="lazy")
        between = (share * real + (1 - share) * made).requires_grad_()
        (gradient,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        penalty = (gradient.norm(2, dim=1) - 1).square().mean()
        (critic(made).mean() - critic(real).mean() + 10 * penalty).backward()
        of_critic.step()
        if step % n_critic == n_critic - 1:
            of_maker.zero_grad()
            (-critic(maker(noise)).mean()).backward()
            of_maker.step()
        yield


def accumulation_that_changes(steps):
    """Gradients of 4, 2, 3 and 1 batches in turn."""
    net = network()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for step in range(steps):
        parts = (4, 2, 3, 1)[step % 4]
        for part in range(parts):
            (net(batch(step + part)).square().mean() / parts).backward()
        optimizer.step()
        optimizer.zero_grad()
        yield


def shuffled_minibatches(steps, minibatches=4):
    """Four updates a step, one for each part of a batch in a shuffled order; the losses are kept."""
    net, kept = network(), []
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    samples = torch.randn(64, 8, device="lazy")
    for _ in range(steps):
        losses = []
        for rows in torch.randperm(len(samples), device="lazy").chunk(minibatches):
            optimizer.zero_grad()
            loss = net(samples[rows]).square().mean()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
            losses.append(loss.detach())
        kept.append(torch.stack(losses).mean())
        yield


def evaluation_reads_accuracy(steps, every=6, batches=3):
    """Statistics of the forward pass are written in training and read in evaluation; the running loss is read by then."""
    net = classifier(p=0.1)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    running = 0.0
    for step in range(steps):
        net.train()
        loss = train_step(net, optimizer, batch(step), labels(step))
        running += loss.item()
        if step % every == every - 1:
            net.eval()
            correct = 0
            with torch.no_grad():
                for k in range(batches):
                    correct += (net(batch(k)).argmax(1) == labels(k)).sum().item()
        yield


def average_out_of_place(steps):
    """The slow weights are new tensors at each step."""
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)
    slow = {name: value.detach().clone() for name, value in net.named_parameters()}
    for step in range(steps):
        train_step(net, optimizer, batch(step), labels(step))
        slow = {name: 0.99 * slow[name] + 0.01 * value.detach() for name, value in net.named_parameters()}
        yield


def schedule(steps, warm=5):
    """A learning rate that warms up and falls along a cosine, set at each step."""
    net = network()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda k: (k + 1) / warm if k < warm else 0.5 * (1 + math.cos(math.pi * k / steps)))
    for step in range(steps):
        train_step(net, optimizer, batch(step), labels(step))
        rate.step()
        yield


def scaled_gradients(steps):
    """Losses are scaled; a step whose gradients overflow is skipped, and the scale is halved."""
    net = network()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("lazy", init_scale=8.0, growth_interval=4)
    for step in range(steps):
        optimizer.zero_grad()
        loss = cross_entropy(net(batch(step)), labels(step))
        if step % 5 == 4:
            loss = loss * float("inf")
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        yield


def skips_by_norm(steps):
    """The norm of the gradients is read, and large ones are skipped."""
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)
    for step in range(steps):
        optimizer.zero_grad()
        (cross_entropy(net(batch(step)), labels(step)) * (100.0 if step % 4 == 3 else 1.0)).backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        if norm < 10:
            optimizer.step()
        yield


def sizes_in_turn(steps):
    """A curriculum: short and long batches in turn."""
    net = classifier()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(steps):
        rows = 16 if step % 2 else 24
        train_step(net, optimizer, batch(step, rows), labels(step, rows))
        yield


def texts_of_any_length(steps, lengths=range(5, 13)):
    """Each length comes once before any comes again; nobody reads a loss."""
    words, places = nn.Embedding(32, 8).to("lazy"), nn.Embedding(max(lengths), 8).to("lazy")
    net = network(outputs=32)
    optimizer = torch.optim.AdamW([*words.parameters(), *places.parameters(), *net.parameters()], lr=1e-3)
    chance, left = random.Random(0), []
    for step in range(steps):
        left = left or chance.sample(lengths, len(lengths))
        ids = (torch.arange(4 * (left.pop() + 1)).view(4, -1) * (step + 1) % 32).to("lazy")
        optimizer.zero_grad()
        length = ids.size(1) - 1
        logits = net(words(ids[:, :-1]) + places(torch.arange(length, device="lazy")))
        cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).backward()
        optimizer.step()
        yield


def epochs(steps, every=4):
    """A loader that shuffles, whose last batch is smaller; the loss of an epoch is added up, and read at its end."""
    data = TensorDataset(torch.randn(50, 8), torch.arange(50) % 4)
    loader = DataLoader(data, batch_size=16, shuffle=True)
    net = classifier()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)
    done = 0
    while done < steps:
        total = torch.zeros((), device="lazy")
        for x, y in loader:
            x, y = x.to("lazy", non_blocking=True), y.to("lazy", non_blocking=True)
            total += train_step(net, optimizer, x, y) * len(x)
            done += 1
            yield
        assert math.isfinite(total.item() / 50)


def augmentation(steps):
    """Random crops and noise of the device, flips by the host's random numbers, dropout."""
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Dropout(0.2), nn.Flatten(), nn.Linear(4 * 16, 4)).to("lazy")
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    chance = random.Random(0)
    for step in range(steps):
        image = batch(step, 16, 64).view(16, 1, 8, 8)
        if chance.random() < 0.5:
            image = image.flip(3)
        image = image[:, :, 1:7, 1:7] + 0.1 * torch.randn(16, 1, 6, 6, device="lazy")
        train_step(net, optimizer, image, labels(step))
        yield


def mixup(steps):
    """Pairs of examples are mixed, by a share that the host draws."""
    net = classifier()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
    chance = random.Random(0)
    for step in range(steps):
        x, y, share = batch(step), labels(step), chance.betavariate(0.4, 0.4)
        order = torch.randperm(16, device="lazy")
        optimizer.zero_grad()
        result = net(share * x + (1 - share) * x[order])
        loss = share * cross_entropy(result, y) + (1 - share) * cross_entropy(result, y[order])
        loss.backward()
        optimizer.step()
        yield


def recurrent_chunks(steps):
    """Backpropagation through time in chunks: the state goes on, detached."""
    cell, head = nn.GRU(8, 12, batch_first=True).to("lazy"), nn.Linear(12, 4).to("lazy")
    optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=1e-3)
    state = torch.zeros(1, 4, 12, device="lazy")
    for step in range(steps):
        optimizer.zero_grad()
        result, state = cell(batch(step, 20).view(4, 5, 8), state.detach())
        cross_entropy(head(result).flatten(0, 1), labels(step, 20)).backward()
        optimizer.step()
        yield


def recurrent_cells(steps, length=5):
    """The same, with a cell that is called for each time step, and a state that each fifth sequence begins anew."""
    cell, head = nn.LSTMCell(8, 12).to("lazy"), nn.Linear(12, 4).to("lazy")
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=1e-2)
    state = None
    for step in range(steps):
        if step % 5 == 0:
            state = (torch.zeros(16, 12, device="lazy"), torch.zeros(16, 12, device="lazy"))
        state = tuple(value.detach() for value in state)
        optimizer.zero_grad()
        loss = 0.0
        for k in range(length):
            state = cell(batch(step + k), state)
            loss = loss + cross_entropy(head(state[0]), labels(k))
        loss.backward()
        optimizer.step()
        yield


def momentum_contrast(steps):
    """A queue of keys in a ring, and a slow encoder."""
    query, key = network(), network()
    optimizer = torch.optim.SGD(query.parameters(), lr=1e-2, momentum=0.9)
    queue, at = normalize(torch.randn(4, 64, device="lazy"), dim=0), 0
    for step in range(steps):
        q = normalize(query(batch(step)), dim=1)
        with torch.no_grad():
            for slow, fast in zip(key.parameters(), query.parameters(), strict=True):
                slow.data = slow.data * 0.999 + fast.data * 0.001
            k = normalize(key(batch(step) + 0.01), dim=1)
        logits = torch.cat([(q * k).sum(1, keepdim=True), q @ queue.clone().detach()], 1) / 0.07
        loss = cross_entropy(logits, torch.zeros(16, dtype=torch.long, device="lazy"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            queue[:, at:at + 16] = k.T
        at = (at + 16) % 64
        yield


def early_stopping(steps, every=4):
    """The best weights so far are kept; training ends where they stay for long."""
    net = classifier()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    best, kept, patience = math.inf, None, 0
    for step in range(steps):
        net.train()
        train_step(net, optimizer, batch(step), labels(step))
        if step % every == every - 1:
            net.eval()
            with torch.no_grad():
                loss = sum(cross_entropy(net(batch(k)), labels(k)) for k in range(2)) / 2
            if loss.item() < best or step % 8 == 7:
                best, kept, patience = loss.item(), copy.deepcopy(net.state_dict()), 0
            else:
                patience += 1
                if patience > 20:
                    break
        yield
    assert kept is not None


def logs_each_tenth(steps):
    """Statistics are written in the forward pass, the loss is added up, and both it and a weight's norm are read at times."""
    net = classifier()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    total = 0
    for step in range(steps):
        total = total + train_step(net, optimizer, batch(step), labels(step))
        if step % 10 == 9:
            print(f"{total.item() / 10:.4f} {net[0].weight.norm().item():.3f}", end="\r")
            total = 0
        yield


def reads_norm_and_logs(steps):
    """The norm is read inside each step, the loss at each fifth, of a model that writes statistics."""
    net = classifier()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(steps):
        optimizer.zero_grad()
        loss = cross_entropy(net(batch(step)), labels(step))
        loss.backward()
        if nn.utils.clip_grad_norm_(net.parameters(), 1.0).item() < 1e6:
            optimizer.step()
        if step % 5 == 4:
            loss.item()
        yield


def checkpoints(steps, every=5):
    """The state of model and optimizer is copied to the host now and then."""
    net = classifier()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(steps):
        train_step(net, optimizer, batch(step), labels(step))
        if step % every == every - 1:
            saved = {name: value.cpu() for name, value in net.state_dict().items()}
            saved |= {(k, name): torch.as_tensor(value).cpu()
                      for k, state in optimizer.state_dict()["state"].items() for name, value in state.items()}
            assert len(saved) > 9
        yield


def weight_averaging(steps, every=4):
    """Stochastic weight averaging: the mean of the weights at each fourth step."""
    net = network()
    mean = AveragedModel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)
    for step in range(steps):
        train_step(net, optimizer, batch(step), labels(step))
        if step % every == every - 1:
            mean.update_parameters(net)
        yield


def distillation(steps):
    """A student follows a teacher's results, which are computed without gradients."""
    teacher, student = network(width=20).eval(), network()
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3)
    for step in range(steps):
        x = batch(step)
        with torch.no_grad():
            wanted = torch.softmax(teacher(x) / 2, 1)
        optimizer.zero_grad()
        result = student(x)
        loss = cross_entropy(result, labels(step)) + nn.functional.kl_div(
            torch.log_softmax(result / 2, 1), wanted, reduction="batchmean")
        loss.backward()
        optimizer.step()
        yield


def quasi_newton(steps):
    """L-BFGS, whose closure is called several times a step, and which reads as it goes."""
    net = network()
    optimizer = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=3, history_size=3, tolerance_grad=0, tolerance_change=0)
    x, y = batch(1), batch(2, columns=4)
    for _ in range(steps):

        def closure():
            optimizer.zero_grad()
            loss = mse_loss(net(x), y)
            loss.backward()
            return loss

        optimizer.step(closure)
        yield


def inner_steps(steps, inner=3):
    """Meta-learning: weights are updated out of place, and the outer gradient goes through the updates."""
    net = network()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(steps):
        weights = dict(net.named_parameters())
        for k in range(inner):
            loss = torch.func.functional_call(net, weights, batch(step + k)).square().mean()
            gradients = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
            weights = {name: w - 0.1 * g for (name, w), g in zip(weights.items(), gradients, strict=True)}
        optimizer.zero_grad()
        torch.func.functional_call(net, weights, batch(step)).square().mean().backward()
        optimizer.step()
        yield


def unfreezing(steps, frozen=6):
    """The head is trained first, then all layers with an optimizer of their own."""
    net = classifier()
    for value in net[0].parameters():
        value.requires_grad_(False)
    optimizer = torch.optim.Adam(net[4].parameters(), lr=1e-3)
    for step in range(steps):
        if step == frozen:
            for value in net.parameters():
                value.requires_grad_(True)
            optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
        train_step(net, optimizer, batch(step), labels(step))
        yield


def rate_finder(steps):
    """The learning rate grows at each step, and the smoothed loss is read, until it is far above the best one."""
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
    smoothed, best = 0.0, math.inf
    for step in range(steps):
        loss = train_step(net, optimizer, batch(step), labels(step)).item()
        smoothed = 0.9 * smoothed + 0.1 * loss
        best = min(best, smoothed / (1 - 0.9 ** (step + 1)))
        if smoothed > 1000 * best:
            break
        for group in optimizer.param_groups:
            group["lr"] *= 1.1
        yield


def losses_by_chance(steps):
    """Two tasks with a head each; which one a step trains is drawn, and the losses of both are read now and then."""
    body, heads = network(outputs=12), [nn.Linear(12, 3).to("lazy"), nn.Linear(12, 5).to("lazy")]
    optimizer = torch.optim.AdamW([*body.parameters(), *heads[0].parameters(), *heads[1].parameters()], lr=1e-3)
    chance, last = random.Random(3), [None, None]
    for step in range(steps):
        task = chance.randrange(2)
        optimizer.zero_grad()
        loss = cross_entropy(heads[task](body(batch(step))), labels(step) % 3)
        loss.backward()
        optimizer.step()
        last[task] = loss.detach()
        if step % 6 == 5:
            sum(loss.item() for loss in last if loss is not None)
        yield
