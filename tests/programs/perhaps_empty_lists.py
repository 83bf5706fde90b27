"""Lists that are known to be empty, or too short, on one of several ways: a loop over them may have nothing to do."""

import functools

import torch

started = torch.rand(1).item() < 2
weight = torch.ones(3, requires_grad=True)


def filled_on_one_way():
    """It is empty on the other."""
    items, total = [], torch.zeros(3)
    if not started:
        items.append(1)
    for _ in items:
        total.add_(weight)
    total


def another_on_one_way():
    """There are two lists, of which one is empty."""
    items, total, copied = [1], torch.zeros(3), torch.zeros(3)
    if started:
        items = []
    for _ in items:
        total.add_(weight)
    for _ in [item for item in items]:
        copied.add_(weight)
    total, copied


def too_short_on_one_way():
    """What is left of the shorter one is nothing."""
    items, total, tail = [1, 2], torch.zeros(3), torch.zeros(3)
    if not started:
        items.append(3)
    for _ in items[2:]:
        total.add_(weight)
    for _ in list(items)[-1:]:
        tail.add_(weight)
    total, tail


def after_a_loop():
    """The loop goes on before it comes to the change: what is built in is true."""
    items, total = [1], torch.zeros(3)
    for _ in range(3):
        if len and functools.partial(max, 1) and torch.no_grad():
            continue
        items = []
    for _ in [weight for _ in items][1:]:
        total.add_(weight)
    total


def longer_on_one_way():
    """It is short enough on no way: the loop always adds something."""
    items, total = [weight, weight * 2], torch.zeros(3)
    if started:
        items.append(weight.exp())
    for one in items:
        total = total + one
    total.sum().backward()
    total, weight.grad


if __name__ == "__main__":
    filled_on_one_way()
    another_on_one_way()
    too_short_on_one_way()
    after_a_loop()
    longer_on_one_way()
