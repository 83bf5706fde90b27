"""What is known of other packages, as data: who makes modules, who runs backward."""

from typing import NamedTuple

MODULE_MAKERS = (
    "torchvision.models.",
    "timm.create_model",
    "timm.models.",
    "segmentation_models_pytorch.",
    "efficientnet_pytorch.",
)
"""Calls of these names give a module whose parameters train (the packages' own documentation)."""

TRANSFORMS = ("torchvision.transforms.", "torchaudio.transforms.")
"""Calls of these names give objects that compute something and train nothing (the packages' own documentation)."""

TRANSFORM = "a transform, which trains nothing"

FRAMEWORKS = ("functorch", "lightning", "pytorch_lightning", "torchvision", "transformers")
"""Packages whose classes and functions the machine knows by their names alone."""


class Convention(NamedTuple):
    """What a framework does with the methods of classes that extend one of its own.

    It runs backward from what the methods in `backward` give, and those whose names begin with one of
    `no_grad` it runs with grad mode off.
    """

    bases: tuple[str, ...]
    backward: tuple[str, ...]
    no_grad: tuple[str, ...] = ()


LIGHTNING = Convention(
    ("LightningModule",),
    ("training_step",),
    ("validation_step", "test_step", "predict_step", "on_validation_", "on_test_", "on_predict_"),
)
"""The docs of Lightning, "LightningModule": the loop runs backward itself, and evaluation under no_grad."""

TRAINER = Convention(("Trainer", "Seq2SeqTrainer"), ("compute_loss",))
"""The docs of transformers, "Trainer": `training_step` runs backward from the loss that `compute_loss` gives."""


METRIC = Convention(("Metric",), (), ("update",))
"""torchmetrics.Metric wraps `update` in `set_grad_enabled(False)` (torchmetrics/metric.py, `_wrap_update`)."""


def convention_of(base: str) -> Convention | None:
    """What is known of the subclasses of a class, by its qualified name."""
    package, _, short = base.rpartition(".")
    if short in LIGHTNING.bases:
        return LIGHTNING
    if package.partition(".")[0] == "transformers" and short in TRAINER.bases:
        return TRAINER
    if package.partition(".")[0] == "torchmetrics" and short in METRIC.bases:
        return METRIC
    return None
