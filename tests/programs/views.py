"""Views and copies: what shares storage, and what has a grad_fn."""
import torch

x = torch.randn(2, 3, 4, requires_grad=True)
x.view(6, 4)
x.reshape(24)
x.transpose(0, 1)
x.transpose(0, 1).reshape(24)
x.permute(2, 0, 1)
x.t if False else x[0].t()
x.T if x.dim() == 2 else x.mT
x[0]
x[:, 1]
x[..., 0]
x[:, None]
x[0, 1, 2]
x[0:1]
x[:, :2, -1]
x[[0, 1]]
x[x > 0]
x[torch.tensor([0])]
x.unsqueeze(1)
x.squeeze()
x.flatten()
x.flatten(1)
x.expand(5, 2, 3, 4)
x.contiguous()
x.transpose(0, 2).contiguous()
x.detach()
x.detach()[0]
x.data
x.clone()
x.narrow(0, 0, 1)
x.select(0, 1)
x.diagonal(dim1=0, dim2=1)
x.unfold(2, 2, 1)
x.movedim(0, -1)
x.view_as(x)
x.expand_as(x)
x.to(torch.float64)
x.to(torch.float32)
x.double()
x.float()
x.type_as(torch.zeros(1, dtype=torch.float64))
x.cpu()
x.real
x.chunk(2)[0]
x.split(1)[1]
x.unbind(0)[0]
torch.unbind(x)[1]
a, b = x.unbind()
a
first, *others = x.chunk(3, dim=1)
others[0]
for row in x:
    row
values, indices = x.max(dim=1)
values
indices
x.sort(dim=-1).values
x.topk(2).indices
plain = torch.arange(6).view(2, 3)
plain
plain[0]
plain.float().requires_grad_()
p = torch.nn.Parameter(plain.float())
p
p.data
p[0]
torch.nn.Parameter(x.detach()[0])
torch.as_tensor(x)
torch.as_tensor([1.0, 2.0])
torch.from_numpy(x.detach().numpy())
torch.stack([x, x])[0]
torch.cat([x, x.detach()])
torch.broadcast_to(x, (1, 2, 3, 4))
torch.einsum("ijk->ikj", x)
repeated = torch.ones(3).repeat_interleave(2).to("cpu")
repeated
repeated.requires_grad_()
