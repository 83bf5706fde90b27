"""Instances of `nn` classes beyond those of torch's module database: `form@constructor <- inputs`."""

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
nn.Linear(4, 3) <- v
nn.Linear(4, 3) <- x
nn.Linear(4, 3) <- b3
nn.Linear(4, 3) <- b4
nn.Linear(4, 3, bias=False) <- v
nn.Linear(4, 3, bias=False) <- x
nn.Linear(4, 3, bias=False) <- b3
nn.Linear(4, 3, bias=False) <- b4
nn.Linear(4, 1) <- x
nn.Linear(4, 3) <- b3.transpose(0, 1)
nn.LazyLinear(2) <- b3
nn.LazyLinear(2, bias=False) <- b3
nn.Bilinear(4, 4, 5) <- b3, b3
nn.Bilinear(4, 4, 5, bias=False) <- v, v
nn.Embedding(5, 3) <- ids
nn.Embedding(5, 3) <- it0
nn.BatchNorm1d(2) <- s1.expand(3, 2, 6)
nn.BatchNorm1d(4, affine=False) <- x
nn.BatchNorm1d(4, track_running_stats=False) <- x
nn.BatchNorm2d(2, affine=False) <- img
nn.BatchNorm2d(2, track_running_stats=False) <- img
nn.InstanceNorm1d(2) <- s1
nn.InstanceNorm1d(2) <- s1[0]
nn.InstanceNorm2d(2, affine=True) <- img
nn.InstanceNorm2d(2, track_running_stats=True) <- img
nn.InstanceNorm2d(2) <- img[0]
nn.LayerNorm(4) <- x
nn.LayerNorm(4) <- b3
nn.LayerNorm((3, 4), elementwise_affine=False) <- b3
nn.GroupNorm(2, 2) <- img
nn.RMSNorm(4) <- b3
nn.RMSNorm(4, elementwise_affine=False) <- x
nn.Conv1d(2, 3, 3) <- s1
nn.Conv1d(2, 3, 3) <- s1[0]
nn.Conv1d(2, 3, 3, padding="same", bias=False) <- s1
nn.Conv1d(2, 3, 3, padding=1, padding_mode="circular") <- s1
nn.Conv2d(2, 3, 3) <- img
nn.Conv2d(2, 3, 3) <- img[0]
nn.Conv2d(2, 3, 3, padding="same", bias=False) <- img
nn.Conv2d(2, 4, 3, groups=2, dilation=2, stride=2) <- img
nn.Conv2d(2, 3, 1) <- img
nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect") <- img
nn.Conv3d(2, 3, 2) <- vol
nn.Conv3d(2, 3, 2) <- vol[0]
nn.ConvTranspose1d(2, 3, 3) <- s1[0]
nn.ConvTranspose2d(2, 3, 3, bias=False) <- img
nn.ConvTranspose2d(2, 3, 3) <- img[0]
nn.ConvTranspose3d(2, 3, 2) <- vol[0]
nn.AvgPool1d(2) <- s1
nn.AvgPool1d(2) <- s1[0]
nn.AdaptiveAvgPool1d(1) <- s1
nn.AdaptiveAvgPool1d(2) <- s1[0]
nn.AdaptiveAvgPool2d(1) <- img
nn.AdaptiveAvgPool2d((2, 2)) <- img[0]
nn.AdaptiveAvgPool3d(1) <- vol
nn.AdaptiveMaxPool1d(1) <- s1
nn.AdaptiveMaxPool2d(1) <- img
nn.MaxPool1d(2) <- s1
nn.MaxPool2d(2) <- img
nn.MaxPool3d(2) <- vol
nn.Flatten() <- v
nn.Flatten(0) <- x
nn.Flatten(0) <- v
nn.Flatten() <- img.transpose(1, 2)
nn.Flatten(2) <- b3
nn.Unflatten(0, (2, 2)) <- v
nn.Upsample(scale_factor=2, mode="bilinear") <- img
nn.Upsample(size=3, mode="bicubic") <- img
nn.Upsample(scale_factor=2) <- s1
nn.Upsample(scale_factor=2, mode="linear") <- s1
nn.Upsample(scale_factor=2) <- vol
nn.Upsample(scale_factor=2, mode="trilinear") <- vol
nn.Softmax(-1) <- b3
nn.Softmax() <- x
nn.LogSoftmax(-1) <- b3
nn.PReLU(4) <- x
nn.GLU() <- x
nn.MultiheadAttention(4, 2) <- b3, b3, b3
nn.MultiheadAttention(4, 2) <- x, x, x
nn.MultiheadAttention(4, 2, batch_first=True) <- b3, b3, b3
nn.MultiheadAttention(4, 2, batch_first=True) <- b3, bm, bm
nn.MultiheadAttention(4, 2, bias=False) <- b3, b3, b3
nn.MultiheadAttention(4, 2, dropout=0.5, batch_first=True) <- b3, b3, b3
nn.MultiheadAttention(4, 2, kdim=4, vdim=4, add_bias_kv=True) <- b3, b3, b3
nn.TransformerEncoderLayer(4, 2, 8) <- b3
nn.TransformerEncoderLayer(4, 2, 8) <- x
nn.TransformerEncoderLayer(4, 2, 8, batch_first=True) <- b3
nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, norm_first=True) <- b3
nn.TransformerEncoderLayer(4, 2, 8, bias=False) <- b3
nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2) <- b3
nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2) <- b3
nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, norm_first=True), 2) <- b3
nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2, norm=nn.LayerNorm(4)) <- x
nn.TransformerDecoderLayer(4, 2, 8) <- b3, b3
nn.TransformerDecoderLayer(4, 2, 8, batch_first=True, norm_first=True) <- b3, b3
nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 2) <- b3, b3
nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8, norm_first=True), 2) <- b3, b3
nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 2, norm=nn.LayerNorm(4)) <- b3, b3
nn.Transformer(4, 2, 1, 1, 8) <- b3, b3
nn.Transformer(4, 2, 1, 1, 8, batch_first=True) <- b3, b3
nn.Transformer(4, 2, 1, 1, 8, norm_first=True) <- b3, b3
nn.CrossEntropyLoss() <- x, classes
nn.CrossEntropyLoss(label_smoothing=0.1) <- x, classes
nn.CrossEntropyLoss(label_smoothing=0.1, reduction="none") <- x, classes
nn.CrossEntropyLoss(label_smoothing=0.1, reduction="sum") <- x, classes
nn.CrossEntropyLoss(reduction="none") <- x, classes
nn.CrossEntropyLoss(weight=vp) <- x, classes
nn.CrossEntropyLoss(weight=vp, label_smoothing=0.1) <- x, classes
nn.CrossEntropyLoss() <- x, p
nn.CrossEntropyLoss(label_smoothing=0.1) <- x, p
nn.CrossEntropyLoss(reduction="none") <- x, p
nn.CrossEntropyLoss(reduction="sum") <- x, p
nn.CrossEntropyLoss() <- v, it0
nn.CrossEntropyLoss() <- img, torch.zeros(1, 6, 6, dtype=torch.int64)
nn.CrossEntropyLoss(reduction="none") <- img, torch.zeros(1, 6, 6, dtype=torch.int64)
nn.CrossEntropyLoss() <- b3, torch.zeros(2, 4, dtype=torch.int64)
nn.NLLLoss() <- x, classes
nn.NLLLoss(reduction="none") <- x, classes
nn.NLLLoss() <- img, torch.zeros(1, 6, 6, dtype=torch.int64)
nn.NLLLoss() <- b3, torch.zeros(2, 4, dtype=torch.int64)
nn.BCELoss(reduction="none") <- p, pos
nn.BCEWithLogitsLoss(pos_weight=vp) <- x, p
nn.BCEWithLogitsLoss(reduction="none") <- x, p
nn.MSELoss(reduction="none") <- x, y
nn.L1Loss(reduction="none") <- x, y
nn.SmoothL1Loss(reduction="none") <- x, y
nn.SmoothL1Loss(beta=0.0) <- x, y
nn.HuberLoss(reduction="none") <- x, y
nn.KLDivLoss(reduction="batchmean") <- x, p
nn.KLDivLoss(reduction="none") <- x, p
nn.KLDivLoss(log_target=True) <- x, y
nn.GaussianNLLLoss(full=True) <- x, y, pos
nn.GaussianNLLLoss(reduction="none") <- x, y, pos
nn.PoissonNLLLoss(reduction="none") <- x, pos
nn.CTCLoss() <- logp, target, len5, len2
nn.CTCLoss(reduction="none") <- logp, target, len5, len2
nn.CTCLoss(reduction="sum") <- logp, target, len5, len2
nn.TripletMarginLoss(swap=True) <- x, y, z
nn.TripletMarginLoss(reduction="none") <- x, y, z
nn.CosineEmbeddingLoss(reduction="none") <- x, y, signs3
nn.MarginRankingLoss(margin=0.5) <- v3, v3b, signs3
nn.MarginRankingLoss(reduction="none") <- v3, v3b, signs3
nn.HingeEmbeddingLoss(reduction="none") <- x, signs
nn.CosineSimilarity(dim=-1) <- b3, b3
"""
# Recurrent classes: every layout, with and without a first state.
for _name in ("RNN", "GRU", "LSTM"):
    for _options in ("", ", batch_first=True"):
        for _more in ("", ", bidirectional=True", ", num_layers=2", ", bias=False", ", num_layers=2, dropout=0.5"):
            _LINES += f"nn.{_name}(4, 5{_options}{_more}) <- b3\n"
            _LINES += f"nn.{_name}(4, 5{_options}{_more}) <- x\n"
_LINES += """nn.RNN(4, 5, nonlinearity="relu") <- b3
nn.LSTM(4, 5, proj_size=2) <- b3
nn.RNN(4, 5) <- seq, h0
nn.GRU(4, 5) <- seq, h0
nn.LSTM(4, 5) <- seq, (h0, c0)
nn.RNNCell(4, 5) <- x
nn.RNNCell(4, 5) <- x, h5
nn.RNNCell(4, 5) <- v
nn.RNNCell(4, 5, bias=False) <- x
nn.RNNCell(4, 5, nonlinearity="relu") <- x
nn.GRUCell(4, 5) <- x
nn.GRUCell(4, 5) <- x, h5
nn.GRUCell(4, 5) <- v
nn.GRUCell(4, 5, bias=False) <- x
nn.LSTMCell(4, 5) <- x
nn.LSTMCell(4, 5) <- x, (h5, c5)
nn.LSTMCell(4, 5) <- v
nn.LSTMCell(4, 5, bias=False) <- x
"""


def _by_class() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in filter(None, _LINES.splitlines()):
        cls = line.rpartition("@")[2].partition("(")[0].removeprefix("nn.")
        found.setdefault(f"torch.nn.{cls}", []).append(line)
    return found


RECIPES = _by_class()
