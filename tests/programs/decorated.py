"""Functions inside context managers and objects that decorate them, and ways out of managers of the file."""

import contextlib
import functools

import torch
from torch.func import vmap

w = torch.ones(3, requires_grad=True)


class Detaching:
    """A decorator that is a class: what it makes can be called."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *args):
        return self.function(*args).detach()


class Scale:
    """A decorator that is an object."""

    def __init__(self, by):
        self.by = by

    def __call__(self, function):
        @functools.wraps(function)
        def inner(*args):
            return function(*args) * self.by

        return inner


class Blind(contextlib.ContextDecorator):
    def __enter__(self):
        self.before = torch.is_grad_enabled()
        torch.set_grad_enabled(False)
        return self

    def __exit__(self, *raised):
        torch.set_grad_enabled(self.before)


@contextlib.contextmanager
def quiet():
    with torch.no_grad():
        yield w * 2


@Detaching
def detached(x):
    return x * w


@Scale(2.0)
def scaled(x):
    return x * w


@vmap
def rows(x):
    return x * 2


@torch.func.grad
def slope(x):
    return (x**2).sum()


@torch.jit.script
def scripted(x):
    return x * 2


@Blind()
def blind(x):
    return x * 2


@quiet()
def silent(x):
    return x * 2


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    @quiet()
    def predict(self, x):
        return self.layer(x)

    def forward(self, x):
        return self.layer(x)


detached(w)
scaled(w)
rows(w)
vmap(lambda x: x.detach())(w)
vmap(lambda x: x * w)(torch.ones(2, 3))
slope(w)
for _ in range(3):
    scripted(w)
compiled = torch.jit.script(Net())
compiled(torch.ones(2, 3))
blind(w)
silent(w)
Net().predict(w)
w * 3


# Every way out of a manager passes by its end.
def returns(x):
    with Blind():
        return x * 2


def may_return(x):
    with Blind():
        if x.sum().item() > 100:
            return x * 2
        x * 4
    return x * 5


def raises(x):
    try:
        with Blind():
            raise ValueError
    except ValueError:
        return x * 2


returns(w)
w * 3
may_return(w)
w * 3
raises(w)
w * 3
for number in range(2):
    with Blind():
        if number == 0:
            continue
        w * number
    w * 4
w * 5

# What is entered on a stack lasts as long as that does.
with contextlib.ExitStack() as stack:
    entered = stack.enter_context(quiet())
    entered
    w * 2
w * 2
with contextlib.ExitStack() as stack:
    stack.enter_context(Blind())
    w * 2
w * 2
chosen = quiet() if w.sum() > 0 else contextlib.nullcontext()
with chosen:
    w * 2
w * 2


def wrapped(function):
    def wrapper(*args):
        return function(*args)

    return wrapper


@wrapped
def cut(x):
    return x.detach() * 2


@wrapped
def cut_again(x):
    return wrapped(cut)(cut(x)) + 1


cut(w)
cut_again(w)
