# SPDX-License-Identifier: Apache-2.0
"""Sequences, graphs, clicks and games: a language model of LSTMs, graph attention, a recommender, an actor and its critic."""

import torch
from torch import nn
from torch.nn import functional as F

from models.row import Model, Row


class LstmLm(nn.Module):
    """Embedding and last layer share their weight."""

    def __init__(self, words, width, layers):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.drop = nn.Dropout(0.2)
        self.lstm = nn.LSTM(width, width, layers, dropout=0.2, batch_first=True)
        self.head = nn.Linear(width, words)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(self.drop(self.lstm(self.drop(self.embed(ids)))[0]))


def lstm_lm(batch, length, words, width, layers):
    def make(g):
        return (torch.randint(words, (batch, length + 1), generator=g),)

    def loss(net, ids):
        return F.cross_entropy(net(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())

    return Model(LstmLm(words, width, layers), make, loss)


class GraphAttention(nn.Module):
    """A layer of several heads: nodes ask along edges, (2, edges) of source and target."""

    def __init__(self, inputs, width, heads):
        super().__init__()
        self.heads, self.width = heads, width
        self.project = nn.Linear(inputs, heads * width, bias=False)
        self.source = nn.Parameter(torch.randn(heads, width) / width**0.5)
        self.target = nn.Parameter(torch.randn(heads, width) / width**0.5)

    def forward(self, x, edges):
        nodes = x.shape[0]
        h = self.project(x).view(nodes, self.heads, self.width)
        source, target = edges
        scores = F.leaky_relu((h * self.source).sum(-1)[source] + (h * self.target).sum(-1)[target], 0.2)
        rows = target[:, None].expand_as(scores)
        largest = scores.new_full((nodes, self.heads), float("-inf")).scatter_reduce(0, rows, scores, "amax")
        weights = (scores - largest[target]).exp()
        total = weights.new_zeros(nodes, self.heads).scatter_add(0, rows, weights)
        messages = h[source] * (weights / (total[target] + 1e-9)).unsqueeze(-1).to(h.dtype)
        return torch.zeros_like(h).index_add(0, target, messages).flatten(1)


class Gat(nn.Module):
    def __init__(self, features, width, heads, classes):
        super().__init__()
        self.first = GraphAttention(features, width, heads)
        self.second = GraphAttention(width * heads, classes, 1)

    def forward(self, x, edges):
        return self.second(F.dropout(F.elu(self.first(x, edges)), 0.5, self.training), edges)


def gat(nodes, edges, features, width, heads, classes):
    def make(g):
        # Each node has an edge to itself.
        ends = torch.cat([torch.randint(nodes, (2, edges), generator=g), torch.arange(nodes).expand(2, nodes)], 1)
        return torch.randn(nodes, features, generator=g), ends, torch.randint(classes, (nodes,), generator=g)

    def loss(net, x, edges, labels):
        return F.cross_entropy(net(x, edges), labels)

    return Model(Gat(features, width, heads, classes), make, loss, lambda net, x, edges, labels: net(x, edges))


def mlp(*widths):
    layers = [layer for a, b in zip(widths, widths[1:]) for layer in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


class Dlrm(nn.Module):
    """Numbers and bags of categories, all pairs of whose embeddings are multiplied."""

    def __init__(self, numbers, categories, width):
        super().__init__()
        self.bottom = mlp(numbers, 4 * width, width)
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for rows in categories)
        fields = len(categories) + 1
        self.register_buffer("pairs", torch.tril_indices(fields, fields, -1), persistent=False)
        self.top = mlp(width + fields * (fields - 1) // 2, 4 * width, width, 1)

    def forward(self, numbers, bags):
        x = self.bottom(numbers)
        fields = torch.stack([x, *(table(bags[:, k]).to(x.dtype) for k, table in enumerate(self.tables))], 1)
        products = fields @ fields.mT
        return self.top(torch.cat([x, products[:, self.pairs[0], self.pairs[1]]], 1)).squeeze(1)


def dlrm(batch, numbers, categories, bag, width):
    def make(g):
        bags = torch.stack([torch.randint(rows, (batch, bag), generator=g) for rows in categories], 1)
        return torch.rand(batch, numbers, generator=g), bags, torch.randint(2, (batch,), generator=g).float()

    def loss(net, x, bags, clicked):
        return F.binary_cross_entropy_with_logits(net(x, bags), clicked)

    return Model(Dlrm(numbers, categories, width), make, loss, lambda net, x, bags, clicked: net(x, bags))


class ActorCritic(nn.Module):
    def __init__(self, state, width, actions):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(state, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.actor, self.critic = nn.Linear(width, actions), nn.Linear(width, 1)

    def forward(self, states):
        h = self.body(states)
        return self.actor(h), self.critic(h).squeeze(-1)


def ppo(games, length, state, width, actions, decay=0.99, smoothing=0.95):
    """Proximal policy optimisation: advantages by a loop over time, the clipped ratio, the value's error and the entropy."""

    def make(g):
        return (
            torch.randn(length + 1, games, state, generator=g),
            torch.randint(actions, (length, games), generator=g),
            torch.full((length, games), 1 / actions).log() + 0.1 * torch.randn(length, games, generator=g),
            torch.randn(length, games, generator=g),
            (torch.rand(length, games, generator=g) < 0.05).float(),
        )

    def loss(net, states, taken, old, rewards, done):
        scores, values = net(states)
        scores, known = scores[:-1].float(), values.detach().float()
        advantage, advantages = torch.zeros_like(rewards[0]), []
        for t in reversed(range(length)):
            goes_on = 1 - done[t]
            error = rewards[t] + decay * known[t + 1] * goes_on - known[t]
            advantage = error + decay * smoothing * goes_on * advantage
            advantages.append(advantage)
        advantages = torch.stack(advantages[::-1])
        returns = advantages + known[:-1]
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        policy = torch.distributions.Categorical(logits=scores, validate_args=False)
        ratio = (policy.log_prob(taken) - old).exp()
        gain = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
        return 0.5 * F.mse_loss(values[:-1].float(), returns) - gain - 0.01 * policy.entropy().mean()

    return Model(ActorCritic(state, width, actions), make, loss)


ROWS = [
    Row("lstm_lm", "hand", lstm_lm, dict(batch=4, length=12, words=200, width=48, layers=2),
        dict(batch=32, length=64, words=10000, width=512, layers=2), clip=0.25),
    Row("gat", "hand", gat, dict(nodes=100, edges=400, features=32, width=8, heads=4, classes=7),
        dict(nodes=20000, edges=200000, features=512, width=32, heads=8, classes=40), "adam"),
    Row("dlrm", "hand", dlrm, dict(batch=64, numbers=13, categories=(50, 300, 20, 1000), bag=3, width=16),
        dict(batch=8192, numbers=13, categories=(1000, 100000, 20, 50000, 500, 3000, 10, 200000), bag=4, width=64), "sgd"),
    Row("ppo", "hand", ppo, dict(games=8, length=16, state=8, width=32, actions=4),
        dict(games=1024, length=64, state=64, width=256, actions=12), "adam", clip=0.5),
]
