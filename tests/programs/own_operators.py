"""Objects that define operators, decorators and iterators of the standard library."""

import torch, torch.nn as nn, abc, weakref, copy
w = torch.ones(3, requires_grad=True)
class Base(abc.ABC):
    registry = {}
    def __init_subclass__(cls, **kw):
        super().__init_subclass__(**kw)
        Base.registry[cls.__name__] = cls
    @abc.abstractmethod
    def run(self, x): ...
    def __call__(self, x):
        return self.post(self.run(x))
    def post(self, x):
        return x
class A(Base):
    def run(self, x):
        return x * 2
class B(A):
    def post(self, x):
        return super().post(x).detach()
A()(w)
B()(w)
Base.registry['B']()(w)
class Mixin:
    def run(self, x):
        return super().run(x) + w
class C(Mixin, A):
    pass
C()(w.detach())
class Slots:
    __slots__ = ('t',)
    def __init__(self, t):
        self.t = t
Slots(w * 2).t
class Lazy:
    def __init__(self):
        self._v = None
    @property
    def v(self):
        if self._v is None:
            self._v = w * 2
        return self._v
    @v.setter
    def v(self, x):
        self._v = x.detach()
l = Lazy()
l.v
l.v = w
l.v
class Attr:
    def __getattr__(self, n):
        if n == 'magic':
            return w * 5
        raise AttributeError(n)
Attr().magic
class Vec:
    def __init__(self, t):
        self.t = t
    def __add__(self, o):
        return Vec(self.t + (o.t if isinstance(o, Vec) else o))
    def __radd__(self, o):
        return self + o
    def __mul__(self, k):
        return Vec(self.t * k)
    __rmul__ = __mul__
    def __matmul__(self, o):
        return self.t @ o.t
    def __neg__(self):
        return Vec(-self.t)
    def __getitem__(self, i):
        return self.t[i]
    def __setitem__(self, i, v):
        self.t[i] = v
    def __len__(self):
        return len(self.t)
    def __bool__(self):
        return True
    def __contains__(self, x):
        return True
    def __eq__(self, o):
        return True
    def __iadd__(self, o):
        self.t = self.t + o
        return self
v = Vec(w) + Vec(w.detach())
v.t
(2 * v).t
v @ v
(-v).t
v[0]
sum([v, v]).t
v += 1
v.t
u = Vec(torch.zeros(3))
u[0] = w[0]
u.t
class Meta(type):
    def __call__(cls, *a):
        o = super().__call__(*a)
        o.extra = w * 2
        return o
class D(metaclass=Meta):
    def __init__(self, x):
        self.x = x
D(w).x
class Single:
    _inst = None
    def __new__(cls):
        if cls._inst is None:
            cls._inst = super().__new__(cls)
            cls._inst.t = w
        return cls._inst
Single().t
class Outer:
    class Inner:
        def f(self):
            return w.detach()
    def make(self):
        return self.Inner()
Outer().make().f()
class Net(nn.Module):
    def __init__(self, act='relu'):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.act = getattr(nn.functional, act)
        self.scale = 2.
        self.register_buffer('mean', torch.zeros(3))
        self.hist = []
        self.p = None
    def __getattr__(self, n):
        try:
            return super().__getattr__(n)
        except AttributeError:
            return getattr(self.fc, n)
    def forward(self, x):
        y = self.act(self.fc(x)) * self.scale
        self.hist.append(y.detach())
        self.mean = 0.9 * self.mean + 0.1 * y.detach()
        self.p = y
        return y
n = Net()
n(w)
n.hist[0]
n.mean
n.p
n.weight
class Child(Net):
    def forward(self, x):
        with torch.no_grad():
            y = super().forward(x)
        return y + self.fc.bias
c = Child()
c(w)
c.hist[-1]
class Wrap(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.m = m
        for p in self.m.parameters():
            p.requires_grad_(False)
        self.head = nn.Linear(3, 1)
    def train(self, mode=True):
        super().train(mode)
        self.m.eval()
        return self
    def forward(self, x):
        return self.head(self.m(x).detach())
wr = Wrap(Net())
wr(w)
wr.m(w)
wr.m(w.detach())
wr.train()(w)
r = weakref.ref(wr)
r()(w)
n.p = None
wr.m.p = None; wr.m.hist = []
k = copy.deepcopy(wr)
k.m.fc.weight
k.head.weight
setattr(n, 'extra', nn.Parameter(torch.ones(3)))
n.extra
hasattr(n, 'zzz')
getattr(n, 'zz', w)
n.__dict__
type(n)().fc.weight
isinstance(n, nn.Module) and n.fc.weight
Net.forward(n, w)
f = n.forward
f(w)
g = Net.__call__
g(n, w)
