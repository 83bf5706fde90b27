"""Train a small classifier on pictures of stripes, with averaged weights, a decorrelation term and a report.

Run `python examples/train_classifier.py --epochs 3`. The program runs to its end and prints good numbers.
"""

import argparse
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass(frozen=True)
class Settings:
    """Everything that a run depends on."""

    classes: int = 4
    side: int = 16
    code: int = 24
    threshold: float = 0.3
    batch: int = 32
    epochs: int = 3
    steps: int = 30
    rate: float = 3e-3
    decay: float = 0.98
    decorrelation: float = 0.1


class Stripes(Dataset):
    """Noisy pictures of stripes; the class is the direction."""

    def __init__(self, settings, length, seed):
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(settings.classes, (length,), generator=generator)
        angles = torch.pi * self.labels[:, None, None] / settings.classes
        line = torch.linspace(-1, 1, settings.side)
        across = line[:, None] * torch.cos(angles) + line[None, :] * torch.sin(angles)
        phases = 6 * torch.rand(length, 1, 1, generator=generator)
        noise = torch.randn(across.shape, generator=generator)
        self.pictures = torch.sin(9 * across + phases) + 0.4 * noise

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.pictures[index][None], int(self.labels[index])


class Encoder(nn.Module):
    """Pictures to sparse codes: entries near zero are switched off."""

    def __init__(self, settings):
        super().__init__()
        self.threshold = settings.threshold
        self.layers = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
        )
        self.project = nn.Linear(16 * 16, settings.code)
        self.reset()

    def reset(self):
        """Start from an orthogonal projection."""
        nn.init.orthogonal_(self.project.weight)
        nn.init.zeros_(self.project.bias)

    def forward(self, x):
        code = torch.tanh(self.project(self.layers(x)))
        code.data[code.data.abs() < self.threshold] = 0.0
        return code


class Classifier(nn.Module):
    """An encoder and a linear head; remembers the last codes for the report."""

    def __init__(self, settings):
        super().__init__()
        self.encoder = Encoder(settings)
        self.head = nn.Linear(settings.code, settings.classes)
        self.last_codes = None

    def forward(self, x):
        codes = self.encoder(x)
        self.last_codes = codes
        return self.head(codes), codes

    def sparsity(self):
        """The share of code entries that are off."""
        return (self.last_codes == 0).float().mean().item()


class Decorrelation(nn.Module):
    """How far the entries of the codes depend on one another."""

    def forward(self, codes):
        with torch.no_grad():
            centred = codes - codes.mean(0)
            scaled = centred / (centred.std(0) + 1e-4)
            correlation = scaled.T @ scaled / len(codes)
        off_diagonal = correlation - torch.diag(correlation.diagonal())
        return off_diagonal.pow(2).mean()


class AveragedWeights:
    """An exponential moving average of a model's parameters."""

    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = {name: p.detach() for name, p in model.named_parameters()}

    def update(self, model):
        """Take one step towards the model's weights."""
        for name, p in model.named_parameters():
            self.shadow[name].mul_(self.decay).add_(p.detach(), alpha=1 - self.decay)

    def copy_to(self, model):
        """Give a model the averaged weights."""
        with torch.no_grad():
            for name, p in model.named_parameters():
                p.copy_(self.shadow[name])


class Meters:
    """Running means by name."""

    def __init__(self):
        self.totals = defaultdict(float)
        self.counts = defaultdict(int)

    def update(self, size, **values):
        """Add the values of a batch of some size."""
        for name, value in values.items():
            self.totals[name] += value * size
            self.counts[name] += size

    def means(self):
        """The mean of each name so far."""
        return {name: float(f"{self.totals[name] / self.counts[name]:.4f}") for name in self.totals}


class Trainer:
    """Training, validation and history of one run."""

    def __init__(self, model, settings):
        self.model = model
        self.settings = settings
        self.decorrelation = Decorrelation()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=settings.rate)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=2, gamma=0.5)
        self.average = AveragedWeights(model, settings.decay)
        self.history = []

    def loss(self, x, y):
        """The loss of a batch and the logits that it comes from."""
        logits, codes = self.model(x)
        fit = F.cross_entropy(logits, y, label_smoothing=0.05)
        extra = self.decorrelation(codes)
        return fit + self.settings.decorrelation * extra, logits

    def train_epoch(self, loader):
        """One epoch; the means of what was measured."""
        self.model.train()
        meters = Meters()
        for step, (x, y) in enumerate(loader):
            if step == self.settings.steps:
                break
            loss, logits = self.loss(x, y)
            self.optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
            self.optimizer.step()
            self.average.update(self.model)
            hits = (logits.argmax(1) == y).float().mean()
            meters.update(len(x), loss=loss, accuracy=hits.item(), norm=norm.item())
        self.schedule.step()
        return meters.means()

    def validate(self, loader):
        """The means over the validation set."""
        self.model.eval()
        meters = Meters()
        for x, y in loader:
            logits, _ = self.model(x)
            fit = F.cross_entropy(logits, y)
            hits = (logits.argmax(1) == y).float().mean()
            meters.update(len(x), loss=fit.item(), accuracy=hits.item())
        return meters.means()

    def fit(self, train, valid):
        """All epochs."""
        for epoch in range(self.settings.epochs):
            row = {"epoch": epoch, "train": self.train_epoch(train), "valid": self.validate(valid)}
            row["sparsity"] = self.model.sparsity()
            self.history.append(row)
            print(json.dumps(row))
        return self.history


def confusion(model, loader, classes):
    """How often each class is taken for each other."""
    model.eval()
    table = torch.zeros(classes, classes, dtype=torch.long)
    with torch.no_grad():
        for x, y in loader:
            guesses = model(x)[0].argmax(1)
            table += torch.bincount(y * classes + guesses, minlength=classes * classes).view(classes, classes)
    return table.numpy()


def predictions(model, loader):
    """The probabilities that go into the report."""
    torch.no_grad()
    rows = []
    for x, _ in loader:
        logits, _ = model(x)
        rows.append(logits.softmax(1))
    return torch.cat(rows).tolist()


def plot_codes(model, dataset, path):
    """Save the codes of the first pictures for a plot."""
    pictures = torch.stack([dataset[i][0] for i in range(16)])
    codes = model.encoder(pictures)
    np.savetxt(path, codes.cpu().numpy())


def calibrate(model, loader, steps=20):
    """Find the temperature that makes the probabilities honest."""
    log_temperature = nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.SGD([log_temperature], lr=0.1)
    with torch.no_grad():
        logits = torch.cat([model(x)[0] for x, _ in loader])
    labels = torch.cat([y for _, y in loader])
    for _ in range(steps):
        temperature = log_temperature.detach().exp()
        loss = F.cross_entropy(logits / temperature, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return log_temperature.exp().item()


def save(path, trainer):
    """Write a checkpoint: weights, averaged weights, optimizer and history."""
    checkpoint = {
        "model": trainer.model.state_dict(),
        "average": trainer.average.shadow,
        "optimizer": trainer.optimizer.state_dict(),
        "history": trainer.history,
    }
    torch.save(checkpoint, path)


def main(arguments=None):
    """Read the command line, train, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--pictures", type=int, default=960)
    parser.add_argument("--calibrate", action="store_true")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(arguments)

    torch.manual_seed(0)
    settings = Settings(epochs=args.epochs, steps=args.steps)
    train = Stripes(settings, args.pictures, seed=0)
    valid = Stripes(settings, args.pictures // 4, seed=1_000_000)
    train_loader = DataLoader(train, settings.batch, shuffle=True)
    valid_loader = DataLoader(valid, settings.batch)

    trainer = Trainer(Classifier(settings), settings)
    history = trainer.fit(train_loader, valid_loader)
    trainer.average.copy_to(trainer.model)
    print(confusion(trainer.model, valid_loader, settings.classes))
    print(np.round(predictions(trainer.model, valid_loader)[0], 3))
    if args.calibrate:
        print("temperature", calibrate(trainer.model, valid_loader))
    if args.plot:
        plot_codes(trainer.model, valid, args.plot)
    if args.out:
        save(args.out, trainer)
    return history


if __name__ == "__main__":
    main()
