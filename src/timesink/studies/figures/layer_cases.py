"""Seed 001's experiments: the numbers of their figures, and what it found."""

from collections.abc import Mapping
from dataclasses import dataclass

TITLES = {"alexnet": "AlexNet", "vgg11": "VGG-11"}
PROFILED = {"alexnet": ("Fig. 4-1", 245), "vgg11": ("Fig. 4-2", 235)}
"""By how many per cent profiling lengthened the seed's runs."""


@dataclass(frozen=True)
class Case:
    """One of the seed's experiments: its figures' numbers, and what it found."""

    title: str
    devices: tuple[str, str]
    layers: Mapping[str, str]
    error: str
    total: str
    order: tuple[str, ...]
    """The layers, longest first, as its text tells."""
    order_words: str
    error_range: tuple[int, int]
    """In per cent."""
    second_words: str = ""
    """Of the second device."""
    output_words: str = ""
    """Of the last layer's forward beside its backward, where that is another than of the others."""
    output_overlaps: bool = False
    """Whether its two phases overlap there."""


CASES = {
    ("alexnet", 64): Case(
        "AlexNet, batch 64",
        ("Fig. 4-4", "Fig. 4-3"),
        {
            "conv1": "Fig. 4-5",
            "conv2": "Fig. 4-6",
            "conv3": "Fig. 4-12",
            "conv4": "Fig. 4-11",
            "conv5": "Fig. 4-10",
            "fc1": "Fig. 4-9",
            "fc2": "Fig. 4-8",
            "output": "Fig. 4-7",
        },
        "Fig. 4-13",
        "Fig. 4-14",
        ("conv1", "conv2", "conv3", "conv4", "conv5", "fc1", "fc2", "output"),
        "conv1 and conv2 take most, then conv3 and conv4, then conv5, fc1, fc2; output least",
        (44, 54),
        "Almost the same as on the first; the only big difference: conv5 takes about as long as "
        "conv3 and conv4",
        "Forward takes less than backward; of the output layer the two overlap",
        output_overlaps=True,
    ),
    ("alexnet", 128): Case(
        "AlexNet, batch 128",
        ("Fig. 4-18", "Fig. 4-17"),
        {
            "conv1": "Fig. 4-16",
            "conv2": "Fig. 4-15",
            "conv3": "Fig. 4-19",
            "conv4": "Fig. 4-20",
            "conv5": "Fig. 4-22",
            "fc1": "Fig. 4-21",
            "fc2": "Fig. 4-24",
            "output": "Fig. 4-23",
        },
        "Fig. 4-25",
        "Fig. 4-26",
        ("conv1", "conv2", "conv3", "conv4", "conv5", "fc1", "fc2", "output"),
        "conv1 takes most, clearly ahead of conv2, then conv3 and conv4, conv5, fc1, fc2; "
        "output least",
        (38, 44),
        "Much like the first; the only difference: conv5 is a bit closer to conv3 and conv4",
    ),
    ("vgg11", 12): Case(
        "VGG-11, batch 12",
        ("Fig. 4-29", "Fig. 4-30"),
        {
            "conv1": "Fig. 4-28",
            "conv2": "Fig. 4-27",
            "conv3": "Fig. 4-33",
            "conv4": "Fig. 4-32",
            "conv5": "Fig. 4-31",
            "conv6": "Fig. 4-34",
            "conv7": "Fig. 4-36",
            "conv8": "Fig. 4-35",
            "fc1": "Fig. 4-38",
            "fc2": "Fig. 4-37",
            "output": "Fig. 4-40",
        },
        "Fig. 4-41",
        "Fig. 4-39",
        (
            *("conv6", "conv4", "fc1", "conv2", "conv5", "conv3"),
            *("conv7", "conv8", "conv1", "fc2", "output"),
        ),
        "conv6 takes most, then conv4, then fc1 and conv2 alike, conv5, then conv3, conv7 and "
        "conv8 alike, conv1, fc2; output least",
        (45, 49),
        "Like the first, with a small difference throughout all the iterations",
        "Forward takes less than backward; of the output layer hardly",
    ),
}


def case_of(network: str, batch_size: int) -> Case:
    """Give the figures of a setting that the seed did not have."""
    return Case(
        f"{network}, batch {batch_size}",
        ("like Fig. 4-4", "like Fig. 4-3"),
        {},
        "like Fig. 4-13",
        "like Fig. 4-14",
        (),
        "",
        (38, 54),
    )
