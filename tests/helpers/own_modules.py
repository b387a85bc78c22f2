"""Modules of torch as strangers bring them: one row each, for pictures 1 x 8 x 8 and ten classes (`test_own_models`).

TRACED: a graph takes their place. ALONE: they run by themselves. REFUSED: a line says why.
"""

import itertools
import random
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from own_kinds import KINDS
from torch import Tensor, nn
from torch.nn.utils import parametrizations as new  # noqa: F401 (of the rows that are written out)
from torch.nn.utils import prune
from torch.utils.checkpoint import checkpoint

Make = Callable[[], Any]
L, C, Seq, P = nn.Linear, nn.Conv2d, nn.Sequential, nn.Parameter
Flat, ReLU, Max, BN, BN1 = nn.Flatten, nn.ReLU, nn.MaxPool2d, nn.BatchNorm2d, nn.BatchNorm1d


class Of(nn.Module):
    """Layers, parameters and buffers by name (those called `spare` are not stored), and what forward does with them."""

    def __init__(self, how: Callable[[Any, Tensor], Any], **parts: Any) -> None:
        super().__init__()
        self.how = how
        for name, part in parts.items():
            if isinstance(part, Tensor) and not isinstance(part, P):
                self.register_buffer(name, part, persistent=not name.startswith("spare"))
            else:
                setattr(self, name, part)

    def forward(self, x: Tensor) -> Any:
        return self.how(self, x)


def head(how: Callable[[Any, Tensor], Any], width: int = 64, **parts: Any) -> Of:
    """`how` of the flat pictures [B, 64] makes features [B, width], of which a linear layer `fc` makes logits."""
    return Of(lambda m, x: m.fc(how(m, x.flatten(1))), fc=L(width, 10), **parts)


def stem(*layers: nn.Module, features: int = 128) -> nn.Sequential:
    """A convolution to 4 channels, then `layers`, then logits of what they make."""
    return Seq(C(1, 4, 3, padding=2, stride=2), *layers, Flat(), L(features, 10))


def mlp(*layers: nn.Module, width: int = 12) -> nn.Sequential:
    return Seq(Flat(), L(64, width), *layers, L(width, 10))


def done(module: Any, *calls: Any) -> Any:
    """The module after these calls of it."""
    for call in calls:
        call(module)
    return module


def put(name: str, value: Any) -> Callable[[Any], None]:
    return lambda m: setattr(m, name, value)


def under(context: Any) -> Make:
    """A network whose first layer runs in a context."""

    def how(m: Any, x: Tensor) -> Tensor:
        with context():
            z = m.a(x)
        return z.relu()  # type: ignore[no-any-return]

    return lambda: head(how, 12, a=L(64, 12))


def kept(m: Any, x: Tensor) -> Tensor:
    """A mean that forward itself moves."""
    if m.training:
        m.mu = 0.9 * m.mu + 0.1 * x.mean(0).detach()
    return x - m.mu


def energy(m: Any, x: Tensor) -> Tensor:
    x = x.detach().requires_grad_()
    return torch.autograd.grad(m.a(x).tanh().sum(), x, create_graph=True)[0]


def averaged(m: Any, x: Tensor) -> Tensor:
    """A frozen layer that follows a trained one."""
    with torch.no_grad():
        m.slow.weight.mul_(0.9).add_(0.1 * m.a.weight)
    return m.a(x) + m.slow(x)  # type: ignore[no-any-return]


def counted(m: Any, x: Tensor) -> Tensor:
    m.calls += 1
    return x * (1 + m.calls)


def clamped(m: Any, x: Tensor) -> Tensor:
    m.a.weight.data.clamp_(-0.05, 0.05)
    return m.a(x)  # type: ignore[no-any-return]


def viewed(m: Any, x: Tensor) -> Tensor:
    if m.training:
        m.mu.view(2, 32)[0].add_(x.detach().mean())
    return x + m.mu


def listed(m: Any, x: Tensor) -> Tensor:
    m.seen.append(len(m.seen))
    return x * len(m.seen)


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.sign()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 0.5


class Called(nn.Sequential):
    def __call__(self, x: Tensor) -> Any:
        return 2 * super().__call__(x)


class Still(nn.Sequential):
    """Whose normalisation stays in evaluation mode."""

    def train(self, mode: bool = True) -> Any:
        super().train(mode)
        self[1].eval()
        return self


class Freezing(nn.Sequential):
    """Which freezes a layer in `train`."""

    def train(self, mode: bool = True) -> Any:
        self[1].requires_grad_(False)
        return super().train(mode)


class Renamed(nn.Sequential):
    """Whose state has other names."""

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return {f"net.{n}": t for n, t in super().state_dict(*args, **kwargs).items()}


def residual(act: Any = F.relu) -> Of:
    def how(m: Any, x: Tensor) -> Any:
        x = act(m.n(m.a(x)))
        y = m.b(x)
        y += x
        return m.fc(y.mean((2, 3)))

    return Of(how, a=C(1, 6, 3, padding=1), n=BN(6), b=C(6, 6, 3, padding=1, bias=False), fc=L(6, 10))


def each(*texts: str) -> dict[str, Make]:
    """A layer between two linear ones, as it is written."""
    return {text: lambda text=text: mlp(eval(text)) for text in texts}  # type: ignore[misc]


def after(**texts: str) -> dict[str, Make]:
    """A layer behind the convolution, which makes so many features, with `;` between several."""
    rows = [(text, int(n[1:])) for n, several in texts.items() for text in several.split("; ")]
    return {text: lambda text=text, n=n: stem(eval(text), features=n) for text, n in rows}  # type: ignore[misc]


class Plain(nn.Module):
    """Written as in torch's tutorials."""

    def __init__(self, drop: float = 0.0) -> None:
        super().__init__()
        self.conv1, self.conv2, self.drop = C(1, 4, 3, padding=1), C(4, 4, 3, padding=1), drop
        self.fc1, self.fc2 = L(64, 12), L(12, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = x + self.conv2(x)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x.view(x.size(0), -1)))
        x = F.dropout(x, self.drop, self.training) if self.drop else x
        return self.fc2(x)  # type: ignore[no-any-return]


class Looped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last, self.all = L(9, 10), nn.ModuleList([L(64, 9), L(9, 9)])

    def forward(self, x: Tensor) -> Tensor:
        x = x.reshape(x.shape[0], 64)
        for layer in self.all:
            x = layer(x).relu()
        return self.last(x)  # type: ignore[no-any-return]


TRACED: dict[str, Make] = {
    "linear": lambda: Seq(Flat(), L(64, 10)),
    "two layers": lambda: mlp(ReLU()),
    "in place": lambda: mlp(ReLU(inplace=True)),
    "no bias": lambda: mlp(ReLU(), L(12, 12, bias=False), ReLU()),
    "convolutions": lambda: stem(ReLU(), Max(2), C(4, 8, 3, padding=1), ReLU(), features=32),
    "a tutorial's": Plain,
    "a loop": Looped,
    "layer norm": lambda: mlp(nn.LayerNorm(12), ReLU()),
    "nothing dropped": lambda: mlp(nn.Dropout(0.0), nn.Identity()),
    **after(_100="BN(4); BN(4, track_running_stats=False)", _4="nn.AdaptiveAvgPool2d(1)", _36="Max(3, 2, 1)"),
}  # fmt: skip
DROPPED: dict[str, Make] = {
    "dropout": lambda: mlp(ReLU(), nn.Dropout(0.3)),
    "dropout of channels": lambda: stem(nn.Dropout2d(0.4), features=100),
}
"""Traced ones that drop, by the engine's own masks."""
ALONE: dict[str, Make] = {
    "dropout by a function": lambda: Plain(0.3),
    # --- what torch.fx makes of them computes something else, or may
    "defined backwards": lambda: Of(lambda m, x: m.z(m.a(x.flatten(1)).relu()), z=L(12, 10), a=L(64, 12)),
    "view by number": lambda: Of(lambda m, x: m.fc(m.a(x).relu().view(-1, 144)), a=C(1, 4, 3), fc=L(144, 10)),
    "residual": residual,
    "a layer twice": lambda: head(lambda m, x: m.a(m.a(x).relu()), a=L(64, 64)),
    "a checkpoint": lambda: head(lambda m, x: checkpoint(m.a, x, use_reentrant=False), 8, a=L(64, 8)),
    "a hook that looks": lambda: done(mlp(ReLU()), lambda m: m[1].register_forward_hook(lambda *_: None)),
    "a hook on the root": lambda: done(mlp(ReLU()), lambda m: m.register_forward_hook(lambda m, i, out: 2 * out)),
    "a hook before the root": lambda: done(mlp(), lambda m: m.register_forward_pre_hook(lambda m, i: (i[0] * 2,))),
    "a hook on a layer": lambda: done(mlp(), lambda m: m[1].register_forward_hook(lambda m, i, out: out.cos())),
    "a hook on the way back": lambda: done(
        mlp(), lambda m: m[1].register_full_backward_hook(lambda m, i, o: (None if i[0] is None else i[0] * 9,)),
        lambda m: m[2].register_full_backward_hook(lambda m, i, o: (i[0] * 3,)),
    ),
    "a call of its own": lambda: Called(Flat(), L(64, 10)),
    "a forward of its own": lambda: done(
        mlp(), lambda m: put("forward", types.MethodType(lambda m, x: m[2](m[1](m[0](x)).sin()), m))(m)
    ),
    "no_grad": under(torch.no_grad),
    "set_grad_enabled": under(lambda: torch.set_grad_enabled(False)),
    "asks whether gradients are on": lambda: head(lambda m, x: x * (1 + torch.is_grad_enabled())),
    "isinstance": lambda: head(lambda m, x: x * 2 if isinstance(x, Tensor) else x),
    "a bias that is a buffer": lambda: done(
        mlp(), lambda m: m[1].__delattr__("bias"), lambda m: m[1].register_buffer("bias", torch.ones(12))
    ),
    "a frozen layer": lambda: done(mlp(ReLU()), lambda m: m[1].requires_grad_(False)),
    "frozen in train()": lambda: Freezing(Flat(), L(64, 12), ReLU(), L(12, 10)),
    "still statistics": lambda: Still(C(1, 4, 3), BN(4), Flat(), L(144, 10)),
    "in place, read again": lambda: residual(nn.ReLU(inplace=True)),
    "two ways": lambda: head(lambda m, x: (m.a if m.training else m.b)(x), 8, a=L(64, 8), b=L(64, 8)),
    "doubled in training": lambda: Of(lambda m, x: m.fc(x.flatten(1)) * (2 if m.training else 1), fc=L(64, 10)),
    "shared weights": lambda: done(mlp(L(12, 12), L(12, 12)), lambda m: put("weight", m[2].weight)(m[3])),
    "drops in evaluation": lambda: head(lambda m, x: F.dropout(x, 0.2)),
    "features to two axes": lambda: Of(lambda m, x: m.fc(x.view(len(x), 2, 32)).sum(1), fc=L(32, 10)),
    "mean of rows": lambda: Of(lambda m, x: m.fc(m.a(x).mean(2).flatten(1)), a=C(1, 4, 3), fc=L(24, 10)),
    "linear on the last axis": lambda: Seq(L(8, 4), ReLU(), Flat(), L(32, 10)),
    "sums that broadcast": lambda: head(lambda m, x: m.a(x) + m.b(x), 8, a=L(64, 8), b=L(64, 1)),
    "the sum of a batch": lambda: head(lambda m, x: x - x.mean(0)),
    # --- parameters without a gradient
    "an unused layer": lambda: head(lambda m, x: x, idle=L(3, 3)),
    "an unused parameter": lambda: head(lambda m, x: x, idle=P(torch.ones(3))),
    "detached": lambda: head(lambda m, x: m.a(x).detach(), 12, a=L(64, 12)),
    "an expert that is chosen": lambda: head(
        lambda m, x: m.experts[int(m.gate(x).sum(0).argmax())](x), 8, gate=L(64, 2), experts=Seq(L(64, 8), L(64, 8))
    ),
    # --- what is remembered
    "a mean that is assigned": lambda: head(kept, mu=torch.zeros(64)),
    "a mean that is not stored": lambda: head(lambda m, x: x - m.spare.add_(x.mean(0).detach()), spare=torch.zeros(64)),
    "a view of a buffer": lambda: head(viewed, mu=torch.zeros(64)),
    "a clamped weight": lambda: head(clamped, 12, a=L(64, 12)),
    "a slow copy": lambda: head(averaged, 8, a=L(64, 8), slow=L(64, 8).requires_grad_(False)),
    "a number that counts": lambda: head(counted, calls=0),
    "a buffer that counts": lambda: head(lambda m, x: x * m.n.add_(1), n=torch.zeros((), dtype=torch.int64)),
    "a list that grows": lambda: head(listed, seen=[]),
    "reads the counter": lambda: Of(
        lambda m, x: m.fc(m.n(x).flatten(1)) * (1 + int(m.n.num_batches_tracked)), n=BN(1), fc=L(64, 10)
    ),
    "an alias of a weight": lambda: done(
        head(lambda m, x: m.a(x) + m.also.sum(), 8, a=L(64, 8)), lambda m: put("also", m.a.weight.detach())(m)
    ),
    "writes on its samples": lambda: head(lambda m, x: x.sub_(0.5)),
    # --- constants of the seed
    "a random attribute": lambda: head(lambda m, x: x * m.s, s=random.random()),
    "a random buffer": lambda: head(lambda m, x: x @ m.spare, 9, spare=torch.randn(64, 9)),
    "a random mask": lambda: head(lambda m, x: x * m.mask, mask=torch.rand(64) < 0.5),
    "a complex constant": lambda: head(lambda m, x: (x * m.spare).real, spare=torch.randn(64, dtype=torch.complex64)),
    # --- what is drawn
    "noise": lambda: head(lambda m, x: x + 0.1 * torch.randn_like(x) * m.training),
    "a random depth": lambda: head(lambda m, x: x * 2 if m.training and random.random() < 0.5 else x),
    "a generator of its own": lambda: head(
        lambda m, x: x + torch.randn(64, generator=m.stream), stream=torch.Generator().manual_seed(3)
    ),
    # --- torch's other layers
    "scaled": lambda: Of(lambda m, x: m.fc(x.flatten(1)) * 0.5, fc=L(64, 10)),
    **each(
        "nn.GELU()", "nn.PReLU()", "nn.RReLU()", "nn.AlphaDropout()", "BN1(12)", "BN1(12, track_running_stats=False)",
        "nn.LayerNorm(12, eps=0.1)", "nn.LayerNorm(12, bias=False)", "new.weight_norm(L(12, 12))",
        "new.orthogonal(L(12, 12))", "nn.utils.spectral_norm(L(12, 12))",
    ),
    **after(
        _36="C(4, 4, 3, groups=2); C(4, 4, 2, dilation=2); Max(2, ceil_mode=True); "
        "nn.AvgPool2d(3, 2, 1, count_include_pad=False)",
        _100="C(4, 4, 3, padding=1, padding_mode='reflect'); C(4, 4, 3, padding='same'); BN(4, momentum=0.3); "
        "BN(4, eps=0.1); BN(4, affine=False); BN(4, momentum=None); nn.LayerNorm((4, 5, 5)); nn.GroupNorm(2, 4)",
        _60="C(4, 4, (3, 1))", _16="nn.AdaptiveAvgPool2d(2)",
    ),
    "LSTM": lambda: Of(lambda m, x: m.fc(m.a(x[:, 0])[0][:, -1]), a=nn.LSTM(8, 6, batch_first=True), fc=L(6, 10)),
    "a transformer": lambda: Of(
        lambda m, x: m.fc(m.a(x[:, 0])[:, 0]), a=nn.TransformerEncoderLayer(8, 2, 9, 0.0, batch_first=True), fc=L(8, 10)
    ),
    # --- what torch can do besides
    "a parameter that scales": lambda: head(lambda m, x: x * m.s, s=P(torch.ones(64))),
    "gradients within": lambda: head(energy, a=L(64, 12)),
    "a reentrant checkpoint": lambda: head(
        lambda m, x: checkpoint(m.a, m.b(x).cos(), use_reentrant=True), 8, b=L(64, 8), a=L(8, 8)
    ),
    "a function of its own": lambda: head(lambda m, x: Sign.apply(m.a(x)), 8, a=L(64, 8)),
    "straight through": lambda: head(lambda m, x: (z := m.a(x)) + (z.round() - z).detach(), 8, a=L(64, 8)),
    "a record of logits": lambda: Of(lambda m, x: types.SimpleNamespace(logits=m.fc(x.flatten(1))), fc=L(64, 10)),
    "names of its own": lambda: Renamed(Flat(), L(64, 12), nn.Softmax(1), L(12, 10)),
    "pruned": lambda: mlp(prune.l1_unstructured(L(12, 12), "weight", 0.5)),
    "a hook of a tensor": lambda: done(mlp(), lambda m: m[1].weight.register_hook(lambda g: 2 * g)),
    "the forward of another": lambda: done(mlp(), lambda m: put("forward", lambda x: m[2](m[1](m[0](x))))(m)),
    "parallel": lambda: nn.DataParallel(mlp(nn.CELU())),
}  # fmt: skip

CALLS = itertools.count()
UNSEEDED = np.random.default_rng()


def shrinks(m: Any, x: Tensor) -> Tensor:
    m.mu = m.mu[:1]
    return x - m.mu


REFUSED: dict[str, tuple[Make, str]] = {
    "lazy": (lambda: Seq(Flat(), nn.LazyLinear(10)), "cannot be used: .*ninitialized"),
    "complex logits": (lambda: Of(lambda m, x: m.fc(x.flatten(1)) * 1j, fc=L(64, 10)), "no logits .*complex64"),
    "a complex parameter": (
        lambda: head(lambda m, x: (x * m.w).real, w=P(torch.ones(64, dtype=torch.cfloat))), "w is .*real"
    ),
    "whole numbers": (lambda: Of(lambda m, x: m.fc(x.flatten(1)).long(), fc=L(64, 10)), "no logits .*int64"),
    "no parameters": (lambda: Seq(Flat(), nn.Identity()), "no parameters that are trained"),
    "numbers of double precision": (lambda: mlp().double(), "fails: .*same dtype"),
    "a sparse buffer": (lambda: head(lambda m, x: x, w=torch.eye(64).to_sparse()), "w is sparse: use a dense"),
    "other sizes": (lambda: mlp(width=random.randrange(99)), "other parameters with another seed"),
    "remembers outside": (lambda: head(lambda m, x: x * next(CALLS)), "gives other numbers .* once more"),
    "made without a seed": (lambda: head(lambda m, x: x * m.s, s=UNSEEDED.random()), "gives other numbers"),
    "shrinks": (lambda: head(shrinks, mu=torch.zeros(64)), "changes what it has: mu"),
    "all detached": (lambda: Of(lambda m, x: m.fc(x.flatten(1)).detach(), fc=L(64, 10)), "no parameter has a part"),
    "too few outputs": (lambda: Seq(Flat(), L(64, 3)), "has 3 outputs for the 10 classes"),
    "does not fit": (lambda: Seq(Flat(), L(99, 10)), "fails: .*cannot be multiplied"),
    "a number": (lambda: 3, "gives a int and no torch.nn.Module"),
    "pictures": (lambda: C(1, 10, 3), r"makes no logits \[batch, classes\]"),
    "a pair": (lambda: Of(lambda m, x: (m.fc(x.flatten(1)), x), fc=L(64, 10)), "makes no logits .* but tuple"),
}  # fmt: skip


def make(name: str) -> Any:
    return (TRACED | DROPPED | ALONE | KINDS | {n: row[0] for n, row in REFUSED.items()})[name]()
