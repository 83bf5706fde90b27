"""Functions that make functions, defaults, keywords, recursion, globals, decorators and partials."""
import functools

import torch

w = torch.ones(2, requires_grad=True)
calls = 0


def scaled_by(factor):
    def apply(x):
        return x * factor

    return apply


def counted(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        global calls
        calls += 1
        return function(*args, **kwargs)

    return wrapper


@counted
def shift(x, by=None, *, negative=False):
    if by is None:
        by = torch.zeros_like(x)
    return x - by if negative else x + by


def power(x, n):
    return x if n == 0 else x * power(x, n - 1)


def both(*tensors, **named):
    return tensors[0] + named["other"]


def accumulate():
    total = torch.zeros(2)

    def add(x):
        nonlocal total
        total = total + x
        return total

    return add


double = scaled_by(2.0)
double(w)
by_weight = scaled_by(w)
by_weight(torch.ones(2))
by_weight(torch.ones(2).detach())
shift(torch.ones(2))
shift(torch.ones(2), w)
shift(w, by=torch.ones(2), negative=True)
power(w, 3)
both(torch.ones(2), other=w)
both(*[w, w], **{"other": torch.ones(2)})
add = accumulate()
add(torch.ones(2))
add(w)
late = [lambda x, k=k: x * k for k in (1, 2)]
late[0](w)
halve = functools.partial(torch.mul, 0.5)
halve(w)
(lambda x: x.detach())(w)
list(map(double, [w, torch.ones(2)]))
functools.reduce(lambda a, b: a + b, [torch.ones(2), w])
result = None
for x in (torch.ones(2), w):
    result = x if result is None else result + x
result
