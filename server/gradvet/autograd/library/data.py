"""torch.utils.data: datasets give rows when they are asked, loaders make batches of them in the mode of that moment."""

from gradvet.autograd.knowledge.lookup import load
from gradvet.autograd.library import indexing, serialised
from gradvet.autograd.library.externals import handles
from gradvet.autograd.library.inputs import made_in
from gradvet.autograd.library.operations import perform
from gradvet.autograd.library.results import tensor_like
from gradvet.autograd.machine import MODE, Machine
from gradvet.autograd.memory.domain import FLOAT, GRAD, INTEGER
from gradvet.autograd.memory.values import (
    NONE,
    Array,
    Bound,
    Const,
    Data,
    Dict,
    Instance,
    Number,
    Ref,
    Sequence,
    Text,
    Tuple,
    Union,
    Unknown,
    Value,
    atoms,
    join_all,
)
from gradvet.autograd.python.calls import Call, call_value, find_in_class
from gradvet.autograd.python.objects import ATTRIBUTES, ELEMENTS, ITEMS, element_of, get_item, items_of

_DTYPES = {"float": FLOAT, "int": INTEGER, "bool": INTEGER}
MOST_SPLITS = 8


@handles("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
def _loader(m: Machine, name: str, call: Call) -> Value:
    dataset = call.argument(0, "dataset")
    collate = call.argument(6, "collate_fn")
    _ask_length(m, dataset, call)
    whole = call.argument(1, "batch_size") == NONE and call.keywords.get("batch_sampler") is None
    workers = call.argument(5, "num_workers")
    apart = type(workers) is Const and bool(workers.value)
    kind = f"{'rows' if whole else 'batches'}{' of workers' if apart else ''}"
    parts = (dataset if dataset is not None else Unknown("a dataset"),)
    return m.new(call.node, Data(kind, parts, None if collate == NONE else collate), "loader")


def _ask_length(m: Machine, dataset: Value | None, call: Call) -> None:
    """The sampler asks for the length of a dataset, when it is made and before each round."""
    content = m.cells.get(getattr(dataset, "address", -1))
    length = find_in_class(m, content.owner, "__len__") if type(content) is Instance else None
    if length is not None:
        call_value(m, Bound(length, dataset), Call(call.node, ()))
    elif type(content) is Data and content.kind in ("data", "tensors"):
        for part in content.parts:
            _ask_length(m, part, call)


@handles("torch.utils.data.TensorDataset")
def _tensor_dataset(m: Machine, name: str, call: Call) -> Value:
    return m.new(call.node, Data("tensors", call.args, call.star), "dataset")


@handles("torch.utils.data.Subset", "torch.utils.data.ConcatDataset", "torch.utils.data.ChainDataset")
def _same_data(m: Machine, name: str, call: Call) -> Value:
    source = call.args[0] if call.args else Unknown("a dataset")
    several = items_of(m, source) if not name.endswith("Subset") else None
    parts = (
        several
        if several is not None
        else (source if name.endswith("Subset") else element_of(m, source, call.node),)
    )
    return m.new(call.node, Data("data", tuple(parts)), "dataset")


@handles("torch.utils.data.random_split")
def _split(m: Machine, name: str, call: Call) -> Value:
    source = call.args[0] if call.args else Unknown("a dataset")
    lengths = call.argument(1, "lengths")
    known = items_of(m, lengths) if lengths is not None else None
    count = len(known) if known is not None and len(known) <= MOST_SPLITS else 0
    parts = tuple(m.new(call.node, Data("data", (source,)), f"part {at}") for at in range(max(count, 1)))
    if count:
        return m.new(call.node, Sequence("list", parts), "split")
    return m.new(call.node, Sequence("list", None, parts[0], nonempty=True), "split")


@handles("torch.utils.data.default_collate", "torch.utils.data.dataloader.default_collate")
def _default_collate(m: Machine, name: str, call: Call) -> Value:
    return _batch(m, element_of(m, call.args[0], call.node), call) if call.args else Unknown("a batch")


# -- rows and batches


def row_of(m: Machine, dataset: Value, call: Call) -> Value:
    """One row of a dataset, of which nothing but that it is one is known."""
    content = m.cells.get(getattr(dataset, "address", -1))
    if type(content) is Data:
        return element(m, dataset, content, call)
    if type(content) is Instance:
        getter = find_in_class(m, content.owner, "__getitem__")
        if getter is not None:
            return call_value(m, Bound(getter, dataset), Call(call.node, (Number("int"),)))
    if dataset is None or type(dataset) is Unknown:
        return m.unknown(call.node, "a batch of a loader", (), "row")
    return element_of(m, dataset, call.node)


def element(m: Machine, ref: Value, content: Data, call: Call) -> Value:
    """What a dataset or a loader gives when it is iterated."""
    if content.kind == "tensors":
        if content.collate is not None:
            return m.new(
                call.node,
                Sequence("tuple", None, indexing.row(m, content.collate, call.node), nonempty=True),
                "row",
            )
        rows = []
        for number, part in enumerate(content.parts):
            with m.numbered(call.node, number % 32):
                rows.append(get_item(m, part, Number("int"), call.node))
        return Tuple(tuple(rows))
    if content.kind == "data":
        rows = []
        for number, part in enumerate(content.parts):
            with m.numbered(call.node, number % 32):
                rows.append(row_of(m, part, call))
        joined = join_all(rows)
        return joined if joined is not None else Unknown("a row of nothing")
    before = m.mode
    _ask_length(m, content.parts[0], call)
    if content.kind.endswith("of workers"):
        m.store.set(MODE, GRAD)  # a worker is a process of its own, which begins with grad mode on
    with m.numbered(call.node, 33):
        row = row_of(m, content.parts[0], call)
    of_workers = content.kind.endswith("of workers")
    if of_workers and content.collate is None:
        serialised.from_worker(m, row, call.node)
    if content.kind.startswith("rows") and content.collate is None:
        value = row
    elif content.collate is None:
        value = _batch(m, row, call)
    else:  # it runs where the rows were fetched
        whole = content.kind.startswith("rows")
        given = row if whole else m.new(call.node, Sequence("list", None, row, nonempty=True), "rows")
        with m.numbered(call.node, 34):
            value = call_value(m, content.collate, Call(call.node, (given,)))
        if of_workers:
            serialised.from_worker(m, value, call.node, "collate")
    m.store.set(MODE, before)
    return value


def _batch(m: Machine, row: Value, call: Call, tag: str = "batch") -> Value:
    """What `default_collate` makes of rows (its source): tensors are stacked, numbers and arrays become tensors."""
    site = call.node
    if type(row) is Tuple:
        return row._replace(
            items=tuple(_batch(m, item, call, f"{tag} {at}") for at, item in enumerate(row.items))
        )
    if m.tensor(row) is not None:
        op = load().function("torch.stack")
        rows = m.new(site, Sequence("list", None, row, nonempty=True), f"{tag} rows")
        return (
            Unknown("a batch") if op is None else perform(m, site, op, (rows,), {}, name="a batch", tag=tag)
        )
    if type(row) is Number or (type(row) is Const and row.kind in _DTYPES):
        return tensor_like(m, site, tag, dtype=_DTYPES.get(row.kind, FLOAT | INTEGER), inference=made_in(m))
    if type(row) is Text or (type(row) is Const and row.kind == "str"):
        return m.new(site, Sequence("list", None, Text(), nonempty=True), tag)
    if type(row) is Union:
        return join_all([_batch(m, atom, call, f"{tag} or {at}") for at, atom in enumerate(atoms(row))])
    match m.cells.get(getattr(row, "address", -1)):
        case Array():
            return tensor_like(m, site, tag, dtype=FLOAT | INTEGER, inference=made_in(m))
        case Dict() as content:
            pairs = tuple((key, _batch(m, value, call, f"{tag} {key.value}")) for key, value in content.items)
            rest = None if content.rest is None else _batch(m, content.rest, call, f"{tag} rest")
            return m.new(site, content._replace(items=pairs, rest=rest), tag)
        case Sequence(items=items, rest=None) as content if items is not None:
            parts = tuple(_batch(m, item, call, f"{tag} {at}") for at, item in enumerate(items))
            return m.new(site, content._replace(items=parts), tag)
    return m.unknown(site, "a batch of a loader", (), tag)


def attribute(m: Machine, ref: Ref, content: Data, name: str) -> Value | None:
    """`loader.dataset`, `subset.dataset`, `dataset.tensors`; None for what is no such part."""
    if name == "dataset" and content.kind != "tensors":
        return content.parts[0] if content.parts else None
    if name == "datasets" or (name == "tensors" and content.kind == "tensors"):
        return Tuple(content.parts)
    return Number("int") if name in ("batch_size", "num_workers") else None


def _element(m: Machine, ref: Ref, content: Data, node: object) -> Value:
    return element(m, ref, content, Call(node, ()))  # type: ignore[arg-type]


def _item(m: Machine, ref: Ref, content: Data, key: Value, node: object) -> Value:
    if content.kind == "tensors" and content.collate is None:
        rows = []
        for number, part in enumerate(content.parts):
            with m.numbered(node, number % 32):  # type: ignore[arg-type]
                rows.append(get_item(m, part, key, node))  # type: ignore[arg-type]
        return Tuple(tuple(rows))
    return element(m, ref, content, Call(node, ()))  # type: ignore[arg-type]


ELEMENTS[Data] = _element
ITEMS[Data] = _item
ATTRIBUTES[Data] = attribute
