"""Views made before their base was changed in place and then made to require grad: their grad_fn comes anew from it."""

import torch


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
through_a_view()
