"""Instances of `nn` classes that torch's module database leaves out: `form@constructor <- inputs`."""

_LINES = """
nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2]) <- x, ids1
nn.AlphaDropout(0.5) <- x
nn.AvgPool2d(2) <- img
inplace@nn.CELU(inplace=True) <- x
nn.ChannelShuffle(2) <- ch4
nn.CosineSimilarity() <- x, y
nn.CrossMapLRN2d(2) <- ch4
nn.Dropout(0.5) <- x
inplace@nn.Dropout(0.5, inplace=True) <- x
nn.Dropout1d(0.5) <- s1
nn.Dropout2d(0.5) <- img
nn.Dropout3d(0.5) <- vol
inplace@nn.ELU(inplace=True) <- x
nn.EmbeddingBag(5, 3) <- ids
nn.Embedding(5, 3) <- i2
max_norm@nn.Embedding(5, 3, max_norm=1.0) <- i2
nn.FeatureAlphaDropout(0.5) <- img
nn.Flatten() <- x
nn.Flatten() <- img
nn.Fold((4, 4), 2) <- unfolded
nn.Hardsigmoid() <- x
inplace@nn.Hardsigmoid(inplace=True) <- x
inplace@nn.Hardswish(inplace=True) <- x
inplace@nn.Hardtanh(inplace=True) <- x
nn.Identity() <- x
nn.LazyBatchNorm1d() <- x
nn.LazyBatchNorm2d() <- img
nn.LazyBatchNorm3d() <- vol
nn.LazyConv1d(2, 3) <- s1
nn.LazyConv2d(2, 3) <- img
nn.LazyConv3d(2, 3) <- vol
nn.LazyConvTranspose1d(2, 3) <- s1
nn.LazyConvTranspose2d(2, 3) <- img
nn.LazyConvTranspose3d(2, 3) <- vol
nn.LazyInstanceNorm1d() <- s1
nn.LazyInstanceNorm2d() <- img
nn.LazyInstanceNorm3d() <- vol
nn.LazyLinear(2) <- x
inplace@nn.LeakyReLU(inplace=True) <- x
nn.MaxUnpool1d(2) <- s1[:, :, :2], torch.tensor([[[0, 2], [1, 3]]])
nn.MaxUnpool2d(2) <- img[:, :1, :2, :2], torch.tensor([[[[0, 2], [8, 10]]]])
nn.MaxUnpool3d(2) <- vol[:, :1, :1, :1, :1], torch.tensor([[[[[0]]]]])
inplace@nn.Mish(inplace=True) <- x
nn.PairwiseDistance() <- x, y
nn.PixelShuffle(2) <- ch4
nn.PixelUnshuffle(2) <- img
nn.RReLU() <- x
inplace@nn.RReLU(inplace=True) <- x
inplace@nn.ReLU(inplace=True) <- x
inplace@nn.ReLU6(inplace=True) <- x
inplace@nn.SELU(inplace=True) <- x
nn.Sequential(nn.Linear(4, 2), nn.ReLU()) <- x
inplace@nn.SiLU(inplace=True) <- x
nn.Softmax2d() <- img
inplace@nn.Threshold(0.1, 20, inplace=True) <- x
nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8, batch_first=True), 1) <- x[None], y[None]
nn.TripletMarginLoss() <- x, y, z
nn.TripletMarginWithDistanceLoss() <- x, y, z
nn.Unflatten(1, (2, 2)) <- x
nn.Unfold(2) <- img
nn.Upsample(scale_factor=2) <- img
nn.UpsamplingBilinear2d(scale_factor=2) <- img
nn.UpsamplingNearest2d(scale_factor=2) <- img
nn.ZeroPad1d(1) <- s1
nn.ZeroPad2d(1) <- img
nn.ZeroPad3d(1) <- vol
nn.CircularPad1d(1) <- s1
nn.CircularPad2d(1) <- img
nn.CircularPad3d(1) <- vol
"""


def _by_class() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in filter(None, _LINES.splitlines()):
        cls = line.rpartition("@")[2].partition("(")[0].removeprefix("nn.")
        found.setdefault(f"torch.nn.{cls}", []).append(line)
    return found


RECIPES = _by_class()
