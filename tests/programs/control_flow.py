"""Branches, loops with breaks, exceptions, match, walrus, generators, context managers of one's own, async."""
import asyncio
import contextlib

import torch

w = torch.ones(2, requires_grad=True)


@contextlib.contextmanager
def frozen(tensor):
    before = tensor.requires_grad
    tensor.requires_grad_(False)
    try:
        yield tensor
    finally:
        tensor.requires_grad_(before)


def choose(x, kind):
    match kind:
        case "detach":
            return x.detach()
        case "double":
            return x * 2
        case int() as n if n > 0:
            return x ** n
    return None


def first_large(tensors):
    for tensor in tensors:
        if tensor.sum() > 3:
            found = tensor
            break
    else:
        found = torch.zeros(2)
    return found


def risky(x, fails):
    try:
        if fails:
            raise RuntimeError("no")
        result = x * 2
    except RuntimeError:
        result = x.detach()
    else:
        result = result + 1
    finally:
        x = None
    return result


def stream(n):
    total = torch.zeros(2)
    for i in range(n):
        total = total + w * i
        yield total.detach()
    return total


async def later(x):
    await asyncio.sleep(0)
    return x * 2


with frozen(w) as still:
    still
    still * 2
w
choose(w, "detach")
choose(w, "double")
choose(w, 2)
first_large([w, w * 3])
first_large([w])
risky(w, True)
risky(w, False)
for item in stream(3):
    item
total, i = torch.zeros(2), 0
while i < 3:
    i += 1
    if i == 2:
        continue
    total = total + w
total
if (loss := total.sum()).item() > 0:
    loss.backward()
w.grad
asyncio.run(later(w))
state = None
for step in range(3):
    state = w if state is None else state.detach() * w
state
x = w if torch.rand(1).item() > 2 else w.detach()
x
y = w.detach() or w if False else w
y
pairs = [(a, b) for a in (w, w.detach()) for b in (1, 2) if b > 1]
pairs[0][0]
assert w.requires_grad, "it does"
del total
