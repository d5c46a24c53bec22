"""The user's own network: `package.module:function` found, called and taken as a Network."""

import inspect
from typing import Any

import keras

from timesink.engines.tensorflow.networks.network import AUXILIARY_WEIGHT, Network
from timesink.engines.tensorflow.networks.probe import probe
from timesink.engines.users_code import find, told
from timesink.errors import NetworkError, UsageError
from timesink.experiment import TrainingSection

_GIVEN = "input_shape, classes or num_classes, and dropout where training.dropout is set"
_BY_KEYWORD = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def build_own(training: TrainingSection, image_size: int, classes: int) -> Network:
    """Build the network that `training.network` names; a mistake in it is a NetworkError."""
    spec = training.network
    try:
        found = find(spec, "training.network")
    except UsageError as error:
        raise NetworkError(str(error)) from error
    if isinstance(found, keras.Model):
        if training.dropout is not None:
            raise NetworkError(_dropout_unused(spec, "is a model, not a function"))
        model = found
    elif callable(found):
        model = _call(found, training, image_size, classes)
    else:
        raise NetworkError(
            f"training.network: {spec} is a {type(found).__name__}: "
            "name a function that returns a keras.Model"
        )
    if not isinstance(model, keras.Model):
        raise NetworkError(
            f"training.network: {spec} returned a {type(model).__name__}: "
            "it must return a keras.Model"
        )
    try:
        outputs = probe(model, spec, image_size, classes)
    except NetworkError:
        raise
    except Exception as error:
        raise NetworkError(
            f"training.network: {spec} cannot take images of "
            f"({image_size}, {image_size}, 3): {told(error)}"
        ) from error
    weights = (1.0, *[AUXILIARY_WEIGHT] * (outputs.count - 1))
    return Network(spec, model, weights, from_logits=not outputs.probabilities)


def _call(function: Any, training: TrainingSection, image_size: int, classes: int) -> Any:
    """Call the user's function with those of our keywords that it takes."""
    spec = training.network
    offered: dict[str, Any] = {
        "input_shape": (image_size, image_size, 3),
        "classes": classes,
        "num_classes": classes,
    }
    if training.dropout is not None:
        offered["dropout"] = training.dropout
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise NetworkError(
            f"training.network: {spec} does not say what it takes: wrap it in a function"
        ) from None
    named = {each.name for each in parameters if each.kind in _BY_KEYWORD}
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters) and not (
        # A model's class hands its open keywords on to Keras, which knows none of ours.
        inspect.isclass(function) and issubclass(function, keras.Model)
    ):
        named |= {"input_shape", "dropout"}
        named |= set() if "num_classes" in named else {"classes"}
    taken = {name: value for name, value in offered.items() if name in named}
    missing = [
        each.name
        for each in parameters
        if each.default is inspect.Parameter.empty
        and each.kind not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        and each.name not in taken
    ]
    if "dropout" in missing and training.dropout is None:
        raise NetworkError(f"training.network: {spec} needs a dropout: set training.dropout")
    if missing:
        raise NetworkError(
            f"training.network: {spec} needs {', '.join(missing)}: "
            f"give it a default; Timesink gives {_GIVEN}"
        )
    if training.dropout is not None and "dropout" not in taken:
        raise NetworkError(_dropout_unused(spec, "takes no dropout"))
    try:
        return function(**taken)
    except (Exception, SystemExit) as error:
        raise NetworkError(f"training.network: {spec} failed: {told(error)}") from error


def _dropout_unused(spec: str, why: str) -> str:
    return (
        f"training.dropout: {spec} {why}: leave training.dropout out, "
        "or name a function with a parameter dropout"
    )
