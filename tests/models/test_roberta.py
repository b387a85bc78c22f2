"""RoBERTa against the library `transformers`: logits, gradients, narrower networks, training with the same weights."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from reproduce import vision  # noqa: F401 (before transformers)
from reproduce.algorithms.narrower import positions
from reproduce.data.batches import Shuffled
from reproduce.data.embedded import TopicTokens
from reproduce.engine.client_split import ClientSplits
from reproduce.engine.layout import layout_of
from reproduce.engine.requests import Train
from reproduce.engine.rule import Exits, OrderedDropout, Rule
from reproduce.engine.terms import part
from reproduce.engine.trainer import Trainer
from reproduce.models.roberta import EarlyExitsRoBERTa, RoBERTa
from reproduce.modules.ops import One
from reproduce.partitions.dirichlet import DirichletClass
from reproduce.problem import Classification
from reproduce.settings import Settings

SMALL = RoBERTa(60, 20, hidden=24, heads=2, layers=2, inner=40, classes=4, dropout=0.0)
EXACT = {"rtol": 0, "atol": 1e-10}


def library(model: RoBERTa, vector: Tensor) -> nn.Module:
    """The library's model with the weights `vector` [P], in evaluation mode."""
    import transformers

    config: Any = transformers.RobertaConfig
    sizes = {"hidden_size": model.kept(model.hidden), "num_attention_heads": model.heads, "num_labels": 4}
    sizes |= {"num_hidden_layers": model.layers, "intermediate_size": model.kept(model.inner), "type_vocab_size": 1}
    sizes |= {"vocab_size": model.vocabulary, "max_position_embeddings": model.positions}
    config = config(**sizes, pad_token_id=model.padding, layer_norm_eps=1e-5)
    found: Any = transformers.RobertaForSequenceClassification(config).to(vector.dtype).eval()
    state = {f"roberta.{n}" if n.startswith("e") else n: v for n, v in layout_of(model).named(vector).items()}
    assert not found.load_state_dict(state).missing_keys
    return found  # type: ignore[no-any-return]


def weights(model: RoBERTa) -> Tensor:
    """Random weights [P], larger than initial ones, biases and normalisation included."""
    layout, generator = layout_of(model), torch.Generator().manual_seed(3)
    row = 0.3 * torch.randn(layout.total, generator=generator, dtype=torch.float64)
    for name, value in layout.named(row).items():
        value += name.endswith("LayerNorm.weight")
    return row


def texts(model: RoBERTa, batch: int = 5, length: int = 14) -> Tensor:
    """Token ids [batch, length] of texts of different lengths, the longest of which is shorter than `length`."""
    ids = torch.randint(2, model.vocabulary, (batch, length), generator=torch.Generator().manual_seed(4))
    for b in range(batch):
        ids[b, 2 + 2 * b % (length - 4) :] = model.padding
    return ids


def answer(found: nn.Module, ids: Tensor, padding: int) -> Tensor:
    return found(input_ids=ids, attention_mask=(ids != padding).long()).logits  # type: ignore[no-any-return]


def slopes(model: RoBERTa, found: nn.Module, loss: Tensor) -> Tensor:
    """Gradients by the library's model as a vector of ours."""
    found.zero_grad()
    loss.backward()
    known = {n.removeprefix("roberta."): p.grad for n, p in found.named_parameters()}
    return torch.cat([known[name].flatten() for name in model.shapes])  # type: ignore[union-attr]


@pytest.mark.parametrize("padding", [1, 0])
def test_logits_and_gradients_equal_the_librarys(padding: int) -> None:
    model = replace(SMALL, padding=padding)
    x, ids, labels, layout = weights(model), texts(model), torch.arange(5) % 4, layout_of(model)
    found, leaf = library(model, x), x.clone().requires_grad_()
    logits, mine = answer(found, ids, padding), model.forward(One(), layout.named(leaf), ids)
    gradient = slopes(model, found, nn.functional.cross_entropy(logits, labels))
    (slope,) = torch.autograd.grad(nn.functional.cross_entropy(mine, labels), leaf)
    assert gradient.abs().max() > 0.01
    torch.testing.assert_close(mine, logits, **EXACT)
    torch.testing.assert_close(slope, gradient, **EXACT)
    assert not layout.named(slope)["embeddings.word_embeddings.weight"][padding].any(), "to the bit"
    assert model.encode(One(), layout.named(x), ids).shape == (5, 24)


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
    assert 2 * RoBERTa().cost((80,)).macs == pytest.approx(13.8e9, rel=0.01)


@pytest.mark.parametrize("model", [SMALL, SMALL.narrowed(0.4), SMALL.with_exits((1, 2))])
def test_the_cost_is_what_torch_counts(model: RoBERTa) -> None:
    with FlopCounterMode(display=False) as flops:
        model.forward(One(), layout_of(model).named(weights(model)), torch.full((1, 14), 5))
    assert 2 * model.cost((14,)).macs == flops.get_total_flops() > 0


@pytest.mark.parametrize("offset", [0, 5])
def test_a_slice_is_the_librarys_small_model(offset: int) -> None:
    """Half of everything, at the front or rolled: a model of the library with the small sizes computes the same."""
    narrow = SMALL.narrowed(0.5, scale=False)
    whole, ids = weights(SMALL), texts(SMALL)
    vector = whole[positions(SMALL.axes, narrow.axes, offset)]
    picked = layout_of(narrow).named(vector)["encoder.layer.1.attention.self.key.weight"]
    full = layout_of(SMALL).named(whole)["encoder.layer.1.attention.self.key.weight"]
    for head, place, feature in ((0, 0, 0), (1, 5, 11), (1, 2, 3)):
        assert picked[6 * head + place, feature] == full[12 * head + (offset + place) % 12, (offset + feature) % 24]
    expected = answer(library(narrow, vector), ids, SMALL.padding)
    torch.testing.assert_close(narrow.forward(One(), layout_of(narrow).named(vector), ids), expected, **EXACT)
    if not offset:
        parts = part(layout_of(SMALL).named(whole), SMALL, narrow, 0)
        assert torch.equal(torch.cat([value.flatten() for value in parts.values()]), vector)


def test_the_scaler_divides_what_is_cut() -> None:
    """Every linear layer and embedding of the library's small model, but for the logits."""
    narrow = SMALL.narrowed(0.5)
    vector, ids = weights(narrow), texts(SMALL)
    found = library(narrow, vector)
    for name, module in found.named_modules():
        if isinstance(module, nn.Linear | nn.Embedding) and not name.endswith("out_proj"):
            module.register_forward_hook(lambda module, given, out: out / 0.5)
    expected = answer(found, ids, SMALL.padding)
    torch.testing.assert_close(narrow.forward(One(), layout_of(narrow).named(vector), ids), expected, **EXACT)


DEEP: Any = EarlyExitsRoBERTa(60, 20, 24, 2, 3, 40, dropout=0.0, exits=(1, 3))


def test_an_exit_is_a_shorter_network_with_a_head_of_its_own() -> None:
    whole, ids = weights(DEEP), texts(DEEP)
    named = layout_of(DEEP).named(whole)
    logits = DEEP.exit_logits(One(), named, ids)
    for depth, name, found in ((1, "exit1", logits[0]), (3, "classifier", logits[1])):
        plain = RoBERTa(60, 20, 24, 2, depth, 40, dropout=0.0)
        vector = torch.cat([named[n.replace("classifier", name)].flatten() for n in plain.shapes])
        torch.testing.assert_close(found, answer(library(plain, vector), ids, 1), **EXACT)
    first = DEEP.cut(1, 1.0)
    part = torch.cat([named[n].flatten() for n in first.shapes])
    assert torch.equal(part, whole[positions(DEEP.axes, first.axes)])
    assert not [n for n in first.shapes if n.startswith(("encoder.layer.1", "encoder.layer.2", "classifier"))]
    torch.testing.assert_close(first.forward(One(), layout_of(first).named(part), ids), logits[0], **EXACT)


HERE = Settings(Path("no data is read"), Path("nothing is stored"), "cpu", 1)
C, STEPS, LR = 3, np.array([3, 5, 2]), 0.01
ADAMW = Rule(betas=(0.9, 0.95))


def task_of(model: RoBERTa) -> Any:
    data = TopicTokens(4, 50, 14, 12, 6, 0)
    problem = Classification(data, replace(model, padding=0), DirichletClass(5.0), C, Shuffled(7), partition_seed=1)
    return ClientSplits(HERE, torch.float64).get(problem, 0)


def test_local_training_equals_the_librarys() -> None:
    """AdamW of PyTorch on short batches of texts of different lengths."""
    task = task_of(SMALL)
    model, x = task.problem.model, task.initial()
    update = Trainer().train([(task, Train(np.arange(C), STEPS, x, LR, 4, ADAMW))])[0].rows
    for client in range(C):
        found = library(model, x)
        optimiser = torch.optim.AdamW(found.parameters(), LR, ADAMW.betas, eps=1e-8, weight_decay=0.0)  # type: ignore[arg-type]
        for batch in task.plan(client, int(STEPS[client]), 4, 0):
            where = torch.from_numpy(batch[batch >= 0])
            logits = answer(found, task.device_data.train_x[where], 0)
            optimiser.zero_grad()
            nn.functional.cross_entropy(logits, task.device_data.train_y[where]).backward()
            optimiser.step()
        state = {n.removeprefix("roberta."): v for n, v in found.state_dict().items()}
        end = torch.cat([state[n].flatten() for n in model.shapes])
        torch.testing.assert_close(x + update[client], end, rtol=0, atol=1e-9)
        unread = torch.ones(60, dtype=torch.bool)
        unread[task.device_data.train_x[torch.from_numpy(task.indices[client])].unique()] = False
        rows = layout_of(model).named(update[client])["embeddings.word_embeddings.weight"]
        assert unread.any()
        assert not rows[unread].any(), "words that no batch has do not move, to the bit"


RULES = {
    "masks": (replace(ADAMW, mask="dynamic", amplify=True), SMALL),
    "exits": (replace(ADAMW, inner=Exits(0.6, 2.0)), DEEP),
    "narrower": (replace(ADAMW, inner=OrderedDropout((SMALL.narrowed(0.5, scale=False), SMALL))), SMALL),
}


@pytest.mark.parametrize("name", list(RULES))
def test_what_a_client_drops_is_its_own(name: str) -> None:
    """The same bits on one thread and on two, with other clients and without them; and dropout does drop."""
    rule, model = RULES[name]

    def trained(dropout: float, clients: list[int], threads: int) -> Tensor:
        mine = rule
        if isinstance(rule.inner, OrderedDropout):
            models = tuple(replace(m, padding=0, dropout=dropout) for m in rule.inner.models)
            mine = replace(rule, inner=OrderedDropout(models))
        task = task_of(replace(model, dropout=dropout))
        thresholds = torch.full((len(clients), len(task.problem.model.shapes)), 0.01, dtype=torch.float64)
        request = Train(
            np.array(clients), np.full(len(clients), 3), task.initial(), LR, 6, mine,
            thresholds=thresholds if rule.mask else None,
        )  # fmt: skip
        trainer = Trainer(threads)
        rows: Tensor = trainer.train([(task, request)])[0].rows
        trainer.close()
        return rows

    together = trained(0.1, [0, 1, 2], 2)
    assert torch.equal(together[1:2], trained(0.1, [1], 1))
    assert torch.equal(together, trained(0.1, [0, 1, 2], 1))
    assert (together - trained(0.0, [0, 1, 2], 1)).abs().max() > 1e-3


def test_a_tenth_is_dropped_in_training_and_nothing_in_evaluation() -> None:
    model = replace(SMALL, dropout=0.1)
    p, ids = layout_of(model).named(weights(model)), texts(model)
    assert torch.equal(model.forward(One(), p, ids), SMALL.forward(One(), p, ids))
    drawn = [model.forward(One([torch.Generator().manual_seed(i)], 5), p, ids) for i in (1, 1, 2)]
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
