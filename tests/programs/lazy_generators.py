"""Generators and their kin run where they are gone through, in the grad mode of that place."""

import torch, itertools
w = torch.ones(3, requires_grad=True)
def gen(x):
    for i in range(3):
        y = x * i
        yield y
g = gen(w)
with torch.no_grad():
    a = next(g)
    a
b = next(g)
b
with torch.no_grad():
    for c in gen(w):
        c
h = gen(w)
with torch.no_grad():
    for d in h:
        d
ge = (x * 2 for x in [w, w])
with torch.no_grad():
    e = list(ge)
e[0]
m = map(lambda x: x * 3, [w, w])
with torch.no_grad():
    f = list(m)
f[0]
n = []
def lazy():
    n.append(w * 5)
    yield 1
lazy()
len(n)
k = lazy()
next(k)
n[0]
z = [1]
def eff(x):
    x.add_(1)
    yield x
t = torch.zeros(3)
u = eff(t)
t += w
next(u)
filt = filter(lambda x: x.requires_grad, [w, w.detach()])
for hh in itertools.chain(gen(w), gen(w.detach())):
    hh
