"""Shapes of real programs of which no rule should speak: each stands for a kind of mistake that a dry run can make."""

import ast
import time
from types import SimpleNamespace
from typing import Any

import pytest

from gradvet.analysis import analyze
from gradvet.autograd.graph import node_key
from gradvet.autograd.judging.chains import PART, Chains
from gradvet.autograd.memory.domain import NOTHING, Node
from gradvet.config import Config
from gradvet.syntax.cells import CellSource
from gradvet.text import Source

HEAD = "import torch\nimport numpy as np\nimport torch.nn.functional as F\nfrom torch import nn\nfrom elsewhere import *\n"
LAYERS = "".join(
    f"\n    for a{n} in shared:\n        shared = {{'a': shared, 'b': shared, 'c': [shared, kept]}}"
    for n in range(3)
)

SILENT = {
    "a private helper of torch.nn.init gives a number": """
def lecun(tensor, scale=1.0):
    fan_in = torch.nn.init._calculate_correct_fan(tensor, "fan_in")
    bound = scale * np.sqrt(3.0 / fan_in)
    with torch.no_grad():
        return tensor.uniform_(-bound, bound)

layer = nn.Linear(3, 3)
lecun(layer.weight)
""",
    "an engine that may be there or not runs the backward of what it is given, once": """
class Wrapper:
    def __init__(self, optimizer):
        self.optimizer, self._model = optimizer, None

    @property
    def model(self):
        if self._model is None:
            raise ValueError("no model")
        return self._model

    @model.setter
    def model(self, value):
        self._model = value

    def update(self, loss):
        self.backward(loss)
        self.model.step()

    def backward(self, loss):
        self.model.backward(loss)
""",
    "whoever calls backward and step may clear in between": """
class Wrapper:
    def __init__(self, optimizer: torch.optim.Optimizer):
        self.optimizer = optimizer

    def backward(self, loss: torch.Tensor):
        loss.backward()

    def step(self):
        self.optimizer.step()
""",
    "something that clears and cannot be followed may clear anything": """
def train(model, optimizer: torch.optim.Optimizer, loader):
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        reset_gradients(model)
""",
    "gradients of unknown parameters are set to zeros": """
def zero(parameters):
    for p in parameters:
        if p.grad is not None:
            p.grad = torch.zeros_like(p.grad)

def train(loss_fn, optim, steps):
    params = None
    for _ in range(steps):
        if params is not None:
            zero(params)
        loss, params = loss_fn()
        loss.backward()
        optim.step()
""",
    "a list in which some are known and some are not may hold what requires grad": """
def unrolled(cell, x, first):
    states = [torch.zeros(2, 3)]
    for step in range(x.shape[0]):
        states.append(cell(x[step], states[step]))
    return torch.stack(states[1:]).sum()

unrolled(make_cell(), torch.randn(4, 2, 3), None).backward()
""",
    "a module that holds another of which nothing is known may train it": """
class Holder(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

class Loss(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.held = Holder(inner)

    def forward(self, x):
        return self.held(x).abs().sum()

def check(inner):
    loss = Loss(inner)(torch.ones(3))
    loss.backward()
""",
    "a gradient that somebody else has filled may have a graph": """
class SecondOrder(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1):
        super().__init__(params, dict(lr=lr))

    @torch.no_grad()
    def curvature(self):
        params = [p for group in self.param_groups for p in group["params"] if p.grad is not None]
        grads = [p.grad for p in params]
        return torch.autograd.grad(grads, params, grad_outputs=[torch.ones_like(p) for p in params])
""",
    "what is cleared before an optimizer of other parameters makes its step": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x, judge=False):
        return self.head(self.body(x).detach() if judge else self.body(x)).mean()

def optimizer_of(parameters, decay):
    if decay == 0:
        return torch.optim.Adam(parameters)
    return torch.optim.AdamW(parameters, weight_decay=decay)

class Trainer(nn.Module):
    def __init__(self, net, every, batches, decay):
        super().__init__()
        assert isinstance(net, Net)
        self.net, self.every, self.batches = net, every, batches
        head = set(net.head.parameters())
        self.optimizer = optimizer_of(set(net.parameters()) - head, decay)
        self.head_optimizer = optimizer_of(head, decay)

    def train_step(self):
        self.net.train()
        for _ in range(self.every):
            (self.net(next(self.batches)) / self.every).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.net.head:
            for _ in range(self.every):
                (self.net(next(self.batches), judge=True) / self.every).backward()
            self.head_optimizer.step()
            self.head_optimizer.zero_grad()
        torch.save(self.net.state_dict(), "net.pt")

    def train(self, log):
        device = next(self.net.parameters()).device
        while self.steps < 10:
            logs = self.train_step()
            log(logs)
""",
    "gradients that were read before they are cleared have served their purpose": """
class Whole:
    def __init__(self, loader, wrap, criterion):
        self.loader, self.wrap, self.criterion = loader, wrap, criterion
        self.model = nn.Linear(3, 3)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.optimizer.zero_grad()
        for x, y in self.loader:
            self.criterion(self.model(x), y).backward()
        self.whole = torch.cat([p.grad.reshape(-1) for p in self.model.parameters() if p.requires_grad])
        self.optimizer.zero_grad()

    def compare(self):
        model = self.wrap(self.model)
        for x, y in self.loader:
            self.criterion(model(x), y).backward()
        self.optimizer.step()
""",
    "what lies in a list may be another tensor than the one that shares": """
class Kernel:
    def __init__(self, independent, count):
        self.independent, self.count = independent, count

    def jacobians(self, x):
        found = torch.cat([x, x], -1)
        return found.detach(), x

    def begin(self):
        if self.independent:
            self.kernel = [torch.empty(3, 3) for _ in range(self.count)]
        else:
            self.kernel = torch.empty(3, 3)

    def store(self, batch, at):
        if self.independent:
            for c in range(self.count):
                self.kernel[c][at:] = batch
        else:
            self.kernel[at:] = batch

    def fit(self, loader):
        self.begin()
        for at, x in enumerate(loader):
            found, _ = self.jacobians(x)
            self.store(found, at)
""",
    "what extends a dict is filled in one of several ways": """
from collections import OrderedDict

class Blocks(OrderedDict):
    def __init__(self, given=None, pairs=None):
        if given is not None:
            super().__init__(given)
        elif pairs is not None:
            super().__init__([(key, value) for key, value in pairs])
        else:
            super().__init__()

def pick(given, pairs, flag):
    blocks = Blocks({"a": torch.ones(2)}) if flag else Blocks(None, pairs)
    return {key: value for key, value in blocks.items()}, Blocks(given, pairs).get("a")
""",
    "what lies under an index that changes is not one loss": """
from collections.abc import Sequence

class Balanced:
    def backward(self, losses: Sequence[torch.Tensor]):
        for i in range(len(losses)):
            losses[i].backward()
""",
    "options that are handed on may keep the graph": """
class Engine:
    def run(self, model: nn.Module, x, **options):
        loss = model(x).sum()
        loss.backward(**options)
        loss.backward()
""",
    "gradients that are collected one after the other, of parameters that are not known": """
class Surgery:
    def __init__(self, optimizer: torch.optim.Optimizer):
        self.optimizer = optimizer

    def pack(self, objectives):
        found = []
        for objective in objectives:
            self.optimizer.zero_grad(set_to_none=True)
            objective.backward(retain_graph=True)
            found.append([p.grad.clone() for group in self.optimizer.param_groups for p in group["params"]])
        return found

    def step(self, closure=None):
        return self.optimizer.step(closure)
""",
    "what a file uses only with grad mode off is not meant to record": """
class Sampler:
    def __init__(self, model: nn.Module):
        self.model = model

    def show(self, image):
        print(image.clip(0, 1).cpu().numpy())

    def animate(self, steps):
        for _ in range(steps):
            self.show(self.model(torch.randn(3)))

    def sample(self, count):
        x = self.model(torch.randn(count, 3))
        for i in range(count):
            self.show(x[i])

def main(model):
    sampler = Sampler(model)
    with torch.no_grad():
        sampler.animate(3)
""",
    "something of which nothing is known is no leaf that trains once its flag is switched off": """
def latents(make, images):
    coder = make()
    coder.requires_grad_(False)
    found = coder.encode(images).requires_grad_(False)
    return coder(images).numpy(), (found * 2).numpy()
""",
    "a program of TorchScript need not train anything": """
def features(path, loader):
    net = torch.jit.load(path).eval().to("cuda")
    return [net(x).cpu().numpy() for x in loader]
""",
    "options that are handed on may give what only a keyword can": """
def called(*args, name=None, **options):
    assert name is not None
    return find(name)(*args, **options)

def built(options):
    net = called(**options).train().requires_grad_(False).to("cuda")
    return net(torch.ones(3)).numpy()
""",
    "parameters train for a moment, for whoever looks at the flag": """
def wrapped(make, kwargs, several):
    net = make(**kwargs).train().requires_grad_(False)
    for name, module in [("net", net), (None, make(**kwargs).requires_grad_(False))]:
        if several and len(list(module.parameters())) != 0:
            module.requires_grad_(True)
            module = nn.parallel.DistributedDataParallel(module)
            module.requires_grad_(False)
    return net
""",
    "the weight of a term is no loss, nor a setting of the command line": """
import argparse

def train(loader, model: nn.Module, optimizer, penalty_of, n, args):
    for i in range(args.steps):
        parts = model(next(loader)).chunk(n, dim=0)
        labels = next(loader).chunk(n, dim=0)
        loss, penalty = 0, 0
        for d in range(n):
            loss += F.cross_entropy(parts[d], labels[d])
            for e in range(d + 1, n):
                penalty += penalty_of(parts[d], parts[e]) * 2
        loss = loss + penalty / n * args.weight
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

parser = argparse.ArgumentParser()
args = parser.parse_args()
train(load(args), make(args), torch.optim.SGD(make(args).parameters(), lr=0.1), CorrelationLoss(), args.n, args)
""",
    "a term that is nothing on one path is multiplied by nothing but its weight": """
class Consistency(nn.Module):
    def forward(self, x, strong):
        mask = x.softmax(-1).max(-1)[0].ge(0.7)
        if mask.sum() == 0:
            return 0, 0
        return (x[mask].detach() - strong[mask]).pow(2).sum(), mask.sum()

def train(loader, model: nn.Module, optimizer, settings, steps):
    consistency = Consistency()
    for _ in range(steps):
        y, strong = model(next(loader)).chunk(2)
        extra, chosen = consistency(y, strong)
        loss = y.mean() + extra * settings().weight
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    "a call in which a backward runs is no evaluation": """
def main(make, loader, args):
    judge = make(args).to("cuda")
    judge.eval()
    net = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def predict(x):
        return judge(x)

    for _ in range(3):
        train(loader, net, predict, optimizer)

def train(loader, net, predict, optimizer):
    for x in loader:
        fake = net(x)
        shown = predict(x)
        loss = predict(fake).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(shown.shape)
""",
    "what is not known may be a tensor also where numpy's numbers are multiplied with it": """
class Agent:
    def __init__(self, net: nn.Module, optimizer):
        self.net, self.optimizer, self.logs, self.rewards = net, optimizer, [], []

    def store(self, log_prob, reward):
        self.logs.append(log_prob)
        self.rewards.append(reward)

    def learn(self):
        returns = np.dot(0.9 ** np.arange(len(self.rewards)), self.rewards)
        loss = torch.cat([-log_prob * returns for log_prob in self.logs]).sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
""",
    "what one method collects for another, which empties it when it is used": """
from torch.distributions import Categorical

class Agent:
    def __init__(self, ids):
        self.saved = {}
        for i in ids:
            self.saved[find(i).id] = []
        self.policy = nn.Linear(3, 3)
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=1e-2)

    def select(self, i, state):
        drawn = Categorical(self.policy(state).softmax(-1))
        action = drawn.sample()
        self.saved[i].append(drawn.log_prob(action))
        return action.item()

    def finish(self, returns):
        drawn = []
        for i in self.saved:
            drawn.extend(self.saved[i])
        for i in self.saved:
            self.saved[i] = []
        losses = []
        for log_prob, value in zip(drawn, torch.tensor(returns)):
            losses.append(-log_prob * value)
        self.optimizer.zero_grad()
        torch.cat(losses).sum().backward()
        self.optimizer.step()

agent = Agent(load())
agent.finish(remote(agent))
""",
    "gradients that the program makes itself, beside an optimizer that adapts a copy": """
import copy

def adapt(learner, optimizer, loss_of, batches):
    for x, y in batches:
        optimizer.zero_grad()
        error = loss_of(learner(x), y)
        error.backward()
        optimizer.step()

def main(make, tasks, loss_of, steps):
    model = make()
    outer = torch.optim.SGD(model.parameters(), 1.0)
    for _ in range(steps):
        outer.zero_grad()
        for p in model.parameters():
            p.grad = torch.zeros_like(p)
        for task in tasks:
            learner = copy.deepcopy(model)
            adapt(learner, torch.optim.Adam(learner.parameters()), loss_of, task)
            for p, l in zip(model.parameters(), learner.parameters()):
                p.grad.add_(l.detach(), alpha=-1.0)
        outer.step()
""",
    "what trains as well is no evaluation, though an evaluation calls it": """
def adapt(model, batch):
    x, y = batch
    return F.cross_entropy(model(x), y)

def main(model: nn.Module, loader, tests):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in loader:
        loss = adapt(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

model = nn.Linear(3, 3)
main(model, load(), load())
""",
    "an optimizer that is unscaled may have more parameters than are seen": """
def optimizer_of(model, lr):
    groups = [], []
    for module in model.modules():
        for name, p in module.named_parameters(recurse=False):
            groups[name == "bias"].append(p)
    optimizer = torch.optim.SGD(groups[1], lr=lr)
    optimizer.add_param_group({"params": groups[0]})
    return optimizer

def train(make, loader, criterion, weights):
    model = make(weights)
    for p in model.parameters():
        p.requires_grad = True
    optimizer = optimizer_of(model, 0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=True)
    for x, y in loader:
        scaler.scale(criterion(model(x), y)).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=10.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
""",
    "all parameters train on one of several ways": """
def chosen(model: nn.Module, which):
    for param in model.parameters():
        param.requires_grad = False
    if which == "last":
        for param in model.head.parameters():
            param.requires_grad = True
    elif which == "all":
        for param in model.parameters():
            param.requires_grad = True
    return model
""",
    "a view of a parameter by which it is set up": """
class Detect(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(3, 6, 1)])
        for layer in self.layers:
            bias = layer.bias.view(3, -1)
            bias.data[:, 1] += 0.5
            layer.bias = nn.Parameter(bias.view(-1), requires_grad=True)

Detect()(torch.ones(1, 3, 4, 4))
""",
    "a stage that may be left out need not have parameters": """
from typing import Optional

class Runner:
    def __init__(self, session, resize: Optional[nn.Module] = None):
        self.session, self.resize = session, resize

    def __call__(self, image):
        image = image.float().cpu()
        if self.resize is not None:
            image = self.resize(image)
        return self.session.run(image.numpy())
""",
    "targets need not require grad beside a layer that does": """
def train(optimizer, loader, width):
    model = nn.Linear(3, 3)
    for p in model.parameters():
        p.requires_grad_(width > 3)
    for x, y in make(loader):
        out = model(x)
        loss = F.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    "what a module gave may be a distribution, and its mean no method": """
class Strategy(nn.Module):
    def __init__(self, base: nn.Module):
        super().__init__()
        self.base = base

    def forward(self, x, mask):
        return (self.base(x).mean * mask).sum(-1)
""",
    "weights that one call takes, changes where nobody sees and loads again": """
class Attribution:
    def __init__(self, model: nn.Module):
        self.model = model

    def attribute(self, x):
        self.original = self.model.state_dict()
        try:
            return self.with_other_weights(x)
        finally:
            self.restore()

    def with_other_weights(self, x):
        return change_weights(self, x)

    def restore(self):
        self.model.load_state_dict(self.original)
""",
    "callers reach what an object has put in a method's place": """
import functools

class Metric:
    def __init__(self):
        self._enable_grad = False
        self.update = self._wrap(self.update)

    def _wrap(self, update):
        @functools.wraps(update)
        def wrapped(*args, **kwargs):
            with torch.set_grad_enabled(self._enable_grad):
                update(*args, **kwargs)

        return wrapped

    def update(self):
        raise NotImplementedError


class Features(Metric):
    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net
        self.features = []

    def update(self, images):
        features = self.net(images)
        self.features.append(features)
""",
    "what goes into a module of which nothing is known need not require grad": """
def train(model, scaler, batches):
    wrapped = nn.parallel.DistributedDataParallel(model)
    for batch in batches:
        steps = split(batch)
        for number, step in enumerate(steps):
            loss, count = wrapped(step)
            scaler.scale(loss).backward()
""",
    "numpy's functions give numbers for numbers": """
class Scaled(nn.Module):
    def __init__(self, net, temperature):
        super().__init__()
        self.net, self.temperature = net, temperature
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        widths = self.linear(x)[..., :2]
        widths = widths * np.exp(self.temperature)
        if hasattr(self.net, "hidden_features"):
            widths /= np.sqrt(self.net.hidden_features)
        return widths
""",
    "an argument of a forward that is a module is not made there": """
class Decoder(nn.Module):
    def forward(self, x, head: nn.Linear, position: nn.Module):
        return head(x + position(x))
""",
    "a gradient comes through what einops arranges, and through functions that nobody knows": """
from einops import rearrange, reduce
from einops.layers.torch import Rearrange


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(dim)
        self.to_qkv = nn.Linear(dim, dim * 3)
        self.to_out = nn.Sequential(Rearrange("b h n d -> b n (h d)"), nn.Linear(dim, dim))

    def forward(self, x):
        x = self.norm(x)
        q, k, v = map(lambda t: rearrange(t, "b n (h d) -> b h n d", h=self.heads), self.to_qkv(x).chunk(3, dim=-1))
        out = (q @ k.transpose(-1, -2)).softmax(-1) @ v
        return self.to_out(out)


model = Attention(8, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
y = model(torch.randn(2, 4, 8))
z = unheard_of(reduce(y, "b n d -> b", "mean"))
with torch.no_grad():
    target = model(torch.randn(2, 4, 8))
opt.zero_grad()
(z.sum() + (y - target).pow(2).sum()).backward()
opt.step()
""",
    "a transform of images trains nothing": """
from torchvision import transforms as T

class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.crop, self.net = T.RandomResizedCrop(32), nn.Linear(3, 3)

    def forward(self, x):
        with torch.no_grad():
            target = self.net(self.crop(x))
        return (self.net(x) - target).pow(2).mean()

learner = Learner()
opt = torch.optim.SGD(learner.parameters(), lr=0.1)
loss = learner(torch.randn(2, 3))
opt.zero_grad()
loss.backward()
opt.step()
""",
    "what a function has made and hands out detached is nobody else's": """
class Predictor:
    def __init__(self, model: nn.Module):
        self.model = model

    def moments(self, x):
        mean = self.model(x).flatten()
        spread = mean.pow(2)
        return mean.detach(), spread.detach()

    def predict(self, x):
        mean, spread = self.moments(x)
        mean -= spread.sum() / 2
        return mean
""",
    "a buffer takes no part in a gradient": """
class Range(nn.Module):
    def __init__(self, low):
        super().__init__()
        self.register_buffer("low", torch.tensor(float(low)))

    def forward(self, x):
        if self.training:
            self.low.data = x.min()
        return x - self.low
""",
    "a layer that a forward has just made is set up": """
class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = None

    def set_up(self, x):
        layer = nn.Linear(x.shape[-1], 4, bias=False)
        layer.weight.data.zero_()
        self.inner = layer

    def forward(self, x):
        if self.inner is None:
            self.set_up(x)
        return self.inner(x)
""",
    "a target that is cut stands beside a baseline on the path where there is one": """
def baseline_loss(model, options, cost):
    baseline, loss = 0.0, 0.0
    net, value = options.pop("net", None), options.pop("value", None)
    if net is not None:
        baseline += net(cost.detach())
    elif value is not None:
        baseline += value
    if net is not None or value is not None:
        loss += torch.pow(cost.detach() - baseline, 2.0).sum()
    (loss + model(cost).sum()).backward()
""",
    "of what is not known it is not said that it was only given": """
def wake(joint, guide, insomnia):
    log_p, log_q = joint.scores(), guide.scores()
    weights = torch.stack(log_p) - torch.stack(log_q).detach()
    theta = -torch.logsumexp(weights, 0).sum()
    phi = -(weights.exp().detach() * torch.stack(log_q)).sum()
    (theta + insomnia * phi).backward()
""",
    "a ModuleList takes more modules by `+=`": """
class Mapping(nn.Module):
    def __init__(self, domains=2):
        super().__init__()
        self.heads = nn.ModuleList()
        for _ in range(domains):
            self.heads += [nn.Linear(4, 4)]

    def forward(self, x):
        return [head(x) for head in self.heads]
""",
    "of a list of which only the beginning is known the first is left out": """
class Block(nn.Module):
    def __init__(self, n, reps, start_with_relu=True, grow_first=True):
        super().__init__()
        self.skip, rep = nn.Linear(n, n), []
        if grow_first:
            rep += [nn.ReLU(inplace=True), nn.Linear(n, n)]
        for _ in range(reps - 1):
            rep.append(nn.ReLU(inplace=True))
            rep.append(nn.Linear(n, n))
        if not grow_first:
            rep.append(nn.ReLU(inplace=True))
            rep.append(nn.Linear(n, n))
        if not start_with_relu:
            rep = rep[1:]
        else:
            rep[0] = nn.ReLU(inplace=False)
        self.rep = nn.Sequential(*rep)

    def forward(self, x):
        y = self.rep(x)
        return y + self.skip(x)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Block(4, 2, start_with_relu=False)
        self.second = Block(4, 2, grow_first=False)

    def forward(self, x):
        return self.second(self.first(x))
""",
    "a list that was used one by one gives way to a new one": """
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.data = []
        self.layer = nn.Linear(4, 2)
        self.optimizer = torch.optim.Adam(self.parameters())

    def put(self, item):
        self.data.append(item)

    def train_net(self):
        total = 0
        self.optimizer.zero_grad()
        for reward, chance in self.data[::-1]:
            total = reward + total
            loss = -torch.log(chance) * total
            loss.backward()
        self.optimizer.step()
        self.data = []

def main(env):
    policy = Policy()
    for _ in range(100):
        state, done = env.reset(), False
        while not done:
            chances = policy.layer(torch.from_numpy(state).float())
            state, reward, done = env.step(chances.argmax().item())
            policy.put((reward, chances[0]))
        policy.train_net()
""",
    "a custom Function gives as many results as there are": """
import torch.distributed as dist

class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        output = [torch.zeros_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(output, x)
        return tuple(output)

    @staticmethod
    def backward(ctx, *gradients):
        together = torch.stack(gradients)
        dist.all_reduce(together)
        return together[dist.get_rank()]

def train(loader):
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in loader:
        y = torch.cat(Gather.apply(net(x)), dim=0)
        optimizer.zero_grad()
        (y - y.mean()).pow(2).mean().backward()
        optimizer.step()
""",
    "a function of numpy of two numbers gives a number": """
class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.temperature = np.power(width, 0.5)
        self.layer = nn.Linear(width, width)

    def forward(self, x):
        return self.layer(x) / self.temperature
""",
    "a tensor and an array give a tensor": """
class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.value, self.policy = nn.Linear(4, 1), nn.Linear(4, 2)
        self.optimizer = torch.optim.Adam(self.parameters())

    def advantage(self, state, reward):
        with torch.no_grad():
            value = self.value(state)
            return torch.tensor([1.0]) + value.numpy(), reward - value.numpy()

    def train_net(self, state, action, reward):
        target, advantage = self.advantage(state, torch.tensor(reward))
        loss = -(self.policy(state).gather(1, action) * advantage).mean()
        loss = loss + (self.value(state) - target).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
""",
    "an object that has a backward of its own is no tensor": """
class Trainer:
    def batch(self, x, model):
        loss = self.loss
        loss.evaluate(model(x))
        model.zero_grad()
        loss.backward()
        self.optimizer.step()

    def train(self, model, data):
        for x in data:
            self.batch(x, model)
""",
    "what runs again is in loops of its own": """
class Wrapper:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def step(self):
        self.optimizer.step()

class Trainer:
    def batch(self, x, model):
        loss = self.loss
        loss.evaluate(model(x))
        model.zero_grad()
        loss.backward()
        self.optimizer.step()

    def epochs(self, model, data):
        model.train(True)
        for x in data:
            self.batch(x, model)

    def train(self, model, data):
        self.optimizer = Wrapper(torch.optim.Adam(model.parameters()))
        self.epochs(model, data)
""",
    "what was asked for went through a module that is not known": """
net, first = nn.Linear(4, 1), nn.Linear(4, 4)

def penalty(real):
    x = real.detach().requires_grad_(True)
    out = net(block(first(x)).view(-1, 4))
    return torch.autograd.grad(out.sum(), x, create_graph=True)[0].norm()

penalty(torch.ones(4)).backward()
""",
    "a module that computes its weight lists it no more": """
class Normed(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        w = getattr(self.module, "weight")
        bar = nn.Parameter(w.data)
        del self.module._parameters["weight"]
        self.module.register_parameter("weight_bar", bar)

    def forward(self, x):
        w = getattr(self.module, "weight_bar")
        setattr(self.module, "weight", w / w.norm())
        return self.module.forward(x)

net = Normed(nn.Linear(4, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(4, requires_grad=True)
gradient = torch.autograd.grad(net(x).sum(), x, create_graph=True)[0]
optimizer.zero_grad()
(gradient.norm() - 1).pow(2).backward()
optimizer.step()
""",
    "one of several models is loaded with the first": """
class Pool:
    def __init__(self, n):
        self.nets = [nn.Linear(4, 4) for _ in range(n)]
        self.optimizer = torch.optim.Adam(self.nets[0].parameters())

    def share(self, n):
        for i in range(1, n):
            self.nets[i].load_state_dict(self.nets[0].state_dict())

    def train(self, loader):
        for x in loader:
            self.optimizer.zero_grad()
            self.nets[0](x).mean().backward()
            self.optimizer.step()
            self.share(4)
""",
    "an average that begins as the model itself is loaded with it": """
class Gan(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.average = nn.Linear(4, 4), nn.Linear(4, 4)
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.fresh = is_fresh
        self.reset()

    def mean(self, old, new):
        if self.fresh():
            return new
        return old * 0.9 + new * 0.1

    def follow(self):
        for old, new in zip(self.average.parameters(), self.net.parameters()):
            old.data = self.mean(old.data, new.data)

    def reset(self):
        self.average.load_state_dict(self.net.state_dict())

def train(loader):
    gan = Gan()
    for number, x in enumerate(loader):
        gan.optimizer.zero_grad()
        gan.net(x).mean().backward()
        gan.optimizer.step()
        gan.follow()
        if number < 2:
            gan.reset()
""",
    "an array that is put back where it came from": """
def clip(model, bound):
    for p in model.parameters():
        rate = p.rate.numpy()
        rate[np.nonzero(rate > bound)] = bound
        p.rate = torch.from_numpy(rate).type(torch.FloatTensor)

net = nn.Linear(2, 2)
for p in net.parameters():
    p.rate = 0 * p.detach()
for p in net.parameters():
    p.rate = p.rate / 2
clip(net, 0.5)
""",
    "a loss runs the network that it is made with in eval mode": """
class Perceptual(nn.Module):
    def __init__(self, kind, layers, weights):
        super().__init__()
        self.model = vgg(layers) if kind else alexnet(layers)
        self.layers, self.weights, self.criterion = layers, weights, nn.L1Loss()

    def forward(self, inp, target):
        self.model.eval()
        loss = 0
        for scale in range(3):
            given, wanted = self.model(inp), self.model(target)
            for layer, weight in zip(self.layers, self.weights):
                loss += weight * self.criterion(given[layer], wanted[layer].detach())
        return loss.float()
""",
    "a parameter that is computed of another under a longer name is not the one that was deleted": """
class Normed(nn.Module):
    def __init__(self, module, name="weight"):
        super().__init__()
        self.module, self.name = module, name
        if not self._made():
            self._make()

    def _made(self):
        try:
            getattr(self.module, self.name + "_bar")
            return True
        except AttributeError:
            return False

    def _make(self):
        w = getattr(self.module, self.name)
        del self.module._parameters[self.name]
        self.module.register_parameter(self.name + "_bar", nn.Parameter(w.data))

    def forward(self, x):
        setattr(self.module, self.name, getattr(self.module, self.name + "_bar") * 2)
        return self.module.forward(x)

net = nn.Sequential(Normed(nn.Linear(3, 4)), nn.ReLU(), Normed(nn.Linear(4, 1)))
optimizer = torch.optim.Adam(net.parameters())
for x in loader:
    optimizer.zero_grad()
    net(x).mean().backward()
    optimizer.step()
    point = torch.autograd.Variable(x.data * 2, requires_grad=True)
    out = net(point)
    slope = torch.autograd.grad(out, point, torch.ones(out.size()), create_graph=True)[0]
    optimizer.zero_grad()
    ((slope.norm(2, 1) - 1) ** 2).mean().backward()
    optimizer.step()
""",
    "a part with parameters of its own of a network that is only looked through": """
class Start(nn.Module):
    def __init__(self):
        super().__init__()
        self.input = nn.Parameter(torch.randn(1, 4))

    def forward(self, x):
        return self.input.repeat(x.shape[0], 1)

class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.start, self.layer = Start(), nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(self.start(x) + x)

g = Generator().requires_grad_(True)
latent = torch.randn(2, 4, requires_grad=True)
optimizer = torch.optim.Adam([latent])
for x in loader:
    loss = F.mse_loss(g(latent), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "a weight that may learn itself makes a term of what was detached": """
class Agent:
    def __init__(self, model, optimizer, alpha):
        self.model, self.optimizer, self.alpha = model, optimizer, alpha

    def update(self, x):
        score = self.model(x)
        loss = (self.alpha.detach() * score).mean() + (self.alpha * score.detach()).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

net, alpha = nn.Linear(3, 1), make()
optimizer = torch.optim.Adam([*net.parameters(), alpha])
for x in loader:
    score = net(x)
    loss = score.mean() + (alpha * score.detach()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "a parameter that is frozen while its values are set, and others that are frozen instead": """
def prune(layer, index):
    kept = layer.weight.index_select(0, index).detach().clone()
    new = nn.Linear(3, 4)
    new.weight.requires_grad = False
    new.weight.copy_(kept)
    new.weight.requires_grad = True
    return new

class Heads:
    def __init__(self, count):
        self.heads = nn.ModuleList()
        for _ in range(count):
            self.heads.append(nn.Linear(3, 1))

    def choose(self, task):
        for i, head in enumerate(self.heads):
            if i > task:
                for p in head.parameters():
                    p.requires_grad = False
            else:
                for p in head.parameters():
                    p.requires_grad = True
""",
    "one of two optimizers is made, and made anew later": """
class Prompted:
    def __init__(self, args):
        self.args = args
        self.backbone, self.prompt = nn.Linear(3, 3), nn.Linear(3, 1)
        self.optimizer = self.make()

    def make(self):
        options = {"params": list(self.prompt.parameters()), "lr": self.args.lr}
        if self.args.optimizer == "sgd":
            optimizer = torch.optim.SGD(**options)
        else:
            optimizer = torch.optim.Adam(**options)
        return optimizer

    def begin(self):
        self.optimizer = self.make()

    def observe(self, x):
        self.optimizer.zero_grad()
        loss = self.prompt(self.backbone(x)).mean()
        loss.backward()
        self.optimizer.step()

def main(args):
    model = Prompted(args)
    for task in range(5):
        model.begin()
        for x in args.loader:
            model.observe(x)
""",
    "slots of a list that a function fills for itself": """
def distance(a, b):
    b = b.softmax(1)
    if a.size(1) > b.size(1):
        b = torch.cat([b, torch.zeros(1, a.size(1) - b.size(1))], dim=1)
    return (-b * a.log_softmax(1)).sum(1).mean()

class Learner(nn.Module):
    def __init__(self, hard):
        super().__init__()
        self.net, self.hard = nn.Linear(3, 4), hard

    def learn(self, xs, ys, scores, at_once):
        total = [None] * len(xs)
        labels = [None] * len(xs)
        soft = [None] * len(xs)
        for i in range(len(xs)):
            out = self.net(xs[i])
            if ys is not None and ys[i] is not None:
                labels[i] = F.cross_entropy(out, ys[i])
            if scores is not None and scores[i] is not None:
                soft[i] = distance(out, scores[i])
            if self.hard == "hard":
                total[i] = labels[i]
            elif self.hard == "soft":
                total[i] = soft[i]
            if at_once:
                (total[i] / len(xs)).backward()
        return sum(total)
""",
    "modules that are registered under names that are put together": """
class Block(nn.Module):
    def __init__(self, a, b, act):
        super().__init__()
        self.layers = [nn.Linear(a, b), act]
        for i, layer in enumerate(self.layers):
            self.add_module(str(i), layer)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

class Head(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = []
        for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
            layer = Block(a, b, nn.ReLU())
            self.layers.append(layer)
            self.add_module(f"layer_{i}", layer)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
""",
    "a meter that takes nothing but numbers": """
import collections

class Meter:
    def __init__(self):
        self.window = collections.deque(maxlen=20)

    def update(self, **values):
        for name, value in values.items():
            if isinstance(value, torch.Tensor):
                value = value.item()
            assert isinstance(value, (float, int))
            self.window.append(value)

def train(model, criterion, loader, optimizer):
    model.train()
    criterion.train()
    meter = Meter()
    for x, y in loader:
        losses = criterion(model(x), y)
        weights = criterion.weights
        loss = sum(losses[k] * weights[k] for k in losses.keys() if k in weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update(error=losses["error"])
""",
    "a measure that is taken where its callers have turned grad mode off": """
class Distance:
    def __init__(self):
        self.total = 0
        self.net = metrics.Perceptual("alex").eval()

    def update(self, a, b):
        self.total += self.net(a, b).item()

class Trainer:
    def __init__(self, model, metrics):
        self.model, self.metrics = model, metrics

    def evaluate(self, loader):
        self.model.eval()
        with torch.no_grad():
            for x, y in loader:
                out = self.model(x)
                for metric in self.metrics:
                    metric.update(out, y)
""",
    "a model whose forward takes a gradient cannot be evaluated without": """
class Unrolled(nn.Module):
    def __init__(self, energy):
        super().__init__()
        self.energy = energy

    def forward(self, x):
        y = torch.zeros(x.size(0), 10, requires_grad=True)
        inner = differentiable(torch.optim.SGD([y], lr=0.1), [y])
        for _ in range(5):
            (y,) = inner.step(self.energy(x, y).sum(), params=[y])
        return y

def test(model, loader):
    model.eval()
    right = 0
    for x, y in loader:
        right += model(x).argmax(1).eq(y).sum().item()
    return right

if __name__ == "__main__":
    energy = Energy()
    test(Unrolled(energy), load())
""",
    "a helper of a pipeline that runs without grad mode": """
class Pipeline:
    def __init__(self):
        self.vae = nn.Sequential(nn.Conv2d(4, 8, 1), nn.Conv2d(8, 3, 1))

    def decode(self, latents):
        image = (self.vae(latents) / 2 + 0.5).clamp(0, 1)
        return image.cpu().permute(0, 2, 3, 1).float().numpy()

    @torch.no_grad()
    def __call__(self, latents):
        return self.vae(latents)
""",
    "what is collected and emptied when it was used, though not all of it was": """
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.action, self.value = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)
        self.saved, self.rewards = [], []

    def forward(self, x):
        x = self.body(x).relu()
        return self.action(x).softmax(-1), self.value(x)

policy = Policy()
optimizer = torch.optim.Adam([*policy.body.parameters(), *policy.action.parameters()])

def act(state):
    chances, value = policy(state)
    choice = torch.distributions.Categorical(chances)
    action = choice.sample()
    policy.saved.append((choice.log_prob(action), value))
    return action.item()

def finish():
    loss = [-chance * reward for (chance, _), reward in zip(policy.saved, policy.rewards)]
    optimizer.zero_grad()
    torch.stack(loss).sum().backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved[:]

for episode in range(100):
    state = env.reset()
    for t in range(1000):
        state, reward, done = env.step(act(state))
        policy.rewards.append(reward)
        if done:
            break
    finish()
""",
    "what architectures are weighted by is handed out in a list": """
class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.alphas = torch.randn(3, requires_grad=True)
        self._architecture = [self.alphas]

    def forward(self, x):
        return self.layer(x) * self.alphas.softmax(0)

    def architecture(self):
        return self._architecture

net = Network()
net(torch.ones(2, 3)).sum().backward()
""",
    "slots of states of which each takes the place of the one before": """
def cut(h):
    return h.detach()

def train(model, optimizer, data, small):
    hidden = [model.start(small) for _ in range(4)]
    for xs, ys in data:
        optimizer.zero_grad()
        start, slot = 0, 0
        while start < 4 * small:
            x, y = xs[start : start + small], ys[start : start + small]
            hidden[slot] = cut(hidden[slot])
            out, hidden[slot] = model(x, hidden[slot])
            F.cross_entropy(out, y).backward()
            slot += 1
            start += small
        optimizer.step()
""",
    "a framework trains in grad mode, whatever the script has left": """
import pytorch_lightning as pl

class Sampler(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 3)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())

    def training_step(self, batch, index):
        return self.net(batch).mean()

torch.set_grad_enabled(False)
""",
    "a private helper that only methods without grad mode call": """
class Video(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(3, 3)
        self.seen = []

    @torch.inference_mode()
    def propagate(self, frames):
        for frame in frames:
            self.seen.append(self._encode(frame))

    def _encode(self, frame):
        return self.encoder(self.seen[-1] * frame)
""",
    "parameters that are put together are another tensor": """
class Search:
    def __init__(self, actor):
        self.actor = actor

    def flat(self, model):
        found = []
        for p in model.parameters():
            found.append(p.data.view(-1))
        return torch.cat(found)

    def write(self, model, values):
        at = 0
        for p in model.parameters():
            p.data.copy_(values[at : at + p.numel()].view(p.size()))
            at += p.numel()

    def update(self, step):
        before = self.flat(self.actor)
        self.write(Actor(), before)
        for i in range(10):
            self.write(self.actor, before + 0.5**i * step)
            if self.better():
                return
        self.write(self.actor, before)
""",
    "weights that each forward multiplies by the same mask": """
class Masked(nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 3)
        self.register_buffer("mask", mask[None, None])

    def forward(self, x):
        self.conv.weight.data *= self.mask
        return self.conv(x)

net = Masked(torch.ones(3, 3))
optimizer = torch.optim.Adam(net.parameters())
for x in loader:
    loss = net(x).mean() + net(x + 1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "numpy makes a number of numbers": """
class Matcher(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.depth, self.score = depth, nn.Linear(3, 1)

    def threshold(self, i):
        return np.clip(0.8 + 0.1 * np.exp(-4.0 * i / self.depth), 0, 1)

    def forward(self, x):
        score = self.score(x)
        for i in range(self.depth):
            if (score < self.threshold(i)).any():
                break
        return score
""",
    "a block that takes the place of another and loads what that had": """
class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

class Fast(Slow):
    pass

def swap(stack):
    for module in stack.modules:
        for i in range(len(module.blocks)):
            if isinstance(module.blocks[i], Slow):
                old = module.blocks[i]
                module.blocks[i] = Fast()
                module.blocks[i].load_state_dict(old.state_dict(), strict=True)
""",
    "what keeps the graph had another name once": """
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for x in loader:
    optimizer.zero_grad()
    out = net(x)
    out.mean().backward(retain_variables=True)
    out.sum().backward()
    optimizer.step()
""",
    "all are frozen, and the first is to train": """
class Heads(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.count = count
        self.weights = nn.ParameterList([nn.Parameter(torch.Tensor(3, 3)) for _ in range(count)])
        self.fill()
        self.weights[0].requires_grad = True

    def fill(self):
        for i in range(self.count):
            self.weights[i].data.uniform_(-1, 1)
            self.weights[i].requires_grad = False

heads = Heads(settings.count)
""",
    "a term that is one of very many": """
def distil(loader, modules, criteria, optimizer, opt):
    for module in modules:
        module.train()
    modules[-1].eval()
    if opt.kind == "a":
        modules[1].eval()
    elif opt.kind == "b":
        modules[2].eval()
    for x, y in loader:
        features, out = modules[0](x, is_feat=True)
        with torch.no_grad():
            wanted, _ = modules[-1](x, is_feat=True)
        if opt.kind == "c":
            term = 0
"""
    + "".join(
        f"""        elif opt.kind == "{k}":
            term = sum(criteria[{n}](features[{n}], wanted[{n}]))
"""
        for n, k in enumerate("defghijklm")
    )
    + """        elif opt.kind == "n":
            term = criteria[2](modules[1](features[-1]), modules[2](wanted[-1]))
        else:
            term = criteria[3](modules[1](features[-2]), modules[2](wanted[-2], is_factor=True))
        loss = criteria[0](out, y) + opt.beta * term
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    "what clears stands where every other pass goes on early, or clears after each step": """
def by_two(model, loader, optimizer, criterion):
    for i, (x, y) in enumerate(loader):
        if i % 2 == 0:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            continue
        criterion(model(x), y).backward()
        optimizer.step()

def after_each(model, loader, optimizer, criterion):
    for i, (x, y) in enumerate(loader):
        criterion(model(x), y).backward()
        if i % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
            continue
        print(i)
""",
    "what was made for one method is another tensor only where something asks for its gradient": """
class Sum(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        mask = torch.ones(x.shape[0], 1).to(x.device)
        kept = mask.to(x.dtype)
        total = torch.zeros(x.shape).to(x.device)
        total += self.layer(x)
        return total, mask.numpy(), kept.numpy()

total, mask, kept = Sum()(torch.rand(2, 3))
""",
    "a module that says only what its call gives is called all the same": """
class Policy(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder, self.head = encoder, nn.Linear(3, 2)

    def forward(self, x):
        return torch.distributions.Categorical(logits=self.head(self.encoder(x)))

    def __call__(self, x) -> torch.distributions.Categorical:
        return super().__call__(x)

def update(policy: Policy, optimizer, x):
    chances = policy(x)
    loss = -(chances.logits * chances.probs).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return chances.sample().numpy()
""",
    "what is put into eval mode for one call is trained by all the same, or goes back to a caller who may": """
class Model:
    def __init__(self, network, optimizer):
        self.network, self.optimizer = network, optimizer

    def run(self):
        self.network.eval()
        self.output = self.network(self.given)
        self.network.train()

    def fit(self):
        self.run()
        self.optimizer.zero_grad()
        self.output.mean().backward()
        self.optimizer.step()

def features(network, x):
    network.eval()
    out = network(x)
    network.train()
    return out
""",
    "a method that is left to others gives what is not known": """
class Base(nn.Module):
    def forward(self, x):
        raise NotImplementedError

class Trainer:
    def __init__(self, model: Base, optimizer):
        self.model, self.optimizer = model, optimizer

    def fit(self, loader):
        seen = []
        for batch in loader:
            given = self.model(batch)
            self.optimizer.zero_grad()
            given.loss.backward()
            self.optimizer.step()
            seen.append(given.count)
        return seen
""",
}


@pytest.mark.parametrize("sentence", SILENT)
def test_what_real_code_does_is_not_told(sentence: str) -> None:
    """No warning and no error."""
    analysis = analyze(Source("main.py", HEAD + SILENT[sentence]), Config())
    assert [] == [d.message for d in analysis.diagnostics if d.severity.value != "info"]


def test_what_ends_a_cell_is_shown() -> None:
    """The value of a cell's last line is looked at; what is dropped before it is told of."""
    cells = ["import torch\nx = torch.randn(3)", "x.abs()", "x.abs()\nprint(x)", "x.exp()"]
    analysis = analyze(CellSource("nb.ipynb", cells), Config())
    assert [("call-forgotten", 4)] == [
        (d.rule.name, analysis.source.row_column(d.span.start)[0]) for d in analysis.diagnostics
    ]


def test_a_part_of_itself_is_no_way_without_end() -> None:
    """What earlier iterations have made is one for all, and may be a part of itself."""
    node = Node(PART, ast.Pass(), frozenset({9}), NOTHING, NOTHING)
    machine: Any = SimpleNamespace(cells={node_key(9): node})
    retention: Any = None
    assert not Chains(machine, retention)._is_joined(node)


def test_containers_in_containers_take_no_long_time() -> None:
    """What is in one is looked at once, however many ways lead there."""
    text = f"{HEAD}\ndef nest(shared):\n    kept = torch.ones(3, requires_grad=True) * 2{LAYERS}\n    return shared\n\nnest({{'a': torch.ones(2)}})\n"
    start = time.process_time()
    analyze(Source("main.py", text), Config())
    assert time.process_time() - start < 20
