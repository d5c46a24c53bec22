"""A mistake in the user's own network: the one line that each gets."""

from collections.abc import Callable

import pytest

from timesink.engines.tensorflow.networks import Network, build_network
from timesink.errors import NetworkError
from timesink.experiment import TrainingSection

SIZE, CLASSES = 16, 5
Written = Callable[..., Network]


def refusal(build: Callable[[], object]) -> str:
    with pytest.raises(NetworkError) as refused:
        build()
    message = str(refused.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("not_there_at_all:net", "no module named 'not_there_at_all'"),
        ("json.not_there:net", "no module named 'json.not_there'"),
        ("nets/mine.py:net", "nets/mine.py is a file: name the module, nets.mine:net"),
        (":net", "write it as package.module:function"),
        ("mine:", "write it as package.module:function"),
        ("json:dmups", "json has no 'dmups'"),
        ("json:dmups", "did you mean json:dumps?"),
        ("math:pi", "math:pi is a float: name a function"),
        ("builtins:int", "builtins:int does not say what it takes"),
    ],
)
def test_a_name_that_leads_nowhere(spec: str, said: str) -> None:
    training = TrainingSection(network=spec)
    assert said in refusal(lambda: build_network(training, SIZE, CLASSES))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import no_such_package", "mine imports 'no_such_package', which is not installed"),
        ("import no_such_package", "(mine.py:3)"),
        ("def net(:", "mine cannot be imported: SyntaxError"),
        ("def net(:", "(mine.py:3)"),
        ("1 / 0", "mine cannot be imported: ZeroDivisionError: division by zero (mine.py:3)"),
        ("raise SystemExit(3)", "mine cannot be imported: SystemExit: 3 (mine.py:3)"),
        ("def nett(): pass", "mine has no 'net' (mine.py); did you mean mine:nett?"),
        ("net = 3", "mine:net is a int: name a function"),
        ("def net(depth, classes): pass", "mine:net needs depth: give it a default"),
        ("def net(shape, /): pass", "mine:net needs shape: give it a default"),
        ("def net(dropout): pass", "mine:net needs a dropout: set training.dropout"),
        ("def net(): return 'no'", "mine:net returned a str: it must return a keras.Model"),
        ("def net(): return None", "mine:net returned a NoneType"),
        ("def net():\n    return {}['a']", "mine:net failed: KeyError: 'a' (mine.py:4)"),
        (
            "def net(input_shape):\n    return layers.Conv2D(1, 99)(keras.Input(input_shape))",
            "(mine.py:4)",
        ),
    ],
)
def test_a_mistake_in_the_function_is_one_line(written: Written, source: str, said: str) -> None:
    message = refusal(lambda: written(source))
    assert message.startswith("training.network: ")
    assert said in message


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (
            "(i := keras.Input((8, 8, 3)), layers.Dense(5)(layers.Flatten()(i)))",
            "takes (None, 8, 8, 3), but the images are (None, 16, 16, 3)",
        ),
        (
            "(i := keras.Input((16, 16, 1)), layers.Dense(5)(layers.Flatten()(i)))",
            "takes (None, 16, 16, 1), but the images are (None, 16, 16, 3)",
        ),
        (
            "([i := keras.Input((16, 16, 3)), j := keras.Input((16, 16, 3))], layers.Dense(5)("
            "layers.Flatten()(i + j)))",
            "takes 2 inputs: it must take one, the images",
        ),
        (
            "(i := keras.Input((16, 16, 3)), layers.Dense(7)(layers.Flatten()(i)))",
            "the output is (None, 7): it must be (None, 5), one score a class",
        ),
        (
            "(i := keras.Input((16, 16, 3)), layers.Dense(5)(i))",
            "the output is (None, 16, 16, 5): it must be (None, 5)",
        ),
        (
            "(i := keras.Input((16, 16, 3)), [layers.Dense(n)(layers.Flatten()(i)) "
            "for n in (5, 6)])",
            "the auxiliary output 1 is (None, 6): it must be (None, 5)",
        ),
        (
            "(i := keras.Input((16, 16, 3)), {'a': layers.Dense(5)(layers.Flatten()(i))})",
            "gives a dict of outputs (a): return a list, the main output first",
        ),
        (
            "(i := keras.Input((16, 16, 3)), [layers.Dense(5, activation=a)(layers.Flatten()(i)) "
            "for a in ('softmax', None)])",
            "mixes outputs with and without softmax",
        ),
        (
            "(i := keras.Input((16, 16, 3)), "
            "layers.Dense(5, trainable=False)(layers.Flatten()(i)))",
            "mine:net has no trainable weights",
        ),
    ],
)
def test_a_model_that_does_not_fit_is_one_line(written: Written, model: str, said: str) -> None:
    message = refusal(lambda: written(f"def net():\n    return keras.Model(*{model})"))
    assert message.startswith("training.network: mine:net")
    assert said in message


def test_a_subclassed_model_that_fails_on_images_says_where(written: Written) -> None:
    source = """
        class net(keras.Model):
            def call(self, images):
                raise RuntimeError("no\\nway")
        """
    message = refusal(lambda: written(source))
    assert "mine:net cannot take images of (16, 16, 3)" in message
    assert "no way" in message
    assert "(mine.py:6)" in message


@pytest.mark.parametrize(
    "source",
    [
        "def net(classes): pass",
        "net = keras.Sequential([layers.Flatten(), layers.Dense(5)])",
    ],
)
def test_a_dropout_that_would_reach_nothing_is_refused(written: Written, source: str) -> None:
    message = refusal(lambda: written(source, dropout=0.5))
    assert message.startswith("training.dropout: mine:net ")
    assert "leave training.dropout out" in message
