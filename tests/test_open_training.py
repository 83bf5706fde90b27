"""Training steps and evaluation in code whose models and optimizers come from elsewhere."""

import pytest

from gradvet.analysis import analyze
from gradvet.autograd.memory.values import Layer, join_cells
from gradvet.config import Config
from gradvet.text import Source

HEAD = "import copy\nimport torch\nimport torch.nn.functional as F\nfrom torch import Tensor, nn\n"
MAIN, LIBRARY = "/project/main.py", "/project/library.py"
WRAPPER = """
import torch
from torch.optim import Optimizer

class Wrapper:
    def __init__(self, optim: Optimizer):
        self._optim = optim

    def zero_grad(self):
        self._optim.zero_grad()

    def step(self):
        self._optim.step()
"""

TOLD = {
    "terms in a dict, of all of which the loss is the weighted sum, that are kept by name": (
        """
class Trainer:
    def __init__(self, model, heads, optimizer, weights):
        self.model, self.heads, self.optimizer, self.weights = model, heads, optimizer, weights
        self.history = {name: [] for name in heads}

    def step(self, batch):
        features = self.model(batch["x"])
        parts = {name: head.loss(features, batch[name]) for name, head in self.heads.items()}
        total = sum(self.weights[name] * part for name, part in parts.items())
        self.optimizer.zero_grad()
        total.backward()
        self.optimizer.step()
        for name, part in parts.items():
            self.history[name].append(part)  # graph-retained

    def fit(self, loader):
        for batch in loader:
            self.step(batch)
"""
    ),
    "two terms that are added up by sum": (
        """
def train(model, one, other, optimizer, loader):
    history = []
    for x, y in loader:
        features = model(x)
        parts = [one(features, y), other(features, y)]
        optimizer.zero_grad()
        sum(parts).backward()
        optimizer.step()
        history.append(parts)  # graph-retained
    return history
"""
    ),
    "an advantage that is summed up backwards from values, each of which the critic's loss trains": (
        """
def advantages(rewards, values, last, gamma=0.99):
    values, out, total = values + [last], [], 0.0
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + gamma * values[t + 1] - values[t]
        total = delta + 0.95 * gamma * total
        out.insert(0, total)
    return torch.stack(out)

def train(env, net, optimizer, updates):
    obs = env.reset()
    for _ in range(updates):
        chances, values, rewards = [], [], []
        for _ in range(32):
            dist, value = net(obs)
            action = dist.sample()
            obs, reward = env.step(action.numpy())
            chances.append(dist.log_prob(action))
            values.append(value.squeeze(-1))
            rewards.append(torch.as_tensor(reward))
        with torch.no_grad():
            last = net(obs)[1].squeeze(-1)
        gae = advantages(rewards, values, last)
        returns = gae.detach() + torch.stack(values).detach()
        loss = -(torch.stack(chances) * gae).mean()  # target-not-detached
        loss = loss + 0.5 * F.mse_loss(torch.stack(values), returns)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
    ),
    "an advantage that is brought to one scale, and a critic's loss that is its square": (
        """
def train(actor, critic, optimizer, loader):
    for obs, action, reward in loader:
        dist, error = actor(obs), reward - critic(obs)
        scaled = (error - error.mean()) / (error.std() + 1e-8)
        loss = error.pow(2).mean() - (dist.log_prob(action) * scaled).mean()  # target-not-detached
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
    ),
    "a loop that comes to no rest, in which backward and step stand together and nothing clears": (
        """
def train(model, optimizer, loader, criterion, meter):
    a = b = c = d = e = g = h = None
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()  # zero-grad-missing
        optimizer.step()
        a, b, c, d, e, g, h = loss.detach(), a, b, c, d, e, g
        meter.update(a, h)
"""
    ),
    "a step between the clear and the backward, of an optimizer that is handed over": (
        """
class Agent:
    def __init__(self, actor, actor_optim):
        self.actor, self.actor_optim = actor, actor_optim

    def update(self, batch):
        loss = self.actor(batch).mean()
        self.actor_optim.zero_grad()
        self.actor_optim.step()  # step-before-backward
        loss.backward()
        return loss.item()
"""
    ),
    "a clear between the backward and the step": (
        """
class Agent:
    def __init__(self, actor, actor_optim):
        self.actor, self.actor_optim = actor, actor_optim

    def update(self, batch):
        loss = self.actor(batch).mean()
        loss.backward()
        self.actor_optim.zero_grad()  # zero-grad-misplaced
        self.actor_optim.step()
        return loss.item()
"""
    ),
    "of two optimizers that make steps, one does not clear what the other uses": (
        """
class Agent:
    def __init__(self, actor, critic, actor_optim, critic_optim):
        self.actor, self.critic = actor, critic
        self.actor_optim, self.critic_optim = actor_optim, critic_optim

    def update(self, batches):
        for batch in batches:
            critic_loss = self.critic(batch).pow(2).mean()
            critic_loss.backward()  # zero-grad-missing
            self.critic_optim.step()
            actor_loss = -self.critic(self.actor(batch)).mean()
            self.actor_optim.zero_grad()
            actor_loss.backward()
            self.actor_optim.step()
"""
    ),
    "an optimizer of one of two kinds": (
        """
class Agent:
    def __init__(self, policy, shared):
        self.policy = policy
        if shared:
            self.optimizer = torch.optim.Adam(policy.parameters())
        else:
            self.optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)

    def update(self, batches):
        for batch in batches:
            loss = self.policy.loss(batch)
            loss.backward()
            self.optimizer.zero_grad()  # zero-grad-misplaced
            self.optimizer.step()
"""
    ),
    "an optimizer that is saved is no module": (
        """
class Trainer:
    def __init__(self, model, accelerator, dl):
        self.accelerator, self.dl = accelerator, dl
        self.opt = torch.optim.Adam(model.parameters())
        self.model, self.opt = accelerator.prepare(model, self.opt)

    def save(self):
        return {"opt": self.opt.state_dict()}

    def train(self):
        for x in self.dl:
            loss = self.model(x)
            self.accelerator.backward(loss)  # zero-grad-missing
            self.opt.step()
"""
    ),
    "what is None at first may be something when it is used": (
        """
class Strategy:
    def __init__(self, model, optimizer):
        self.model, self.optimizer, self.loader = model, optimizer, None

    def epoch(self):
        assert self.loader is not None
        for x, y in self.loader:
            loss = F.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            self.optimizer.step()  # step-before-backward
            loss.backward()
"""
    ),
    "a model from elsewhere that is evaluated over batches": (
        """
class Model:
    def __init__(self, network):
        self.network = network

    def evaluate(self, loader):
        network, total = self.network, 0.0
        network.eval()
        for batch in loader:
            inputs = {"x": batch[0], "labels": batch[1]}
            outputs = network(**inputs)  # eval-with-grad
            total += outputs[0].item()
        return total
"""
    ),
    "also where a helper runs it": (
        """
def run(model, batch):
    return model(**batch)

def predict(network, loader):
    network.eval()
    found = []
    for batch in loader:
        found.append(run(network, batch).argmax(1).tolist())  # eval-with-grad
    return found
"""
    ),
    "a loss that may be any of many, of criteria and settings, and is added up": (
        """
class Net(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base, self.head = base, nn.Linear(3, 2)

    def forward(self, x):
        outputs = self.base(x)
        return (self.head(outputs[1]),) + outputs[2:]

class Trainer:
    def __init__(self, base, kind, args):
        self.model, self.args = Net(base), args
        if kind == "many":
            self.criterion = nn.BCEWithLogitsLoss()
        elif kind == "number":
            self.criterion = nn.MSELoss()
        else:
            self.criterion = nn.CrossEntropyLoss()

    def train(self, optimizer, loader):
        total = 0.0
        for x, y in loader:
            if self.args.half:
                loss = self.model(x)[0]
            else:
                loss = self.criterion(self.model(x)[0], y)
            if self.args.devices > 1:
                loss = loss.mean()
            if self.args.every > 1:
                loss = loss / self.args.every
            loss.backward()
            total += loss  # graph-retained
            optimizer.step()
            self.model.zero_grad()
        return total
"""
    ),
    "what lies first in what a wrapped model gives is the loss": (
        """
class Trainer:
    def __init__(self, network, parallel):
        self.network = network
        self.wrapped = nn.parallel.DistributedDataParallel(network) if parallel else None

    def train(self, loader, optimizer, scaler, parallel):
        total = 0.0
        for batch in loader:
            optimizer.zero_grad()
            if parallel:
                loss, _ = self.wrapped(batch)
            else:
                loss, _ = self.network.forward_loss(batch)
            total += loss  # graph-retained
            self._backward(scaler.scale(loss))
            scaler.step(optimizer)
            scaler.update()
        return total

    def _backward(self, loss):
        loss.backward()
"""
    ),
    "what clears only where a pass is given up": (
        """
def train(model, loader, optimizer, criterion, every):
    for epoch in range(3):
        last = -1
        for i, (x, y) in enumerate(loader):
            try:
                loss = criterion(model(x), y)
                loss.backward()  # zero-grad-missing
            except RuntimeError:
                optimizer.zero_grad()
                break
            if i - last >= every:
                optimizer.step()
                last = i
"""
    ),
    "a model whose base class leaves its forward to others": (
        """
class Base(nn.Module):
    def forward(self, x):
        \"\"\"What a model gives.\"\"\"
        raise NotImplementedError()

class Trainer:
    model: Base

    def __init__(self, model: Base, optimizer):
        self.model, self.optimizer = model, optimizer

    def fit(self, loader):
        total = 0.0
        for batch in loader:
            given = self.model(batch)
            self.optimizer.zero_grad()
            given.loss.backward()
            self.optimizer.step()
            total += given.loss  # graph-retained
        return total
"""
    ),
    "a method that needs what another has counted": (
        """
class Agent:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.seen = self.first = 0
        self.past = {}

    def update(self):
        assert self.first < self.seen
        loss = self.model(self.past[self.first]).mean()
        self.optimizer.zero_grad()
        self.optimizer.step()  # step-before-backward
        loss.backward()
        self.first = self.seen

    def observe(self, seen, done):
        self.seen += 1
        self.past[self.seen - 1] = seen
        if done:
            self.update()
"""
    ),
    "what has the name of a method of tensors, in a target that a network gives": (
        """
class Agent:
    def __init__(self, model: nn.Module, target: nn.Module, optimizer):
        self.model, self.target, self.optimizer = model, target, optimizer

    def update(self, now, later, reward):
        goal = reward + 0.9 * self.target(later).max  # target-not-detached
        loss = F.mse_loss(self.model(now).values, goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
"""
    ),
    "what is put into eval mode for one call, whose result is stored, and back": (
        """
class Model:
    def __init__(self, network, optimizer):
        self.network, self.optimizer = network, optimizer

    def test(self):
        self.network.eval()
        self.output = self.network(self.given)  # eval-with-grad
        self.network.train()

    def look(self):
        return self.output.detach().cpu()
"""
    ),
}

TOLD |= {
    "what several networks give, of which one is used, is one thing": (
        """
class Model:
    def __init__(self, kind, args):
        self.args = args
        if kind == "a":
            self.model = load_a(args)
        elif kind == "b":
            self.model = load_b(args)
        elif kind == "c":
            self.model = load_c(args)
        else:
            self.model = load_d(args)

    def fit(self, loader, optimizer, scaler):
        model, args, total = self.model, self.args, 0.0
        for batch in loader:
            if args.half:
                with torch.autocast("cuda"):
                    loss = model(**batch)[0]
            else:
                loss = model(**batch)[0]
            if args.several:
                loss = loss.mean()
            if args.steps > 1:
                loss = loss / args.steps
            if args.half:
                scaler.scale(loss).backward()
            else:
                loss.backward()
            total += loss  # graph-retained
            optimizer.step()
            model.zero_grad()
        return total
"""
    ),
    "an attribute of a class that extends one from elsewhere is one thing, wherever it is used": (
        """
from somewhere import Base

class Classifier(Base):
    def predict(self, loader):
        self.network.eval()
        found = []
        for batch in loader:
            output, _ = self.network(batch)  # eval-with-grad
            found.append(nn.Softmax(dim=1)(output).cpu().numpy())  # numpy-on-grad
        return found
"""
    ),
    "a class inside a class is run as any other": (
        """
class Algorithm:
    class Wrapped:
        def __init__(self, optimizer: torch.optim.Optimizer):
            self.optimizer = optimizer

        def step(self, loss: Tensor) -> None:
            self.optimizer.zero_grad()
            self.optimizer.step()  # step-before-backward
            loss.backward()
"""
    ),
    "what alone is told to clear clears for the only optimizer": (
        """
class Trainer:
    def __init__(self, model, optimizer, criterion):
        self.model, self.optimizer, self.criterion = model, optimizer, criterion

    def inner(self, xs, ys):
        for x, y in zip(xs, ys):
            self.model.zero_grad()
            loss = self.criterion(self.model(x), y)
            self.optimizer.step()  # step-before-backward
            loss.backward()
"""
    ),
    "a model that is evaluated by its forward": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 2)

    def forward(self, x):
        return self.out(x)

def score(loader, criterion):
    net, total = Net(), 0.0
    net.eval()
    for x, y in loader:
        total += criterion(net.forward(x), y).item()  # eval-with-grad
    return total
"""
    ),
    "a step between the clear and the backward, in a function that makes its optimizer": (
        """
def attack(model, batch, target, criterion):
    copied = copy.deepcopy(model)
    optimizer = torch.optim.SGD(copied.parameters(), lr=0.1)
    optimizer.zero_grad()
    loss = criterion(copied(batch), target)
    optimizer.step()  # step-before-backward
    loss.backward()
    return copied(batch)
"""
    ),
    "what drops the gradients of one of two optimizers is told, though the other uses them": (
        """
class Agent:
    def __init__(self, actor, actor_optim, alpha_optim):
        self.actor, self.actor_optim, self.alpha_optim = actor, actor_optim, alpha_optim

    def update(self, batches):
        for batch in batches:
            loss = self.actor(batch).mean()
            self.alpha_optim.zero_grad()
            loss.backward()
            self.actor_optim.zero_grad()  # zero-grad-misplaced
            self.actor_optim.step()
            self.alpha_optim.step()
"""
    ),
    "one of two optimizers is made, and nothing clears its gradients": (
        """
class Agent:
    def __init__(self, policy, value):
        self.policy, self.value = policy, value
        if self.policy is self.value:
            self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=1e-3)
        else:
            self.optimizer = torch.optim.Adam([*self.policy.parameters(), *self.value.parameters()], lr=1e-3)

    def update(self, batches):
        for batch in batches:
            loss = self.policy(batch).mean() + self.value(batch).mean()
            loss.backward()  # zero-grad-missing
            self.optimizer.step()
"""
    ),
    "an optimizer that is made elsewhere of a model of the file": (
        """
from library import get_optimizer

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 2)

    def forward(self, x):
        return self.out(x)

def train(loader):
    net = Net()
    optimizer = get_optimizer("adam", net)
    for x, y in loader:
        F.cross_entropy(net(x), y).backward()  # zero-grad-missing
        optimizer.step()
"""
    ),
    "a setting decides between two ways, of which one clears": (
        """
def train(model, loader, optimizer, args):
    for x, y in loader:
        if args.parts == 1:
            loss = model(x, y)
            loss.backward()  # zero-grad-missing
        else:
            optimizer.zero_grad()
            for part, target in zip(x.chunk(args.parts), y.chunk(args.parts)):
                loss = model(part, target)
                loss.backward()
        optimizer.step()
"""
    ),
    "what torch is given between the clear and the step is no backward": (
        """
def update(model, optimizer, batches):
    for batch in batches:
        loss = model(batch).mean()
        loss.backward()
        optimizer.zero_grad()  # zero-grad-misplaced
        gradients = torch.cat([p.grad.view(-1) for p in model.parameters() if p.grad is not None])
        torch.distributed.all_reduce(gradients)
        optimizer.step()
"""
    ),
    "plugins that are only handed options": (
        """
class Strategy:
    def __init__(self, model, optimizer, plugins):
        self.model, self.optimizer, self.plugins = model, optimizer, plugins

    def train(self, loader, **options):
        for x, y in loader:
            loss = F.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            for plugin in self.plugins:
                plugin.before_step(self, **options)
            self.optimizer.step()  # step-before-backward
            loss.backward()
"""
    ),
    "a model that may be something else is told to clear between the backward and the step": (
        """
class Strategy:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def inner(self, batches):
        before = copy.deepcopy(self.model.state_dict())
        for x, y in batches:
            loss = F.cross_entropy(self.model(x), y)
            loss.backward()
            self.model.zero_grad()  # zero-grad-misplaced
            self.optimizer.step()
        self.model.load_state_dict(before)
"""
    ),
    "a scaler of which there was another in the call before": (
        """
class Trainer:
    def __init__(self, model, args):
        self.model, self.args = model, args

    def train(self, loader):
        optimizer = torch.optim.AdamW(self.model.parameters())
        if self.args.half:
            scaler = torch.cuda.amp.GradScaler()
        for x, y in loader:
            loss = F.cross_entropy(self.model(x), y)
            if self.args.half:
                scaler.scale(loss).backward()  # zero-grad-missing
                scaler.unscale_(optimizer)
                scaler.step(optimizer)
                scaler.update()
            else:
                loss.backward()  # zero-grad-missing
                optimizer.step()
"""
    ),
    "a state that training and evaluation cut by the same function": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.LSTM(4, 8), nn.Linear(8, 2)

    def forward(self, x, state):
        y, state = self.rnn(x, state)
        return self.out(y), state

class Trainer:
    def __init__(self):
        self.net = Net()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    @staticmethod
    def cut(state):
        return tuple(part.detach() for part in state)

    def train(self, chunks):
        state = (torch.zeros(1, 2, 8), torch.zeros(1, 2, 8))
        for x, y in chunks:
            self.optimizer.zero_grad()
            scores, state = self.net(x, state)
            F.cross_entropy(scores.flatten(0, 1), y).backward()
            self.optimizer.step()
            state = self.cut(state)
        self.net.eval()
        return self.evaluate(chunks)

    def evaluate(self, chunks):
        self.net.eval()
        total, state = 0.0, (torch.zeros(1, 2, 8), torch.zeros(1, 2, 8))
        for x, y in chunks:
            scores, state = self.net(x, state)  # eval-with-grad
            total += F.cross_entropy(scores.flatten(0, 1), y).item()
            state = self.cut(state)
        return total
"""
    ),
    "a list that a test says to have elements": (
        """
import numpy as np

def train(net, optimizer, loader, learns):
    losses = []
    for x in loader:
        if learns:
            loss = net(x).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss)  # graph-retained
    if len(losses) > 0:
        print(np.mean(losses))  # numpy-on-grad
"""
    ),
    "a ratio that is computed twice, once for a loss of which only one part is picked": (
        """
def update(policy, optimizer, memory, clip):
    divergences = []
    for x, actions, before, advantages in memory:
        after = policy.act(x, actions)["log_prob"]
        ratio = after - before
        divergences.append((ratio.exp() - 1 - ratio).mean())  # graph-retained
        ratio = torch.exp(after - before)
        plain = advantages * ratio
        clipped = advantages * torch.clip(ratio, 1.0 - clip, 1.0 + clip)
        loss = -torch.min(plain, clipped).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return sum(float(one) for one in divergences)
"""
    ),
    "a function that goes down into what holds no graph": (
        """
def size(space):
    if isinstance(space, dict):
        return sum(size(part) for part in space.values())
    return space.n

def train(make, space, loader):
    model, losses = make(size(space)), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        penalty = loss * 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(penalty)  # graph-retained
    print(sum(float(one) for one in losses))
"""
    ),
    "a value that is cast for the checker of types": (
        """
from typing import cast

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 2)

    def forward(self, x):
        return self.out(x)

def show(x: Tensor):
    print(cast(Tensor, Net()(x)).numpy())  # numpy-on-grad
"""
    ),
}

TOLD |= {
    "what one unknown network made is given to another for two losses, each with a step of its own": (
        """
def train(generator, critic, of_generator, of_critic, loader, criterion):
    for real in loader:
        fake = generator(torch.randn(8, 2))
        of_critic.zero_grad()
        wrong = criterion(critic(fake), torch.zeros(8, 1))  # fake-not-detached
        (criterion(critic(real), torch.ones(8, 1)) + wrong).backward()
        of_critic.step()
        of_generator.zero_grad()
        loss = criterion(critic(fake), torch.ones(8, 1))
        loss.backward()
        of_generator.step()
"""
    ),
    "also where the generator comes first": (
        """
def train(generator, critic, of_generator, of_critic, loader, criterion):
    for real in loader:
        fake = generator(torch.randn(8, 2))
        of_generator.zero_grad()
        criterion(critic(fake), torch.ones(8, 1)).backward()
        of_generator.step()
        of_critic.zero_grad()
        loss = criterion(critic(real), torch.ones(8, 1))
        loss = (loss + criterion(critic(fake), torch.zeros(8, 1))) / 2  # fake-not-detached
        loss.backward()
        of_critic.step()
"""
    ),
    "old chances that are asked for as the new ones are, and kept with their graph": (
        """
from somewhere import ActorCritic

class PPO:
    def __init__(self, env):
        self.policy = ActorCritic(env)
        self.optimizer = torch.optim.Adam(self.policy.parameters())

    def update(self, states, actions, returns):
        old, values, _ = self.policy.evaluate(states, actions)
        for _ in range(10):
            new, values, entropy = self.policy.evaluate(states, actions)
            ratios = torch.exp(new - old)
            gain = returns - values.detach()
            loss = -torch.min(ratios * gain, ratios.clamp(0.8, 1.2) * gain) + (values - returns).pow(2)
            self.optimizer.zero_grad()
            (loss - 0.01 * entropy).mean().backward()  # backward-twice
            self.optimizer.step()
"""
    ),
    "a buffer that a forward writes keys into with their graph": (
        """
class Contrast(nn.Module):
    def __init__(self, base, dim=128, size=65536):
        super().__init__()
        self.size, self.query, self.key = size, base(dim), base(dim)
        for q, k in zip(self.query.parameters(), self.key.parameters()):
            k.data.copy_(q.data)
        self.register_buffer("queue", F.normalize(torch.randn(dim, size), dim=0))
        self.register_buffer("place", torch.zeros(1, dtype=torch.long))

    def put(self, keys):
        at = int(self.place)
        self.queue[:, at : at + keys.shape[0]] = keys.T  # graph-retained
        self.place[0] = (at + keys.shape[0]) % self.size

    def forward(self, x, y):
        q, k = self.query(x), self.key(y)
        near = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
        far = torch.einsum("nc,ck->nk", [q, self.queue.clone().detach()])
        self.put(k)
        return torch.cat([near, far], dim=1)
"""
    ),
    "what is told to clear and is called is a module: its state is carried over": (
        """
def train(model, optimizer, corpus, criterion):
    hidden = model.init_hidden(20)
    for data, targets in corpus:
        model.zero_grad()
        output, hidden = model(data, hidden)  # state-carried-over
        loss = criterion(output, targets)
        loss.backward()
        optimizer.step()
"""
    ),
    "what is a module on one path is one on all of them": (
        """
def train(policy, target, memory):
    optimizer = torch.optim.Adam(policy.parameters())
    for step in range(100):
        state, action, reward, after = memory.sample(32)
        value = policy(state).gather(1, action)
        best = target(after).max(1)[0]  # target-not-detached
        loss = F.smooth_l1_loss(value, (best * 0.99 + reward).unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            target.load_state_dict(policy.state_dict())
"""
    ),
    "a gradient penalty of a network that others have put into a class": (
        """
class Critics:
    def update(self, real):
        fake = self.gen(torch.randn(real.size(0), self.width)).detach()
        penalty = self.penalty(real, fake)
        loss = self.disc(fake).mean() - self.disc(real).mean() + 10 * penalty
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def penalty(self, real, fake):
        share = torch.rand(real.size(0), 1)
        x = (share * real + (1 - share) * fake).requires_grad_(True)
        out = self.disc(x)
        slope = torch.autograd.grad(out, x, torch.ones_like(out), retain_graph=True)[0]  # create-graph-missing
        return ((slope.norm(2, dim=1) - 1) ** 2).mean()
"""
    ),
    "a score of thresholds, of what a function of torch made of a model's result": (
        """
def dice(logits, target):
    pred = (torch.sigmoid(logits) > 0.5).float()  # nondifferentiable-in-loss
    both = (pred * target).sum()
    return 1 - 2 * both / (pred.sum() + target.sum() + 1e-6)

def train(model, loader, optimizer):
    for x, y in loader:
        loss = dice(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
    ),
}

SILENT = {
    "a ratio of what is picked from two things": (
        """
def update(first, second, optimizer, loader):
    kept = []
    for x in loader:
        a, b = first(x), second(x)
        kept.append((a - 1).mean())
        loss = torch.min(a, b).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return sum(float(one) for one in kept)
"""
    ),
    "a step that sets up the optimizer before the training": (
        """
def train(model, optimizer, scheduler, loader):
    optimizer.zero_grad()
    optimizer.step()
    scheduler.step()
    for batch in loader:
        optimizer.zero_grad()
        loss = model(batch).mean()
        loss.backward()
        optimizer.step()
"""
    ),
    "two optimizers of which one has more parameters, and one is told to clear": (
        """
def train(model, head, loader):
    every = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
    few = torch.optim.SGD(head.parameters(), lr=0.1)
    for batch in loader:
        for optimizer in (every, few):
            optimizer.zero_grad()
        loss = head(model(batch)).mean()
        loss.backward()
        every.step()
        few.step()
"""
    ),
    "a choice that changes between two ways, of which one clears": (
        """
def train(model, loader, optimizer):
    first = True
    for x, y in loader:
        if first:
            loss = model(x, y)
            loss.backward()
            first = False
        else:
            optimizer.zero_grad()
            loss = model(x, y)
            loss.backward()
        optimizer.step()
"""
    ),
    "a model that is made of several is told to clear, and so is its optimizer": (
        """
from library import get_optimizer

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 2)

    def forward(self, x):
        return self.out(x)

def train(loader):
    net = Net()
    optimizer = get_optimizer("adam", net)
    for x, y in loader:
        net.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
"""
    ),
    "a model of several kinds that is told to clear, with an optimizer of known parameters": (
        """
class Model:
    def __init__(self, kind, args):
        self.model = load_a(args) if kind else load_b(args)

    def fit(self, loader, scaler):
        model = self.model
        optimizer = torch.optim.AdamW([{"params": [p for n, p in model.named_parameters()], "lr": 0.1}])
        model.zero_grad()
        for batch in loader:
            loss = model(**batch)[0]
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            model.zero_grad()
"""
    ),
    "a backward that nobody sees": (
        """
class Agent:
    def __init__(self, actor, actor_optim):
        self.actor, self.actor_optim = actor, actor_optim

    def update(self, batches):
        for batch in batches:
            self.actor_optim.zero_grad()
            self.actor.learn(batch)
            self.actor_optim.step()
"""
    ),
    "of two optimizers the second uses what the first has left": (
        """
class Agent:
    def update(self, batches):
        for batch in batches:
            loss = self.critic(batch).mean() + self.actor(batch).mean()
            self.critic_optim.zero_grad()
            self.actor_optim.zero_grad()
            loss.backward()
            self.critic_optim.step()
            self.actor_optim.step()
"""
    ),
    "gradients that are cleared by another name": (
        """
class Agent:
    def update(self, batches):
        for batch in batches:
            for optimizer in self.optimizers:
                optimizer.zero_grad()
            self.critic(batch).mean().backward()
            self.critic_optim.step()

class Other:
    def update(self, batches):
        for batch in batches:
            self.critic(batch).mean().backward()
            self.critic_optim.step()
            self.reset_gradients()
"""
    ),
    "gradients of parameters that are not known, cleared by hand": (
        """
class Agent:
    def __init__(self, network=None, optimizer=None):
        self.network, self.optimizer = network, optimizer

    def update(self, batches):
        for batch in batches:
            for p in self.network.parts():
                p.grad = None
            self.network(batch).mean().backward()
            self.optimizer.step()

class Other:
    def update(self, batches):
        for batch in batches:
            for p in self.network.parts():
                p.grad.zero_()
            self.network(batch).mean().backward()
            self.optimizer.step()
"""
    ),
    "a model that is put into evaluation and then asked for a gradient": (
        """
def attack(model, loader):
    model.eval()
    for x, y in loader:
        x.requires_grad_(True)
        loss = F.cross_entropy(model(x), y)
        yield torch.autograd.grad(loss, x)[0]
"""
    ),
    "one that trains again, and one that is evaluated without grad mode": (
        """
def fit(model, loader, valid, step):
    model.eval()
    with torch.no_grad():
        for batch in valid:
            print(model(batch).mean())
    model.train()
    for batch in loader:
        step(model(batch))

def score(model, valid, quiet):
    model.eval()
    with quiet():
        for batch in valid:
            print(model(batch).mean())
"""
    ),
    "a decorator that may turn grad mode off": (
        """
from somewhere import smart_mode

@smart_mode()
def score(model, valid):
    model.eval()
    for batch in valid:
        print(model(batch).mean())
"""
    ),
}

SILENT |= {
    "terms that are added up for a report, and those of a loss as numbers": (
        """
def train(model, heads, meters, optimizer, loader):
    history, reports = [], []
    for x, y in loader:
        features = model(x)
        parts = {name: head(features, y) for name, head in heads.items()}
        scores = {name: meter(features, y) for name, meter in meters.items()}
        optimizer.zero_grad()
        sum(parts.values()).backward()
        optimizer.step()
        history.append({name: part.item() for name, part in parts.items()})
        reports.append(scores)
        print(sum(scores.values()))
    return history, reports
"""
    ),
}
_WEIGHS = """
def train(net, optimizer, loader, plain=False):
    for obs, action, reward in loader:
        logits, value = net(obs)
        {}
        chance = torch.distributions.Categorical(logits=logits).log_prob(action)
        loss = F.mse_loss(value, reward) - (chance * advantage).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
SILENT |= {
    f"what weights the chance of an action: {way}": _WEIGHS.format(way)
    for way in (
        "advantage = (reward - value).detach()",
        "advantage = reward - value.detach()",
        "advantage = reward - value.item()",
        "advantage = reward - (value if plain else value.detach())",
        "advantage = torch.as_tensor(reward - value.tolist())",
        "advantage = generalised(reward, value)",
        "advantage = reward[0] - reward[1]",
        "with torch.no_grad(): advantage = reward - value",
        "advantage = (reward - value) if plain else (reward - value).detach()",
    )
}
SILENT |= {
    "two heads of one thing that need not train, and a fake that is made anew or detached": (
        """
def train(features, first, second, of_first, of_second, loader):
    for x, y in loader:
        given = features(x)
        of_first.zero_grad()
        F.cross_entropy(first(given), y).backward()
        of_first.step()
        of_second.zero_grad()
        F.cross_entropy(second(given), y).backward()
        of_second.step()

def adversaries(generator, critic, of_generator, of_critic, loader, criterion):
    for real in loader:
        fake = generator(torch.randn(8, 2))
        of_critic.zero_grad()
        wrong = criterion(critic(fake.detach()), torch.zeros(8, 1))
        (criterion(critic(real), torch.ones(8, 1)) + wrong).backward()
        of_critic.step()
        of_generator.zero_grad()
        criterion(critic(fake), torch.ones(8, 1)).backward()
        of_generator.step()

def anew(generator, critic, of_generator, of_critic, loader, criterion):
    for real in loader:
        fake = generator(torch.randn(8, 2))
        of_critic.zero_grad()
        wrong = criterion(critic(fake), torch.zeros(8, 1))
        (criterion(critic(real), torch.ones(8, 1)) + wrong).backward()
        of_critic.step()
        fake = generator(torch.randn(8, 2))
        of_generator.zero_grad()
        criterion(critic(fake), torch.ones(8, 1)).backward()
        of_generator.step()
"""
    ),
    "old chances without a graph, and what is asked for in another way": (
        """
class PPO:
    def __init__(self, policy):
        self.policy = policy
        self.optimizer = torch.optim.Adam(self.policy.parameters())

    def update(self, states, actions, returns):
        with torch.no_grad():
            old, values, _ = self.policy.evaluate(states, actions)
        for _ in range(10):
            new, values, entropy = self.policy.evaluate(states, actions)
            self.step(-(torch.exp(new - old) * returns) + (values - returns).pow(2))

    def other(self, states, actions, returns, quiet):
        with quiet():
            old, values, _ = self.policy.evaluate(states, actions)
        older = self.policy.evaluate(states, actions)[0].detach()
        fixed = self.policy.evaluate(states, actions, frozen=True)[0]
        for _ in range(10):
            new, values, entropy = self.policy.evaluate(states, actions)
            loss = -(torch.exp(new - old) * torch.exp(new - older) * torch.exp(new - fixed) * returns)
            self.step(loss + (values - returns).pow(2))

    def step(self, loss):
        self.optimizer.zero_grad()
        loss.mean().backward()
        self.optimizer.step()
"""
    ),
    "buffers that are written without a graph, or lose it": (
        """
class Contrast(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.query, self.key = base(), base()
        for p in self.key.parameters():
            p.requires_grad = False
        self.register_buffer("queue", torch.randn(4, 16))
        self.register_buffer("mean", torch.zeros(4))
        self.place = 0

    @torch.no_grad()
    def put(self, keys):
        self.queue[:, self.place : self.place + 2] = keys.T

    def put_detached(self, keys):
        self.queue[:, self.place : self.place + 2] = keys.detach().T

    def put_and_detach(self, keys):
        self.queue = self.queue.clone()
        self.queue[:, self.place : self.place + 2] = keys.T
        self.queue = self.queue.detach()

    def forward(self, x):
        with torch.no_grad():
            k = self.key(x)
        q = self.query(x)
        out = q @ self.queue.clone().detach()
        self.put(k)
        self.put_detached(q)
        self.put_and_detach(q)
        with torch.no_grad():
            self.mean.mul_(0.9).add_(q.mean(0), alpha=0.1)
        return out

class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("scores", torch.zeros(4))

    def forward(self, x):
        self.scores.detach_().zero_()
        self.scores[:2] = self.layer(x)[:2]
        return self.scores * 2
"""
    ),
    "state that is made anew, detached, or handed to what may do so": (
        """
def train(model, optimizer, corpus, criterion, wrap):
    hidden = model.init_hidden(20)
    for data, targets in corpus:
        model.zero_grad()
        hidden = tuple(h.detach() for h in hidden)
        output, hidden = model(data, hidden)
        criterion(output, targets).backward()
        optimizer.step()
    for data, targets in corpus:
        hidden = model.init_hidden(20)
        for x in data:
            output, hidden = model(x, hidden)
        model.zero_grad()
        criterion(output, targets).backward()
        optimizer.step()
    for data, targets in corpus:
        hidden = wrap(hidden)
        model.zero_grad()
        output, hidden = model(data, hidden)
        criterion(output, targets).backward()
        optimizer.step()
"""
    ),
}

MODULES = """
import dataclasses
from torch import nn
from library import Wrapper

@dataclasses.dataclass
class Modules:
    actor: nn.Module
    critic: nn.Module
    actor_optim: Wrapper
    critic_optim: Wrapper
"""

THROUGH_A_WRAPPER = {
    "a clear too late": """
class Agent:
    modules: Modules

    def update(self, batch):
        loss = self.modules.critic(batch).mean()
        loss.backward()
        self.modules.critic_optim.zero_grad()  # zero-grad-misplaced
        self.modules.critic_optim.step()
""",
    "no clear, but of the one beside it": """
class Agent:
    modules: Modules

    def first(self, batch):
        self.modules.critic_optim.zero_grad()
        self.modules.critic(batch).mean().backward()
        self.modules.critic_optim.step()

    def second(self, batch):
        loss = self.modules.actor(batch).mean()
        loss.backward()  # zero-grad-missing
        self.modules.actor_optim.step()
""",
}


def told(text: str, **others: str) -> list[str]:
    """Row and rule of all errors and warnings."""
    files = {f"/project/{name}.py": body for name, body in others.items()}
    analysis = analyze(Source(MAIN, text), Config(), files.get)
    loud = [d for d in analysis.diagnostics if d.severity.value != "info"]
    return sorted(f"{analysis.source.row_column(d.span.start)[0]} {d.rule.name}" for d in loud)


def marked(text: str) -> list[str]:
    """What the comments of a program say."""
    rows = [(row, line) for row, line in enumerate(text.splitlines(), 1) if "  # " in line]
    return [f"{row} {line.rpartition('  # ')[2]}" for row, line in rows]


@pytest.mark.parametrize("sentence", TOLD)
def test_the_order_of_a_training_step_is_followed(sentence: str) -> None:
    text = HEAD + TOLD[sentence]
    assert marked(text) == told(text)


@pytest.mark.parametrize("sentence", SILENT)
def test_what_may_be_right_is_not_told(sentence: str) -> None:
    assert [] == told(HEAD + SILENT[sentence])


@pytest.mark.parametrize("sentence", THROUGH_A_WRAPPER)
def test_what_a_wrapper_of_another_module_does_is_told_where_it_is_called(sentence: str) -> None:
    text = MODULES + THROUGH_A_WRAPPER[sentence]
    assert marked(text) == told(text, library=WRAPPER)


LOSS = """
import torch

class Contrast(torch.nn.Module):
    def forward(self, features, labels):
        similar = features @ features.T / self.temperature
        loss, left_out = 0, 0
        for label in labels:
            part = similar[labels == label].sum()
            if torch.isnan(part):
                left_out += 1
                continue
            loss -= part
        return loss / (features.shape[0] - left_out + 1)
"""
WEIGHTED = """
from parts import Encoder
from library import Contrast

class Learner(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.settings, self.contrast, self.other = settings, Contrast(), Contrast()
        self.encoder = Encoder()
        self.optimizer = torch.optim.Adam(self.encoder.parameters())

    def update(self, x, y):
        features = self.encoder(x)
        terms = self.contrast(features, y) + self.other(features, y)
        loss = F.cross_entropy(features, y) + self.settings["weight"] * terms
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
"""


def test_the_weight_of_a_term_that_may_be_a_plain_number_does_not_require_grad() -> None:
    assert [] == told(HEAD + WEIGHTED, library=LOSS)


def test_a_layer_of_which_a_parameter_may_be_another_lists_both_in_its_place() -> None:
    one = Layer("torch.nn.Linear", (("weight", 2), ("bias", 4)))
    other = Layer("torch.nn.Linear", (("weight", 6), ("bias", 4)))
    assert (("weight", 2), ("weight", 6), ("bias", 4)) == join_cells(one, other).parameters
