"""In code with bare arguments and imported parts, what is done with a thing tells what it is."""

import pytest

from gradvet.analysis import analyze
from gradvet.config import Config
from gradvet.text import Source

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import Tensor, nn\n"

TOLD = {
    "what is drawn on, one of several axes or all of a figure, takes arrays": (
        """
import matplotlib.pyplot as plt

def show(model, x):
    out = model(x)
    figure, axes = plt.subplots(1, 2)
    for ax, image in zip(axes.flatten(), out):
        ax.imshow(image.cpu())  # numpy-on-grad
    axes[0].imshow(out[0].detach())
    figure.add_subplot(1, 1, 1).plot([one.item() for one in out[0, 0]])
    figure.gca().plot(out[0, 0])  # numpy-on-grad
    plt.figure().savefig("out.png")

show(nn.Conv2d(1, 1, 3), torch.rand(2, 1, 6, 6))
"""
    ),
    "an estimator of scikit-learn takes arrays": (
        """
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

encoder = nn.Linear(8, 4)
codes = encoder(torch.randn(20, 8))
clusters = KMeans(3, n_init=2)
labels = clusters.fit_predict(codes.detach())
centres = torch.tensor(clusters.cluster_centers_, dtype=torch.float32)
print(torch.cdist(codes, centres).min(1).values.mean())
flat = PCA(2).fit_transform(codes)  # numpy-on-grad
"""
    ),
    "what is in eval mode is run for nothing": (
        """
class Detector(nn.Module):
    def __init__(self, make):
        super().__init__()
        self.body = make()

    def forward(self, x):
        return self.body(x)

    def prepare(self, size):
        assert not self.training
        self(torch.empty(1, 3, size, size))  # eval-with-grad
        self.body[-1].size = size

def warm(model, device):
    model.eval()
    model(torch.empty(1, 3, device=device))  # eval-with-grad
    return model

def calibrated(model, loader, quantize):
    def run(m):
        for x, _ in loader:
            m(x)

    model.eval()
    model = quantize(model, "int8", run)  # eval-with-grad
    model.train()
    return model
"""
    ),
    "a scaler that is handed over, and gradients that are clipped before they are unscaled": (
        """
def train(model, loader, opt, scaler, criterion):
    for x, y in loader:
        opt.zero_grad()
        loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # clip-misplaced
        scaler.step(opt)
        scaler.update()
"""
    ),
    "a method of a class whose parameters only its subclasses have": (
        """
class Base(nn.Module):
    def vector(self):
        return nn.utils.parameters_to_vector(self.parameters()).cpu().numpy()  # numpy-on-grad
"""
    ),
    "a loss is known by its backward, also where it was added up before": (
        """
def train(model, loader, opt, criterion):
    total = 0
    for x, y in loader:
        loss = criterion(model(x), y)
        total += loss  # graph-retained
        opt.zero_grad()
        loss.backward()
        opt.step()
    return total
"""
    ),
    "also where an op of torch made it from unknown things": (
        """
def train(model, loader, opt):
    losses = []
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        losses.append(loss)  # graph-retained
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(losses)
"""
    ),
    "the terms of a loss require grad, and its weights do not": (
        """
class PPO:
    def train(self):
        kept, entropies, weights = [], [], []
        for batch in self.buffer.get():
            values, log_prob, entropy = self.policy.evaluate(batch.obs)
            policy_loss = -torch.min(log_prob * batch.adv, batch.adv).mean()
            kept.append(policy_loss)  # graph-retained
            entropy_loss = -entropy.mean()
            entropies.append(entropy_loss)  # graph-retained
            weights.append(self.weight)
            loss = policy_loss + self.weight * entropy_loss + 0.5 * F.mse_loss(batch.returns, values)
            self.optimizer.zero_grad()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        self.log(kept, entropies, weights)
"""
    ),
    "a loss that is one of two is known by its backward, whichever it is": (
        """
class Model:
    def __init__(self, loss=None):
        self.loss = self.own_loss if loss is None else loss

    def step(self, x):
        loss = self.loss(self.network(x))
        loss.backward()
        return loss.cpu().numpy()  # numpy-on-grad

    def own_loss(self, y):
        return self.other.loss(y)
"""
    ),
    "what is abstract gives what a subclass makes of it": (
        """
from abc import ABC, abstractmethod

class Factory(ABC):
    @abstractmethod
    def make(self, parameters):
        pass

    @property
    @abstractmethod
    def rate(self):
        pass

class Wrapper:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def step(self, loss, rate):
        self.optimizer.zero_grad()
        (rate.scale() * loss).backward()
        self.optimizer.step()

class Algorithm:
    def __init__(self, critic: nn.Module, factory: Factory):
        self.critic = critic
        self.rate = factory.rate
        self.optim = Wrapper(factory.make(critic.parameters()))

    def update(self, batches):
        losses = []
        for batch in batches:
            loss = F.mse_loss(batch.returns, self.critic(batch.obs))
            self.optim.step(loss, self.rate)
            losses.append(loss)  # graph-retained
        return sum(losses)
"""
    ),
    "an engine that runs the backward of a loss": (
        """
def train(model, batches, engine, n):
    while True:
        total = 0.0
        for batch in batches:
            loss = model(batch)
            total += loss  # graph-retained
            engine.backward(loss)
        print(total)
"""
    ),
    "also where the engine was made here, and the loss is one of several": (
        """
from accelerate import Accelerator

class Trainer:
    def __init__(self, model):
        self.accelerator = Accelerator()
        self.model = model

    def train(self, loader, parts):
        total = 0.0
        for batch in loader:
            with self.accelerator.autocast():
                loss = self.model(batch)
                if parts > 1:
                    loss = loss / parts
                total += loss  # graph-retained
            self.accelerator.backward(loss)
        print(total)
"""
    ),
    "what is taken from the result of a call is known from the start as well": (
        """
def train(model, loader, scaler, opt):
    total = 0.0
    kept = []
    for batch in loader:
        loss, auxiliary = model.losses(batch)
        total += loss  # graph-retained
        kept.append(auxiliary)  # graph-retained
        scaler.scale(loss + model.weight * auxiliary).backward()
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
    print(total, kept)
"""
    ),
    "a loss that a method hands on in a dict": (
        """
class Impl:
    def compute(self, batch):
        loss = self.modules.loss(batch)
        loss.backward()
        return {"loss": loss}

    def update(self, batch):
        losses = self.compute(batch)
        return float(losses["loss"].cpu().numpy())  # numpy-on-grad
"""
    ),
    "annotations: of alternatives, of keyword arguments, of fields": (
        """
import dataclasses
from typing import Optional

@dataclasses.dataclass
class Parts:
    critic: "nn.Module | None"
    actor: Optional[nn.Module]

class Algorithm:
    parts: Parts

    def __init__(self, *, critic: nn.Module | Parts, ema: int | None = None):
        self.critic = critic

    def values(self, batch):
        found = [self.critic(part) for part in batch]
        return torch.cat(found).cpu().numpy()  # numpy-on-grad

    def others(self, batch):
        if self.parts.critic is not None:
            return self.parts.critic(batch).cpu().numpy()  # numpy-on-grad
"""
    ),
    "what `**kwargs` holds is something of its own": (
        """
def train(loader, **parts):
    total = 0
    for x in loader:
        loss = parts["model"](x)
        loss.backward()
        total += loss  # graph-retained
    return total
"""
    ),
    "transformers' Trainer runs backward from what `compute_loss` gives": (
        """
from collections import defaultdict
from transformers import Trainer

class MyTrainer(Trainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.metrics = {"train": defaultdict(list), "eval": defaultdict(list)}

    def compute_loss(self, model, inputs, return_outputs=False):
        loss, outputs = self.losses(model, inputs)
        return (loss, outputs) if return_outputs else loss

    def losses(self, model, inputs):
        mode = "train" if self.model.training else "eval"
        outputs = model(**inputs)
        loss = F.cross_entropy(outputs.logits, inputs["labels"])
        self.metrics[mode]["loss"].append(loss)  # graph-retained
        return loss, outputs
"""
    ),
    "an optimizer of one of two kinds is an optimizer": (
        """
def step(args, model, loss):
    if args.adam:
        opt = torch.optim.Adam(model.parameters())
    else:
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
    loss.backward()
    opt.step  # call-forgotten
"""
    ),
    "a loss of data and of a result that was cut has nothing to run through": (
        """
def train(model, loader, opt):
    for x, y in loader:
        pred = model(x).detach()  # gradient-cut
        loss = F.mse_loss(pred, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
    ),
    "a snapshot of a model that is given, loaded after steps of who knows what": (
        """
def fit(model, loader, opt, criterion):
    best, kept = 1e9, None
    for x, y in loader:
        opt.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        opt.step()
        if loss.item() < best:
            best, kept = loss.item(), model.state_dict()  # state-dict-alias
    model.load_state_dict(kept)
"""
    ),
    "a module that says what its call gives: of its distribution two losses are made": (
        """
class Policy(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder, self.head = encoder, nn.Linear(3, 2)

    def forward(self, x):
        return torch.distributions.Categorical(logits=self.head(self.encoder(x)))

    def __call__(self, x) -> torch.distributions.Categorical:
        return super().__call__(x)

def update(policy: Policy, temperature: nn.Parameter, x):
    chances = policy(x)
    (temperature * F.log_softmax(chances.logits, dim=1).mean()).backward()
    (-chances.logits).mean().backward()  # backward-twice
"""
    ),
    "zeros that are moved and then filled by a layer": (
        """
class Sum(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        total = torch.zeros(x.shape).to(x.device)
        for _ in range(2):
            total += self.layer(x)
        return total

def predict(model: Sum, x):
    return model(x).numpy()  # numpy-on-grad
"""
    ),
    "of a module of which a part was frozen by its flag, the rest is to train, also under no_grad": (
        """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.adapter = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.adapter(self.layer(x))

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = Encoder(), nn.Linear(4, 2)
        for p in self.encoder.layer.parameters():
            p.requires_grad = False

    def forward(self, x):
        with torch.no_grad():  # no-grad-in-forward
            hidden = self.encoder(x)
        return self.head(hidden)

model = Tagger()
opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
for _ in range(3):
    opt.zero_grad()
    model(torch.randn(2, 4)).mean().backward()
    opt.step()
"""
    ),
    "of two optimizers that are known a scaler unscales the one it is given": (
        """
encoder, decoder = nn.Linear(4, 2), nn.Linear(2, 4)
first, second = (torch.optim.Adam(net.parameters()) for net in (encoder, decoder))
scaler = torch.amp.GradScaler()
for _ in range(3):
    first.zero_grad()
    second.zero_grad()
    scaler.scale(decoder(encoder(torch.randn(2, 4))).pow(2).mean()).backward()
    scaler.unscale_(first)
    nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
    nn.utils.clip_grad_norm_(decoder.parameters(), 1.0)  # clip-misplaced
    scaler.step(first)
    scaler.step(second)
    scaler.update()
"""
    ),
    "what is gathered when there are several processes, and handed on as it is when there are not": (
        """
import torch.distributed as dist

def gathered(own):
    if not dist.is_initialized():
        return own
    parts = [torch.zeros_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, own)  # collective-without-grad
    return torch.cat(parts)

net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    one, other = net(torch.randn(4, 4)), net(torch.randn(4, 4))
    everything = torch.cat([gathered(one), gathered(other)])
    loss = F.cross_entropy(one @ everything.T, torch.arange(4)) + one.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
    ),
    "clones in a dict that is asked for whether anything is in it": (
        """
class Anchored:
    def __init__(self, model):
        self.model, self.anchors = model, {}

    def keep(self):
        for name, p in self.model.named_parameters():
            self.anchors[name] = p.clone()  # clone-keeps-graph

    def penalty(self):
        if not self.anchors:
            return torch.zeros(())
        return sum((p - self.anchors[name]).pow(2).sum() for name, p in self.model.named_parameters())

def main():
    model = nn.Linear(4, 3)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    anchored = Anchored(model)
    for task in range(2):
        for x in torch.randn(3, 5, 4):
            loss = model(x).pow(2).mean() + anchored.penalty()
            opt.zero_grad()
            loss.backward()
            opt.step()
        anchored.keep()

main()
"""
    ),
    "a derivative through a layer depends on its weight, whatever it does to the bias": (
        """
from torch.autograd.function import once_differentiable

class Leaky(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x > 0, x, 0.2 * x)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return torch.where(x > 0, g, 0.2 * g)

first, last = nn.Linear(4, 8), nn.Linear(8, 1)
real = torch.randn(6, 4, requires_grad=True)
score = last(Leaky.apply(first(real)))
slope, = torch.autograd.grad(score.sum(), real, create_graph=True)
slope.pow(2).mean().backward()  # function-differentiated-twice
"""
    ),
    "a reward that another network gives, on whichever scale, and one that is lowered by what is rewarded": (
        """
policy, judge = nn.Linear(4, 3), nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
opt, other = torch.optim.Adam(policy.parameters()), torch.optim.Adam(judge.parameters())
for _ in range(3):
    other.zero_grad()
    F.softplus(-judge(torch.randn(6, 4))).mean().backward()
    other.step()
    other.zero_grad()
    x = torch.randn(6, 4)
    dist = torch.distributions.Categorical(logits=policy(x))
    reward = -F.logsigmoid(-judge(x)).squeeze(1)
    loss = -(dist.log_prob(dist.sample()) * reward).mean()  # target-not-detached
    opt.zero_grad()
    loss.backward()
    opt.step()

for _ in range(3):
    x, ids, known = torch.randn(6, 4), torch.randint(3, (6, 1)), torch.randn(6)
    logp = policy(x).log_softmax(1).gather(1, ids).squeeze(1)
    reward = torch.rand(6) - 0.1 * (logp - known)  # target-not-detached
    loss = -(logp * reward).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
    ),
    "a module that was frozen beside an optimizer and is thawed in a later epoch": (
        """
class Tuner:
    def __init__(self, body, head):
        self.body, self.head = body, head
        for p in body.parameters():
            p.requires_grad = False
        both = list(body.parameters()) + list(head.parameters())
        self.opt = torch.optim.Adam(filter(lambda p: p.requires_grad, both))  # optimizer-misses-parameters

    def thaw(self):
        for p in self.body.parameters():
            p.requires_grad = True

    def epoch(self, i):
        if i == 2:
            self.thaw()
        loss = self.head(self.body(torch.randn(2, 9))).pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

tuner = Tuner(nn.Linear(9, 14), nn.Linear(14, 3))
for i in range(4):
    tuner.epoch(i)
"""
    ),
    "a memory that a queue of states is made of is carried over, and that is told once": (
        """
class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend, self.out = nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x, memory=None):
        context = x if memory is None else torch.cat([memory, x], 1)
        y = x + self.attend(context).mean(1, keepdim=True)
        return self.out(y), context[:, -6:]

model, tokens = Memory(), nn.Embedding(10, 8)
opt = torch.optim.Adam(model.parameters())
memory = None
for x in torch.randint(0, 10, (4, 2, 5)):
    y, memory = model(tokens(x), memory)  # state-carried-over
    loss = y.mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
    ),
}

HABITS = {
    "what a network gives ends in detach() in a later statement, and its state only goes back into it": (
        """
class Writer(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.rnn, self.out = nn.LSTM(4, 4), nn.Linear(4, vocabulary)

    def forward(self, x, hidden):
        y, hidden = self.rnn(x, hidden)
        return self.out(y), y, hidden

    def write(self, x, hidden, length):
        written = []
        for _ in range(length):
            prediction, _, hidden = self.forward(x, hidden)  # frozen-model-with-grad
            prediction = prediction.squeeze().detach()
            written.append(prediction.argmax(-1))
        return written

    def write_and_remember(self, x, hidden, length):
        for _ in range(length):
            prediction, _, hidden = self.forward(x, hidden)
            prediction = prediction.squeeze().detach()
        return prediction, hidden

    def learn(self, x, hidden, y):
        prediction, _, hidden = self.forward(x, hidden)
        self.criterion(prediction, y).backward()
        return prediction.detach()
"""
    ),
    "only a number is made of what a network gives, in a function that trains": (
        """
from torch.distributions import kl_divergence

def improve(policy, loader):
    optimizer = torch.optim.SGD(policy.parameters())
    far = []
    for x, y in loader:
        before = policy(x)
        distance = kl_divergence(before, before).mean()
        optimizer.zero_grad()
        (distance - before.log_prob(y).mean()).backward()
        optimizer.step()
        after = policy(x)  # frozen-model-with-grad
        distance = kl_divergence(before, after).mean()
        far.append(distance.item())
        hits = (policy(x).probs.argmax(1) == y).sum()  # frozen-model-with-grad
        error = nn.MSELoss()(x, y)
        far.append(error.item())
    return far, hits

def measure(policy, x, y):
    policy.train()
    return (policy(x).argmax(1) == y).float().mean().item()
"""
    ),
    "what is asked for values without autograd in one method is a network in the others": (
        """
class Agent:
    def act(self, x):
        action = self.parts.best(x)  # frozen-model-with-grad
        action = self.scale(action)
        return action.detach().numpy()

    def value(self, x, action):
        with torch.no_grad():
            value = self.parts.value(x, action)
        return value.detach().numpy()

class Sampler:
    def take(self, x):
        x = self.parts.scaled(x)
        return x.detach().numpy()

    def value(self, x):
        with torch.no_grad():
            x = self.parts.scaled(x)
        return x.detach().numpy()
"""
    ),
    "of what a step returns, what is computed from the terms of its loss keeps its graph beside what is detached": (
        """
class Agent:
    def update(self, states):
        drawn = self.network.actor(states)
        score = drawn.log_prob(drawn.sample()).sum(-1)
        entropy = -score.mean()
        aim = self.alpha.detach() + 1.0
        loss = (aim * score - self.critic(states)).mean() + self.alpha.mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return (
            loss.detach(),
            entropy,  # graph-retained
            self.alpha,  # graph-retained
            states.detach(),
            self.number,
        )
"""
    ),
    "what gives a loss is run for nothing where the loss is detached at once": (
        """
from transformers import Trainer

class Own(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False):
        return self.criterion(model(**inputs), inputs)

    def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None):
        with self.compute_loss_context_manager():
            loss = self.compute_loss(model, inputs)  # frozen-model-with-grad
        loss = loss.mean().detach()
        return loss, None, None
"""
    ),
    "of the terms of a loss that are returned beside their sum, one keeps its graph": (
        """
class Net(nn.Module):
    def loss(self, batch):
        loss = self.criterion(self.predict(batch), batch)
        return sum(loss.values()), {
            "a": loss["a"],  # graph-retained
            "b": loss["b"].detach(),
            "c": loss["c"].detach(),
        }
"""
    ),
}

SILENT = {
    "a hook looks at what goes through a network that is run for it": (
        """
def seen(model, x):
    found = []
    model.layer.register_forward_hook(lambda module, given, out: found.append(out))
    model.eval()
    model(x)
    return found
"""
    ),
    "gradients are unscaled, by whoever it is, before they are clipped": (
        """
def train(model, loader, opt, scaler, criterion, fp16):
    for x, y in loader:
        opt.zero_grad()
        scaler.scale(criterion(model(x), y)).backward()
        if fp16:
            scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()

def prepared(model, loader, opt, scaler, criterion, prepare):
    for x, y in loader:
        opt.zero_grad()
        scaler.scale(criterion(model(x), y)).backward()
        prepare(scaler, opt)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
"""
    ),
    "what is detached for one use may be needed with its graph for another": (
        """
class Agent:
    def update(self, x, opt):
        self.model.train()
        out = self.model(x)
        seen = out.detach()
        opt.zero_grad()
        self.loss(out, seen).backward()
        opt.step()

    def tokens(self, x):
        return self.tokenizer(x).detach()
"""
    ),
    "a step under no_grad, and evaluation that others may differentiate": (
        """
class Plain(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.add_(p.grad, alpha=-group["lr"])

class Agent:
    def values(self, obs):
        self.model.eval()
        return self.model(obs)["values"]
"""
    ),
    "what a callback has put into a list is not known": (
        """
def explain(model, x):
    kept = []

    def hook(module, args, out):
        kept.append(out)

    model.head.register_forward_hook(hook)
    x = x.clone().requires_grad_(True)
    model(x)
    return torch.autograd.grad(torch.cat(kept).sum(), x)
"""
    ),
    "a weight without a gradient makes no constant of what a call gave": (
        """
class SAC:
    def train(self, replay):
        for batch in replay:
            actions, log_prob = self.actor.action_log_prob(batch.observations)
            weight = torch.exp(self.log_weight.detach())
            loss = (weight * log_prob - self.critic(batch.observations, actions)).mean()
            self.actor.optimizer.zero_grad()
            loss.backward()
            self.actor.optimizer.step()
"""
    ),
    "of several results, each part is its own": (
        """
class Trainer:
    def __init__(self, model, parallel):
        self.model, self.parallel = model, parallel

    def train(self, loader, opt, parallel):
        count = 0
        for batch in loader:
            result = self.parallel(batch) if parallel else self.model.forward_loss(batch)
            loss, size = result
            opt.zero_grad()
            loss.backward()
            opt.step()
            count += size
        return count
"""
    ),
    "something unknown that is added in place may bring a graph": (
        """
def error(parts, obs):
    total = torch.tensor(0.0)
    for part in parts:
        total += part.error(obs).mean()
    total.backward()
"""
    ),
    "and need not bring one": (
        """
def count(loader):
    total = torch.zeros(3)
    for batch in loader:
        total += batch["count"]
    return total.numpy()
"""
    ),
    "a computed thing may be given the gradient that its backward begins with": (
        """
def bench(model, x):
    out = model(x)
    if isinstance(out, (tuple, list)):
        out = sum(part.sum() for part in out if isinstance(part, Tensor))
    seed = torch.randn_like(out)
    out.backward(seed)
"""
    ),
    "a divergence of what a policy gives": (
        """
from torch.distributions import kl_divergence

def step(policy, x):
    with torch.no_grad():
        old = policy(x).dist
    kl = kl_divergence(old, policy(x).dist).mean()
    return torch.autograd.grad(kl, policy.parameters(), create_graph=True)
"""
    ),
    "a gradient with a graph, of a divergence whose parts are not known": (
        """
def product(policy, x, vector):
    old, new = policy.act(x)["mean"].detach(), policy.act(x)["mean"]
    kl = torch.square(old - new).mean()
    gradient = torch.autograd.grad(kl, policy.parameters(), create_graph=True)
    flat = torch.cat([g.view(-1) for g in gradient])
    return torch.autograd.grad((flat * vector).sum(), policy.parameters())
"""
    ),
    "an attribute of a class from elsewhere may be None or false": (
        """
from somewhere import Base

class Mine(Base):
    def train(self, loss):
        if self.reference is None:
            loss.backward()
            return loss.item()
        if not self.adaptive:
            return 0.0
        return self.reference(loss)
"""
    ),
    "what an inner loop added to is one of several, and is not gone twice": (
        """
class Agent:
    def step(self, batch):
        out = self.model(batch)
        loss, a_loss = self.losses(out)
        aux = self.model.aux()
        if aux is not None:
            for value in aux.values():
                loss += value
        self.scaler.scale(loss).backward()
        self.result = (a_loss, loss.detach())
"""
    ),
    "the mean of a difference has a goal that need not require grad": (
        """
def train(model, loader, opt):
    seen = []
    for x, goal in loader:
        loss = (model(x) - goal).abs().mean()
        seen.append(goal)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return torch.stack(seen).numpy()
"""
    ),
    "an inner loop that is unrolled carries its graph on purpose": (
        """
class Solver(nn.Module):
    def forward(self, func, y):
        for _ in range(5):
            energy = func(y).sum()
            grad = torch.autograd.grad(energy, y, create_graph=True, retain_graph=True)[0]
            y = y - 0.1 * grad
        return y
"""
    ),
    "losses that are kept as numbers": (
        """
def train(model, loader, opt, criterion):
    total, losses = 0.0, []
    for x, y in loader:
        loss = criterion(model(x), y)
        total += loss.item()
        losses.append(loss.detach())
        opt.zero_grad()
        loss.backward()
        opt.step()
    return total, losses
"""
    ),
    "no_grad around a module that froze a part of itself, whatever else is in it": (
        """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.places = nn.Linear(4, 4), nn.Embedding(3, 4)
        self.places.weight.requires_grad = False

    def forward(self, x):
        return self.layer(x) + self.places.weight[0]

class Probe(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = Encoder(), nn.Linear(4, 2)

    def forward(self, x):
        with torch.no_grad():
            hidden = self.encoder(x)
        return self.head(hidden)

model = Probe()
opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
for _ in range(3):
    opt.zero_grad()
    model(torch.randn(2, 4)).mean().backward()
    opt.step()
"""
    ),
    "a divergence of two policies, a squared log-probability, a reward that is detached": (
        """
policy, other, judge = nn.Linear(4, 3), nn.Linear(4, 3), nn.Linear(4, 1)
opt = torch.optim.Adam([*policy.parameters(), *other.parameters()])
for _ in range(3):
    x, ids = torch.randn(6, 4), torch.randint(3, (6, 1))
    logp, logq = policy(x).log_softmax(1), other(x).log_softmax(1)
    apart = (logp.exp() * (logp - logq)).sum(1).mean()
    balance = logp.gather(1, ids) - logq.gather(1, ids) - torch.rand(6, 1)
    dist = torch.distributions.Categorical(logits=policy(x))
    reward = torch.sigmoid(judge(x)).squeeze(1).detach()
    loss = apart + (balance * balance).mean() - (dist.log_prob(dist.sample()) * reward).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
    ),
    "what a module gives beside its loss may be a count": (
        """
from torch.nn.parallel import DistributedDataParallel

def train(model, loader):
    ddp = DistributedDataParallel(model)
    opt = torch.optim.SGD(ddp.parameters(), 0.1)
    total, seen = 0, []
    for x in loader:
        loss, count = ddp(x)
        opt.zero_grad()
        (loss / 2).backward()
        opt.step()
        total += count
        seen.append(count)
    return total, seen
"""
    ),
    "a module that is thawed with an optimizer of its own, and one that is frozen for good": (
        """
body, neck, head = nn.Linear(9, 14), nn.Linear(14, 14).requires_grad_(False), nn.Linear(14, 3)
for p in body.parameters():
    p.requires_grad = False
opt, late = torch.optim.Adam(head.parameters()), None
for i in range(4):
    if i == 2:
        for p in body.parameters():
            p.requires_grad = True
        late = torch.optim.Adam(body.parameters(), lr=1e-5)
    loss = head(neck(body(torch.randn(2, 9)))).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if late is not None:
        late.step()
        late.zero_grad()
"""
    ),
    "a difference of something and what was detached from it keeps the gradient": (
        """
policy = nn.Linear(3, 2)
opt = torch.optim.Adam(policy.parameters())
for _ in range(3):
    logp = policy(torch.randn(8, 3)).log_softmax(1)[:, 0]
    old = logp.detach()
    ratio = (logp - old).exp()
    loss = -(ratio * torch.rand(8)).mean() + 0.01 * (old - logp).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
    ),
}


def told(text: str, *, infos: bool = False) -> list[str]:
    """Row and rule of all errors and warnings, or of all infos."""
    analysis = analyze(Source("program.py", text), Config())
    found = [d for d in analysis.diagnostics if (d.severity.value == "info") is infos]
    return sorted(f"{analysis.source.row_column(d.span.start)[0]} {d.rule.name}" for d in found)


def marked(text: str) -> list[str]:
    """What stands behind the lines of a program, with their rows."""
    rows = [(row, line) for row, line in enumerate(text.splitlines(), 1) if "  # " in line]
    return [f"{row} {line.rpartition('  # ')[2]}" for row, line in rows]


@pytest.mark.parametrize("sentence", TOLD)
def test_evidence_is_followed(sentence: str) -> None:
    text = HEAD + TOLD[sentence]
    assert marked(text) == told(text)


@pytest.mark.parametrize("sentence", HABITS)
def test_what_is_no_more_than_a_habit_is_an_info(sentence: str) -> None:
    text = HEAD + HABITS[sentence]
    assert marked(text) == told(text, infos=True)
    assert [] == told(text)


@pytest.mark.parametrize("sentence", SILENT)
def test_what_is_not_known_is_not_wrong(sentence: str) -> None:
    assert [] == told(HEAD + SILENT[sentence])
