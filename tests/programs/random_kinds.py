"""What random programs showed: each function is one kind of thing that the dry run once had wrong."""

import contextlib
import copy
from collections import deque

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical, Independent, Normal


def parameters_of_distributions() -> None:
    """Some are kept as they are given, from others something is computed at once."""
    loc, logits = torch.zeros(3), torch.zeros(3)
    normal, categorical = Normal(loc, 1.0), Categorical(logits=logits)
    wide = Independent(Normal(loc, torch.ones(3, requires_grad=True)), 1)
    loc.requires_grad_()
    logits.requires_grad_()
    normal.rsample(), normal.log_prob(torch.ones(3)), normal.entropy(), normal.stddev, wide.entropy()
    categorical.entropy(), categorical.log_prob(categorical.sample())
    with torch.no_grad():
        made_blind = Categorical(probs=torch.ones(3, requires_grad=True)), Normal(loc, 1.0)
    made_blind[0].entropy(), made_blind[1].rsample()


def views_ask_as_their_base_does() -> None:
    base = torch.ones(3, 3)
    whole, row, (first, _, _) = base.squeeze(), base[0], base.unbind(0)
    base.requires_grad_()
    whole, row, first, whole * 2, first + 1
    with torch.no_grad():
        base.add_(1)
    whole, row
    base.requires_grad_(False)
    other = torch.ones(3, 3)
    kept = other.t()
    other.data = torch.zeros(3, 3)
    other.requires_grad = True
    kept * 2
    product = torch.ones(3, requires_grad=True) * 2
    with torch.no_grad():
        blind = product[:]
    blind.requires_grad_(False)
    blind * 2


def perhaps_in_place(number: float) -> None:
    """What one of two was changed to is not what the other is."""
    view = torch.ones(3, 3).swapdims(0, 1)
    view.requires_grad_()
    either = view.exp() if number else view
    either.mul_(2)
    view.requires_grad_(False)
    view * 2
    whole = torch.ones(3, 3)
    first, both = whole.t(), {"a": whole.t()}
    whole.uniform_()
    first.requires_grad_()
    whole.requires_grad_()
    first, both["a"], first * 2
    kept = nn.Parameter(whole.detach())
    whole.data.add_(1)
    with torch.no_grad():
        other = torch.ones(3)
    other += kept.sum()
    other[()] += 1
    held = torch.einsum("ij,jk->ik", torch.from_numpy(np.ones((3, 3), dtype=np.float32)), kept)
    with torch.inference_mode():
        held.index_add_(0, torch.arange(3), torch.ones(3, 3))
    held


def views_are_made_again() -> None:
    """When what they share storage with was changed behind their back."""
    view = (torch.ones(3, 3, requires_grad=True) * 2).t()
    view.detach().relu_()
    view.grad_fn, view
    plain = torch.ones(3)
    parameter = nn.Parameter(plain.detach())
    part = parameter[1]
    plain[0] += part
    part
    blind = torch.ones(3, 3)
    in_view = blind[None]
    in_view.requires_grad_()
    with torch.no_grad():
        in_view[0], in_view
    with contextlib.suppress(RuntimeError):
        parameter.expand(3, 3).mul_(2)
    parameter


def data_counts_its_changes_by_itself() -> None:
    """And so do its views and what is detached from it."""
    weight, asking = nn.Linear(3, 3).weight, torch.ones(3, 3, requires_grad=True)
    data = weight.data
    data += asking
    view, of_weight = data.t(), weight.t()
    with torch.no_grad():
        data.fill_(1.0)
    view, of_weight
    data.detach().zero_()
    view, of_weight
    detached = weight.detach()
    detached[0] = asking[0]
    other = detached.t()
    with torch.no_grad():
        weight.add_(1.0)
    of_weight, other, view


def an_optimizer_writes_what_it_owns() -> None:
    """A view that is older than the wish for a gradient gets its grad_fn when it is asked for one after the step."""
    owned = torch.ones(3, 3).tanh()
    wide = owned.expand_as(torch.ones(3, 3))
    optimizer = torch.optim.SGD([owned], lr=0.1, momentum=0.9)
    owned.requires_grad = True
    view = owned.t()
    optimizer.step()
    wide, view
    for _ in range(2):
        (wide * 2).sum().backward()
        optimizer.step()
    wide, view, wide.sum(), view.sum()


def strides_choose_the_node() -> None:
    """Of what has gaps in memory, reshaping is another node."""
    real = torch.fft.fft(torch.ones(3, 3, requires_grad=True)).real
    real.flatten(), real.reshape(9), torch.flatten(real), nn.Flatten(0)(real), real.t().flatten(), real.ravel()


def a_product_keeps_a_factor_for_the_other() -> None:
    """Where the other asks for no gradient, this one may be changed."""
    factor, plain = torch.ones(3, 3, requires_grad=True) * 2, torch.ones(3)
    made = [factor[0] @ plain, (factor @ plain).sum(), (plain @ factor).sum(), torch.matmul(factor, factor.detach() * 2)]
    factor.fill_(0.5)
    for one in made:
        one.sum().backward(retain_graph=True)
    made[0], made[1]


def transforms_inside_transforms() -> None:
    """What requires grad outside of both does not inside."""
    plain = torch.ones(3, 3)
    outer = plain.detach().requires_grad_().expand(3, 3)
    made, pull = torch.func.vjp(lambda x: x * torch.func.grad(lambda y: (y * outer).sum())(plain), plain)
    made, pull(made)


def what_takes_only_a_dtype_takes_no_values() -> None:
    """A loss does not depend on the number that is behind the dtype of another."""
    owned = torch.ones(3, 3).clamp(min=0)
    other = torch.optim.SGD([owned], lr=0.1)
    owned.requires_grad = True
    listed = torch.tensor(owned.tolist())
    layer = nn.Linear(3, 3)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    for _ in range(2):
        loss = layer(torch.ones(3, 3).type_as(listed).view_as(listed).to(listed)).sum()
        optimizer.zero_grad()
        loss.backward()
        other.step()


def one_of_two_modules(number: float) -> None:
    """What torch refuses for one of them it may not refuse for the other."""
    layer = nn.Linear(3, 3)
    with torch.inference_mode():
        either = layer if number else copy.deepcopy(layer)
    either.requires_grad_()
    either.weight


def transforms_wrap_what_is_the_same() -> None:
    row = torch.ones(3, 3)[None][0]
    torch.func.jvp(lambda x: x * row.cpu(), (row,), (row,))[1]
    torch.func.vmap(lambda x: x * row.cpu())(row)
    torch.func.grad(lambda x: (x * row.cpu()).sum())(row)
    torch.func.jacfwd(lambda x: x * row.contiguous())(row)


def functions_of_a_loop_keep_their_defaults() -> None:
    for _ in [x for x in [torch.ones(3), torch.zeros(3)] if x.sum() < 9]:
        kept = lambda x, y=nn.Linear(3, 3)(torch.ones(3)): x + y  # noqa: E731

        def other(x: torch.Tensor, y: torch.Tensor = nn.Linear(3, 3)(torch.ones(3))) -> torch.Tensor:  # noqa: B008
            return x * y

    kept(torch.ones(3)), kept(kept(torch.ones(3))), other(torch.ones(3))


def a_base_that_nobody_sees_is_not_asked() -> None:
    """What is a view of something made inside an op asks by itself, and its views do not."""
    repeated, cloned = torch.ones(3, 3).repeat_interleave(1, 0), torch.ones(3, 3).clone()
    asking = torch.ones(3, 3, requires_grad=True).repeat_interleave(1, 0)
    repeated.requires_grad = cloned.requires_grad = True
    with torch.no_grad():
        repeated.expand(3, 3), repeated[0], asking.expand(3, 3), cloned.expand(3, 3)


def operands_that_may_be_no_tensors(number: float) -> None:
    """None would raise; a number leaves the operator to the tensor beside it."""
    asking = torch.ones(3, requires_grad=True) * 1
    several = {k: x * 2 for k, x in zip("ab", [x for x in [asking, asking] if x.sum() < 9])}
    several.get("b") - asking, several.get("b") / asking, several.get("b") ** asking, asking - several.get("b")
    either = torch.ones(3) if number else 2.0
    either - asking, either / asking, either @ asking if number else asking, asking - either


def gradients_for_what_may_have_been_changed() -> None:
    """Where it was, what came before does not lead to it, and nothing is freed."""
    weight = torch.ones(3, 3, requires_grad=True)
    perhaps = (weight * 1).flip(0).type_as(weight)
    made = (perhaps.view_as(weight) @ torch.ones(3, 3))[:, None] * torch.ones(3)
    perhaps.sub_(perhaps)
    for _ in range(2):
        torch.autograd.grad(made.sum(), perhaps, allow_unused=True)


def a_view_is_written_with_what_was_detached_from_it() -> None:
    """The leaf that is written shares its storage, and it is no view of that leaf."""
    perhaps = torch.autograd.functional.jacobian(lambda x: x.sum(0), torch.ones(3, 3))
    row = perhaps[0]
    for _ in range(3):
        row.copy_(row.detach().requires_grad_())
    row


def gradients_that_are_not_there() -> None:
    x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    made = (x * 2).exp()
    (none,) = torch.autograd.grad(made.sum(), y, allow_unused=True, retain_graph=True)
    (some,) = torch.autograd.grad(made.sum(), x, allow_unused=True, create_graph=True)
    some * 2
    if none is None:
        none = y
    none * 2
    late = made.clamp(0)
    (flat,) = torch.autograd.grad((late * torch.ones(3)).sum(), late, create_graph=True)
    flat + 1


def containers() -> None:
    x, y = torch.ones(3, requires_grad=True), torch.zeros(3)
    short = deque([x, y], maxlen=2)
    short.append(y)
    short[0] * 2
    several = [x, y, y]
    several.insert(1, y * 3)
    several.reverse()
    several[0], several[2]
    for number, one in enumerate(several):
        one + number
    for one in several:
        several[-1] = y
        one * 2
    both = {"a": y, "b": y}
    for name, one in both.items():
        both.update(b=x)
        name, one * 2
    both.setdefault("a", x) * 2
    [one for one in several if one.requires_grad] or [x * 2]
    for one in several:
        one * 1


def generators_and_patterns() -> None:
    x = torch.ones(3, requires_grad=True)

    def rows(items):
        for _ in items:
            yield torch.stack([x])

    [row.exp() for row in rows(torch.ones(2))]

    def counted(value, n=3):
        return value if n == 0 else counted(x.detach(), n - 1)

    counted(x) * 2
    match 1:
        case 1:
            y = x * 2
        case _:
            y = x.detach()
    y
    match (x, y.detach()):
        case (first, second):
            first, second
        case other:
            other
    match {"k": y}:
        case {"k": held}:
            held * 2
    (x == None), x.where(x > 0, 0.0), x.where(x > 0, y)  # noqa: E711
    while y.sum() > 1e6:
        y = y.detach()
    y


def wrapped_functions() -> None:
    x, y = torch.ones(3, requires_grad=True), torch.ones(3)
    slope = torch.func.grad(lambda t: (t * t).sum())
    slope(y), slope(x)
    torch.func.vmap(lambda t: t * 2)(x), torch.vmap(lambda t: t + 1)(y)
    value, back = torch.func.vjp(lambda t: t * 2, x)
    value, back(y)
    torch.autograd.functional.jacobian(lambda t: t * 2, x)
    torch.broadcast_tensors(x, y)[1], torch.broadcast_tensors(x, y)[0]
    out = torch.zeros(3)
    torch.add(y, y, out=out)
    out[:], out[...], torch.ones(3, 3)[..., :], (x * 2)[0:3,]


def inference() -> None:
    x, y = torch.ones(3, requires_grad=True) * 2, torch.ones(3)
    with torch.inference_mode():
        x.detach_()
        y.data = torch.zeros(3)
        nn.utils.clip_grad_norm_([torch.ones(1)], 1.0), torch.from_numpy(np.ones(2))
        nn.Linear(2, 2).state_dict()["weight"]
        kept = torch.ones(3) * 2
    x, y, y.expand(3, 3), kept.repeat(2)


def hooks() -> None:
    layer, x = nn.ReLU(inplace=True), torch.ones(3, requires_grad=True)
    layer.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    layer(x), x, nn.Identity()(None)


if __name__ == "__main__":
    parameters_of_distributions()
    views_ask_as_their_base_does()
    views_are_made_again()
    data_counts_its_changes_by_itself()
    a_view_is_written_with_what_was_detached_from_it()
    an_optimizer_writes_what_it_owns()
    strides_choose_the_node()
    a_product_keeps_a_factor_for_the_other()
    transforms_inside_transforms()
    what_takes_only_a_dtype_takes_no_values()
    one_of_two_modules(torch.ones(1).item())
    transforms_wrap_what_is_the_same()
    functions_of_a_loop_keep_their_defaults()
    a_base_that_nobody_sees_is_not_asked()
    operands_that_may_be_no_tensors(torch.ones(1).item())
    gradients_for_what_may_have_been_changed()
    perhaps_in_place(torch.ones(1).item())
    gradients_that_are_not_there()
    containers()
    generators_and_patterns()
    wrapped_functions()
    inference()
    hooks()
