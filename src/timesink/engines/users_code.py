"""The user's own code: `package.module:function` found, and its mistakes told in one line."""

import difflib
import importlib
import re
import sys
import sysconfig
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import timesink
from timesink.errors import UsageError


def find(spec: str, key: str) -> Any:
    """Import the module and get what is named in it; `key` says where it was asked for."""
    module_name, _, name = spec.partition(":")
    if not module_name or not name:
        raise UsageError(f"{key}: found {spec!r}: write it as package.module:function")
    if module_name.endswith(".py") or "/" in module_name:
        dotted = module_name.removesuffix(".py").strip("./").replace("/", ".")
        raise UsageError(
            f"{key}: {module_name} is a file: "
            f"name the module, {dotted}:{name}, from the directory it is in"
        )
    module = _import(module_name, spec, key)
    try:
        return getattr(module, name)
    except AttributeError:
        public = [each for each in vars(module) if not each.startswith("_")]
        close = difflib.get_close_matches(name, public, n=1, cutoff=0.6)
        hint = f"; did you mean {module_name}:{close[0]}?" if close else ""
        place = getattr(module, "__file__", None)
        raise UsageError(
            f"{key}: {module_name} has no {name!r}{f' ({_shown(place)})' if place else ''}{hint}"
        ) from None


def _import(module_name: str, spec: str, key: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if module_name == missing or module_name.startswith(f"{missing}."):
            raise UsageError(
                f"{key}: {spec}: no module named {missing!r} "
                f"in {here} or among the installed packages"
            ) from None
        raise UsageError(
            f"{key}: {module_name} imports {missing!r}, which is not installed ({_place(error)})"
        ) from error
    except (Exception, SystemExit) as error:
        raise UsageError(f"{key}: {module_name} cannot be imported: {told(error)}") from error


def told(error: BaseException) -> str:
    """Say an exception in one line: its type, its message, and the place in the user's code."""
    # Keras colours its messages and spreads them over paragraphs.
    message = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", str(error)).split())
    # TensorFlow puts the names of its own functions and ops around what it says.
    message = re.sub(
        r"\{\{(function_)?node \S*\}\}\s*|\s*\[\[\]\]|\s*\[Op:\w+\]( name:.*)?$", "", message
    )
    if len(message) > 300:
        message = f"{message[:297]}..."
    place = _place(error)
    return f"{type(error).__name__}: {message}{f' ({place})' if place else ''}"


def _place(error: BaseException) -> str:
    """Find the last line of the user's own code that the exception came through."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_shown(error.filename)}:{error.lineno}"
    libraries = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), "<")
    own = Path(timesink.__file__).parent
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if (
            not frame.filename.startswith(libraries)
            and "site-packages" not in path.parts
            and not path.is_relative_to(own)
        ):
            return f"{_shown(frame.filename)}:{frame.lineno}"
    return ""


def _shown(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
