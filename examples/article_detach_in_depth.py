"""What articles say of `detach()` in depth: graphs, leaks, policies, metrics, freezing. Each claim is run.

Every function shows a piece of code as articles show it, and says in comments what torch 2.13 really does.
`python examples/article_detach_in_depth.py` runs them all; the assertions are the measurements.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical, Normal


def saved_bytes(build):
    """What `build()` returns, and how many bytes autograd saved for backward while it ran."""
    total = 0

    def count(tensor):
        nonlocal total
        total += tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        result = build()
    return result, total


def a_graph():
    """True: each op leaves a node, and detach shares the storage without the graph."""
    a = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    b = a**2
    c = b.detach()
    assert type(b.grad_fn).__name__ == "PowBackward0"
    assert c.grad_fn is None and c.data_ptr() == b.data_ptr()
    b.sum().backward()
    assert a.grad.tolist() == [2.0, 4.0, 6.0]


def loss_that_left_torch():
    """Said: `loss.detach().cpu().numpy()` in a loss function was the cause of a slow leak.

    It keeps nothing: an array has no graph. What is wrong is that nothing can be trained any more,
    and torch says so at once: an array has no `backward`.
    """
    model = nn.Linear(4, 1)
    out = model(torch.randn(8, 4))
    loss = (out - 1).pow(2).mean().detach().cpu().numpy()
    try:
        loss.backward()
    except AttributeError as error:
        assert "backward" in str(error)
    else:
        raise AssertionError("torch accepted it")


def data_and_detach():
    """Said: detach is safer than `.data` by convention only. In truth it is the version counter.

    `.detach()` shares the counter with its source, so backward notices the edit and raises.
    `.data` has one of its own, so backward runs and the gradient is wrong.
    """
    x = torch.randn(3, requires_grad=True)
    out = x.sigmoid()
    out.data.zero_()
    out.sum().backward()
    assert out._version == 0 and x.grad.tolist() == [0.0, 0.0, 0.0]

    out = x.sigmoid()
    blank = out.detach()
    blank.zero_()
    assert out._version == 1
    try:
        out.sum().backward()
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error)
    else:
        raise AssertionError("torch accepted it")


def a_frozen_backbone():
    """Said: freezing is not enough, the features must be detached as well. False.

    With plain inputs a frozen module builds no graph and saves nothing. What freezing does not stop
    is batch norm: in train mode its running mean moves on.
    """
    backbone = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4)).requires_grad_(
        False
    )
    mean = backbone[1].running_mean.clone()
    features, size = saved_bytes(lambda: backbone(torch.randn(16, 4)))
    assert not features.requires_grad and size == 0
    assert not torch.equal(backbone[1].running_mean, mean)


def when_detach_frees():
    """Said: detaching frees the memory of the part before it at once. False.

    The graph lives as long as anything holds it, and `h` does.
    """
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64))
    h, size = saved_bytes(lambda: model(torch.randn(32, 64)))
    features = h.detach()
    assert size > 0 and h.grad_fn is not None
    h = features
    assert h.grad_fn is None


def a_policy_gradient():
    """Said: without `action.detach()` the gradient flows through `sample()`. False.

    `sample()` never requires grad; with and without the detach the gradients are equal to the bit.
    The one that flows is `rsample()`: its `log_prob` has to be taken at a detached action.
    """
    policy = nn.Linear(3, 2)
    states = torch.randn(8, 3)
    distribution = Categorical(logits=policy(states))
    action = distribution.sample()
    assert not action.requires_grad
    plain = torch.autograd.grad(-distribution.log_prob(action).mean(), policy.weight, retain_graph=True)[0]
    careful = torch.autograd.grad(-distribution.log_prob(action.detach()).mean(), policy.weight)[0]
    assert torch.equal(plain, careful)

    mean = torch.zeros(3, requires_grad=True)
    normal = Normal(mean, torch.ones(3))
    move = normal.rsample()
    lost = torch.autograd.grad(normal.log_prob(move).sum(), mean, retain_graph=True)[0]
    right = torch.autograd.grad(normal.log_prob(move.detach()).sum(), mean)[0]
    assert lost.tolist() == [0.0, 0.0, 0.0] and right.abs().sum() > 0


def an_accuracy():
    """Said: a metric through argmax keeps the graph, and `.cpu().numpy()` on it is dangerous. False, twice.

    What argmax returns is a tensor of integers: it has no graph and keeps none alive.
    """
    model = nn.Linear(4, 3)
    logits, labels = model(torch.randn(8, 4)), torch.randint(3, (8,))
    guesses = logits.argmax(1)
    accuracy = (guesses == labels).float().mean()
    assert guesses.grad_fn is None and not accuracy.requires_grad
    return accuracy.cpu().numpy()


def a_training_loop(steps):
    """True: a sum of losses keeps a graph for each batch. How bad it is depends on backward.

    After backward only nodes are left, 3.2 KB for a graph of five ops. Without it the activations are.
    """
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total, curve = 0.0, []
    for _ in range(steps):
        loss = F.mse_loss(model(torch.randn(8, 4)), torch.zeros(8, 1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
        curve.append(loss.item())
    assert total.grad_fn is not None
    return total.item() / steps, curve


def an_edit_of_a_detached_tensor():
    """True: the edit of `b` is an edit of `a`, which torch would not have allowed on `a` itself."""
    a = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    b = a.detach()
    b += 10
    assert a.tolist() == [11.0, 12.0, 13.0] and a.requires_grad
    c = a.detach().clone()
    c += 10
    assert a.tolist() == [11.0, 12.0, 13.0]


def a_cut_between_two_layers():
    """Said: with `h` detached between them, the second layer gets no gradient. The first gets none."""
    first, second = nn.Linear(4, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
    h = first(torch.randn(8, 4)).detach()
    loss = second(h).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    assert first.weight.grad is None and second.weight.grad is not None


def an_evaluation():
    """Said: in evaluation, `pred = output.detach()` is the key step. It is grad mode that is.

    `eval()` does not stop autograd, and detaching the output comes too late: what forward saves has
    been saved by then. Under `no_grad` nothing is saved, and there is nothing to detach.
    """
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 4)).eval()
    output, with_grad = saved_bytes(lambda: model(torch.randn(32, 64)))
    guesses = output.detach().argmax(1)
    with torch.no_grad():
        output, without_grad = saved_bytes(lambda: model(torch.randn(32, 64)))
    assert with_grad > 0 and without_grad == 0
    return guesses, output.argmax(1)


def what_may_leave_torch():
    """Said: whatever leaves torch must be detached first. numpy insists; print, item and tolist do not."""
    loss = nn.Linear(4, 1)(torch.randn(8, 4)).pow(2).mean()
    text = f"{loss:.2f} {loss.item():.2f} {loss.tolist():.2f}"
    try:
        loss.numpy()
    except RuntimeError as error:
        assert "requires grad" in str(error)
    else:
        raise AssertionError("torch accepted it")
    with torch.no_grad():
        array = loss.numpy()  # with grad mode off even numpy does not
    return text, array


def main():
    """Run every function."""
    torch.manual_seed(0)
    a_graph()
    loss_that_left_torch()
    data_and_detach()
    a_frozen_backbone()
    when_detach_frees()
    a_policy_gradient()
    an_accuracy()
    a_training_loop(3)
    an_edit_of_a_detached_tensor()
    a_cut_between_two_layers()
    an_evaluation()
    what_may_leave_torch()
    print("all claims were measured")


if __name__ == "__main__":
    main()
