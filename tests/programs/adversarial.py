"""A generator and a discriminator that take turns."""
import torch
import torch.nn as nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(3, 8), nn.ReLU(inplace=True), nn.Linear(8, 4), nn.Tanh())
discriminator = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3)
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3)
criterion = nn.BCEWithLogitsLoss()


def penalty(real, fake):
    share = torch.rand(real.size(0), 1)
    mixed = (share * real + (1 - share) * fake).requires_grad_(True)
    score = discriminator(mixed)
    (grad,) = torch.autograd.grad(score.sum(), mixed, create_graph=True)
    return (grad.norm(2, dim=1) - 1).pow(2).mean()


for _ in range(2):
    real = torch.randn(6, 4)
    fake = generator(torch.randn(6, 3))
    real_score = discriminator(real)
    fake_score = discriminator(fake.detach())
    loss_d = criterion(real_score, torch.ones_like(real_score)) + criterion(fake_score, torch.zeros_like(fake_score))
    loss_d = loss_d + 10.0 * penalty(real, fake.detach())
    optimizer_d.zero_grad()
    loss_d.backward()
    optimizer_d.step()

    for parameter in discriminator.parameters():
        parameter.requires_grad_(False)
    judged = discriminator(fake)
    loss_g = criterion(judged, torch.ones_like(judged))
    optimizer_g.zero_grad()
    loss_g.backward()
    optimizer_g.step()
    for parameter in discriminator.parameters():
        parameter.requires_grad_(True)

with torch.no_grad():
    picture = generator(torch.randn(1, 3))
picture
