"""RoBERTa against the library `transformers`: logits, gradients, narrower networks, training with the same weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from reproduce.data.batches import Shuffled
from reproduce.data.embedded import TopicTokens
from reproduce.engine.client_split import ClientSplits
from reproduce.engine.layout import layout_of
from reproduce.engine.requests import Train
from reproduce.engine.rule import Exits, OrderedDropout, Rule
from reproduce.engine.trainer import Trainer
from reproduce.models.ops import One, Stacked
from reproduce.models.roberta import EarlyExitsRoBERTa, RoBERTa
from reproduce.models.submodels import positions
from reproduce.partitions.dirichlet import DirichletClass
from reproduce.problem import Classification
from reproduce.settings import Settings

SMALL = RoBERTa(60, 20, hidden=24, heads=2, layers=2, inner=40, classes=4, dropout=0.0)
EXACT = {"rtol": 0, "atol": 1e-10}


def library(model: RoBERTa, vector: Tensor) -> nn.Module:
    """The library's model with the weights `vector` [P], in evaluation mode."""
    sizes = model.kept(model.hidden), model.heads, model.layers, model.kept(model.inner), model.classes
    whole = RoBERTa(model.vocabulary, model.positions, *sizes, dropout=0.0, padding=model.padding)
    found: nn.Module = whole.module().to(vector.dtype).eval()
    state = {f"roberta.{n}" if n.startswith("e") else n: v for n, v in layout_of(model).named(vector).items()}
    state = {n: v.reshape(found.state_dict()[n].shape) for n, v in state.items()}
    missing = found.load_state_dict(state, strict=False)
    assert not missing.unexpected_keys
    assert all(key.endswith(("position_ids", "token_type_ids")) for key in missing.missing_keys), missing
    assert sum(p.numel() for p in found.parameters()) == model.parameters
    return found


def weights(model: RoBERTa, models: int, dtype: torch.dtype) -> Tensor:
    """Random weights [models, P], larger than initial ones, biases and normalisation included."""
    generator = torch.Generator().manual_seed(3)
    rows = 0.3 * torch.randn(models, layout_of(model).total, generator=generator, dtype=torch.float64)
    for name, size in zip(layout_of(model).names, layout_of(model).sizes, strict=True):
        if name.endswith("LayerNorm.weight"):
            at = layout_of(model).offsets[name]
            rows[:, at : at + size] += 1
    return rows.to(dtype)


def texts(model: RoBERTa, models: int, batch: int = 5, length: int = 14) -> Tensor:
    """Token ids [models, batch, length]; the lengths of the texts differ, those of the first model are the shortest."""
    generator = torch.Generator().manual_seed(4)
    ids = torch.randint(2, model.vocabulary, (models, batch, length), generator=generator)
    for a in range(models):
        for b in range(batch):
            ids[a, b, 2 + (3 * a + 2 * b) % (length - 4) :] = model.padding
    return ids


def answer(found: nn.Module, ids: Tensor, padding: int) -> Tensor:
    return found(input_ids=ids, attention_mask=(ids != padding).long()).logits


def slopes(model: RoBERTa, found: nn.Module, loss: Tensor) -> Tensor:
    """Gradients by the library's model as a vector of ours; what it does not know has none."""
    found.zero_grad()
    loss.backward()
    known = {n.removeprefix("roberta."): p.grad for n, p in found.named_parameters()}
    return torch.cat([known[name].flatten() for name in model.shapes])  # type: ignore[union-attr]


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
@pytest.mark.parametrize("padding", [1, 0])
def test_logits_and_gradients_equal_the_librarys(dtype: torch.dtype, tolerance: float, padding: int) -> None:
    """Of one model and of a stack of three, whose batches have texts of different lengths, trailing padding cut off."""
    model = replace(SMALL, padding=padding)
    rows, ids = weights(model, 3, dtype), texts(model, 3)
    labels = torch.arange(15).view(3, 5) % 4
    layout = layout_of(model)
    assert len({int((row != padding).sum(-1).max()) for row in ids}) > 1
    leaf = rows.clone().requires_grad_()
    p = {
        n: part.reshape(3, *layout.shapes[i])
        for i, (n, part) in enumerate(zip(layout.names, leaf.split(layout.sizes, 1), strict=True))
    }
    together = model.forward(Stacked(3), p, ids)
    (stacked,) = torch.autograd.grad(Stacked(3).losses(together, labels, None), leaf)
    for a in range(3):
        found = library(model, rows[a])
        logits = answer(found, ids[a], padding)
        gradient = slopes(model, found, nn.functional.cross_entropy(logits, labels[a]))
        alone = rows[a].clone().requires_grad_()
        mine = model.forward(One(), layout.named(alone), ids[a])
        (slope,) = torch.autograd.grad(nn.functional.cross_entropy(mine, labels[a]), alone)
        scale = max(1.0, float(gradient.abs().max()))
        assert gradient.abs().max() > 0.01
        for ours, theirs in ((mine, logits), (together[a], logits), (slope, gradient), (stacked[a], gradient)):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=tolerance * scale)
        word = layout.offsets["embeddings.word_embeddings.weight"] + padding * model.hidden
        assert not slope[word : word + model.hidden].any(), "padding moves nothing, to the bit"


@pytest.mark.parametrize(
    ("width", "sizes", "share"),
    [
        (1 / 8, (96, 8, 384), 0.050),
        (1 / 4, (192, 16, 768), 0.121),
        (1 / 2, (384, 32, 1536), 0.329),
        (0.2, (154, 13, 615), 0.091),
        (0.4, (308, 26, 1229), 0.237),
        (0.6, (461, 39, 1844), 0.437),
        (0.8, (615, 52, 2458), 0.693),
    ],
)
def test_sizes_of_narrower_networks(width: float, sizes: tuple[int, ...], share: float) -> None:
    model = RoBERTa().narrowed(width)
    assert tuple(map(model.kept, (768, 64, 3072))) == sizes
    assert model.parameters / RoBERTa().parameters == pytest.approx(share, abs=6e-4)


def test_the_whole_has_the_sizes_of_the_specification() -> None:
    shapes = RoBERTa().shapes

    def count(*begin: str) -> int:
        return sum(math.prod(s) for n, s in shapes.items() if n.startswith(begin))

    assert RoBERTa().parameters == 124_648_708
    assert (count("embeddings"), count("encoder"), count("classifier")) == (39_000_576, 85_054_464, 593_668)
    assert count("embeddings.word"), count("embeddings.position") == (38_603_520, 394_752)
    masked = {n: math.prod(shapes[n]) for n in RoBERTa().maskable}
    assert sum(v for n, v in masked.items() if n.startswith("encoder")) == 85_017_600
    assert sum(masked.values()) == 85_017_600 + 38_603_520 + 394_752
    cost = RoBERTa().cost((80,))
    assert sum(layer[3] for layer in cost.layers) == 124_648_708, "every tensor is used"
    assert cost.forward_flops == pytest.approx(13.8e9, rel=0.01)


@pytest.mark.parametrize("offset", [0, 5])
def test_a_slice_is_the_librarys_small_model(offset: int) -> None:
    """Half of everything, at the front or rolled: a model of the library with the small sizes computes the same."""
    narrow = SMALL.narrowed(0.5, scale=False)
    whole, ids = weights(SMALL, 1, torch.float64)[0], texts(SMALL, 1)[0]
    vector = whole[positions(SMALL.shapes, narrow.shapes, offset)]
    picked = layout_of(narrow).named(vector)["encoder.layer.1.attention.self.key.weight"]
    full = layout_of(SMALL).named(whole)["encoder.layer.1.attention.self.key.weight"]
    for head, place, feature in ((0, 0, 0), (1, 5, 11), (1, 2, 3)):
        assert picked[head, place, feature] == full[head, (offset + place) % 12, (offset + feature) % 24]
    expected = answer(library(narrow, vector), ids, SMALL.padding)
    torch.testing.assert_close(narrow.forward(One(), layout_of(narrow).named(vector), ids), expected, **EXACT)


def test_the_scaler_divides_what_is_cut() -> None:
    """Every linear layer and embedding of the library's small model, but for the logits."""
    narrow = SMALL.narrowed(0.5)
    vector, ids = weights(narrow, 1, torch.float64)[0], texts(SMALL, 1)[0]
    found = library(narrow, vector)
    for name, module in found.named_modules():
        if isinstance(module, nn.Linear | nn.Embedding) and not name.endswith("out_proj"):
            module.register_forward_hook(lambda module, given, out: out / 0.5)
    expected = answer(found, ids, SMALL.padding)
    for ops, p, x in (
        (One(), layout_of(narrow).named(vector), ids),
        (Stacked(1), {n: v[None] for n, v in layout_of(narrow).named(vector).items()}, ids[None]),
    ):
        torch.testing.assert_close(narrow.forward(ops, p, x).view(5, 4), expected, **EXACT)


def test_attention_and_inner_units_cut_are_those_masked() -> None:
    """Without a cut of the features, which normalisation sees: zeros in the whole compute what the slice does.

    The places of a head, with the scale of the slice's products put right, and the inner units (gelu(0) = 0).
    """
    small = replace(SMALL, hidden=24, inner=20)
    whole, ids = weights(SMALL, 1, torch.float64)[0], texts(SMALL, 1)[0]
    at = positions(SMALL.shapes, small.shapes)
    mask = torch.zeros_like(whole)
    mask[at] = 1
    masked = SMALL.forward(One(), layout_of(SMALL).named(whole * mask), ids)
    sliced = small.forward(One(), layout_of(small).named(whole[at]), ids)
    torch.testing.assert_close(masked, sliced, **EXACT)


# --- exits ------------------------------------------------------------------------------------------------------------

DEEP: Any = EarlyExitsRoBERTa(60, 20, 24, 2, 3, 40, dropout=0.0, exits=(1, 3))


def test_an_exit_is_a_shorter_network_with_a_head_of_its_own() -> None:
    whole, ids = weights(DEEP, 1, torch.float64)[0], texts(DEEP, 1)[0]
    named = layout_of(DEEP).named(whole)
    for ops, p, x in ((One(), named, ids), (Stacked(1), {n: v[None] for n, v in named.items()}, ids[None])):
        logits = DEEP.exit_logits(ops, p, x)
        for depth, name, found in ((1, "exit1", logits[0]), (3, "classifier", logits[1])):
            plain = RoBERTa(60, 20, 24, 2, depth, 40, dropout=0.0)
            vector = torch.cat([named[n.replace("classifier", name)].flatten() for n in plain.shapes])
            expected = answer(library(plain, vector), ids, 1)
            torch.testing.assert_close(found.view(5, 4), expected, **EXACT)
    first = DEEP.cut(1, 1.0)
    part = torch.cat([named[n].flatten() for n in first.shapes])
    assert torch.equal(part, whole[positions(DEEP.shapes, first.shapes)])
    assert not [n for n in first.shapes if n.startswith(("encoder.layer.1", "encoder.layer.2", "classifier"))]
    torch.testing.assert_close(first.forward(One(), layout_of(first).named(part), ids), logits[0][0], **EXACT)


def test_one_exit_after_all_layers_is_the_plain_network() -> None:
    assert list(SMALL.with_exits((2,)).shapes.items()) == list(SMALL.shapes.items())
    assert DEEP.cut(1, 0.36).kept(24) == 8, "floor"
    with pytest.raises(ValueError, match="exits ascend from 1 to the 2 layers"):
        SMALL.with_exits((1, 3))


# --- training ---------------------------------------------------------------------------------------------------------

HERE = Settings(Path("no data is read"), Path("nothing is stored"), "cpu", 1)
C, STEPS, LR = 3, np.array([3, 5, 2]), 0.01
ADAMW = Rule(betas=(0.9, 0.95))


def task_of(model: RoBERTa) -> Any:
    data = TopicTokens(4, 50, 14, 12, 6, 0)
    problem = Classification(data, replace(model, padding=0), DirichletClass(5.0), C, Shuffled(7), partition_seed=1)
    return ClientSplits(HERE, torch.float64).get(problem, 0)


@pytest.mark.parametrize("strategy", ["reference", "stacked", "sequential"])
@pytest.mark.parametrize("rule", [Rule(), ADAMW])
def test_local_training_equals_the_librarys(rule: Rule, strategy: str) -> None:
    """Clients of different lengths, short batches, texts of different lengths; SGD and AdamW of PyTorch."""
    task = task_of(SMALL)
    model, x = task.problem.model, task.initial()
    update = Trainer(strategy=strategy).train([(task, Train(np.arange(C), STEPS, x, LR, 4, rule))])[0].rows
    make: Callable[..., Any] = torch.optim.SGD
    if rule.betas:
        make = partial(torch.optim.AdamW, betas=rule.betas, eps=1e-8, weight_decay=0.0)
    for client in range(C):
        found = library(model, x)
        optimiser = make(found.parameters(), lr=LR)
        for batch in task.plan(client, int(STEPS[client]), 4, 0):
            where = torch.from_numpy(batch[batch >= 0])
            logits = answer(found, task.device_data.train_x[where], 0)
            optimiser.zero_grad()
            nn.functional.cross_entropy(logits, task.device_data.train_y[where]).backward()
            optimiser.step()
        end = torch.cat(
            [found.state_dict()[n if n in found.state_dict() else f"roberta.{n}"].flatten() for n in model.shapes]
        )
        torch.testing.assert_close(x + update[client], end, rtol=0, atol=1e-9)
        unread = torch.ones(60, dtype=torch.bool)
        unread[task.device_data.train_x[torch.from_numpy(task.indices[client])].unique()] = False
        rows = layout_of(model).named(update[client])["embeddings.word_embeddings.weight"]
        assert unread.any()
        assert not rows[unread].any(), "words that no batch has do not move, to the bit"


RULES = {
    "plain": (Rule(), SMALL),
    "adamw": (ADAMW, SMALL),
    "masks": (replace(ADAMW, mask="dynamic", amplify=True), SMALL),
    "exits": (replace(ADAMW, inner=Exits(0.6, 2.0)), DEEP),
    "narrower": (replace(ADAMW, inner=OrderedDropout((SMALL.narrowed(0.5, scale=False), SMALL))), SMALL),
}


@pytest.mark.parametrize("name", list(RULES))
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_stacks_train_as_clients_alone(name: str, dropout: float) -> None:
    """With dropout, too: what a client drops depends neither on its neighbours' texts nor on their batches."""
    rule, model = RULES[name]
    if isinstance(rule.inner, OrderedDropout):
        models = tuple(replace(m, padding=0, dropout=dropout) for m in rule.inner.models)
        rule = replace(rule, inner=OrderedDropout(models))
    task = task_of(replace(model, dropout=dropout))
    task.device_data.train_x[0] = 5  # the longest of all, in case that it fills up short batches
    x, thresholds = task.initial(), torch.full((C, len(task.problem.model.shapes)), 0.01, dtype=torch.float64)
    request = Train(np.arange(C), np.array([3, 5, 3]), x, LR, 6, rule, thresholds=thresholds if rule.mask else None)
    kinds = ("stacked", "sequential", "reference")
    stacked, alone, reference = (Trainer(strategy=kind).train([(task, request)])[0].rows for kind in kinds)
    torch.testing.assert_close(stacked, reference, **EXACT)
    torch.testing.assert_close(alone, reference, **EXACT)
    assert reference.abs().max() > 1e-3


def test_dropout_drops_a_tenth_in_training_and_nothing_in_evaluation() -> None:
    ops = One([torch.Generator().manual_seed(1)], 6)
    ops.lengths = [9]
    x = torch.ones(5, 9, 400, dtype=torch.float64)
    y = ops.token_dropout(x, 0.1)
    assert set(y.unique().tolist()) == {0.0, 1 / 0.9}
    assert (y == 0).double().mean() == pytest.approx(0.1, abs=0.007)
    assert not torch.equal(y, ops.token_dropout(x, 0.1))
    assert One().token_dropout(x, 0.1) is x
    shares = ops.attention([torch.eye(9, dtype=torch.float64).expand(5, 9, 9)] * 3, torch.ones(5, 9), 0, 1, 0.5)
    assert (shares == 0).double().mean() == pytest.approx(0.5, abs=0.1)
    small = replace(SMALL, dropout=0.3)
    p, ids = layout_of(small).named(weights(small, 1, torch.float64)[0]), texts(small, 1)[0]
    assert torch.equal(small.forward(One(), p, ids), SMALL.forward(One(), p, ids))
