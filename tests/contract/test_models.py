"""What every model promises."""

from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError

from palimpsest.models import MODELS
from palimpsest.models._network import new_network
from tiny import example, same_tensors, spec_of

SHAPE, N_OUTPUTS = (8, 8), 5


def build(name: str, seed: int, n_outputs: int = N_OUTPUTS) -> torch.nn.Module:
    module = MODELS.load(name, "")
    options = module.Options.model_validate(example(module.Options)).model_dump()
    inputs = {"shape": SHAPE, "n_outputs": n_outputs}
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
            assert layer.bias.abs().max() <= bound
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
