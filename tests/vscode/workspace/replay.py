"""Remembers what was seen, for a model that learns from it again and again."""

import torch
from torch import nn


class Replay:
    def __init__(self):
        self.features = []

    def collect(self, encoder: nn.Module, frames: torch.Tensor):
        for frame in frames:
            self.features.append(encoder(frame))
