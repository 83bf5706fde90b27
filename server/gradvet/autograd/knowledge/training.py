"""The methods by which code shows that it trains."""

TRAINING = frozenset({"backward", "step", "zero_grad", "parameters", "named_parameters"})
"""Methods of losses, optimizers and modules that are called where something is trained."""
