"""Many layers of torch.nn, in train and eval mode, frozen and thawed, under no_grad, called with many shapes."""
import torch
from torch import nn

torch.manual_seed(0)
image = torch.randn(2, 3, 8, 8)
cnn = nn.Sequential(
    nn.Conv2d(3, 4, 3, padding=1, bias=False),
    nn.BatchNorm2d(4),
    nn.ReLU(inplace=True),
    nn.MaxPool2d(2),
    nn.Conv2d(4, 4, 1),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(4, 2),
)
cnn(image)
cnn.eval()
cnn(image)
with torch.no_grad():
    cnn(image)
cnn.train()
cnn[0](image)
cnn[:3](image)
features = image
for layer in cnn:
    features = layer(features)
    features
for parameter in cnn[0].parameters():
    parameter.requires_grad = False
cnn[0](image)
cnn(image)
linear = nn.Linear(3, 2)
linear(torch.ones(3))
linear(torch.ones(4, 3))
linear(torch.ones(2, 4, 3))
nn.Linear(3, 2, bias=False)(torch.ones(2, 4, 3))
nn.LayerNorm(3)(torch.ones(2, 3))
nn.GroupNorm(1, 3)(image)
nn.Embedding(5, 3)(torch.tensor([1, 2]))
nn.Dropout(0.5)(torch.ones(3))
nn.Dropout(0.5).eval()(torch.ones(3))
nn.Identity()(image)
nn.GELU()(linear(torch.ones(4, 3)))
nn.Softmax(dim=-1)(linear(torch.ones(4, 3)))
nn.Upsample(scale_factor=2)(image)
nn.ConvTranspose2d(3, 1, 2)(image)
nn.Conv1d(3, 2, 3)(torch.ones(1, 3, 5))
nn.AvgPool1d(2)(torch.ones(1, 3, 4))
nn.PReLU()(torch.ones(3))
nn.Bilinear(3, 3, 1)(torch.ones(2, 3), torch.ones(2, 3))
nn.Unflatten(1, (1, 3))(torch.ones(2, 3))
attention = nn.MultiheadAttention(4, 2, batch_first=True)
attended, weights = attention(torch.ones(1, 3, 4), torch.ones(1, 3, 4), torch.ones(1, 3, 4))
attended
weights
encoder = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
encoder(torch.ones(1, 3, 4))
encoder.eval()
with torch.no_grad():
    encoder(torch.ones(1, 3, 4))
nn.MSELoss()(linear(torch.ones(4, 3)), torch.zeros(4, 2))
nn.CrossEntropyLoss()(linear(torch.ones(4, 3)), torch.zeros(4, dtype=torch.long))
nn.L1Loss(reduction="none")(linear(torch.ones(4, 3)), torch.zeros(4, 2))
nn.functional.nll_loss(linear(torch.ones(4, 3)).log_softmax(-1), torch.zeros(4, dtype=torch.long))
nn.functional.cosine_similarity(linear(torch.ones(4, 3)), torch.ones(4, 2))
