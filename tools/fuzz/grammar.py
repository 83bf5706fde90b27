"""What random programs are made of: templates by the kind of value that they give.

A hole names a kind: `{m}` is any expression of that kind, `{m!}` a variable of it. Kinds: `m` a 3 by 3 tensor,
`v` one of 3, `s` one without dimensions, `i` three indices, `b` a 3 by 3 mask, `n` a number, `f` what maps an
`m` to an `m`, `l` a list and `t` a tuple of `m` (two at least), `d` a dict of `m` under "a" and "b", `o` an
object with an `m` under `.h`, `c` a distribution over three choices, `q` a normal distribution, `w` a
Linear layer, `z` an optimizer.
"""

PRELUDE = """\
import asyncio
import contextlib
import copy
import dataclasses
import functools
import typing
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Bernoulli, Categorical, Normal
from torch.utils.data import DataLoader, TensorDataset


class Box:
    def __init__(self, h):
        self.h = h

    @property
    def doubled(self):
        return self.h * 2

    def detached(self):
        return self.h.detach()


@dataclasses.dataclass
class Record:
    first: torch.Tensor
    second: torch.Tensor = None
    seen: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        if self.second is None:
            self.second = self.first * 2

    def keep(self, x):
        self.seen.append(x)
        return self.first * x


class Both(typing.NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


class Blind:
    def __init__(self, blind=True):
        self.blind = blind

    def __enter__(self):
        self.before = torch.is_grad_enabled()
        torch.set_grad_enabled(not self.blind)
        return self

    def __exit__(self, *raised):
        torch.set_grad_enabled(self.before)


class Clip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x.abs() < 1)


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(x, factor):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


@contextlib.contextmanager
def quiet(blind=True):
    with torch.set_grad_enabled(not blind):
        yield blind


async def later(x):
    await asyncio.sleep(0)
    return x * 2


def doubling(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs) * 2

    return wrapper


"""

EXPRESSIONS: dict[str, tuple[str, ...]] = {
    "m": (
        "{m} * {m}", "{m} + {m}", "{m} - {v}", "{m} @ {m}", "{m} * 2.0", "{m} / 2.0", "-{m}", "{m} * {s}",
        "{m} * {n}", "2.0 * {m}", "1 - {m}", "{m} ** 2", "{m}.abs() ** {m}", "{m}.exp()", "{m}.sigmoid()",
        "{m}.tanh()", "torch.sin({m})", "{m}.relu()", "F.relu({m})", "F.softmax({m}, dim=-1)", "{m}.abs()",
        "{m}.clamp(-1, 1)", "{m}.clamp(min=0)", "torch.max({m}, {m})", "torch.where({b}, {m}, {m})",
        "{m}.masked_fill({b}, 0.0)", "F.dropout({m}, 0.5)", "F.dropout({m}, 0.5, training=False)",
        "F.linear({m}, {m}, {v})", "F.layer_norm({m}, (3,))", "{m}.cumsum(0)", "{m}.softmax(0).log()",
        "{m}.t()", "{m}.T", "{m}.reshape(9).view(3, 3)", "{m}.reshape(3, 3)", "{m}.contiguous()",
        "{m}.t().contiguous()", "{m}.transpose(0, 1)", "{m}.flatten().reshape(3, 3)", "{m}[:]",
        "{m}[[0, 1, 2]]",
        "{m}[{i}]", "{m}[None][0]", "{m}.squeeze()", "{m}.unsqueeze(0).squeeze(0)", "{m}.expand(3, 3)",
        "{v}.unsqueeze(0).expand(3, 3)", "{v}[:, None] * {v}", "{v}.repeat(3, 1)", "{m}.flip(0)",
        "{m}.clone()", "{m}.detach()", "{m}.data", "{m}.detach().clone()", "{m}.clone().detach()",
        "{m}.detach().requires_grad_()", "{m}.clone().requires_grad_()", "torch.tensor({m}.tolist())",
        "torch.as_tensor({m})", "torch.from_numpy({m}.detach().numpy())", "copy.deepcopy({m}.detach())",
        "torch.zeros_like({m})", "torch.ones_like({m}, requires_grad=True)", "{m}.new_zeros(3, 3)",
        "torch.randn(3, 3)", "torch.randn(3, 3, requires_grad=True)", "nn.Parameter({m}.detach())",
        "nn.Parameter(torch.ones(3, 3), requires_grad=False)", "{m}.float()", "{m}.to(torch.float32)",
        "{m}.double().float()", "{m}.round()", "{m}.long().float()", "{b}.float()", "{m}.cpu()",
        "torch.stack([{v}, {v}, {v}])", "torch.cat([{m}, {m}])[:3]", "torch.stack({l}).mean(0)", "sum({l})",
        "torch.einsum('ij,jk->ik', {m}, {m})", "torch.outer({v}, {v})", "{m}.sort(dim=0).values",
        "{f}({m})", "{f}({m}).detach()", "{f}({f}({m}))", "{w}({m})", "{w}.weight", "Clip.apply({m})",
        "functools.reduce(lambda a, b: a * b, {l})", "(lambda x: x + {m})({m})",
        "{m} if {n} > 0 else {m}", "{m} if {m!}.requires_grad else {m}", "{o}.h", "{o}.doubled",
        "{o}.detached()",
        "{l}[0]", "{l}[-1]", "{t}[1]", "{d}['a']", "{d}.get('b')", "{q}.sample()", "{q}.rsample()",
        "{q}.log_prob({m})",
        "torch.bernoulli({m}.sigmoid())", "list(map({f}, {l}))[0]",
        "max({l}, key=lambda x: x.sum().item())",
        "{m}[:, [0, 1, 2]]", "{m}[0:3, 0:3]", "{m}[..., :]", "{m}[True][0]", "{m}[{b}].sum() * {m}",
        "torch.einsum('ij->ji', {m})", "torch.einsum('ij,j->ij', {m}, {v})", "{m}.index_select(0, {i})",
        "{m}.gather(0, {m}.argsort(0))", "{m}.scatter(0, {m}.argsort(0), {m})", "torch.addmm({m}, {m}, {m})",
        "torch.bmm({m}[None], {m}[None])[0]", "F.normalize({m})", "F.gelu({m})", "F.one_hot({i}, 3).float()",
        "{m}.type_as({m})", "{m}.tril()", "{m}.narrow(0, 0, 3)", "{m}.permute(1, 0)", "{m}.view_as({m})",
        "{m}.expand_as({m})", "{m}.movedim(0, 1)", "{m}.roll(1, 0)", "{m}.sign()", "{m}.floor()",
        "torch.func.grad(lambda x: (x * {m}).sum())({m})", "torch.func.vmap(lambda x: x * 2)({m})",
        "torch.utils.checkpoint.checkpoint({f}, {m}, use_reentrant=False)",
        "torch.func.functional_call({w!}, dict({w!}.named_parameters()), ({m},))",
        "torch.broadcast_tensors({m}, {v})[1]", "torch.full((3, 3), {n})", "torch.full_like({m}, 2.0)",
        "torch.rand_like({m}, requires_grad=True)", "torch.empty(3, 3).copy_({m})",
        "torch.lerp({m}, {m}, 0.5)", "{m}.addcmul({m}, {m})", "{m}.where({b}, {m})",
        "{m}.min(0, keepdim=True)[0].expand(3, 3)", "{m}.logsumexp(0).expand(3, 3)", "{m}.cumprod(0)",
        "F.pad({m}, (1, 0))[:, :3]", "torch.split({m}, 1)[0].expand(3, 3)", "next(iter({l}))",
        "{l}.copy()[0]", "[*{t}][0]", "dict(**{d})['a']", "({d} | {{'a': {m}}})['a']",
        "next(x for x in {l})", "{w}.weight.data", "list({w}.parameters())[0]", "{w}.state_dict()['weight']",
        "dict({w}.named_parameters())['weight']", "torch.from_numpy({m}.detach().numpy().copy())",
        "torch.tensor({m}.detach().numpy())", "torch.as_tensor({m}.detach().numpy())", "getattr({o}, 'h')",
        "Record({m}).first", "Record({m}).second", "Record({m}, {m}).keep({m})", "Both({m}, {m}).left",
        "dataclasses.replace(Record({m}), second={m}).second", "Both({m}, {m})._replace(left={m})[0]",
        "asyncio.run(later({m}))", "nn.GRU(3, 3)({m})[0]", "nn.LSTM(3, 3)({m})[1][0].expand(3, 3)",
        "nn.MultiheadAttention(3, 1)({m}, {m}, {m})[0]", "nn.Embedding(3, 3)({i})", "F.embedding({i}, {m})",
        "torch.func.jvp(lambda x: x * {m}, ({m},), ({m},))[1]", "torch.fft.fft({m}).real", "torch.special.erf({m})",
        "torch.func.grad_and_value(lambda x, y: (x * y).sum())({m}, {m})[0]", "torch.cross({m}, {m}, dim=0)",
        "torch.func.jacrev(lambda x: x * {m})({m}).sum((0, 1))", "torch.tensor_split({m}, 3)[0].expand(3, 3)",
        "torch.linalg.norm({m}, dim=1)[:, None] * {m}", "{m}.ravel().view(3, 3)", "{m}.swapdims(0, 1)",
        "{m}.scatter_add(0, {m}.argsort(0), {m})", "torch.vstack([{v}, {v}, {v}])", "{m}.nan_to_num()",
        "torch.logaddexp({m}, {m})", "{m}.unflatten(0, (3, 1)).squeeze(1)", "{m}.repeat_interleave(1, 0)",
        "F.scaled_dot_product_attention({m}[None], {m}[None], {m}[None])[0]", "F.log_softmax({m}, 0)",
        "F.batch_norm({m}, None, None, training=True)", "F.leaky_relu({m}, 0.1)", "F.hardtanh({m})", "F.silu({m})",
        "torch.addcmul({m}, {m}, {m})", "torch.baddbmm({m}[None], {m}[None], {m}[None])[0]", "torch.kron({s}, {m})",
        "Bernoulli(logits={m}).log_prob({b}.float())", "Bernoulli(probs={m}.sigmoid()).sample()",
        "torch.tensor({m}.detach().numpy().copy(), requires_grad=True)", "{m}.rot90()", "{m}.prod(0).expand(3, 3)",
        "Scale.apply({m}, 2.0)", "doubling({f})({m})", "{m} and {m}", "{m!}.grad or {m}",
        "{m} if {m!}.is_leaf and not {m!}.requires_grad else {m}",
    ),
    "v": (
        "{m}[0]", "{m}[:, 1]", "{m}[-1, :]", "{m}.sum(0)", "{m}.mean(1)", "{m}.max(0).values",
        "{m}.diagonal()",
        "{m}.norm(dim=1)", "{v} * {v}", "{v} + {s}", "{v}.clone()", "{v}.detach()", "{v}.data", "{v}[{i}]",
        "{m} @ {v}", "{m}.unbind(0)[1]", "{m}.chunk(3)[0].squeeze(0)", "{m}.select(0, 2)", "torch.zeros(3)",
        "torch.ones(3, requires_grad=True)", "{w}.bias", "{m}.topk(1, dim=0)[0][0]",
        "{m}.argmax(0).float()",
        "{c}.logits", "{c}.probs", "torch.stack([{s}, {s}, {s}])",
    ),
    "s": (
        "{m}.sum()", "{m}.mean()", "{v}.dot({v})", "{v}[0]", "{m}[1, 2]", "{s} + {s}", "{s} * {n}",
        "{m}.norm()",
        "F.nll_loss(F.log_softmax({m}, 1), {i})", "F.huber_loss({m}, {m})", "F.smooth_l1_loss({m}, {m})",
        "F.binary_cross_entropy_with_logits({m}, {m}.sigmoid())", "F.kl_div({m}, {m}, reduction='batchmean')",
        "torch.dist({m}, {m})", "torch.trace({m})", "torch.linalg.det({m})", "{m}.var()", "{m}.logsumexp((0, 1))",
        "F.mse_loss({m}, {m})", "F.cross_entropy({m}, {i})", "F.l1_loss({m}, {m}, reduction='sum')",
        "{s}.detach()",
        "{m}.max()", "torch.tensor({n})", "torch.zeros(())", "{v} @ {v}", "{c}.entropy()",
        "{c}.log_prob({c}.sample())",
        "{q}.entropy().sum()", "{m}.pow(2).mean()", "nn.MSELoss()({m}, {m})", "{m}.sum().exp()",
    ),
    "i": ("{m}.argmax(0)", "{m}.sort(0).indices[0]", "torch.arange(3)", "{m}.argsort(0)[1]",
    "{m}.max(1)[1]"),
    "b": ("{m} > 0", "{m} <= {m}", "{m}.isnan()", "torch.ones(3, 3, dtype=torch.bool)", "~({m} > 1)",
    "{m} == {m}"),
    "n": ("{s}.item()", "float({s})", "len({m})", "0.5", "1", "{m}.shape[0]", "{m}.dim()",
    "int({m}.requires_grad)"),
    "f": (
        "nn.Tanh()", "nn.ReLU()", "nn.ReLU(inplace=True)", "nn.Dropout(0.5)", "nn.Dropout(0.5).eval()",
        "nn.BatchNorm1d(3)", "nn.LayerNorm(3)", "nn.Identity()",
        "nn.Sequential(nn.Linear(3, 3), nn.Tanh())",
        "nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True), nn.Linear(3, 3, bias=False))",
        "nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).eval()", "nn.Linear(3, 3).requires_grad_(False)",
        "torch.tanh", "F.softplus", "functools.partial(torch.add, {m})",
        "functools.partial(F.softmax, dim=0)",
        "lambda x: x * {m}", "lambda x: x.detach()", "lambda x, y={m}: x + y", "copy.deepcopy({f!})",
        "{w!}", "Record({m}).keep", "nn.DataParallel({w})", "nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))",
        "nn.PReLU()", "nn.Conv1d(3, 3, 1)", "nn.GroupNorm(1, 3)", "nn.Hardswish()", "nn.Softmax(dim=0)",
    ),
    "l": (
        "[{m}, {m}]", "[{m}, {m}, {m}]", "[x * 2.0 for x in {l}]", "[{f}(x) for x in {l}]", "list({t})",
        "[x.detach() for x in {l}]", "list({d}.values())", "{l} + [{m}]", "[*{l}, {m}]", "{l}[:2]",
        "list(reversed({l}))",
        "[x for x in {l} if x.sum() < 1e9]", "list({l}[i] for i in range(2))",
        "sorted({l}, key=lambda x: x.sum().item())",
    ),
    "t": ("({m}, {m})", "tuple({l})", "tuple(x + 1 for x in {l})", "torch.stack([{m}, {m}]).unbind(0)",
    "torch.cat([{m}, {m}]).chunk(2)"),
    "d": ("{{'a': {m}, 'b': {m}}}", "dict(a={m}, b={m})", "{{k: x * 2 for k, x in {d}.items()}}",
    "{{**{d}, 'b': {m}}}", "dict(zip('ab', {l}))"),
    "o": ("Box({m})", "copy.copy({o!})"),
    "c": ("Categorical(logits={v})", "Categorical(probs={v}.abs() + 0.1)"),
    "q": ("Normal({m}, 1.0)", "Normal({m}, {m}.abs() + 0.1)"),
    "w": ("nn.Linear(3, 3)", "nn.Linear(3, 3).eval()", "copy.deepcopy({w})"),
    "z": (
        "torch.optim.SGD({w}.parameters(), lr=0.1)", "torch.optim.Adam({w}.parameters(), lr=0.1)",
        "torch.optim.RMSprop([{{'params': {w}.parameters(), 'lr': 0.1}}, {{'params': [{m!}]}}])",
        "torch.optim.SGD([{m!}], lr=0.1, momentum=0.9)", "torch.optim.AdamW([*{w}.parameters()], lr=0.1)",
    ),
}  # fmt: skip
"""Expressions by their kind."""

LAST_RESORT = {
    "m": "torch.ones(3, 3)", "v": "torch.ones(3)", "s": "torch.tensor(1.0)", "i": "torch.arange(3)",
    "b": "torch.ones(3, 3, dtype=torch.bool)", "n": "1", "f": "nn.Tanh()",
    "l": "[torch.ones(3, 3), torch.zeros(3, 3)]",
    "t": "(torch.ones(3, 3), torch.zeros(3, 3))", "d": "{{'a': torch.ones(3, 3), 'b': torch.zeros(3, 3)}}",
    "o": "Box(torch.ones(3, 3))", "c": "Categorical(logits=torch.zeros(3))",
    "q": "Normal(torch.zeros(3, 3), 1.0)",
    "w": "nn.Linear(3, 3)",
    "z": "torch.optim.SGD(nn.Linear(3, 3).parameters(), lr=0.1)",
}  # fmt: skip
"""Where expressions are nested too deep to go on."""

STATEMENTS = (
    "{m!}.add_({m})", "{m!}.mul_(0.5)", "{m!} += {m}", "{m!} *= 2.0", "{m!} = {m!} - {m}", "{m!}[0] = 0.0",
    "{m!}[1] = {v}", "{m!}[{b}] = 0.5", "{m!}[:, 0] += {v}", "{v!}.zero_()", "{m!}.copy_({m})",
    "{m!}.t().add_(1.0)",
    "{m!}[0].mul_(2)", "{m!}.clamp_(-1, 1)", "{m!}.relu_()", "F.relu({m!}, inplace=True)",
    "{m!}.data = {m}.detach().clone()",
    "{m!}.data.mul_(0.5)", "{m!}.detach().mul_(0.5)", "{m!}.detach_()", "{m!}.requires_grad_(True)",
    "{m!}.requires_grad_(False)",
    "{m!}.requires_grad = True", "{m!}.grad = None", "nn.init.zeros_({m!})",
    "nn.init.normal_({w!}.weight)", "{m!}.uniform_()",
    "{s!}.backward()", "{s!}.backward(retain_graph=True)", "{m}.sum().backward()", "{m!}.retain_grad()",
    "{o!}.h = {m}", "{l!}.append({m})", "{l!}[0] = {m}", "{l!}.insert(0, {m})", "{l!}.extend({t})",
    "{d!}['a'] = {m}",
    "{d!}.update(b={m})", "{w!}.weight.data.mul_(0.5)", "{w!}.requires_grad_(False)",
    "{w!}.requires_grad_(True)",
    "{w!}.weight.requires_grad = False", "{w!}.weight = nn.Parameter({m}.detach())", "{w!}.zero_grad()",
    "{w!}.train()",
    "{w!}.bias.grad", "{m!}.grad", "{m!}", "{v!}", "{l!}", "{f}({m})",
    "{w!}.load_state_dict(copy.deepcopy({w!}.state_dict()))",
    "nn.utils.clip_grad_norm_({w!}.parameters(), 1.0)", "print({s})", "assert {m!}.shape == (3, 3)",
    "{m!}.register_hook(lambda g: g * 2)", "torch.set_grad_enabled(False)", "torch.set_grad_enabled(True)",
    "torch.set_grad_enabled(True)", "del {l!}[0]", "{l!}.reverse()",
    "{l!}.sort(key=lambda x: x.sum().item())", "{l!} += [{m}]", "{d!}.setdefault('a', {m})",
    "{m!}.detach().numpy()[0] = 1.0", "{m!}.fill_(0.5)", "{m!}.masked_fill_({b}, 0.0)",
    "{m!}.index_fill_(0, {i}, 1.0)", "{m!}.index_add_(0, {i}, {m})", "{m!}.addcmul_({m}, {m})",
    "{m!}.sub_({m})", "{m!}.div_(2.0)", "{m!}.t().copy_({m})", "{m!}[[0, 1]] = {m}[:2]", "{m!}[..., 0] = 1.0",
    "{m!}.grad.zero_()", "{o!}.h.mul_(2)", "{o!}.h += {m}", "{l!}[0] += {m}", "{l!}[0].add_(1.0)",
    "{d!}['a'] *= {m}", "setattr({o!}, 'h', {m})", "{m!}.backward(torch.ones(3, 3))",
    "torch.autograd.backward([{s}])", "torch.autograd.backward({s!}, retain_graph=True)",
    "{m}.sum().backward(inputs=[{m!}])", "F.dropout({m!}, 0.5, inplace=True)",
    "torch.add({m}, {m}, out={m!})", "nn.init.xavier_uniform_({w!}.weight)",
    "{w!}.weight.requires_grad_(True)", "{w!}.apply(lambda q: q.requires_grad_(False))",
    "{z!}.step()", "{z!}.step()", "{z!}.zero_grad()", "{z!}.zero_grad(set_to_none=False)",
    "{m!}.exp_()", "{m!}.neg_()", "{m!}.sigmoid_()", "{m!}.lerp_({m}, 0.5)", "{m!}.t_()", "{m!}.bernoulli_(0.5)",
    "{m!}.scatter_(0, {m}.argsort(0), 1.0)", "torch._foreach_mul_([{m!}, {m!}], 0.5)",
    "with torch.no_grad():\n    {w!}.weight.copy_({m})", "with torch.no_grad():\n    {w!}.weight -= 0.1 * {m}",
    "nn.utils.vector_to_parameters(torch.zeros(12), {w!}.parameters())", "{m!}.grad = {m}",
    "nn.utils.clip_grad_value_({w!}.parameters(), 0.1)", "{w!}.register_full_backward_hook(lambda *_: None)",
    "for {k} in {w!}.parameters():\n    {k}.data.add_(1.0)", "{w!}.register_buffer('kept', {m})",
    "{m!}.register_post_accumulate_grad_hook(lambda x: x.grad.mul_(0.5))", "list(map(print, {l!}))",
    "{z!}.add_param_group({{'params': [{m!}]}})", "{w!}.to(torch.float32)", "{w!}.eval()",
)  # fmt: skip
"""Statements that bind no new name."""

BINDINGS = (
    ("{0} = torch.autograd.grad({m}.sum(), {m!}, allow_unused=True)[0]\nif {0} is None:\n    {0} = {m}", "m"),
    ("({0},) = torch.autograd.grad(({m!} * {m}).sum(), {m!}, create_graph=True)", "m"),
    ("{0}, {1} = {m}.max(0)", "vi"),
    ("{0}, *{1} = {l}", "m "),
    ("{0}, {1} = {t!}[0], {m}", "mm"),
    ("{0}, {1}, {2} = {m}.unbind(0)", "vvv"),
    ("{0} = {1} = {m}", "mm"),
    ("{0} = deque({l}, maxlen=2)\n{0}.append({m})\n{1} = {0}[0]", " m"),
    ("{0} = {l}.pop()", "m"),
    ("({0}, ({1}, {2})) = ({m}, ({v}, {s}))", "mvs"),
    ("if ({0} := {s}) is not None:\n    {0} = {0} * 2", "s"),
    ("with torch.no_grad():\n    {0} = {m}", "m"),
    ("with torch.enable_grad():\n    {0} = {m}", "m"),
    ("try:\n    {0} = {m!}.view(4, 4)\nexcept RuntimeError:\n    {0} = {m}", "m"),
    ("{0} = {m}\nfor {1} in range(2):\n    {0} = {0} * {m}", "m "),
    ("{0} = 0\nfor {1} in {l}:\n    {0} = {0} + {1}.mean()", "s "),
    ("{0} = None\nfor {1} in {l}:\n    {0} = {1} if {0} is None else {0} + {1}", "m "),
    ("{0} = 0.0\nfor {1} in {l}:\n    {0} += {1}.sum().item()", "n "),
    ("{0} = {m}\nwhile {0}.sum() > 1e3:\n    {0} = {0} * 0.5", "m"),
    ("match {n}:\n    case 1:\n        {0} = {m}\n    case _:\n        {0} = {m}", "m"),
    ("match {m!}.dim():\n    case 2 | 3:\n        {0} = {m}\n    case other:\n        {0} = {m}", "m"),
    ("match {t}:\n    case ({0}, {1}):\n        pass\n    case _:\n        {0} = {1} = {m}", "mm"),
    ("try:\n    {0} = {m}\nfinally:\n    {1} = {m}", "mm"),
    ("try:\n    {0} = {m!}.view(4)\nexcept RuntimeError as e:\n    {0} = {m}\nfinally:\n    {1} = {m}", "mm"),
    ("{0} = {m}.detach().numpy()\n{0} *= 2\n{1} = torch.from_numpy({0})", " m"),
    ("{0} = np.ones((3, 3), dtype=np.float32)\n{1} = torch.from_numpy({0})\n{0}[0] = 2.0", " m"),
    ("{0} = [x for x in {l} if x.requires_grad] or [{m}, {m}]", "l"),
    ("{0} = (lambda *xs, **kw: xs[0] + kw['y'])(*{t}, y={m})", "m"),
    ("{0} = iter({l}[:])\n{1} = next({0})\n{2} = next({0})", " mm"),
    ("with ThreadPoolExecutor(1) as {1}:\n    {0} = list({1}.map({f}, {l}))", "l "),
    ("with ThreadPoolExecutor(1) as {1}:\n    {0} = {1}.submit({f}, {m}).result()", "m "),
    ("with contextlib.ExitStack() as {1}:\n    {1}.enter_context(torch.no_grad())\n    {0} = {m}", "m "),
    (
        "match Record({m}, {m}):\n    case Record(first={0}):\n        pass\n    case _:\n        {0} = {m}",
        "m",
    ),
    ("with Blind() as {1}:\n    {0} = {m}", "m "),
    ("{0}, {1} = Both({m}, {m})", "mm"),
    ("({0}, {1}), {2} = ({m}, {m}), {m}", "mmm"),
    ("{0} = {m!}.grad\nif {0} is None:\n    {0} = {m}", "m"),
    ("{0} = {w!}.weight.grad if {w!}.weight.grad is not None else {m}", "m"),
    ("{0}, {1} = torch.func.vjp(lambda x: x * {m}, {m})", "m "),
    ("{0} = torch.autograd.functional.jacobian(lambda x: x.sum(0), {m})[0]", "m"),
    ("with quiet() as {1}:\n    {0} = {m}", "m "),
    ("{0} = {{}}\nfor {1}, {2} in {d}.items():\n    {0}[{1}] = {2} + {m}", "d  "),
    (
        "{0} = {m}\nfor {1} in range(3):\n    if {n} > 2:\n        break\n    {0} = {0} + {m}\nelse:\n    {0} = {0} * 2",
        "m ",
    ),
    ("{0} = []\nfor {1} in {l}:\n    {0}.append({f}({1}))\n{2} = {0}[-1]", "  m"),
)
"""Statements that bind names: a text with numbered targets, and the kinds they get (a blank: none)."""

BLOCKS = (
    "with torch.no_grad():", "with torch.no_grad():", "with torch.enable_grad():",
    "with torch.inference_mode():",
    "with torch.set_grad_enabled({n} > 0):", "with torch.autocast('cpu'):", "for {k} in range(2):",
    "for {k.m} in list({l}):", "for {k}, {k.m} in enumerate({l}[:]):", "for {k.m}, {k.m} in zip({t}, {l}[:]):",
    "for {k.v} in {m}:",
    "for {k}, {k.m} in {d}.items():", "if {n} > 0:", "if {s} > 0:", "if {m!}.requires_grad:",
    "if not {m!}.is_leaf:",
    "if isinstance({m!}, torch.Tensor):", "if {m!}.grad is None:", "if {m!}.grad_fn is not None:",
    "if torch.is_grad_enabled():", "try:", "try:", "with torch.set_grad_enabled(False):",
    "with torch.inference_mode({n} > 0):", "with contextlib.nullcontext():",
    "with contextlib.suppress(RuntimeError, ValueError):", "with quiet():", "with quiet(False), torch.no_grad():",
    "if {m!}.requires_grad and {m!}.is_leaf:", "if {m!}.requires_grad or {n} > 2:",
    "if not torch.is_grad_enabled():", "if isinstance({m!}, nn.Parameter):", "for {k.m} in ({m}, {m}):",
    "with Blind({n} > 1):", "for {k.m} in DataLoader(list({l}), batch_size=None):",
    "for {k.m}, {k.v} in DataLoader(TensorDataset({m}.detach(), {v}.detach()), batch_size=3):",
    "with torch.autograd.graph.save_on_cpu():", "with torch.autograd.set_detect_anomaly(False):",
    "for {k.m} in {l}[1:]:", "for {k.m}, {k.v} in [({m}, {v})]:", "while {s} > 1e6:",
)  # fmt: skip
"""Heads of blocks: `{k}` is a new name, `{k.m}` one of a kind that the block may use."""

SUBMODULES = (
    "nn.Linear(3, 3)", "nn.Linear(3, 3, bias=False)", "nn.ReLU(inplace=True)", "nn.Dropout(0.5)",
    "nn.LayerNorm(3)",
    "nn.Sequential(nn.Linear(3, 3), nn.Tanh())", "nn.BatchNorm1d(3)", "nn.Identity()",
    "nn.Linear(3, 3).requires_grad_(False)", "nn.Conv1d(3, 3, 1)", "nn.PReLU()",
)  # fmt: skip
"""What a class of the program has as its parts."""
