"""The user's own network: `package.module:function` found, called and taken as a Network."""

import difflib
import importlib
import inspect
import re
import sys
import sysconfig
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import keras

from timesink.engines.tensorflow.networks.network import AUXILIARY_WEIGHT, Network
from timesink.engines.tensorflow.networks.probe import probe
from timesink.errors import NetworkError
from timesink.experiment import TrainingSection

_GIVEN = "input_shape, classes or num_classes, and dropout where training.dropout is set"
_BY_KEYWORD = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def build_own(training: TrainingSection, image_size: int, classes: int) -> Network:
    """Build the network that `training.network` names; a mistake in it is a NetworkError."""
    spec = training.network
    found = _find(spec)
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
            f"({image_size}, {image_size}, 3): {_told(error)}"
        ) from error
    weights = (1.0, *[AUXILIARY_WEIGHT] * (outputs.count - 1))
    return Network(spec, model, weights, from_logits=not outputs.probabilities)


def _find(spec: str) -> Any:
    """Import the module and get what is named in it."""
    module_name, _, name = spec.partition(":")
    if not module_name or not name:
        raise NetworkError(f"training.network: found {spec!r}: write it as package.module:function")
    if module_name.endswith(".py") or "/" in module_name:
        dotted = module_name.removesuffix(".py").strip("./").replace("/", ".")
        raise NetworkError(
            f"training.network: {module_name} is a file: "
            f"name the module, {dotted}:{name}, from the directory it is in"
        )
    module = _import(module_name, spec)
    try:
        return getattr(module, name)
    except AttributeError:
        public = [each for each in vars(module) if not each.startswith("_")]
        close = difflib.get_close_matches(name, public, n=1, cutoff=0.6)
        hint = f"; did you mean {module_name}:{close[0]}?" if close else ""
        place = getattr(module, "__file__", None)
        raise NetworkError(
            f"training.network: {module_name} has no {name!r}"
            f"{f' ({_shown(place)})' if place else ''}{hint}"
        ) from None


def _import(module_name: str, spec: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if module_name == missing or module_name.startswith(f"{missing}."):
            raise NetworkError(
                f"training.network: {spec}: no module named {missing!r} "
                f"in {here} or among the installed packages"
            ) from None
        raise NetworkError(
            f"training.network: {module_name} imports {missing!r}, "
            f"which is not installed ({_place(error)})"
        ) from error
    except (Exception, SystemExit) as error:
        raise NetworkError(
            f"training.network: {module_name} cannot be imported: {_told(error)}"
        ) from error


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
        raise NetworkError(f"training.network: {spec} failed: {_told(error)}") from error


def _dropout_unused(spec: str, why: str) -> str:
    return (
        f"training.dropout: {spec} {why}: leave training.dropout out, "
        "or name a function with a parameter dropout"
    )


def _told(error: BaseException) -> str:
    """Say an exception in one line: its type, its message, and the place in the user's code."""
    # Keras colours its messages and spreads them over paragraphs.
    message = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", str(error)).split())
    if len(message) > 300:
        message = f"{message[:297]}..."
    place = _place(error)
    return f"{type(error).__name__}: {message}{f' ({place})' if place else ''}"


def _place(error: BaseException) -> str:
    """Find the last line of the user's own code that the exception came through."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_shown(error.filename)}:{error.lineno}"
    libraries = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), "<")
    own = Path(__file__).parent
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if (
            not frame.filename.startswith(libraries)
            and "site-packages" not in path.parts
            and path.parent != own
        ):
            return f"{_shown(frame.filename)}:{frame.lineno}"
    return ""


def _shown(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
