"""Tensors that travel through lists, dicts, tuples, deques, dataclasses and comprehensions."""
from collections import defaultdict, deque, namedtuple
from dataclasses import dataclass, field

import torch

Pair = namedtuple("Pair", "left right")


@dataclass
class Batch:
    x: torch.Tensor
    weight: float = 1.0
    extra: list = field(default_factory=list)

    def scaled(self):
        return self.x * self.weight


w = torch.ones(2, requires_grad=True)
items = [w, w * 2, w.detach()]
items[0]
items[1]
items[-1]
items.append(w + 1)
items[3]
items[0] = torch.zeros(2)
items[0]
mapping = {"loss": w.sum(), "value": w.sum().item()}
mapping["loss"]
mapping["copy"] = mapping["loss"].detach()
mapping.get("copy")
{name: value for name, value in mapping.items() if name != "value"}["loss"]
pair = Pair(w, w.detach())
pair.left
pair.right
left, right = pair
right
batch = Batch(w * 3)
batch.x
batch.scaled()
batch.extra.append(w)
batch.extra[0]
queue = deque(maxlen=2)
for step in range(3):
    queue.append(w * step)
queue[0]
queue.popleft()
logs = defaultdict(list)
for step in range(2):
    loss = (w * step).sum()
    logs["loss"].append(loss.item())
    logs["kept"].append(loss.detach())
logs["kept"][-1]
torch.stack(logs["kept"])
doubled = [item * 2 for item in items]
doubled[1]
total = sum(item.sum() for item in items)
total
nested = {"a": [w, (w * 2, {"b": w.exp()})]}
nested["a"][1][0]
nested["a"][1][1]["b"]
for first, second in zip([w, w * 2], [w.detach(), w.data]):
    first
    second
for index, item in enumerate(items):
    item
a, (b, *c) = w, (w * 2, w * 3, w * 4)
b
c[0]
largest = max([w.sum(), (w * 2).sum()], key=float)
largest
same = list(items)
same[1]
items.extend([w * 5])
items.pop()
items[1:][0]
tuple(items)[1]


def grown() -> list[torch.Tensor]:
    """A list of which only the beginning is known."""
    rows = [torch.ones(3, requires_grad=True).abs()]
    rows.extend(torch.ones(3))
    return rows


backwards = grown()
backwards.reverse()
for item in backwards[1:]:
    item
backwards[0], backwards[-1]
in_order = grown()
in_order.sort(key=lambda row: row.sum().item())
in_order[0], in_order[-1]
