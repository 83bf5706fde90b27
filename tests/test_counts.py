"""What is taken of the number of elements that functions give is what torch gives."""

import pytest
import torch

from gradvet.autograd.judging.counts import ALONG, ELEMENTWISE, REDUCING


def _elementwise(name: str, x: torch.Tensor) -> torch.Tensor:
    """The function, or the method, of this name on a tensor, with what else it needs."""
    extra = {
        "add": (x,), "sub": (x,), "mul": (x,), "div": (x,), "pow": (2,), "masked_fill": (x > 0, 0.0), "view": (-1,), "reshape": (-1,),
        "permute": (1, 0), "transpose": (0, 1), "roll": (1,), "cumsum": (0,), "flip": (0,), "softmax": (1,), "log_softmax": (1,),
        "unsqueeze": (0,), "clamp": (0.0, 1.0), "clip": (0.0, 1.0), "clamp_max": (1.0,), "clamp_min": (0.0,),
    }.get(name, ())  # fmt: skip
    if name == "where":
        return torch.where(x > 0, x, x)
    made = getattr(x, name)(*extra) if hasattr(x, name) else getattr(torch.nn.functional, name)(x, *extra)
    assert isinstance(made, torch.Tensor)
    return made


@pytest.mark.parametrize("name", sorted(ELEMENTWISE))
def test_an_elementwise_function_keeps_every_element(name: str) -> None:
    assert _elementwise(name, torch.rand(3, 2)).numel() == 6


@pytest.mark.parametrize("name", sorted(REDUCING))
def test_a_reduction_without_a_dimension_gives_one_element(name: str) -> None:
    x = torch.rand(3, 2)
    reduced = getattr(x, name)() if hasattr(x, name) else getattr(torch, name)(x)
    assert reduced.numel() == 1


@pytest.mark.parametrize("name", sorted(ALONG))
def test_a_function_along_the_second_dimension_keeps_the_first(name: str) -> None:
    x, index = torch.rand(3, 2), torch.zeros(3, 1, dtype=torch.long)
    extra = {"gather": (1, index), "index_select": (1, torch.tensor([0])), "roll": (1, 1)}.get(name, (1,))
    assert getattr(x, name)(*extra).shape[0] == 3
