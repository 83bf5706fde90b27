"""What is known of other packages, as data: who makes modules."""

MODULE_MAKERS = (
    "torchvision.models.",
    "timm.create_model",
    "timm.models.",
    "segmentation_models_pytorch.",
    "efficientnet_pytorch.",
)
"""Calls of these names give a module whose parameters train (the packages' own documentation)."""

FRAMEWORKS = ("functorch", "lightning", "pytorch_lightning", "torchvision", "transformers")
"""Packages whose classes and functions the machine knows by their names alone."""

LIGHTNING_BACKWARD = ("training_step",)
"""Methods of a LightningModule on whose result the framework runs backward (Lightning's docs, LightningModule)."""

LIGHTNING_NO_GRAD = (
    "validation_step",
    "test_step",
    "predict_step",
    "on_validation_",
    "on_test_",
    "on_predict_",
)
"""Methods of a LightningModule that the framework runs with grad mode off (same place)."""
