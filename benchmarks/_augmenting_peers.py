"""Augmentation on the same files, ours and others': seed 002's `basic`, and RandAugment behind it.

Started as `python _augmenting_peers.py NAME`, as `_peers.py` is. Each gives batches of float32
images that are cropped at random, resized, flipped at random, normalised and standardised; with
`layers`, as many operations of RandAugment, of magnitude 9 of 30, were drawn for each in between.
"""

import os
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from _peers import Files, main

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
AREA, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)
SHARE = 9 / 30  # of RandAugment's largest magnitude


def torch_pillow(files: Files) -> tuple[str, Iterator[Any]]:
    """Load with PyTorch's DataLoader, a process a worker; Pillow augments as in torchvision."""
    import PIL
    import torch
    from PIL import Image
    from torch.utils.data import DataLoader, Dataset

    mean, deviation = (torch.tensor(each).view(3, 1, 1) for each in (MEAN, DEVIATION))

    class Images(Dataset):
        """Images by number; as torchvision's transforms do it, without torchvision."""

        def __len__(self) -> int:
            return len(files.paths)

        def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
            with Image.open(files.paths[index]) as opened:
                image = opened.convert("RGB")
            left, top, width, height = _part(*image.size)
            image = image.crop((left, top, left + width, top + height))
            image = image.resize((files.size,) * 2, Image.Resampling.BILINEAR)
            if random.random() < 0.5:
                image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
            for _ in range(files.layers):
                image = _drawn(image)
            value = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous()
            value = value.to(torch.float32).div(255).sub_(mean).div_(deviation)
            value.sub_(value.mean()).div_(max(float(value.std()), value.numel() ** -0.5))
            return value, files.labels[index]

    loader = DataLoader(
        Images(),
        batch_size=files.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=files.workers,
        persistent_workers=True,
        worker_init_fn=lambda worker: random.seed(torch.initial_seed()),
    )

    def endless() -> Iterator[Any]:
        while True:
            yield from loader

    return f"PyTorch {torch.__version__}, Pillow {PIL.__version__}", endless()


def _part(width: int, height: int) -> tuple[int, int, int, int]:
    """Draw a part as torchvision's RandomResizedCrop does: left, top, width, height."""
    low, high = np.log(RATIO)
    for _ in range(10):
        area = width * height * random.uniform(*AREA)
        ratio = np.exp(random.uniform(low, high))
        w, h = round((area * ratio) ** 0.5), round((area / ratio) ** 0.5)
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, width - w), random.randint(0, height - h), w, h
    side = min(width, height)
    return (width - side) // 2, (height - side) // 2, side, side


def _drawn(image: Any) -> Any:
    """Do one operation of RandAugment, as torchvision does it to a Pillow image."""
    from PIL import Image, ImageEnhance, ImageOps

    sign = random.choice((1, -1))
    shift = sign * int(150 / 331 * image.width * SHARE)

    def affine(*numbers: float) -> Any:
        return image.transform(image.size, Image.Transform.AFFINE, numbers)

    def enhanced(kind: Any) -> Any:
        return kind(image).enhance(1 + sign * 0.9 * SHARE)

    operations = (
        lambda: image,
        lambda: affine(1, sign * 0.3 * SHARE, 0, 0, 1, 0),
        lambda: affine(1, 0, 0, sign * 0.3 * SHARE, 1, 0),
        lambda: affine(1, 0, shift, 0, 1, 0),
        lambda: affine(1, 0, 0, 0, 1, shift),
        lambda: image.rotate(sign * 30 * SHARE),
        lambda: enhanced(ImageEnhance.Brightness),
        lambda: enhanced(ImageEnhance.Color),
        lambda: enhanced(ImageEnhance.Contrast),
        lambda: enhanced(ImageEnhance.Sharpness),
        lambda: ImageOps.posterize(image, 8 - round(4 * SHARE)),
        lambda: ImageOps.solarize(image, round(255 * (1 - SHARE))),
        lambda: ImageOps.autocontrast(image),
        lambda: ImageOps.equalize(image),
    )
    return random.choice(operations)()


def _tf_data(files: Files, *, on_batch: bool, crop_while_decoding: bool) -> Iterator[Any]:
    """Write it in tf.data, the augmentation by Keras' own layer; what is not needed for the crop
    to be made on single images may be done on batches."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import keras
    import tensorflow as tf

    size = files.size
    layer = keras.layers.RandAugment(value_range=(0, 255), num_ops=files.layers or 1, factor=SHARE)
    normal = tf.constant(MEAN), tf.constant(DEVIATION)

    def crop(content: Any) -> Any:
        sides = tf.image.extract_jpeg_shape(content)
        begin, part, _ = tf.image.sample_distorted_bounding_box(
            sides,
            tf.zeros([1, 0, 4]),
            min_object_covered=0.0,
            aspect_ratio_range=RATIO,
            area_range=AREA,
            use_image_if_no_bounding_boxes=True,
        )
        if crop_while_decoding:
            window = tf.concat([begin[:2], part[:2]], axis=0)
            return tf.image.decode_and_crop_jpeg(content, window, channels=3)
        whole = tf.image.decode_jpeg(content, channels=3)
        return tf.ensure_shape(tf.slice(whole, begin, part), [None, None, 3])

    def tail(images: Any) -> Any:
        images = (images * (1 / 255) - normal[0]) / normal[1]
        return tf.image.per_image_standardization(images)

    def load(path: Any, label: Any) -> Any:
        image = tf.image.resize(crop(tf.io.read_file(path)), [size, size])
        image = tf.image.random_flip_left_right(image)
        if on_batch:
            return image, label
        return tail(layer(image, training=True) if files.layers else image), label

    def rest(images: Any, label: Any) -> Any:
        images = tf.ensure_shape(images, [None, size, size, 3])
        return tail(layer(images, training=True) if files.layers else images), label

    made = tf.data.Dataset.from_tensor_slices((files.paths, files.labels))
    made = made.shuffle(len(files.paths)).repeat().map(load, tf.data.AUTOTUNE)
    made = made.batch(files.batch_size, drop_remainder=True)
    if on_batch:
        made = made.map(rest, tf.data.AUTOTUNE)
    options = tf.data.Options()
    options.deterministic = False
    return iter(made.prefetch(tf.data.AUTOTUNE).with_options(options))


def keras_on_images(files: Files) -> tuple[str, Iterator[Any]]:
    """Load with tf.data, decoding what the crop needs, Keras' layer on each image."""
    return _versions(), _tf_data(files, on_batch=False, crop_while_decoding=True)


def keras_on_batches(files: Files) -> tuple[str, Iterator[Any]]:
    """Load with tf.data, decoding what the crop needs, Keras' layer on each batch."""
    return _versions(), _tf_data(files, on_batch=True, crop_while_decoding=True)


def keras_decoding_all(files: Files) -> tuple[str, Iterator[Any]]:
    """Load with tf.data, decoding whole images, Keras' layer on each image."""
    return _versions(), _tf_data(files, on_batch=False, crop_while_decoding=False)


def _versions() -> str:
    from importlib.metadata import version

    return f"Keras {version('keras')}"


def ours(files: Files) -> tuple[str, Iterator[Any]]:
    """Load with Timesink."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import timesink
    from timesink.engines.tensorflow.devices import size_thread_pools
    from timesink.experiment import load
    from timesink.loaders.tfdata import training_batches
    from timesink.pipelines.order import training_stream
    from timesink.pipelines.source import open_images
    from timesink.pipelines.stages import parse_stages

    size_thread_pools()
    category = f"basic+randaugment({files.layers}, 9)" if files.layers else "basic"
    asked = load(
        None,
        [
            f"dataset.path={files.root}",
            f"pipeline.image_size={files.size}",
            f"pipeline.stages={category}",
        ],
    )
    images = open_images(asked).train
    stream = training_stream(images, seed=0, batch_size=files.batch_size, shuffle=True)
    stages = parse_stages(category)
    batches = training_batches(
        images, stages, asked.pipeline, stream, first_position=0, last_epoch=10**6
    )
    return f"Timesink {timesink.__version__}, {category}", (batch[:2] for batch in batches)


OURS = "timesink"
PEERS = {
    OURS: ours,
    "PyTorch DataLoader, Pillow": torch_pillow,
    "tf.data, Keras on images": keras_on_images,
    "tf.data, Keras on batches": keras_on_batches,
    "tf.data, whole images decoded": keras_decoding_all,
}


if __name__ == "__main__":
    main(PEERS)
