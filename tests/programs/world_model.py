"""A recurrent world model, imagination with frozen models, straight-through samples, lambda returns."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import distributions as D


class RSSM(nn.Module):
    def __init__(self, stoch=4, deter=8, act=2, embed=6):
        super().__init__()
        self.stoch, self.deter = stoch, deter
        self.inp = nn.Linear(stoch + act, deter)
        self.cell = nn.GRUCell(deter, deter)
        self.prior = nn.Linear(deter, 2 * stoch)
        self.post = nn.Linear(deter + embed, 2 * stoch)

    def initial(self, b):
        return {"deter": torch.zeros(b, self.deter), "stoch": torch.zeros(b, self.stoch)}

    def _dist(self, x):
        mean, std = x.chunk(2, -1)
        return D.Independent(D.Normal(mean, F.softplus(std) + 0.1), 1)

    def img_step(self, state, action):
        x = F.elu(self.inp(torch.cat([state["stoch"], action], -1)))
        deter = self.cell(x, state["deter"])
        dist = self._dist(self.prior(deter))
        return {"deter": deter, "stoch": dist.rsample()}, dist

    def obs_step(self, state, action, embed):
        prior, prior_dist = self.img_step(state, action)
        dist = self._dist(self.post(torch.cat([prior["deter"], embed], -1)))
        return {"deter": prior["deter"], "stoch": dist.rsample()}, dist, prior_dist

    def feat(self, state):
        return torch.cat([state["stoch"], state["deter"]], -1)


class FreezeParameters:
    def __init__(self, modules):
        self.modules = modules
        self.param_states = [p.requires_grad for p in self.params()]

    def params(self):
        out = []
        for m in self.modules:
            out += list(m.parameters())
        return out

    def __enter__(self):
        for p in self.params():
            p.requires_grad = False

    def __exit__(self, exc_type, exc_val, exc_tb):
        for i, p in enumerate(self.params()):
            p.requires_grad = self.param_states[i]


def lambda_return(reward, value, discount, bootstrap, lambda_=0.95):
    next_values = torch.cat([value[1:], bootstrap[None]], 0)
    inputs = reward + discount * next_values * (1 - lambda_)
    last = bootstrap
    outputs = []
    for t in reversed(range(reward.shape[0])):
        inp = inputs[t]
        last = inp + discount[t] * lambda_ * last
        outputs.append(last)
    return torch.stack(outputs[::-1], 0)


class STCategorical(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = n

    def forward(self, logits):
        probs = logits.softmax(-1)
        index = torch.distributions.Categorical(logits=logits).sample()
        hard = F.one_hot(index, self.n).float()
        return hard + probs - probs.detach()


torch.manual_seed(0)
world, encoder = RSSM(), nn.Sequential(nn.Linear(5, 6), nn.ELU())
decoder, reward_head = nn.Linear(12, 5), nn.Linear(12, 1)
actor = nn.Sequential(nn.Linear(12, 8), nn.ELU(), nn.Linear(8, 2))
critic = nn.Linear(12, 1)
st = STCategorical(2)
model_modules = [world, encoder, decoder, reward_head]
model_opt = torch.optim.Adam([p for m in model_modules for p in m.parameters()], lr=1e-3)
actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-3)
for it in range(2):
    obs, acts, rewards = torch.randn(4, 3, 5), torch.randn(4, 3, 2), torch.randn(4, 3)
    embed = encoder(obs)
    state = world.initial(3)
    states, kl = [], 0.0
    for t in range(4):
        state, post, prior = world.obs_step(state, acts[t], embed[t])
        states.append(state)
        kl = kl + D.kl_divergence(post, prior).mean()
    feats = torch.stack([world.feat(s) for s in states])
    recon = F.mse_loss(decoder(feats), obs)
    rew = F.mse_loss(reward_head(feats).squeeze(-1), rewards)
    model_loss = recon + rew + 0.1 * torch.clamp(kl, min=1.0)
    model_opt.zero_grad()
    model_loss.backward()
    nn.utils.clip_grad_norm_([p for m in model_modules for p in m.parameters()], 100.0)
    model_opt.step()
    start = {k: torch.stack([s[k] for s in states]).detach().flatten(0, 1) for k in ("deter", "stoch")}
    with FreezeParameters(model_modules):
        state, imagined = start, []
        for _ in range(3):
            action = st(actor(world.feat(state).detach()))
            state, _ = world.img_step(state, action)
            imagined.append(world.feat(state))
        feat = torch.stack(imagined)
        reward = reward_head(feat).squeeze(-1)
        value = critic(feat).squeeze(-1)
    discount = 0.99 * torch.ones_like(reward)
    returns = lambda_return(reward[:-1], value[:-1], discount[:-1], value[-1])
    actor_loss = -returns.mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
    target = returns.detach()
    value_pred = critic(feat[:-1].detach()).squeeze(-1)
    value_loss = F.mse_loss(value_pred, target)
    critic_opt.zero_grad()
    value_loss.backward()
    critic_opt.step()
    print(model_loss.item(), actor_loss.item(), value_loss.item())
