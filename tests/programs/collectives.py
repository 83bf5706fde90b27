"""Collectives: those of `torch.distributed.nn` are custom Functions, what the others fill has no graph."""

import torch
import torch.distributed as dist
import torch.distributed.nn
from torch import nn
from torch.distributed.nn.functional import all_gather, all_reduce

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = nn.Linear(3, 3)
features = model(torch.ones(2, 3))


def gathered():
    """A tuple with a tensor of each process."""
    everything = torch.cat(all_gather(features))
    everything, all_gather(features)[0]
    torch.cat(torch.distributed.nn.gather(features))
    all_reduce(features), torch.distributed.nn.reduce(features, 0)
    torch.distributed.nn.functional.broadcast(features, 0)
    all_reduce(features.detach()), all_reduce(torch.ones(3).long())
    with torch.no_grad():
        all_reduce(features), all_gather(features)[0]
    everything.sum().backward()
    model.weight.grad


def numbers():
    """How many processes there are, and which this is."""
    labels = torch.arange(2) + dist.get_rank() * 2
    labels, torch.ones(3) / dist.get_world_size()
    if dist.is_initialized():
        labels


if __name__ == "__main__":
    gathered()
    numbers()
