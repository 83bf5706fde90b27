"""Gradvet dry-runs autograd over PyTorch files to find gradient-control bugs."""

__version__ = "0.1.0"
