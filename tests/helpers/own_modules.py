"""Modules of torch as strangers bring them: one row each, for pictures 1 x 8 x 8 and ten classes (`test_own_models`).

TRACED: a graph takes their place. ALONE: they run by themselves. REFUSED: a line says why.
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
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


class Still(nn.Sequential):
    """Whose normalisation stays in evaluation mode."""

    def train(self, mode: bool = True) -> Any:
        super().train(mode)
        self[1].eval()
        return self


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


TRACED: dict[str, Make] = {
    "two layers": lambda: mlp(ReLU()),
    "defined backwards": lambda: Of(lambda m, x: m.z(m.a(x.flatten(1)).relu()), z=L(12, 10), a=L(64, 12)),
    "convolutions": lambda: stem(ReLU(), Max(2), C(4, 8, 3, padding=1), ReLU(), features=32),
    "view": lambda: Of(lambda m, x: m.fc(F.relu(m.a(x.view(x.size(0), -1)))), a=L(64, 12), fc=L(12, 10)),
    "residual": residual,
    "layer norm": lambda: mlp(nn.LayerNorm(12), ReLU()),
    "a list of layers": lambda: head(
        lambda m, x: [x := layer(x).relu() for layer in m.all][-1], 9, all=nn.ModuleList([L(64, 9), L(9, 9)])
    ),
    "a layer twice": lambda: head(lambda m, x: m.a(m.a(x).relu()), a=L(64, 64)),
    "a checkpoint": lambda: head(lambda m, x: checkpoint(m.a, x, use_reentrant=False), 8, a=L(64, 8)),
    "a hook that looks": lambda: done(mlp(ReLU()), lambda m: m[1].register_forward_hook(lambda *_: None)),
    **after(_100="BN(4); BN(4, track_running_stats=False)", _4="nn.AdaptiveAvgPool2d(1)", _36="Max(3, 2, 1)"),
}  # fmt: skip
DROPPED: dict[str, Make] = {
    "dropout": lambda: mlp(ReLU(), nn.Dropout(0.3)),
    "dropout of channels": lambda: stem(nn.Dropout2d(0.4), features=100),
}
"""Traced ones that drop, by the engine's own masks."""
ALONE: dict[str, Make] = {
    # --- what torch.fx makes of them computes something else
    "a hook on the root": lambda: done(mlp(ReLU()), lambda m: m.register_forward_hook(lambda m, i, out: 2 * out)),
    "a hook on the way back": lambda: done(
        mlp(), lambda m: m[1].register_full_backward_hook(lambda m, i, o: (None if i[0] is None else i[0] * 9,)),
        lambda m: m[2].register_full_backward_hook(lambda m, i, o: (i[0] * 3,)),
    ),
    "a forward of its own": lambda: done(
        mlp(), lambda m: put("forward", types.MethodType(lambda m, x: m[2](m[1](m[0](x)).sin()), m))(m)
    ),
    "no_grad": under(torch.no_grad),
    "asks whether gradients are on": lambda: head(lambda m, x: x * (1 + torch.is_grad_enabled())),
    "isinstance": lambda: head(lambda m, x: x * 2 if isinstance(x, Tensor) else x),
    "a frozen layer": lambda: done(mlp(ReLU()), lambda m: m[1].requires_grad_(False)),
    "still statistics": lambda: Still(C(1, 4, 3), BN(4), Flat(), L(144, 10)),
    "in place, read again": lambda: residual(nn.ReLU(inplace=True)),
    "shared weights": lambda: done(mlp(L(12, 12), L(12, 12)), lambda m: put("weight", m[2].weight)(m[3])),
    "drops in evaluation": lambda: head(lambda m, x: F.dropout(x, 0.2)),
    "linear on the last axis": lambda: Seq(L(8, 4), ReLU(), Flat(), L(32, 10)),
    "the sum of a batch": lambda: head(lambda m, x: x - x.mean(0)),
    # --- parameters without a gradient
    "an unused layer": lambda: head(lambda m, x: x, idle=L(3, 3)),
    "detached": lambda: head(lambda m, x: m.a(x).detach(), 12, a=L(64, 12)),
    # --- what is remembered
    "a mean that is assigned": lambda: head(kept, mu=torch.zeros(64)),
    "a clamped weight": lambda: head(clamped, 12, a=L(64, 12)),
    "a number that counts": lambda: head(counted, calls=0),
    "a list that grows": lambda: head(listed, seen=[]),
    "writes on its samples": lambda: head(lambda m, x: x.sub_(0.5)),
    # --- constants of the seed
    "a random mask": lambda: head(lambda m, x: x * m.mask, mask=torch.rand(64) < 0.5),
    # --- what is drawn
    "noise": lambda: head(lambda m, x: x + 0.1 * torch.randn_like(x) * m.training),
    "a generator of its own": lambda: head(
        lambda m, x: x + torch.randn(64, generator=m.stream), stream=torch.Generator().manual_seed(3)
    ),
    # --- torch's other layers
    **each(
        "nn.GELU()", "nn.PReLU()", "nn.RReLU()", "nn.Softmax(-1)", "nn.AlphaDropout()", "BN1(12)",
        "nn.LayerNorm(12, eps=0.1)", "new.weight_norm(L(12, 12))", "new.spectral_norm(L(12, 12))",
    ),
    **after(
        _36="C(4, 4, 3, groups=2); Max(2, ceil_mode=True)",
        _100="C(4, 4, 3, padding='same'); BN(4, momentum=0.3); BN(4, affine=False); BN(4, momentum=None); "
        "nn.GroupNorm(2, 4); nn.InstanceNorm2d(4, affine=True, track_running_stats=True)",
        _4="nn.AdaptiveMaxPool2d(1)",
    ),
    "LSTM": lambda: Of(lambda m, x: m.fc(m.a(x[:, 0])[0][:, -1]), a=nn.LSTM(8, 6, batch_first=True), fc=L(6, 10)),
    "a transformer": lambda: Of(
        lambda m, x: m.fc(m.a(x[:, 0])[:, 0]), a=nn.TransformerEncoderLayer(8, 2, 9, 0.0, batch_first=True), fc=L(8, 10)
    ),
    # --- what torch can do besides
    "gradients within": lambda: head(energy, a=L(64, 12)),
    "a function of its own": lambda: head(lambda m, x: Sign.apply(m.a(x)), 8, a=L(64, 8)),
    "a record of logits": lambda: Of(lambda m, x: types.SimpleNamespace(logits=m.fc(x.flatten(1))), fc=L(64, 10)),
    "names of its own": lambda: Renamed(Flat(), L(64, 12), nn.Softmax(1), L(12, 10)),
    "numbers of double precision": lambda: mlp(nn.CELU()).double(),
}  # fmt: skip

CALLS = itertools.count()
UNSEEDED = np.random.default_rng()


def shrinks(m: Any, x: Tensor) -> Tensor:
    m.mu = m.mu[:1]
    return x - m.mu


COMPUTED = "cannot be copied: "
REFUSED: dict[str, tuple[Make, str]] = {
    "lazy": (lambda: Seq(Flat(), nn.LazyLinear(10)), "cannot be used: .*ninitialized"),
    "complex logits": (lambda: Of(lambda m, x: m.fc(x.flatten(1)) * 1j, fc=L(64, 10)), "no logits .*complex64"),
    "no parameters": (lambda: Seq(Flat(), nn.Identity()), "no parameters that are trained"),
    "pruned": (lambda: mlp(prune.l1_unstructured(L(12, 12), "weight", 0.5)), COMPUTED),
    "the forward of another": (
        lambda: done(mlp(), lambda m: put("forward", lambda x: m[2](m[1](m[0](x))))(m)), "a copy computes with"
    ),
    "remembers outside": (lambda: head(lambda m, x: x * next(CALLS)), "gives other numbers .* once more"),
    "made without a seed": (lambda: head(lambda m, x: x * m.s, s=UNSEEDED.random()), "gives other numbers"),
    "shrinks": (lambda: head(shrinks, mu=torch.zeros(64)), "changes what it has: mu"),
    "too few outputs": (lambda: Seq(Flat(), L(64, 3)), "has 3 outputs for the 10 classes"),
    "does not fit": (lambda: Seq(Flat(), L(99, 10)), "fails: .*cannot be multiplied"),
}  # fmt: skip


def make(name: str) -> Any:
    return (TRACED | DROPPED | ALONE | {n: row[0] for n, row in REFUSED.items()})[name]()
