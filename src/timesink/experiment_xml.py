"""The XML configuration of an older trainer: its bytes in, an experiment's plain values out."""

import difflib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from timesink.errors import ExperimentError

Number = TypeVar("Number", int, float)

MAX_BYTES = 4 * 2**20

ALL_IMAGES = 9999
"""Written in `images_per_class` for "as many as there are"."""

NETWORK_NAMES = {
    "alexnet": "alexnet",
    "alexnet_v2": "alexnet",
    "vgg11": "vgg11",
    "vgg_11": "vgg11",
    "vgg_a": "vgg11",
    "vgg16": "vgg16",
    "vgg_16": "vgg16",
    "googlenet": "googlenet",
    "inception_v1": "googlenet",
    "resnet50": "resnet50",
    "resnet_50": "resnet50",
    "resnet_v1_50": "resnet50",
    "mobilenetv2": "mobilenetv2",
    "mobilenet_v2": "mobilenetv2",
}
OPTIMIZER_NAMES = {
    "momentum": "sgd",
    "sgd": "sgd",
    "adam": "adam",
    "adamw": "adamw",
    "rmsprop": "rmsprop",
}
SCHEDULE_NAMES = {
    "fixed": "constant",
    "constant": "constant",
    "exponential": "exponential",
    "cosine": "cosine",
    "step": "step",
}
WITHOUT_MEANING = ("patience", "dataset", "model_out", "tfrecords_path")
ROOT_ELEMENTS = (
    "input_classes",
    "num_classes",
    "images_per_class",
    "network_type",
    "epochs_number",
    "batch_size",
    "momentum",
    "j",
    "optimizer",
    "learning_rate",
    "learning_rate_decay_type",
    "dropout",
    "weight_decay",
    "seed",
    "perform_validation",
    "gpus_number",
    *WITHOUT_MEANING,
)
INPUT_ELEMENTS = ("local_path", "tfrecords_path", "remote_location", "input_class")
REMOTE_ELEMENTS = ("user", "key", "host", "path")


def parse_xml(text: bytes, where: str) -> dict[str, Any]:
    """Read the configuration into the values that `experiment.parse` checks."""
    return _Reading(_root(text, where), where).values()


def ignored_elements(text: bytes, where: str) -> tuple[str, ...]:
    """Name the elements that are understood but have no meaning here, in the file's order."""
    root = _root(text, where)
    names = [element.tag for element in root.iter() if element.tag in WITHOUT_MEANING]
    if root.find("input_classes/input_class") is None and root.find("num_classes") is not None:
        names.append("num_classes")
    optimizer = (root.findtext("optimizer") or "").strip()
    if optimizer in ("adam", "adamw") and root.find("momentum") is not None:
        names.append("momentum")
    return tuple(dict.fromkeys(names))


def _root(text: bytes, where: str) -> Element:
    if len(text) > MAX_BYTES:
        raise ExperimentError(
            f"{where}: {len(text)} bytes are too many for a configuration: at most {MAX_BYTES}"
        )
    try:
        root: Element = fromstring(text, forbid_dtd=True)
    except DefusedXmlException:
        raise ExperimentError(
            f"{where}: a DOCTYPE, entities and external references are not accepted: remove them"
        ) from None
    except (ParseError, LookupError, ValueError) as error:
        raise ExperimentError(f"{where}: not XML: {error}") from None
    if not any(child.tag in ROOT_ELEMENTS for child in root):
        raise ExperimentError(
            f"{where}: {root.tag}: not a training configuration: it holds none of "
            f"{', '.join(ROOT_ELEMENTS[:6])}"
        )
    return root


class _Reading:
    """One configuration being read; mistakes are collected, so that all are told at once."""

    def __init__(self, root: Element, where: str) -> None:
        self.root, self.where = root, where
        self.mistakes: list[str] = []

    def values(self) -> dict[str, Any]:
        self._check_names(self.root, "", ROOT_ELEMENTS)
        values: dict[str, Any] = {
            "seed": self._integer("seed"),
            "dataset": _given(self._dataset()),
            "pipeline": _given({"workers": self._integer("j")}),
            "training": _given(self._training()),
        }
        if self.mistakes:
            raise ExperimentError("\ntimesink: ".join(dict.fromkeys(self.mistakes)))
        return {key: value for key, value in values.items() if value not in (None, {})}

    def _training(self) -> dict[str, Any]:
        optimizer = self._word("optimizer", OPTIMIZER_NAMES)
        momentum = self._number("momentum")
        if optimizer in ("adam", "adamw"):
            momentum = None
        elif self._text("optimizer") == "sgd" and momentum is None:
            momentum = 0.0
        schedule = None
        if self._text("learning_rate_decay_type") == "polynomial":
            self._mistake(
                "learning_rate_decay_type",
                "polynomial decay is not offered here: choose one of " + ", ".join(SCHEDULE_NAMES),
            )
        else:
            schedule = self._word("learning_rate_decay_type", SCHEDULE_NAMES)
        # The older program's exponential decay: 0.94 every two epochs.
        decay = {"decay_epochs": 2.0, "decay_factor": 0.94} if schedule == "exponential" else {}
        return {
            **decay,
            "network": self._word("network_type", NETWORK_NAMES),
            "epochs": self._integer("epochs_number"),
            "batch_size": self._integer("batch_size"),
            "replicas": self._integer("gpus_number"),
            "optimizer": optimizer,
            "momentum": momentum,
            "learning_rate": self._number("learning_rate"),
            "schedule": schedule,
            "dropout": self._number("dropout"),
            "weight_decay": self._number("weight_decay"),
            "validation": self._truth("perform_validation"),
        }

    def _dataset(self) -> dict[str, Any]:
        images_per_class = self._integer("images_per_class")
        values: dict[str, Any] = {
            "images_per_class": None if images_per_class == ALL_IMAGES else images_per_class
        }
        num_classes = self._integer("num_classes")
        inputs = self.root.find("input_classes")
        if inputs is None:
            return values
        self._check_names(inputs, "input_classes", INPUT_ELEMENTS, repeated=("input_class",))
        classes = [(element.text or "").strip() for element in inputs.findall("input_class")]
        if "" in classes:
            self._mistake("input_classes.input_class", "empty: a value is needed")
        if classes and num_classes is not None:
            if not 1 <= num_classes <= len(classes):
                self._mistake(
                    "num_classes",
                    f"found {num_classes}, allowed: 1 to {len(classes)}, "
                    "the number of input_class elements",
                )
            classes = classes[:num_classes]
        values["path"] = self._text("input_classes/local_path")
        values["classes"] = classes or None
        if inputs.find("remote_location") is not None:
            values |= self._remote(inputs)
        return values

    def _remote(self, inputs: Element) -> dict[str, Any]:
        place = "input_classes/remote_location"
        remote_location = inputs.find("remote_location")
        assert remote_location is not None
        self._check_names(remote_location, place.replace("/", "."), REMOTE_ELEMENTS)
        user, key, host, path = (self._text(f"{place}/{name}") for name in REMOTE_ELEMENTS)
        for name, value in (("host", host), ("path", path)):
            if value is None and remote_location.find(name) is None:
                self._mistake(f"{place}/{name}", "missing: a value is needed")
        if path is not None and not path.startswith("/"):
            self._mistake(f"{place}/path", f"found {_show(path)}, allowed: an absolute path")
        if host is None or path is None:
            return {}
        login = f"{quote(user, safe='')}@" if user else ""
        if host.count(":") > 1 and not host.startswith("["):
            host = f"[{host}]"
        return {
            "remote": f"sftp://{login}{quote(host, safe=':[]')}{quote(path)}",
            "remote_key": key,
        }

    def _check_names(
        self, parent: Element, place: str, known: tuple[str, ...], repeated: tuple[str, ...] = ()
    ) -> None:
        seen: set[str] = set()
        for child in parent:
            name = f"{place}.{child.tag}" if place else child.tag
            if child.tag not in known:
                hint = _near_miss(child.tag, known) or f"; allowed here: {', '.join(known)}"
                self._mistake(name, f"unknown element{hint}")
            elif child.tag in seen and child.tag not in repeated:
                self._mistake(name, "given twice: keep one")
            seen.add(child.tag)

    def _text(self, path: str) -> str | None:
        element = self.root.find(path)
        if element is None:
            return None
        text = (element.text or "").strip()
        if not text or len(element):
            self._mistake(path, "holds elements" if len(element) else "empty: a value is needed")
            return None
        return text

    def _integer(self, path: str) -> int | None:
        return self._converted(path, int, "a whole number")

    def _number(self, path: str) -> float | None:
        return self._converted(path, float, "a number")

    def _converted(
        self, path: str, convert: Callable[[str], Number], allowed: str
    ) -> Number | None:
        text = self._text(path)
        if text is None:
            return None
        try:
            return convert(text)
        except ValueError:
            self._mistake(path, f"found {_show(text)}, allowed: {allowed}")
            return None

    def _truth(self, path: str) -> bool | None:
        words = {"true": True, "1": True, "false": False, "0": False}
        text = self._text(path)
        if text is None or text.lower() in words:
            return None if text is None else words[text.lower()]
        self._mistake(path, f"found {_show(text)}, allowed: True or False")
        return None

    def _word(self, path: str, names: Mapping[str, str]) -> str | None:
        text = self._text(path)
        if text is None or text.lower() in names:
            return None if text is None else names[text.lower()]
        self._mistake(
            path, f"found {_show(text)}, allowed: {', '.join(names)}{_near_miss(text, names)}"
        )
        return None

    def _mistake(self, path: str, what: str) -> None:
        self.mistakes.append(f"{self.where}: {path.replace('/', '.')}: {what}")


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _near_miss(found: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(found, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def _show(text: str) -> str:
    return json.dumps(text if len(text) <= 60 else text[:57] + "...", ensure_ascii=False)
