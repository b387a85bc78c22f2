"""Any module of torch as a model: a library's, or a user's own."""

from __future__ import annotations

import copy
import inspect
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from reproduce.declare import closure
from reproduce.declare.isolation import forked
from reproduce.declare.values import Sample, calling, words
from reproduce.errors import UserError
from reproduce.models.model import Model
from reproduce.modules.graph import Count, Graph


@dataclass(frozen=True)
class Network(Model):
    """Any module of torch that makes logits [batch, classes] of samples [batch, ...]: a library's or a user's own.

    make: "torchvision.models:resnet18" or "my_file:Net", a callable that gives it. arguments: its keywords.
    code: a digest of a user's file, so that another network is another declaration. sample: what it is given, as the
    problem says. Its initial values are its own, by the seed of the run; seed: of a module without a graph.
    UserError if there is no such callable, or if it gives no module.
    """

    make: str = ""  # type: ignore[misc]
    arguments: tuple[tuple[str, Any], ...] = ()
    code: str = field(default="", init=False)
    sample: Sample | None = None
    foreign = True
    seed: ClassVar[int] = 0
    batch: ClassVar[int] = 3
    evaluation: ClassVar[int] = 500

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", closure.with_own("", self.files))

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments)
        return f"{self.make}({given})" if given else self.make

    @property
    def files(self) -> frozenset[Path]:
        """The files of a user's own that say what it is; none for an installed library."""
        try:
            made = pkgutil.resolve_name(self.make)
            file = Path(inspect.getfile(inspect.unwrap(made)))
        except TypeError as error:
            raise UserError(f"{self.make} is neither a class nor a function in a file") from error
        except Exception as error:  # whatever a file raises that is imported
            raise UserError(f"there is no network {self.make!r}: {words(error)}") from error
        return frozenset() if closure.installed(file) else frozenset({file})

    def module(self, *key: int | str) -> Any:
        """The module as its own code initialises it, with what it draws by the stream of `key`."""
        from torch import nn

        with calling(f"the network {self.make}", "network", *key):
            made = pkgutil.resolve_name(self.make)(**dict(self.arguments))
            if not isinstance(made, nn.Module):
                raise UserError(f"{self.make} gives a {type(made).__name__} and no torch.nn.Module")
            if not made.training:
                made.train()
        return made

    def on(self, sample: Sample, batch: int, evaluation: int) -> Network:
        return self._with(sample=sample, batch=batch, evaluation=evaluation)

    def of(self, seed: int) -> Network:
        return self._with(seed=seed)

    def _with(self, **values: Any) -> Network:
        changed = copy.copy(self)
        vars(changed).update(values)
        return changed

    @property
    def graph(self) -> Graph:
        return _examined(self, self.batch)[0]

    def _called(self, ops: Any, p: Mapping[str, Any], x: Any) -> tuple[Any, ...]:
        from reproduce.modules.eager import evaluated

        return evaluated(self, p, [x], features=True)

    @property
    def kind(self) -> str:
        return "module" if self.graph.untraced else super().kind

    def needs_batch(self, sample: tuple[int, ...]) -> str:
        return "" if self.graph.untraced else super().needs_batch(sample)

    def cost(self, sample: tuple[int, ...]) -> Count:
        return _examined(self, self.batch)[1] or super().cost(sample)


@cache
def _examined(model: Network, batch: int) -> tuple[Graph, Count | None]:
    from reproduce.modules.check_translation import examined

    return forked([lambda tell: examined(model)])[0]  # type: ignore[no-any-return]
