"""Stored weights: found in the data folder or in the cache of torchvision, checked, and said in every result."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from reproduce.data.batches import Shuffled
from reproduce.data.embedded import ImageBlobs, TopicTokens
from reproduce.data.load import available
from reproduce.declare.experiment import canonical
from reproduce.engine.client_split import ClientSplits
from reproduce.engine.layout import Layout
from reproduce.errors import MissingData, UserError
from reproduce.models import weights
from reproduce.models.declared import ImageNetResNet
from reproduce.models.roberta import RoBERTa
from reproduce.partitions.labels import IID
from reproduce.problem import Classification
from reproduce.settings import Settings

MODEL = ImageNetResNet(18, 4, (6, 5), "imagenet")
PROBLEM = Classification(ImageBlobs(4, 32, 4, 2, 30.0, 0, 3), MODEL, IID(), 2, Shuffled(4))
NAME = "imagenet-resnet18"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    return Settings(tmp_path / "data", tmp_path, "cpu", 1)


@pytest.fixture
def write(here: Settings, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, torch.Tensor]]:
    """Writes a state dictionary like torchvision's, with its 1,000 classes and counters; its checksum is made known."""

    def make(folder: Path, **changes: torch.Tensor | None) -> dict[str, torch.Tensor]:
        whole = Layout(ImageNetResNet(18, 1000, ()))
        content = whole.named(torch.randn(whole.total, generator=torch.Generator().manual_seed(1)))
        content |= {"bn1.num_batches_tracked": torch.tensor(3)}
        content |= {n.replace("__", "."): v for n, v in changes.items() if v is not None}
        for name in (n.replace("__", ".") for n, v in changes.items() if v is None):
            del content[name]
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(content, folder / "made.pth")
        digest = hashlib.sha256((folder / "made.pth").read_bytes()).hexdigest()
        monkeypatch.setitem(weights.FILES, NAME, f"resnet18-{digest[:8]}.pth")
        (folder / "made.pth").rename(folder / weights.FILES[NAME])
        return content

    return make


@pytest.mark.parametrize("place", ["data/imagenet", "torch/hub/checkpoints"])
def test_the_backbone_is_read_and_the_head_is_random(
    place: str, here: Settings, write: Callable[..., Any], tmp_path: Path
) -> None:
    content = write(tmp_path / place)
    tasks = ClientSplits(here)
    zero, one = (tasks.get(PROBLEM, seed) for seed in (0, 1))
    layout: Any = zero.device_data.layout
    first, second = layout.named(zero.initial()), layout.named(one.initial())
    pilot = layout.named(zero.initial("pilot"))
    for name, value in first.items():
        if name.startswith(("fc", "projection")):
            assert not torch.equal(value, second[name])
            assert not torch.equal(value, pilot[name])
        else:
            assert torch.equal(value, content[name])
            assert torch.equal(value, second[name])
            assert torch.equal(value, pilot[name])
    random = layout.named(zero.random())
    assert all((v.std() > 0 or v.numel() < 3 or "bn" in n or ".1." in n) for n, v in random.items()), "drawn, not zero"
    assert not torch.equal(random["conv1.weight"], content["conv1.weight"])
    sha256 = hashlib.sha256((tmp_path / place / weights.FILES[NAME]).read_bytes()).hexdigest()
    assert tasks.provenance[NAME] == sha256
    assert PROBLEM.requires == (NAME,)
    assert available(NAME, here).state == "present"


def test_a_missing_file_is_one_error_that_says_what_to_do(here: Settings) -> None:
    with pytest.raises(MissingData) as error:
        ClientSplits(here).get(PROBLEM, 0)
    assert error.value.needs == NAME
    for words in (weights.FILES[NAME], str(here.data / "imagenet"), weights.PAGE, "init='random'"):
        assert words in str(error.value)
    state = available(NAME, here)
    assert state.state == "missing"
    assert str(error.value) == f"{state.detail}; smoke scale needs no data set"


def test_a_damaged_file_or_another_network_is_refused(
    here: Settings, write: Callable[..., Any], tmp_path: Path
) -> None:
    folder = here.data / "imagenet"
    write(folder, conv1__weight=None)
    with pytest.raises(UserError, match=r"holds no conv1.weight of shape \(64, 3, 7, 7\)"):
        ClientSplits(here).get(PROBLEM, 0)
    write(folder, layer1__0__conv1__weight=torch.zeros(64, 64, 1, 1))
    with pytest.raises(UserError, match=r"holds no layer1.0.conv1.weight of shape \(64, 64, 3, 3\)"):
        ClientSplits(here).get(PROBLEM, 0)
    write(folder)
    path = folder / weights.FILES[NAME]
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(UserError, match="is damaged"):
        ClientSplits(here).get(PROBLEM, 0)


TINY = RoBERTa(60, 14, 24, 2, 2, 40, padding=0, init="roberta-base")
TEXTS = Classification(TopicTokens(4, 60, 12, 8, 4, 0), TINY, IID(), 2, Shuffled(4))
HUB = "hub/models--FacebookAI--roberta-base/snapshots/abc"


def saved(folder: Path, masked: bool) -> dict[str, torch.Tensor]:
    """A checkpoint that the library wrote: of the masked language model, as on the hub, or of the encoder alone."""
    transformers = pytest.importorskip("transformers")
    config = transformers.RobertaConfig(
        vocab_size=60, max_position_embeddings=14, hidden_size=24, num_attention_heads=2, num_hidden_layers=2,
        intermediate_size=40, type_vocab_size=1, pad_token_id=0,
    )  # fmt: skip
    torch.manual_seed(1)
    model = (transformers.RobertaForMaskedLM if masked else transformers.RobertaModel)(config)
    model.save_pretrained(folder)
    return {n.removeprefix("roberta."): v for n, v in model.state_dict().items()}


@pytest.mark.parametrize(("place", "masked"), [("data/roberta-base", True), (HUB, False)])
def test_an_encoder_of_the_hub_is_read_and_the_head_is_random(
    place: str, masked: bool, here: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    assert available("roberta-base", here).state == "missing"
    with pytest.raises(MissingData, match=r"no model.safetensors of roberta-base: .* init='random'"):
        ClientSplits(here).get(TEXTS, 0)
    content = saved(tmp_path / place, masked)
    tasks = ClientSplits(here)
    zero, one = (tasks.get(TEXTS, seed) for seed in (0, 1))
    layout: Any = zero.device_data.layout
    first, second = layout.named(zero.initial()), layout.named(one.initial())
    for name, value in first.items():
        if name.startswith("classifier"):
            assert name.endswith("bias") or not torch.equal(value, second[name])
        else:
            assert torch.equal(value, content[name].view_as(value)), name
    sha256 = hashlib.sha256((tmp_path / place / "model.safetensors").read_bytes()).hexdigest()
    assert tasks.provenance["roberta-base"] == sha256
    assert TEXTS.requires == ("roberta-base",)
    assert available("roberta-base", here).state == "present"
    assert canonical(TINY)["init"] == "roberta-base"
    wider = replace(TEXTS, model=replace(TINY, inner=48))
    with pytest.raises(UserError, match=r"holds no encoder.layer.0.intermediate.dense.weight of shape \(48, 24\)"):
        ClientSplits(here).get(wider, 0)
    path = tmp_path / place / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(UserError, match="is damaged"):
        ClientSplits(here).get(TEXTS, 0)
