"""Hooks of modules, tensors and gradients, and what they keep."""

import copy
from collections import defaultdict
from functools import partial

import torch
from torch import nn


class FeatureExtractor(nn.Module):
    def __init__(self, model, layers):
        super().__init__()
        self.model = model
        self._features = {layer: torch.empty(0) for layer in layers}
        self.handles = []
        for layer_id in layers:
            layer = dict([*self.model.named_modules()])[layer_id]
            self.handles.append(layer.register_forward_hook(self.save_outputs_hook(layer_id)))

    def save_outputs_hook(self, layer_id):
        def fn(_, __, output):
            self._features[layer_id] = output

        return fn

    def forward(self, x):
        _ = self.model(x)
        return self._features

    def close(self):
        for h in self.handles:
            h.remove()


model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
stats = defaultdict(list)
grads = {}


def forward_stats(name, module, inputs, output):
    stats[name].append(output.detach().mean().item())


def pre_hook(module, args):
    (x,) = args
    return (x * 1.0,)


def backward_hook(module, grad_input, grad_output):
    grads[module] = grad_output[0].norm()
    g = grad_output[0]
    return None


for name, module in model.named_modules():
    if isinstance(module, nn.Linear):
        module.register_forward_hook(partial(forward_stats, name))
        module.register_full_backward_hook(backward_hook)
h0 = model[0].register_forward_pre_hook(pre_hook)

x = torch.randn(3, 4)
out = model(x)
saved = {}
out.register_hook(lambda g: saved.update(out=g) or g * 2)
hidden = out * 2
hidden.retain_grad()
hidden.register_hook(lambda grad: grad.clamp(-1, 1))
loss = hidden.pow(2).mean()
loss.backward()
print(saved["out"].shape, hidden.grad.norm(), {k: v.item() for k, v in grads.items()})
h0.remove()

for p in model.parameters():
    p.register_hook(lambda grad: torch.clamp(grad, -0.5, 0.5))


def print_grad(name):
    def hook(grad):
        stats[name].append(grad.abs().mean().item())
        return grad

    return hook


for n, p in model.named_parameters():
    p.register_hook(print_grad(n))
model.zero_grad()
model(x).sum().backward()
g0 = model[0].weight.grad
print(g0.max(), model[2].bias.grad.sum())

extractor = FeatureExtractor(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), ["0", "2"])
features = extractor(x)
total = sum(f.mean() for f in features.values())
total.backward()
print({k: v.shape for k, v in features.items()})
extractor.close()

opt = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}


def step_hook(parameter):
    opt[parameter].step()
    opt[parameter].zero_grad()


for p in model.parameters():
    p.register_post_accumulate_grad_hook(step_hook)
model(x).pow(2).sum().backward()


class GradCAM:
    def __init__(self, model, target_layer):
        self.model = model
        self.gradients = None
        self.activations = None
        target_layer.register_forward_hook(self._save_activation)
        target_layer.register_full_backward_hook(self._save_gradient)

    def _save_activation(self, module, input, output):
        self.activations = output.detach()

    def _save_gradient(self, module, grad_input, grad_output):
        self.gradients = grad_output[0].detach()

    def __call__(self, x, class_idx=None):
        logits = self.model(x)
        if class_idx is None:
            class_idx = logits.argmax(dim=1)
        score = logits[range(len(x)), class_idx].sum()
        self.model.zero_grad()
        score.backward(retain_graph=True)
        weights = self.gradients.mean(dim=(2, 3), keepdim=True)
        cam = (weights * self.activations).sum(dim=1, keepdim=True)
        cam = torch.relu(cam)
        cam -= cam.min()
        cam /= cam.max() + 1e-8
        return cam.squeeze(1).cpu().numpy()


cnn = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))
cam = GradCAM(cnn, cnn[0])
print(cam(torch.randn(2, 1, 6, 6)).shape)

hooked = nn.Linear(2, 2)
hooked.register_full_backward_hook(lambda *_: None)
copy.deepcopy(hooked)(torch.ones(2, 2)) * 2  # a deep copy calls them too
