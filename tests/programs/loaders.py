"""Datasets, loaders with a collate function, gradients that add up, a scaler and meters."""

import argparse
import logging
import os
import time
from types import SimpleNamespace

import torch
import torch.nn as nn
from torch.amp import GradScaler, autocast
from torch.utils.data import DataLoader, Dataset

logging.basicConfig(level=logging.WARNING)
logger = logging.getLogger(__name__)


class AverageMeter:
    """Computes and stores the average and current value"""

    def __init__(self, name, fmt=":f"):
        self.name = name
        self.fmt = fmt
        self.reset()

    def reset(self):
        self.val = 0
        self.avg = 0
        self.sum = 0
        self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def __str__(self):
        fmtstr = "{name} {val" + self.fmt + "} ({avg" + self.fmt + "})"
        return fmtstr.format(**self.__dict__)


class ShapesDataset(Dataset):
    def __init__(self, n, transform=None):
        self.images = torch.rand(n, 3, 8, 8)
        self.labels = torch.arange(n) % 4
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, idx):
        image, label = self.images[idx], self.labels[idx]
        if self.transform is not None:
            image = self.transform(image)
        return {"image": image, "label": label, "id": idx}


def collate(batch):
    images = torch.stack([item["image"] for item in batch])
    labels = torch.tensor([item["label"] for item in batch])
    return images, labels


class Normalize:
    def __init__(self, mean, std):
        self.mean = torch.tensor(mean).view(3, 1, 1)
        self.std = torch.tensor(std).view(3, 1, 1)

    def __call__(self, img):
        return (img - self.mean) / self.std


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        maxk = max(topk)
        batch_size = target.size(0)
        _, pred = output.topk(maxk, 1, True, True)
        pred = pred.t()
        correct = pred.eq(target.view(1, -1).expand_as(pred))
        res = []
        for k in topk:
            correct_k = correct[:k].reshape(-1).float().sum(0, keepdim=True)
            res.append(correct_k.mul_(100.0 / batch_size))
        return res


def get_args(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--accum", type=int, default=2)
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--device", default="cpu")
    return parser.parse_args(argv or [])


def train_one_epoch(model, loader, criterion, optimizer, scaler, epoch, args):
    losses, top1 = AverageMeter("Loss", ":.4e"), AverageMeter("Acc@1", ":6.2f")
    model.train()
    end = time.time()
    optimizer.zero_grad(set_to_none=True)
    for i, (images, target) in enumerate(loader):
        images = images.to(args.device, non_blocking=True)
        target = target.to(args.device, non_blocking=True)
        with autocast(device_type="cpu", dtype=torch.bfloat16, enabled=args.amp):
            output = model(images)
            loss = criterion(output, target) / args.accum
        scaler.scale(loss).backward()
        if (i + 1) % args.accum == 0:
            scaler.unscale_(optimizer)
            grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
            logger.info("grad norm %.3f", grad_norm)
        (acc1,) = accuracy(output, target, topk=(1,))
        losses.update(loss.item() * args.accum, images.size(0))
        top1.update(acc1[0].item(), images.size(0))
    logger.info("epoch %d %s %s in %.1f", epoch, losses, top1, time.time() - end)
    return losses.avg


@torch.no_grad()
def validate(model, loader, criterion):
    model.eval()
    losses = AverageMeter("Loss")
    correct = torch.zeros(1)
    outputs, targets = [], []
    for images, target in loader:
        output = model(images)
        loss = criterion(output, target)
        losses.update(loss.item(), len(images))
        correct += (output.argmax(1) == target).sum()
        outputs.append(output)
        targets.append(target)
    probs = torch.cat(outputs).softmax(-1)
    confusion = torch.zeros(4, 4, dtype=torch.long)
    for t, p in zip(torch.cat(targets), probs.argmax(-1)):
        confusion[t.long(), p.long()] += 1
    return losses.avg, correct.item(), confusion


def main():
    args = get_args()
    cfg = SimpleNamespace(width=8, classes=4)
    model = nn.Sequential(nn.Conv2d(3, cfg.width, 3, padding=1), nn.BatchNorm2d(cfg.width), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(cfg.width, cfg.classes))
    transform = Normalize([0.5, 0.5, 0.5], [0.2, 0.2, 0.2])
    train_loader = DataLoader(ShapesDataset(16, transform), batch_size=4, shuffle=True, collate_fn=collate)
    val_loader = DataLoader(ShapesDataset(8, transform), batch_size=4, collate_fn=collate)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1).to(args.device)
    decay, no_decay = [], []
    for name, param in model.named_parameters():
        if not param.requires_grad:
            continue
        if param.ndim <= 1 or name.endswith(".bias"):
            no_decay.append(param)
        else:
            decay.append(param)
    optimizer = torch.optim.SGD([{"params": decay, "weight_decay": 1e-4}, {"params": no_decay, "weight_decay": 0.0}], args.lr, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.1)
    scaler = GradScaler("cpu", enabled=args.amp)
    best = float("inf")
    for epoch in range(args.epochs):
        train_loss = train_one_epoch(model, train_loader, criterion, optimizer, scaler, epoch, args)
        val_loss, correct, confusion = validate(model, val_loader, criterion)
        scheduler.step()
        is_best = val_loss < best
        best = min(val_loss, best)
        if is_best:
            state = {"epoch": epoch + 1, "state_dict": model.state_dict(), "optimizer": optimizer.state_dict(), "best": best}
            torch.save(state, os.path.join(".", "checkpoint.pth"))
        print(train_loss, val_loss, correct, confusion.diag().sum().item(), [g["lr"] for g in optimizer.param_groups])
    checkpoint = torch.load("checkpoint.pth", weights_only=False)
    model.load_state_dict(checkpoint["state_dict"])
    optimizer.load_state_dict(checkpoint["optimizer"])


if __name__ == "__main__":
    main()
