"""Comprehensions have a scope of their own; generators and iterators give their elements in order."""

import dataclasses
import typing
from collections.abc import Iterator

import torch

asking, plain = torch.ones(3, requires_grad=True), torch.ones(3)
part = torch.ones(3, 3)[0]


def scopes() -> None:
    """A name that a comprehension binds is another than that around it, also inside one another."""
    x, several = asking, [plain, plain]
    [x * 2 for x in several]
    x * 2
    [list(several[i] for i in range(2))[i] * 1 for i in range(2)]
    list((list([plain, part][i] for i in range(2)))[i] for i in range(2))
    [(last := x * k) for k in range(3)]
    last * 2
    late = [lambda: x * each for each in several]
    late[0]()
    {key: value * 1 for key, value in zip("ab", several, strict=True)}
    [[a * b for a in several] for b in (x, x)][0][0]


def in_order(x: torch.Tensor) -> Iterator[torch.Tensor]:
    yield x
    x = x.detach()
    yield x


def doubled(items: list[torch.Tensor]) -> Iterator[torch.Tensor]:
    for item in items:
        yield item * 2


def handed_on(items: list[torch.Tensor]) -> Iterator[torch.Tensor]:
    yield from doubled(items)
    yield plain


def iterators() -> None:
    taken = in_order(asking)
    next(taken) * 1
    next(taken) * 1
    one_by_one = iter([asking, plain])
    next(one_by_one) * 1, next(one_by_one) * 1, next(one_by_one, asking)
    next(x * 1 for x in [asking, plain])
    first, second, third = list(handed_on([asking, plain]))
    first, second, third
    again = iter([asking, plain, plain])
    for _ in range(3):
        next(again) * 1


@dataclasses.dataclass
class Record:
    first: torch.Tensor
    second: torch.Tensor | None = None

    def __post_init__(self) -> None:
        if self.second is None:
            self.second = self.first * 2


class Both(typing.NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


def records() -> None:
    """A copy with another field is made as any instance is."""
    record = Record(asking)
    record.second, dataclasses.replace(record, second=plain).second, dataclasses.replace(record).first
    both = Both(asking, plain)
    both._replace(left=plain).left, both._replace(right=plain)[0], both._asdict()["left"]
    torch._foreach_mul_([plain, plain.clone()], 0.5)
    products = [asking * 1, plain.clone()]
    torch._foreach_mul_(products, [plain, asking])
    products[0], products[1]
    torch.full((), 3).long(), torch.full((), 3.0).long(), torch.ones(3).type_as(asking), asking.type_as(plain) * 1
    numbers = torch.full((), len(products)).unsqueeze(0).squeeze()
    numbers.long()


if __name__ == "__main__":
    scopes()
    iterators()
    records()
