"""The map from op to layer of a real step: checked against the variables that the ops use."""

from types import SimpleNamespace
from typing import Any

import keras
import pytest
import tensorflow as tf
from tensorflow.python.eager import record as tape

from timesink.engines.tensorflow.opmap import OptimizedGraphs, build_opmap
from timesink.engines.tensorflow.scopes import ScopeRecorder
from timesink.ledger.opmap import OpMap, Share


def badly_named_network() -> Any:
    """Names that look like TensorFlow's own, a nested model, a layer used twice, a branch."""
    images = keras.Input((16, 16, 3))
    x = keras.layers.Conv2D(8, 3, padding="same", name="conv")(images)
    x = keras.layers.BatchNormalization(name="conv_2")(x)
    x = keras.layers.ReLU(name="relu")(x)
    y = keras.layers.Conv2D(8, 3, padding="same", name="conv_1")(x)
    y = keras.layers.ReLU(name="relu_1")(y)
    x = keras.layers.Add(name="add")([x, y])
    block = keras.Sequential(
        [keras.layers.Conv2D(4, 3, name="conv"), keras.layers.ReLU(name="relu")], name="block"
    )
    x = keras.layers.GlobalAveragePooling2D(name="pool")(block(x))
    twice = keras.layers.Dense(4, activation="relu", name="twice")
    x = twice(twice(x))
    return keras.Model(images, keras.layers.Dense(3, name="fc")(x))


def watched_step(model: Any, optimizer: Any, *, collect: bool = True, **options: Any) -> Any:
    """Trace and run one training step under the eyes of the recorder."""
    optimizer.build(model.trainable_variables)

    @tf.function(autograph=False, **options)
    def step(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            scores = model(images, training=True)
            losses = keras.losses.sparse_categorical_crossentropy(labels, scores, from_logits=True)
            loss = optimizer.scale_loss(tf.reduce_mean(losses))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    batch = tf.random.uniform((4, *model.input_shape[1:])), tf.zeros((4,), tf.int32)
    scopes, graphs = ScopeRecorder(), OptimizedGraphs()
    scopes.start()
    if collect:
        graphs.start()
    step(*batch)
    if collect:
        graphs.stop()
    scopes.stop()
    graph = step.get_concrete_function(*batch).graph
    return SimpleNamespace(
        model=model, optimizer=optimizer, graph=graph, opmap=build_opmap(scopes.functions, graphs)
    )


@pytest.fixture(scope="module")
def trained() -> Any:
    return watched_step(badly_named_network(), keras.optimizers.SGD(0.1, momentum=0.9))


def users_of(graph: Any, variable: Any) -> list[Any]:
    """Find the ops that a variable is read by, or that assign it."""
    handle = next(
        inside
        for outside, inside in graph.captures
        if outside is variable.value.handle  # Keras' variable → TensorFlow's → its resource
    )
    return list(handle.consumers())


def follow(ops: list[Any], kinds: tuple[str, ...]) -> list[Any]:
    """Find the first ops of some kinds behind these."""
    found: list[Any] = []
    seen: set[str] = set()
    while ops:
        op = ops.pop()
        if op.name in seen:
            continue
        seen.add(op.name)
        if op.type in kinds:
            found.append(op)
        else:
            ops += [consumer for output in op.outputs for consumer in output.consumers()]
    return found


def layer_paths(model: Any, prefix: str = "") -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for layer in model.layers:
        paths[prefix + layer.name] = layer
        if isinstance(layer, keras.Model):
            paths |= layer_paths(layer, f"{prefix}{layer.name}/")
    return paths


WEIGHED = ("conv", "conv_1", "block/conv", "twice", "fc")


@pytest.mark.parametrize("path", WEIGHED)
def test_an_op_that_reads_a_kernel_is_its_layers_forward(trained: Any, path: str) -> None:
    kernel = layer_paths(trained.model)[path].kernel
    reads = [op for op in users_of(trained.graph, kernel) if op.type == "ReadVariableOp"]
    computing = [
        op for op in follow(reads, ("Conv2D", "MatMul")) if not op.name.startswith("gradient_tape")
    ]

    assert computing
    for op in computing:
        assert trained.opmap.find(op.name).shares == (Share("layer", path, "forward"),), op.name


@pytest.mark.parametrize("path", WEIGHED)
def test_the_update_follows_the_variable_that_it_assigns(trained: Any, path: str) -> None:
    layer = layer_paths(trained.model)[path]
    number = [v is layer.kernel for v in trained.model.trainable_variables].index(True)
    momentum = trained.optimizer.momentums[number]
    for variable in (layer.kernel, momentum):
        assigning = [op for op in users_of(trained.graph, variable) if op.type.startswith("Assign")]
        assert assigning
        for op in assigning:
            assert trained.opmap.find(op.name).shares == (Share("layer", path, "update"),)


def test_gradients_are_their_layers_backward(trained: Any) -> None:
    gradients = {
        op.name: trained.opmap.find(op.name).shares[0]
        for op in trained.graph.get_operations()
        if op.type == "Conv2DBackpropFilter"
    }
    assert sorted(share.layer for share in gradients.values()) == ["block/conv", "conv", "conv_1"]
    assert {share.phase for share in gradients.values()} == {"backward"}


def test_a_sum_of_gradients_belongs_to_the_layer_whose_output_branched(trained: Any) -> None:
    sums = [op for op in trained.graph.get_operations() if op.type == "AddN"]
    image_sums = [op for op in sums if op.outputs[0].shape.rank == 4]
    layers = {trained.opmap.find(op.name).shares[0].layer for op in image_sums}
    assert "relu" in layers  # its output goes to conv_1 and to add
    weights = [trained.opmap.find(op.name).shares[0] for op in sums if op not in image_sums]
    assert Share("layer", "twice", "backward") in weights  # used twice: two gradients


def test_a_fused_convolution_does_not_end_up_on_the_relu_whose_name_it_carries(
    trained: Any,
) -> None:
    fused = {path: entry for path, entry in trained.opmap.entries.items() if entry.estimated}
    by_main_layer = {
        max(entry.shares, key=lambda share: share.weight).layer
        for path, entry in fused.items()
        if not path.endswith(":fused")
    }
    assert {"conv_1", "block/conv"} <= by_main_layer
    for entry in fused.values():
        assert sum(share.weight for share in entry.shares) == pytest.approx(1.0)


def test_losses_are_loss_and_nothing_of_the_step_is_without_account(trained: Any) -> None:
    losses = [
        op.name
        for op in trained.graph.get_operations()
        if op.type == "SparseSoftmaxCrossEntropyWithLogits"
    ]
    assert [trained.opmap.find(name).shares for name in losses] == [(Share("loss"),)]
    unknown = [
        op.name
        for op in trained.graph.get_operations()
        if op.type not in ("Placeholder", "Const", "NoOp") and trained.opmap.find(op.name) is None
    ]
    assert unknown == []


def test_layers_are_named_from_the_outermost_model_inwards_with_their_types(trained: Any) -> None:
    layers = trained.opmap.layers
    assert layers["block/conv"] == "Conv2D"
    assert layers["conv_2"] == "BatchNormalization"
    assert list(layers).index("conv") < list(layers).index("block/conv") < list(layers).index("fc")


def test_without_the_optimized_graph_a_fused_op_is_known_by_its_events_type() -> None:
    trained = watched_step(badly_named_network(), keras.optimizers.SGD(0.1), collect=False)
    opmap: OpMap = trained.opmap
    assert opmap.origin == "traced graph"
    relu = next(
        op.name
        for op in trained.graph.get_operations()
        if op.type == "Relu" and opmap.find(op.name).shares[0].layer == "relu_1"
    )
    fused = opmap.find(relu, "_MklNativeFusedConv2D")
    assert max(fused.shares, key=lambda share: share.weight).layer == "conv_1"
    assert opmap.find(relu, "Relu").shares[0].layer == "relu_1"


def test_adams_slots_and_the_scale_of_mixed_precision_lead_to_the_layer() -> None:
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.1))
        trained = watched_step(badly_named_network(), optimizer)
    finally:
        keras.config.set_dtype_policy("float32")
    updates = {
        share.layer
        for path, entry in trained.opmap.entries.items()
        for share in entry.shares
        if "/adam/" in path and "Assign" in path and share.phase == "update"
    }
    assert set(WEIGHED) | {"conv_2"} <= updates


def test_global_clipping_is_the_update_of_no_one_layer() -> None:
    trained = watched_step(badly_named_network(), keras.optimizers.SGD(0.1, global_clipnorm=1.0))
    norms = [op.name for op in trained.graph.get_operations() if op.type == "Sqrt"]
    shared = [trained.opmap.find(name).shares[0] for name in norms if "conv" not in name]
    assert Share("layer", None, "update") in shared


def test_two_models_in_one_step_keep_their_own_names() -> None:
    body = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Flatten(name="flat")], name="a")
    head = keras.Sequential([keras.Input((192,)), keras.layers.Dense(3, name="flat")], name="b")

    @tf.function(autograph=False)
    def both(images: Any) -> Any:
        return head(body(images))

    scopes = ScopeRecorder()
    scopes.start()
    both(tf.zeros((2, 8, 8, 3)))
    scopes.stop()
    opmap = build_opmap(scopes.functions, OptimizedGraphs())
    assert {"a/flat": "Flatten", "b/flat": "Dense"}.items() <= opmap.layers.items()


def test_the_hooks_in_keras_and_tensorflow_are_gone_after_they_are_stopped() -> None:
    before = keras.layers.Layer._open_name_scope, tape.record_operation
    scopes = ScopeRecorder()
    scopes.start()
    assert keras.layers.Layer._open_name_scope is not before[0]
    assert tape.record_operation is not before[1]
    scopes.stop()
    assert (keras.layers.Layer._open_name_scope, tape.record_operation) == before


def test_a_custom_gradient_is_its_layers_backward() -> None:
    @tf.custom_gradient
    def halved(values: Any) -> Any:
        return tf.identity(values), lambda gradient: tf.atan(gradient)

    class Halved(keras.layers.Layer):
        def call(self, values: Any) -> Any:
            return halved(values)

    images = keras.Input((8, 8, 3))
    x = keras.layers.Conv2D(4, 3, activation="silu", name="conv")(images)
    x = keras.layers.GlobalAveragePooling2D(name="pool")(Halved(name="halved")(x))
    model = keras.Model(images, keras.layers.Dense(3, name="fc")(x))

    step = watched_step(model, keras.optimizers.SGD(0.1))

    (atan,) = [op for op in step.graph.get_operations() if op.type == "Atan"]
    assert step.opmap.find(atan.name).shares == (Share("layer", "halved", "backward"),)
    # Of silu, whose gradient TensorFlow writes as a custom one, the sigmoid is computed again.
    sigmoids = [op for op in step.graph.get_operations() if op.type == "Sigmoid"]
    phases = {step.opmap.find(op.name).shares for op in sigmoids}
    assert phases == {
        (Share("layer", "conv", "forward"),),
        (Share("layer", "conv", "backward"),),
    }


def test_a_convolution_that_keras_compiles_by_itself_is_known_by_its_function() -> None:
    images = keras.Input((16, 16, 8))
    x = keras.layers.Conv2D(8, 3, groups=4, name="grouped")(images)
    x = keras.layers.Conv2D(8, 3, groups=2, name="paired")(x)
    x = keras.layers.GlobalAveragePooling2D(name="pool")(x)
    trained = watched_step(keras.Model(images, x), keras.optimizers.SGD(0.1))
    functions = {
        (share.layer, share.phase)
        for path, entry in trained.opmap.entries.items()
        if path.endswith(":") and "conv_xla" in path
        for share in entry.shares
    }
    assert {
        (layer, phase) for layer in ("grouped", "paired") for phase in ("forward", "backward")
    } <= (functions)
    traced = {
        function.signature.name.strip("_") + ":"
        for function in trained.graph.as_graph_def().library.function
    }
    forward = next(
        path
        for path, entry in trained.opmap.entries.items()
        if path in traced and entry.shares[0] == Share("layer", "paired", "forward")
    )
    entry = trained.opmap.find_compiled(f"a_{forward[:-1]}__.7", "")
    assert entry.shares == (Share("layer", "paired", "forward"),)
