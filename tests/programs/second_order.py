"""Gradients of gradients, and transforms of functions: which of them have a graph of their own."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import grad, grad_and_value, jacrev, jvp, vjp, vmap

plain, asking = torch.ones(3, 3), torch.ones(3, 3, requires_grad=True)
layer = nn.Linear(3, 3)


def second(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return torch.autograd.grad(output, target, create_graph=True, allow_unused=True)[0]


def gradients_with_a_graph() -> None:
    """A gradient depends on what its ops have kept, unless they kept it only to know where it goes."""
    second((asking * plain).sum(), asking), second((asking * asking).sum(), asking), second((asking * 2).sum(), asking)
    second((asking + plain).sum(), asking), second(asking.exp().sum(), asking), second(layer(asking).sum(), asking)
    second(asking.max(0).values.sum(), asking), second(asking.clamp(-1, 1).sum(), asking)
    second(asking.gather(0, plain.long()).sum(), asking), second(F.mse_loss(asking, plain), asking)
    weighted = asking * 1
    weighted.mul_(plain)
    second(weighted.sum(), asking)
    zeroed = asking * 3
    zeroed.fill_(0.5)
    second((zeroed * zeroed).sum(), asking), second((asking.sign() * asking).sum(), asking)
    second(zeroed.exp().sum() + asking.exp().sum(), asking)
    linear, squared = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    (linear * 3).sum().backward(create_graph=True)
    (squared * squared).sum().backward(create_graph=True)
    linear.grad * 1, squared.grad * 1
    (none,) = torch.autograd.grad(squared.sum(), linear, allow_unused=True)
    none is None


def transforms() -> None:
    """What is read from outside counts as much as what is handed in."""
    grad(lambda x: (x * plain).sum())(plain), grad(lambda x: (x * plain).sum())(asking)
    grad(lambda x: (x * asking).sum())(plain), grad(lambda x: (x * x).sum())(asking)
    grad(lambda x: (x.exp() * plain).sum())(asking), grad(lambda x, y: (x * y).sum())(plain, asking)
    grad_and_value(lambda x, y: (x * y).sum(), argnums=(0, 1))(asking, asking)
    jacrev(lambda x: x * asking)(plain), jacrev(lambda x: x * 2)(asking), jacrev(lambda x: x.exp())(asking)
    zeroed = asking * 1
    zeroed.fill_(0.5)
    jacrev(lambda x: x * zeroed)(plain)
    jvp(lambda x: x * 2, (plain,), (asking,))[1], jvp(lambda x: x * asking, (plain,), (plain,))[0]
    vmap(lambda x: x * asking)(plain), vjp(lambda x: x, plain)[0]
    reached = torch.autograd.grad(grad(lambda x: (x * zeroed).sum())(plain).sum(), zeroed, allow_unused=True)[0]
    if reached is None:
        reached = asking
    reached * 1
    with torch.no_grad():
        grad(lambda x: (x * asking).sum())(asking)


def one_of_two(which: float) -> None:
    """Of two that a name may stand for, one does not require grad."""
    either = asking.floor() if which > 1 else plain
    vjp(lambda x: x, either)[0], vmap(lambda x: x)(either)


def in_inference_mode() -> None:
    """`enable_grad`, which derivatives use, does not leave it; transforms have tensors of their own."""
    with torch.inference_mode():
        torch.autograd.functional.jacobian(lambda x: x.sum(0), torch.ones(3))
        torch.autograd.functional.hessian(lambda x: x.sum(), torch.ones(3))
        blind = torch.ones(3)
    grad(lambda x: (x * blind).sum())(blind)


if __name__ == "__main__":
    gradients_with_a_graph()
    transforms()
    one_of_two(0.5)
    in_inference_mode()
