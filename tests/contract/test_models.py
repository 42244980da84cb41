"""What every model promises."""

from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError

from palimpsest.models import MODELS
from palimpsest.models._network import new_network
from tiny import example, same_tensors, spec_of

SHAPE, N_OUTPUTS = (12, 12), 5


def build(name: str, seed: int, n_outputs: int = N_OUTPUTS, shape=SHAPE) -> torch.nn.Module:
    module = MODELS.load(name, "")
    options = module.Options.model_validate(example(module.Options)).model_dump()
    inputs = {"shape": shape, "n_outputs": n_outputs}
    model = {"name": name, "options": options, "head": "shared"}
    return new_network({"seed": seed, "inputs": inputs, "tasks": {}, "model": model}, ())


@pytest.fixture(params=MODELS.names())
def name(request):
    return request.param


def test_a_model_declares_itself(name):
    """The file has a reference and a docstring; every option is explained."""
    module = MODELS.load(name, "")
    assert module.REFERENCE
    assert module.__doc__
    assert all(field.description for field in module.Options.model_fields.values())


def test_inputs_to_outputs(name):
    """Three inputs give three rows of outputs, finite float32 numbers."""
    outputs = build(name, 0)(torch.rand(3, *SHAPE, generator=torch.Generator().manual_seed(0)))
    assert outputs.shape == (3, N_OUTPUTS)
    assert outputs.dtype == torch.float32
    assert torch.isfinite(outputs).all()


def test_a_batch_of_one(name):
    """A single sample can be trained on."""
    build(name, 0)(torch.zeros(1, *SHAPE)).sum().backward()


def test_the_same_seed_gives_the_same_weights(name):
    """Initial weights are a function of the seed, whatever torch's global generator was at."""
    first = build(name, 3)
    torch.rand(17)
    assert same_tensors(first.state_dict(), build(name, 3).state_dict())


def test_another_seed_gives_other_weights(name):
    """No weight matrix of another seed is the same."""
    first, second = build(name, 0).state_dict(), build(name, 1).state_dict()
    assert not any(torch.equal(first[key], second[key]) for key in first if first[key].dim() > 1)


def test_a_wider_head_leaves_the_rest(name):
    """More outputs change no initial weight but those of the last layer: streams are named by the parameter."""
    narrow, wide = (build(name, 0, n).state_dict() for n in (5, 9))
    changed = {key for key in narrow if narrow[key].shape != wide[key].shape}
    assert changed
    assert all(torch.equal(narrow[key], wide[key]) for key in narrow.keys() - changed)


def test_initial_weights_are_bounded_by_fan_in(name):
    """Weights and biases of a layer lie within ±1/√fan_in, and fill that range."""
    for layer in build(name, 0).modules():
        if isinstance(layer, torch.nn.Linear | torch.nn.Conv2d):
            bound = layer.weight[0].numel() ** -0.5
            assert layer.weight.abs().max() <= bound
            assert layer.bias is None or layer.bias.abs().max() <= bound
            assert layer.weight.max() - layer.weight.min() > 1.5 * bound


@pytest.mark.parametrize("hidden", [[0], [-1], [8, 0]])
def test_a_layer_without_units_is_refused(hidden):
    """The perceptron's widths are checked when the study is locked, not when it is trained."""
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        MODELS.load("mlp", "").Options.model_validate({"hidden": hidden})


def test_layers_of_one_shape_differ():
    """Two hidden layers of the same shape have streams of their own."""
    model = new_network(spec_of(hidden=(16, 16)), ()).backbone
    assert model.hidden1.weight.shape == model.hidden2.weight.shape
    assert not torch.equal(model.hidden1.weight, model.hidden2.weight)


@pytest.mark.parametrize("shape", [(28, 28), (32, 32, 3)], ids=["grey", "colour"])
@pytest.mark.parametrize("name", MODELS.names())
def test_grey_and_coloured_images(name, shape):
    """Images as they are stored, with and without a last axis of channels, give outputs; a batch of one trains."""
    model = build(name, 0, shape=shape)
    assert model(torch.rand(2, *shape)).shape == (2, N_OUTPUTS)
    model(torch.rand(1, *shape)).sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_the_reduced_resnet_has_the_published_size():
    """1,094,750 weights with ten outputs for 32 × 32 × 3, counted layer by layer: about 1.1 million."""
    assert sum(p.numel() for p in build("resnet18_reduced", 0, 10, (32, 32, 3)).parameters()) == 1_094_750


def test_replayed_samples_change_the_statistics_of_a_batch():
    """In training, outputs of new samples depend on what stands beside them; in a test they do not."""
    model = build("resnet18_reduced", 0)
    new, old = torch.rand(4, *SHAPE), torch.rand(4, *SHAPE) * 0.1
    alone, joined = model(new), model(torch.cat([new, old]))[:4]
    assert not torch.allclose(alone, joined, atol=1e-3)
    model.eval()
    torch.testing.assert_close(model(new), model(torch.cat([new, old]))[:4])


def test_a_test_leaves_running_statistics():
    """Evaluation and gradients sample by sample change no buffer; training does."""
    from palimpsest.methods._per_sample import log_probability, mean_over_samples
    from tiny import batch_of, context_of

    model = build("resnet18_reduced", 0, 6)
    samples = batch_of(torch.randint(0, 256, (5, *SHAPE)), [0, 1, 2, 3, 4])
    now = context_of(samples=samples, model=model)
    before = {name: value.clone() for name, value in model.named_buffers()}
    mean_over_samples(now, samples, log_probability, torch.square, samples.labels)
    assert same_tensors(before, dict(model.named_buffers()))
    assert model.training
    now.cross_entropy(samples)
    assert not same_tensors(before, dict(model.named_buffers()))
