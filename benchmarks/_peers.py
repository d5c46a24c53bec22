"""Other people's loaders on the same files, each in a process of its own: rounds asked on stdin.

Started as `python _peers.py NAME`, with a JSON line that says what to load, and then one a round;
answers a JSON line each. It imports nothing of Timesink, so that any Python will do that has the
peer installed. Each gives batches of float32 images in [0, 1] with labels, shuffled, with a random
brightness of its own for each image.
"""

import itertools
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

BRIGHTNESS = 32 / 255
BATCHES_AHEAD = 4
WARM_UP = 8
"""Batches before a round is timed: more than any of them makes ahead."""


class Files(dict):
    """What to load: paths, labels, size, batch_size, workers."""

    __getattr__ = dict.__getitem__


def torch_pillow(files: Files) -> tuple[str, Iterator[Any]]:
    """Load with PyTorch's DataLoader, a process a worker, decoded and resized by Pillow."""
    import PIL
    import torch
    from PIL import Image
    from torch.utils.data import DataLoader, Dataset

    class Images(Dataset):
        """Images by number; as torchvision's transforms do it, without torchvision."""

        def __len__(self) -> int:
            return len(files.paths)

        def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
            with Image.open(files.paths[index]) as image:
                small = image.convert("RGB").resize((files.size,) * 2, Image.Resampling.BILINEAR)
            value = torch.from_numpy(np.array(small)).permute(2, 0, 1).float().div_(255)
            value.add_(float(torch.empty(()).uniform_(-BRIGHTNESS, BRIGHTNESS))).clamp_(0, 1)
            return value, files.labels[index]

    loader = DataLoader(
        Images(),
        batch_size=files.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=files.workers,
        persistent_workers=True,
    )

    def endless() -> Iterator[Any]:
        while True:
            yield from loader

    return f"PyTorch {torch.__version__}, Pillow {PIL.__version__}", endless()


def opencv_threads(files: Files) -> tuple[str, Iterator[Any]]:
    """Load with OpenCV in threads, each making a whole batch."""
    import cv2

    cv2.setNumThreads(1)
    lock = threading.Lock()
    numbers = _shuffled(len(files.paths), files.batch_size)
    made: queue.Queue[Any] = queue.Queue(BATCHES_AHEAD)
    labels = np.array(files.labels)

    def work(seed: int) -> None:
        generator = np.random.default_rng(seed)
        while True:
            with lock:
                chosen = next(numbers)
            images = np.empty((len(chosen), files.size, files.size, 3), np.float32)
            for image, number in zip(images, chosen, strict=True):
                decoded = cv2.imread(files.paths[number], cv2.IMREAD_COLOR_RGB)
                small = cv2.resize(decoded, (files.size,) * 2, interpolation=cv2.INTER_LINEAR)
                np.multiply(small, np.float32(1 / 255), out=image)
                image += np.float32(generator.uniform(-BRIGHTNESS, BRIGHTNESS))
                np.clip(image, 0, 1, out=image)
            made.put((images, labels[chosen]))

    for seed in range(files.workers):
        threading.Thread(target=work, args=(seed,), daemon=True).start()
    return f"OpenCV {cv2.__version__}", iter(made.get, None)


def dali_cpu(files: Files) -> tuple[str, Iterator[Any]]:
    """Load with DALI on the CPU."""
    import nvidia.dali as dali
    from nvidia.dali import fn, types

    @dali.pipeline_def(
        batch_size=files.batch_size, num_threads=files.workers, device_id=None, seed=1
    )
    def images() -> Any:
        encoded, label = fn.readers.file(
            files=files.paths, labels=files.labels, random_shuffle=True, initial_fill=4096
        )
        decoded = fn.decoders.image(encoded, device="cpu", output_type=types.RGB)
        small = fn.resize(
            decoded,
            resize_x=files.size,
            resize_y=files.size,
            interp_type=types.INTERP_LINEAR,
            antialias=False,
            dtype=types.FLOAT,
        )
        brightness = fn.random.uniform(range=[-BRIGHTNESS, BRIGHTNESS])
        return dali.math.clamp(small * np.float32(1 / 255) + brightness, 0.0, 1.0), label

    pipeline = images()
    pipeline.build()

    def endless() -> Iterator[Any]:
        while True:
            value, label = pipeline.run()
            yield value.as_tensor(), label.as_tensor()

    return f"DALI {dali.__version__}", endless()


PEERS = {
    "PyTorch DataLoader, Pillow": torch_pillow,
    "OpenCV in threads": opencv_threads,
    "DALI on the CPU": dali_cpu,
}


class Peer:
    """A peer as its parent sees it."""

    def __init__(
        self, name: str, python: str, files: dict[str, Any], *, script: str = __file__
    ) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [python, script, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.about = self._ask(files)
        """Version and a look at the output; or why it is missing."""

    def round(self, batches: int, *, warm_up_s: float = 0.0) -> float:
        """Measure one round; gives images/s."""
        answer = self._ask({"batches": batches, "warm_up_s": warm_up_s})
        if "missing" in answer:
            sys.exit(f"{self.name}: {answer['missing']}")
        return answer["images_per_s"]

    def end(self) -> None:
        """Let it go."""
        self._process.communicate()

    def _ask(self, what: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(what) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())
        except (BrokenPipeError, json.JSONDecodeError):
            return {"missing": f"ended with {self._process.wait()}"}


def main(peers: dict[str, Any]) -> None:
    """Answer rounds until there are no more."""
    files = Files(json.loads(sys.stdin.readline()))
    try:
        version, batches = peers[sys.argv[1]](files)
    except ImportError as error:
        _answer(missing=str(error))
        return
    images, labels = next(batches)
    value = np.asarray(images)
    _answer(
        version=version,
        shape=value.shape,
        dtype=str(value.dtype),
        labels=np.asarray(labels).size,
        least=float(value.min()),
        most=float(value.max()),
        mean=float(np.mean([np.asarray(next(batches)[0]).mean() for _ in range(10)])),
    )
    for line in sys.stdin:
        asked = json.loads(line)
        until = time.perf_counter() + asked["warm_up_s"]
        for number in itertools.count():
            if number >= WARM_UP and time.perf_counter() >= until:
                break
            next(batches)
        begin = time.perf_counter()
        for _ in range(asked["batches"]):
            next(batches)
        took_s = time.perf_counter() - begin
        _answer(images_per_s=asked["batches"] * files.batch_size / took_s)
    os._exit(0)  # threads that wait for a place to put a batch would never end


def _shuffled(images: int, batch_size: int) -> Iterator[Any]:
    generator = np.random.default_rng(0)
    while True:
        order = generator.permutation(images)
        yield from order[: images // batch_size * batch_size].reshape(-1, batch_size)


def _answer(**answer: Any) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(PEERS)
