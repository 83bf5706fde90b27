"""A trainer with callbacks, metrics, checkpoints and early stopping, in classes with annotations."""

from __future__ import annotations

import contextlib
import copy
import json
import tempfile
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Union

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, random_split


@dataclass
class TrainConfig:
    lr: float = 1e-2
    epochs: int = 2
    batch_size: int = 4
    device: str = "cuda" if torch.cuda.is_available() else "cpu"
    hidden: List[int] = field(default_factory=lambda: [8, 8])
    dropout: float = 0.1
    clip: Optional[float] = 1.0


@dataclass
class ModelOutput:
    logits: Tensor
    hidden: Optional[Tensor] = None
    loss: Optional[Tensor] = None

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)


class Callback(ABC):
    def on_epoch_start(self, trainer: "Trainer") -> None:
        pass

    @abstractmethod
    def on_epoch_end(self, trainer: "Trainer", logs: Dict[str, float]) -> None: ...


class EarlyStopping(Callback):
    def __init__(self, patience: int = 3):
        self.patience = patience
        self.best = float("inf")
        self.wait = 0
        self.best_state: Optional[Dict[str, Tensor]] = None

    def on_epoch_end(self, trainer, logs):
        if logs["val_loss"] < self.best:
            self.best = logs["val_loss"]
            self.wait = 0
            self.best_state = copy.deepcopy(trainer.model.state_dict())
        else:
            self.wait += 1
            if self.wait >= self.patience:
                trainer.stop = True


class History(Callback):
    def __init__(self):
        self.rows: list[dict[str, float]] = []

    def on_epoch_end(self, trainer, logs):
        self.rows.append(dict(logs, epoch=trainer.epoch))


class Metric:
    def __init__(self, name: str, fn: Callable[[Tensor, Tensor], Tensor]):
        self.name, self.fn = name, fn
        self.total, self.count = 0.0, 0

    def __call__(self, pred: Tensor, target: Tensor) -> float:
        with torch.no_grad():
            value = self.fn(pred, target)
        self.total += value.item() * len(target)
        self.count += len(target)
        return value.item()

    def compute(self) -> float:
        return self.total / max(self.count, 1)

    def reset(self) -> None:
        self.total, self.count = 0.0, 0


class Toy(Dataset):
    def __init__(self, n: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.x = torch.from_numpy(rng.normal(size=(n, 6)).astype("float32"))
        self.y = (self.x.sum(1) > 0).long()

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, i: int) -> Tuple[Tensor, Tensor]:
        return self.x[i], self.y[i]


class MLP(nn.Module):
    def __init__(self, cfg: TrainConfig, n_in: int = 6, n_out: int = 2) -> None:
        super().__init__()
        dims = [n_in, *cfg.hidden]
        layers: list[nn.Module] = []
        for a, b in zip(dims[:-1], dims[1:]):
            layers += [nn.Linear(a, b), nn.ReLU(), nn.Dropout(cfg.dropout)]
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(dims[-1], n_out)
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, x: Tensor, labels: Optional[Tensor] = None) -> ModelOutput:
        hidden = self.body(x)
        logits = self.head(hidden)
        loss = self.criterion(logits, labels) if labels is not None else None
        return ModelOutput(logits=logits, hidden=hidden, loss=loss)

    @property
    def num_parameters(self) -> int:
        return sum(p.numel() for p in self.parameters() if p.requires_grad)

    @classmethod
    def from_config(cls, cfg: TrainConfig) -> "MLP":
        return cls(cfg)


class Trainer:
    def __init__(self, model: nn.Module, cfg: TrainConfig, callbacks: List[Callback] | None = None):
        self.model = model.to(cfg.device)
        self.cfg = cfg
        self.optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
        self.scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(self.optimizer, patience=1)
        self.callbacks = callbacks or []
        self.metrics = [Metric("acc", lambda p, t: (p.argmax(-1) == t).float().mean())]
        self.stop = False
        self.epoch = 0

    @contextlib.contextmanager
    def evaluating(self) -> Iterator[nn.Module]:
        was_training = self.model.training
        self.model.eval()
        try:
            with torch.no_grad():
                yield self.model
        finally:
            self.model.train(was_training)

    def _to_device(self, batch: Tuple[Tensor, ...]) -> Tuple[Tensor, ...]:
        return tuple(t.to(self.cfg.device) for t in batch)

    def step(self, batch) -> Tensor:
        x, y = self._to_device(batch)
        out = self.model(x, labels=y)
        for metric in self.metrics:
            metric(out.logits, y)
        return out.loss

    def fit(self, train: DataLoader, val: DataLoader) -> Dict[str, float]:
        logs: Dict[str, float] = {}
        for self.epoch in range(self.cfg.epochs):
            for cb in self.callbacks:
                cb.on_epoch_start(self)
            self.model.train()
            running: List[float] = []
            for batch in train:
                self.optimizer.zero_grad()
                loss = self.step(batch)
                loss.backward()
                if self.cfg.clip is not None:
                    nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.clip)
                self.optimizer.step()
                running.append(loss.detach().cpu().item())
            logs = {"loss": float(np.mean(running)), **{m.name: m.compute() for m in self.metrics}}
            logs["val_loss"] = self.evaluate(val)
            self.scheduler.step(logs["val_loss"])
            for cb in self.callbacks:
                cb.on_epoch_end(self, logs)
            if self.stop:
                break
        return logs

    def evaluate(self, loader: DataLoader) -> float:
        total, n = 0.0, 0
        with self.evaluating() as model:
            for batch in loader:
                x, y = self._to_device(batch)
                out = model(x, labels=y)
                total += out["loss"].item() * len(y)
                n += len(y)
        return total / n

    def predict(self, x: Tensor) -> np.ndarray:
        with self.evaluating() as model:
            probs = torch.softmax(model(x).logits, dim=-1)
        return probs.cpu().numpy()

    def save(self, path: Union[str, Path]) -> None:
        torch.save({"model": self.model.state_dict(), "optim": self.optimizer.state_dict(), "cfg": asdict(self.cfg)}, path)

    @classmethod
    def load(cls, path: Union[str, Path]) -> "Trainer":
        blob = torch.load(path, map_location="cpu")
        cfg = TrainConfig(**blob["cfg"])
        model = MLP.from_config(cfg)
        model.load_state_dict(blob["model"])
        trainer = cls(model, cfg)
        trainer.optimizer.load_state_dict(blob["optim"])
        return trainer


def main() -> None:
    torch.manual_seed(0)
    cfg = TrainConfig()
    data = Toy(24)
    train_set, val_set = random_split(data, [16, 8])
    train_loader = DataLoader(train_set, batch_size=cfg.batch_size, shuffle=True, drop_last=True)
    val_loader = DataLoader(val_set, batch_size=cfg.batch_size)
    model = MLP.from_config(cfg)
    stopper, history = EarlyStopping(), History()
    trainer = Trainer(model, cfg, [stopper, history])
    logs = trainer.fit(train_loader, val_loader)
    if stopper.best_state is not None:
        model.load_state_dict(stopper.best_state)
    print(json.dumps(logs), model.num_parameters, trainer.predict(data.x[:3]))
    with tempfile.TemporaryDirectory() as tmp:
        trainer.save(Path(tmp) / "t.pt")
        again = Trainer.load(Path(tmp) / "t.pt")
    same = all(torch.equal(a, b) for a, b in zip(model.parameters(), again.model.parameters()))
    print(same, len(history.rows))


if __name__ == "__main__":
    main()
