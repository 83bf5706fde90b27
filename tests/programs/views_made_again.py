"""Views made before their base was changed in place and then made to require grad: their grad_fn comes anew from it."""

import torch
from torch import nn


def of_data():
    """What `.data` gives counts its versions by itself."""
    base = torch.ones(3, 3)
    own = base.data
    row, other = own[0], own.detach()
    column = other[:, 0]
    own.mul_(2)
    own.requires_grad_()
    other.requires_grad_()
    row, column, own, other


def of_the_base():
    """A change of the base is not seen by what counts by itself."""
    base = torch.ones(3, 3)
    own = base.data
    row = own[0]
    base[0] = 0.0
    own.requires_grad_()
    row, base


def of_an_array():
    """A tensor made from an array counts by itself too."""
    base = torch.ones(3, 3)
    own = torch.from_numpy(base.numpy())
    row = own[0]
    own[0] = 0.0
    own.requires_grad_()
    row


def through_detach():
    """What is detached counts together with what it was taken from."""
    base = torch.ones(3, 3)
    cut = base.detach()
    row = cut[0]
    base[0] = 0.0
    cut.requires_grad_()
    row


def of_a_parameter():
    """A parameter counts together with what it was made of, be that an array's tensor or `.data`."""
    array, data = torch.from_numpy(torch.ones(3, 3).numpy()), torch.ones(3, 3).data
    of_array, of_data = nn.Parameter(array.detach()), nn.Parameter(data)
    first, second, frozen = of_array[0], of_data[0], nn.Parameter(array)
    third = frozen[0]
    array.mul_(0.5), data.detach().mul_(0.5)
    first, second, third
    with torch.no_grad():
        of_array.mul_(2)
    third


def of_other_data():
    """A view that is given other data counts together with its base all the same, and so does a base."""
    base = torch.ones(3, 3, requires_grad=True) * 2
    view, row = base.view_as(base), base[0]
    view.data = torch.ones(3)
    with torch.no_grad():
        view.mul_(2)
    base, view, row
    other = torch.ones(3, 3, requires_grad=True) * 2
    column = other[:, 0]
    other.data = torch.zeros(3, 3)
    with torch.no_grad():
        other.mul_(2)
    other, column
    leaf = torch.ones(3, 3)
    first = leaf[0]
    leaf.requires_grad = True
    leaf.data = torch.ones(3, 3)
    leaf.detach().mul_(0.5)
    first, leaf


def through_a_view():
    """A view counts together with its base."""
    base = torch.ones(3, 3)
    first, diagonal = base[0], base.diagonal()
    first[0] = 0.0
    base.requires_grad_()
    first, diagonal


of_data()
of_the_base()
of_an_array()
through_detach()
of_a_parameter()
of_other_data()
through_a_view()
