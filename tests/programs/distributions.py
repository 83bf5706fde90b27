"""Sampling with and without a gradient, as policies and variational models do."""
import torch
from torch import nn
from torch.distributions import Bernoulli, Categorical, Normal, kl_divergence


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 3)
        self.value = nn.Linear(4, 1)
        self.log_std = nn.Parameter(torch.zeros(2))

    def forward(self, state):
        return Categorical(logits=self.net(state)), self.value(state).squeeze(-1)


torch.manual_seed(0)
policy = Policy()
state = torch.randn(5, 4)
distribution, value = policy(state)
action = distribution.sample()
action
log_prob = distribution.log_prob(action)
log_prob
entropy = distribution.entropy()
reward = torch.randn(5)
advantage = reward - value.detach()
actor_loss = -(log_prob * advantage).mean()
critic_loss = (reward - value).pow(2).mean()
loss = actor_loss + 0.5 * critic_loss - 0.01 * entropy.mean()
loss.backward()
policy.net.weight.grad

mean = torch.zeros(2, requires_grad=True)
normal = Normal(mean, policy.log_std.exp())
sample = normal.sample()
sample
drawn = normal.rsample()
drawn
normal.log_prob(sample)
normal.log_prob(drawn)
normal.mean
normal.entropy()
kl = kl_divergence(normal, Normal(torch.zeros(2), torch.ones(2)))
kl
coin = Bernoulli(logits=torch.zeros(3, requires_grad=True))
flip = coin.sample()
flip
coin.log_prob(flip)
coin.probs
with torch.no_grad():
    quiet, _ = policy(state)
    old = quiet.log_prob(action)
old
noise = torch.randn_like(mean)
reparametrized = mean + noise * 0.1
reparametrized
soft = nn.functional.gumbel_softmax(policy.net(state), hard=True)
soft
drop = nn.functional.dropout(mean, 0.5)
drop
