"""What introductions to `Tensor.detach()` say: memory, numpy, target networks. Each claim is run.

Every function shows a piece of code as they show it, and says in comments what torch 2.13 really does.
`python examples/article_tensor_detach.py` runs them all; the assertions are the measurements.
"""

import copy

import torch
import torch.nn.functional as F
from torch import nn


def shared_memory():
    """True: `y` is the storage of `x` by another name, so the edit shows in both. Nothing is copied."""
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x.detach()
    y[0] = 99.0
    assert x.tolist() == [99.0, 2.0, 3.0] and x.requires_grad
    assert y.data_ptr() == x.data_ptr()


def unnoticed_edits():
    """Said: such edits go unnoticed by the graph. For detach they do not; for numpy they do.

    An array has no version counter. Backward uses what was written into it, and raises nothing.
    """
    x = torch.ones(3, requires_grad=True)
    out = x.exp()
    alias = out.detach()
    alias *= 0
    try:
        out.sum().backward()
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error)
    else:
        raise AssertionError("torch accepted it")

    out = x.exp()
    array = out.detach().numpy()
    array *= 0
    out.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]  # and not e


def numpy_is_no_detach():
    """Said: `.numpy()` is a detach too. False: it refuses, unless it is forced or grad mode is off."""
    weight = torch.ones(3, requires_grad=True)
    doubled = weight * 2
    try:
        doubled.numpy()
    except RuntimeError as error:
        assert "Use tensor.detach().numpy() instead" in str(error)
    else:
        raise AssertionError("torch accepted it")
    return doubled.detach().numpy(), doubled.numpy(force=True)


def a_target_network(detached):
    """Said: the next state must be detached, or the gradient reaches the target network. False.

    What keeps the target out is `no_grad` (or detaching its *output*). Detaching the input of a
    network protects what made the input, and not the network. And what was computed under `no_grad`
    has no graph that another `.detach()` could remove.
    """
    network = nn.Linear(3, 2)
    target = copy.deepcopy(network)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    states, following, rewards = torch.randn(8, 3), torch.randn(8, 3), torch.rand(8)
    with torch.no_grad():
        best = target(following.detach() if detached else following).max(1).values
    wanted = rewards + 0.9 * best
    loss = F.mse_loss(network(states).max(1).values, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    assert target.weight.grad is None and network.weight.grad is not None


def a_second_backward(careful):
    """Said: a wrong detach shows as "backward through the graph a second time". A *missing* one does.

    A wrong one shows as a gradient that is None, and as no error at all.
    """
    cell, head = nn.GRUCell(2, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
    h = torch.zeros(3, 4)
    for x in torch.randn(2, 3, 2):
        h = cell(x, h.detach() if careful else h)
        loss = head(h).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def backward_on_a_detached_tensor():
    """Said: `d.backward()` fails since the graph was freed. `d` never had one, and `b` still has."""
    a = torch.ones(3, requires_grad=True)
    b = (a * 2).sum()
    c = b.detach()
    d = c * 3
    try:
        d.backward()
    except RuntimeError as error:
        assert "does not require grad" in str(error)
    else:
        raise AssertionError("torch accepted it")
    (d + b).backward()
    assert a.grad.tolist() == [2.0, 2.0, 2.0]


def metrics():
    """Said: metrics pollute the graph unless they are under `no_grad`. Numbers of hits never do.

    A metric that is computed from the output by differentiable ops does: `error` here has a graph.
    """
    model = nn.Linear(4, 3)
    logits, labels = model(torch.randn(8, 4)), torch.randint(3, (8,))
    hits = (logits.argmax(1) == labels).float().mean()
    error = (logits.softmax(1) - F.one_hot(labels, 3)).abs().mean()
    assert not hits.requires_grad and error.requires_grad
    return hits.item(), error.item()


def both_at_once(model, x):
    """Said: detach and `no_grad` together are the standard for inference. `no_grad` is enough."""
    model.eval()
    with torch.no_grad():
        scores = model(x)
    assert scores.grad_fn is None and not scores.requires_grad
    return scores.argmax(1)


def main():
    """Run every function."""
    torch.manual_seed(0)
    shared_memory()
    unnoticed_edits()
    numpy_is_no_detach()
    a_target_network(detached=True)
    a_target_network(detached=False)
    a_second_backward(careful=True)
    try:
        a_second_backward(careful=False)
    except RuntimeError as error:
        assert "a second time" in str(error)
    else:
        raise AssertionError("torch accepted it")
    backward_on_a_detached_tensor()
    metrics()
    both_at_once(nn.Linear(4, 3), torch.randn(8, 4))
    print("all claims were measured")


if __name__ == "__main__":
    main()
