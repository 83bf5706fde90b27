"""What is known of other packages, as data: who makes modules."""

MODULE_MAKERS = (
    "torchvision.models.",
    "timm.create_model",
    "timm.models.",
    "segmentation_models_pytorch.",
    "efficientnet_pytorch.",
)
"""Calls of these names give a module whose parameters train (the packages' own documentation)."""
