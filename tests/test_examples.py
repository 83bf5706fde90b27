"""The examples run under torch, do what their README says, and hold the faults that it names."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import torch

from gradvet.text import Source

EXAMPLES = Path(__file__).parent.parent / "examples"
ARTICLES = sorted(path.stem for path in EXAMPLES.glob("article_*.py"))
SMALL = ["--epochs", "1", "--steps", "3", "--pictures", "96"]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Small tensors on many threads are slow."""
    torch.set_num_threads(1)


def example(name: str) -> ModuleType:
    """An example as a module; its main guard does not run."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ARTICLES)
def test_torch_confirms_what_the_articles_example_says(name: str) -> None:
    """Each function asserts what its comments say."""
    example(name).main()


def test_torch_trains_the_classifier(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The script runs to its end, writes a checkpoint, and learns something even in three steps."""
    history = example("train_classifier").main([*SMALL, "--out", str(tmp_path / "run.pt")])
    assert [sorted(row) for row in history] == [["epoch", "sparsity", "train", "valid"]]
    assert sorted(torch.load(tmp_path / "run.pt")) == ["average", "history", "model", "optimizer"]
    assert "nan" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "message"),
    [(["--plot", "codes.txt"], "Can't call numpy"), (["--calibrate"], "element 0 of tensors")],
)
def test_torch_raises_where_the_readme_says(flags: list[str], message: str) -> None:
    """Two of the faults raise, and only when they are asked for."""
    with pytest.raises(RuntimeError, match=message):
        example("train_classifier").main([*SMALL, *flags])


def test_torch_shows_the_silent_faults() -> None:
    """The faults that the README names are there, though the numbers look good."""
    script = example("train_classifier")
    torch.manual_seed(0)
    trainer = script.Trainer(script.Classifier(script.Settings()), script.Settings())
    model = trainer.model
    pictures, labels = torch.randn(16, 1, 16, 16), torch.arange(16) % 4

    bias = model.encoder.project.bias
    loss, _ = trainer.loss(pictures, labels)
    (wrong,) = torch.autograd.grad(loss, bias)
    codes = torch.tanh(model.encoder.project(model.encoder.layers(pictures)))
    codes = codes * (codes.abs() >= model.encoder.threshold)
    honest = torch.nn.functional.cross_entropy(model.head(codes), labels, label_smoothing=0.05)
    assert not torch.allclose(wrong, torch.autograd.grad(honest, bias)[0], rtol=0.01)

    assert model.last_codes.grad_fn is not None
    assert not trainer.decorrelation(codes).requires_grad
    assert trainer.average.shadow["head.weight"].data_ptr() == model.head.weight.data_ptr()
    meters = script.Meters()
    meters.update(16, loss=loss)
    assert meters.totals["loss"].grad_fn is not None
    graphs: list[bool] = []
    model.register_forward_hook(lambda _module, _inputs, output: graphs.append(output[0].requires_grad))
    trainer.validate([(pictures, labels)])
    script.predictions(model, [(pictures, labels)])
    assert graphs == [True, True]


SEEDED = {
    "data-attribute": "code.data[code.data.abs() < self.threshold] = 0.0",
    "graph-retained": ("self.last_codes = codes", "meters.update(len(x), loss=loss, "),
    "gradient-cut": "with torch.no_grad():\n            centred",
    "detached-alias-edited": "self.shadow[name].mul_(self.decay)",
    "eval-with-grad": "logits, _ = self.model(x)",
    "grad-mode-no-effect": "torch.no_grad()\n    rows",
    "numpy-on-grad": "np.savetxt(path, codes.cpu().numpy())",
    "backward-without-graph": "loss.backward()\n        optimizer.step()\n    return log",
}


def test_analyzer_finds_the_seeded_faults_and_nothing_else() -> None:
    """Gradvet reports each place that the README names, and no other."""
    from gradvet.analysis import analyze

    path = EXAMPLES / "train_classifier.py"
    source = Source(str(path), path.read_text(encoding="utf-8"))
    starts = [
        (rule, text)
        for rule, texts in SEEDED.items()
        for text in ([texts] if isinstance(texts, str) else texts)
    ]
    assert all(source.text.count(text) == 1 for _, text in starts)
    expected = [(rule, source.row_column(source.text.index(text))[0]) for rule, text in starts]
    found = [(d.rule.name, source.row_column(d.span.start)[0]) for d in analyze(source).diagnostics]
    assert sorted(found) == sorted(expected)
