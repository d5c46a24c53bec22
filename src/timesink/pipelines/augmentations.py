"""The published augmentation policies as plain tables: which operations, how often, how strong.

An operation's strength is in its own unit: degrees, a factor, pixels, bits, a threshold. A policy
draws operations for each image; `loaders/tfaugment.py` makes the draws.
"""

from dataclasses import dataclass

IDENTITY = "identity"

RANDAUGMENT = (
    IDENTITY,
    "autocontrast",
    "equalise",
    "rotate",
    "solarise",
    "colour",
    "posterise",
    "contrast",
    "brightness",
    "sharpness",
    "shear_x",
    "shear_y",
    "translate_x",
    "translate_y",
)
"""What RandAugment draws from, all equally likely: the list of its paper."""

LARGEST_MAGNITUDE = 30
"""RandAugment's magnitudes are 0 to 30 and AutoAugment's 0 to 9, as torchvision scales them."""
LARGEST_LEVEL = 9
LARGEST_PBA_LEVEL = 10

_FACTORS = ("colour", "contrast", "brightness", "sharpness")


@dataclass(frozen=True)
class Strength:
    """How strong an operation is: `offset + amount`, or `offset - amount` as often if signed."""

    offset: float = 0.0
    amount: float = 0.0
    signed: bool = False

    @property
    def both(self) -> tuple[float, float]:
        """Give the two strengths that are equally likely."""
        return (
            self.offset + self.amount,
            self.offset + (-self.amount if self.signed else self.amount),
        )


def strength(operation: str, share: float, size: int) -> Strength:
    """Scale an operation from 0 to its strongest, as torchvision does; `size` in pixels."""
    match operation:
        case "shear_x" | "shear_y":
            return Strength(0, 0.3 * share, signed=True)
        case "translate_x" | "translate_y":
            return Strength(0, int(150 * size * share / 331 + 1e-6), signed=True)
        case "rotate":
            return Strength(0, 30 * share, signed=True)
        case "posterise":
            return Strength(8, -round(4 * share))
        case "solarise":
            return Strength(255, -255 * share)
    return Strength(1, 0.9 * share, signed=True) if operation in _FACTORS else Strength()


AutoAugmentPart = tuple[str, float, int]
"""Operation, how likely, level."""

AUTOAUGMENT_IMAGENET: tuple[tuple[AutoAugmentPart, AutoAugmentPart], ...] = (
    (("posterise", 0.4, 8), ("rotate", 0.6, 9)),
    (("solarise", 0.6, 5), ("autocontrast", 0.6, 0)),
    (("equalise", 0.8, 0), ("equalise", 0.6, 0)),
    (("posterise", 0.6, 7), ("posterise", 0.6, 6)),
    (("equalise", 0.4, 0), ("solarise", 0.2, 4)),
    (("equalise", 0.4, 0), ("rotate", 0.8, 8)),
    (("solarise", 0.6, 3), ("equalise", 0.6, 0)),
    (("posterise", 0.8, 5), ("equalise", 1.0, 0)),
    (("rotate", 0.2, 3), ("solarise", 0.6, 8)),
    (("equalise", 0.6, 0), ("posterise", 0.4, 6)),
    (("rotate", 0.8, 8), ("colour", 0.4, 0)),
    (("rotate", 0.4, 9), ("equalise", 0.6, 0)),
    (("equalise", 0.0, 0), ("equalise", 0.8, 0)),
    (("invert", 0.6, 0), ("equalise", 1.0, 0)),
    (("colour", 0.6, 4), ("contrast", 1.0, 8)),
    (("rotate", 0.8, 8), ("colour", 1.0, 2)),
    (("colour", 0.8, 8), ("solarise", 0.8, 7)),
    (("sharpness", 0.4, 7), ("invert", 0.6, 0)),
    (("shear_x", 0.6, 5), ("equalise", 1.0, 0)),
    (("colour", 0.4, 0), ("equalise", 0.6, 0)),
    (("equalise", 0.4, 0), ("solarise", 0.2, 4)),
    (("solarise", 0.6, 5), ("autocontrast", 0.6, 0)),
    (("invert", 0.6, 0), ("equalise", 1.0, 0)),
    (("colour", 0.6, 4), ("contrast", 1.0, 8)),
    (("equalise", 0.8, 0), ("equalise", 0.6, 0)),
)
"""The policy that AutoAugment's paper found for ImageNet: one of these pairs for an image."""

AUGMIX = (
    "autocontrast",
    "equalise",
    "posterise",
    "rotate",
    "solarise",
    "shear_x",
    "shear_y",
    "translate_x",
    "translate_y",
)
"""AugMix leaves out what its test set of corruptions is made of."""


@dataclass(frozen=True)
class Scale:
    """An operation whose strength grows with a level from 0 to 10: `offset + gain · level`."""

    offset: float = 0.0
    gain: float = 0.0
    whole: bool = False
    """Whether `gain · level` is cut to a whole number."""
    signed: bool = False

    def at(self, level: float) -> Strength:
        """Give the strength at one level."""
        amount = self.gain * level
        return Strength(self.offset, float(int(amount)) if self.whole else amount, self.signed)


def augmix_scale(operation: str, size: int) -> Scale:
    """Scale an operation as AugMix' published code does; shifts are up to a third of the image."""
    match operation:
        case "posterise":
            return Scale(4, -4 / 10, whole=True)
        case "rotate":
            return Scale(0, 30 / 10, whole=True, signed=True)
        case "solarise":
            return Scale(256, -256 / 10, whole=True)
        case "shear_x" | "shear_y":
            return Scale(0, 0.3 / 10, signed=True)
        case "translate_x" | "translate_y":
            return Scale(0, size / 3 / 10, whole=True, signed=True)
    return Scale()


PBA = (
    "autocontrast",
    "equalise",
    "invert",
    "rotate",
    "posterise",
    "solarise",
    "colour",
    "contrast",
    "brightness",
    "sharpness",
    "shear_x",
    "shear_y",
    "translate_x",
    "translate_y",
    "cutout",
)
"""What Population Based Augmentation draws from, in the order of its schedules; each is there
twice, with a likelihood in tenths and a level of its own."""
PBA_COUNTS = (0.2, 0.3, 0.5)
"""How likely it is that an image meets none of them, one, or two."""


def pba_scale(operation: str, size: int) -> Scale:
    """Scale an operation as the published code does; its pixels are of images 32 wide."""
    match operation:
        case "translate_x" | "translate_y":
            return Scale(0, 10 / 10 * size / 32, whole=True, signed=True)
        case "cutout":
            return Scale(0, 20 / 10 * size / 32, whole=True)
    if operation in _FACTORS:
        return Scale(0.1, 1.8 / 10)
    return augmix_scale(operation, size)


def _phases(text: str) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Read lines of epochs and sixty digits, of which `A` is ten."""
    lines = [line.split() for line in text.split("\n") if line.strip()]
    return tuple((int(epochs), tuple(int(d, 11) for d in digits)) for epochs, digits in lines)


PBA_CIFAR10 = _phases(
    """
    12 000000000000000000000000000000000000000000000000000000000000
    22 033719202002000030020200001031001030200600030200603400003103
    20 303832063003000303245300210060202854230533021530503301001013
    20 202335030236102505025500040120432586060265531726203118000090
     1 400560123167000805034200060040610563039085532754033007020173
     6 40335310903800090216126107021071885312A785433756036104050173
     3 30439502A03900063006059105019074825322A783433736056106893083
    27 4172A302A0493026432918A13202A372647326A954146715021009393093
     6 4182A233A04810046249579342048180677816A933133718060309665692
    21 20A2A643A1592304537584A2510253A128781778311536080606197956A6
     6 51A597477029410271A4A5A8500443A10867194712166549070319894896
     9 40A573757009113070A7A5A5300413A30859525913064617340679995756
     7 407655955006010123A7A2A3400135A2A659335649076649052699693841
    17 18A4857357189109458791A444100784A489546156147457072569393653
     6 377195953909A35813A7A5A871170965A499828283214287152239291889
    12 3760A7856909932611A5A27878369726A379A36216005069341219205989
     5 0666A0345809730602A5A2A6A908A7278667A39408015087332308335276
    """
)
"""The schedule that PBA's paper found on CIFAR-10, for 200 epochs: for each stretch of epochs, its
length and sixty digits, two for each operation and then again two: likelihood and level."""
