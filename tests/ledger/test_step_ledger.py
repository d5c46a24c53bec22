"""The step's ledger: every instant charged once, to the strongest evidence there is."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ledger.timeline import Timeline, account, books, charged, layer, of_layer
from timesink.ledger.opmap import LAYER, Entry, OpMap, Share
from timesink.traces.events import Kind, Member, Name

CONV, DENSE = "net/conv/Conv2D", "net/dense/MatMul"
OPMAP = OpMap(
    {
        CONV: layer("conv", "forward"),
        DENSE: layer("dense", "forward"),
        f"gradient_tape/{DENSE}": layer("dense", "backward"),
        "replica_1/net/conv/Conv2D": layer("conv", "forward", device="CPU:1"),
        "all/CollectiveReduceV2": Entry((Share("collective"),)),
        "Identity": Entry((Share("runtime"),)),
    }
)


@pytest.fixture
def line() -> Timeline:
    """One step, from 0 to 1000."""
    return Timeline().step(1, 0, 1000)


def test_a_blocked_iterator_is_charged_to_input_wait(line):
    line.add(Kind.INPUT, "next", 0, 300).call("train", 300, 1000).op(CONV, 300, 1000)
    assert charged(line.events(), OPMAP) == {
        account("input_wait"): 300,
        of_layer("conv", "forward"): 700,
    }


def test_waiting_for_input_while_ops_run_costs_nothing(line):
    other = line.thread()
    line.add(Kind.INPUT, "next", 0, 1000).op(CONV, 0, 900, on=other)
    assert charged(line.events(), OPMAP) == {
        of_layer("conv", "forward"): 900,
        account("input_wait"): 100,
    }


def test_garbage_collection_is_python_with_its_generation(line):
    line.call("train", 0, 1000).add(Kind.SPAN, "gc generation 2", 100, 250)
    assert charged(line.events(), OPMAP) == {
        account("python", "garbage collection (generation 2)"): 150,
        account("runtime"): 850,
    }


def test_a_callback_is_python_and_a_sample_in_it_gives_the_line(line):
    line.call("train", 0, 400)
    line.add(Kind.SPAN, "callback Saver.on_batch_end", 500, 800)
    line.add(Kind.SAMPLE, "saver.py:12 save", 600, 600)
    assert charged(line.events(), OPMAP) == {
        account("runtime"): 400,
        account("python", "callback Saver.on_batch_end, saver.py:12 save"): 300,
        account("python"): 300,
    }


def test_a_callback_without_a_sample_is_named_all_the_same(line):
    line.call("train", 0, 400).add(Kind.SPAN, "callback Saver.on_batch_end", 500, 800)
    assert charged(line.events(), OPMAP) == {
        account("runtime"): 400,
        account("python", "callback Saver.on_batch_end"): 300,
        account("python"): 300,
    }


def test_two_samples_divide_a_stretch_halfway(line):
    line.call("train", 0, 200)
    line.add(Kind.SAMPLE, "a.py:1 f", 300, 300).add(Kind.SAMPLE, "b.py:2 g", 500, 500)
    found = charged(line.events(), OPMAP)
    assert found[account("python", "a.py:1 f")] == 200
    assert found[account("python", "b.py:2 g")] == 600


def test_a_retrace_is_python_and_says_of_what(line):
    line.call("train_step", 0, 1000, retraced=True).op(CONV, 600, 1000)
    assert charged(line.events(), OPMAP) == {
        account("python", "tracing train_step"): 600,
        of_layer("conv", "forward"): 400,
    }


def test_a_host_that_is_blocked_is_idle(line):
    line.add(Kind.BLOCKED, "WaitForDevice", 100, 1000)
    assert charged(line.events(), OPMAP) == {account("idle"): 900, account("python"): 100}


def test_an_eager_op_between_calls_is_python_and_says_which(line):
    line.call("train", 0, 400).op("Cast", 500, 600, type="Cast")
    assert charged(line.events(), OPMAP) == {
        account("runtime"): 400,
        account("python", "eager Cast"): 100,
        account("python"): 500,
    }


def test_a_known_op_that_runs_eagerly_stays_with_its_layer(line):
    line.call("warm_up", 900, 1000).op(CONV, 0, 500)
    assert charged(line.events(), OPMAP)[of_layer("conv", "forward")] == 500


def test_a_fused_op_is_split_to_the_nanosecond_and_marked(line):
    shares = (Share(LAYER, "a", "forward", 1 / 3), Share(LAYER, "b", "forward", 2 / 3))
    line.op("fused", 0, 1000)
    rows = books(line.events(), OpMap({"fused": Entry(shares)})).filter(account=LAYER)
    assert dict(rows.select("layer", "charged_ns").iter_rows()) == {"a": 333, "b": 667}
    assert dict(rows.select("layer", "op_ns").iter_rows()) == {"a": 333, "b": 667}
    assert rows["estimated"].all()


def test_a_compiled_instruction_is_split_among_the_ops_it_was_made_of(line):
    name = Name("fusion.1", "module")
    line.hlo[name] = (Member(CONV, 0.25), Member(f"gradient_tape/{DENSE}", 0.75))
    line.add(Kind.HLO, "fusion.1", 0, 400, type="module")
    found = charged(line.events(), OPMAP)
    assert found[of_layer("conv", "forward")] == 100
    assert found[of_layer("dense", "backward")] == 300


def test_ops_that_run_at_once_share_the_time_and_keep_their_own(line):
    first, second = line.thread(), line.thread()
    line.op(CONV, 0, 600, on=first).op(DENSE, 200, 1000, on=second)
    rows = books(line.events(), OPMAP).filter(account=LAYER)
    assert dict(rows.select("layer", "charged_ns").iter_rows()) == {"conv": 400, "dense": 600}
    assert dict(rows.select("layer", "op_ns").iter_rows()) == {"conv": 600, "dense": 800}


def test_an_op_inside_another_of_its_thread_is_not_counted_twice(line):
    line.op(CONV, 0, 1000).op(DENSE, 200, 400)
    rows = books(line.events(), OPMAP).filter(account=LAYER)
    assert rows.select("layer", "op_ns", "charged_ns").rows() == [("conv", 1000, 1000)]


def test_an_op_that_only_runs_others_takes_nothing_from_them(line):
    other = line.thread()
    opmap = OpMap({**OPMAP.entries, "call": layer("wrong", "forward")})
    line.op("call", 0, 1000, type="PartitionedCall").op(CONV, 100, 300, on=other)
    assert of_layer("wrong", "forward") not in charged(line.events(), opmap)


def test_ops_of_the_input_pipeline_are_not_the_steps(line):
    loader = line.thread("tf_data_map", input=True)
    line.op(CONV, 0, 1000, on=loader)
    assert charged(line.events(), OPMAP) == {account("python"): 1000}


def test_each_device_has_closed_books_of_its_own(line):
    first, second = line.thread(), line.thread()
    line.op(CONV, 0, 600, on=first).op("replica_1/net/conv/Conv2D", 0, 900, on=second)
    line.call("train", 0, 1000)
    events = line.events()
    assert charged(events, OPMAP) == {of_layer("conv", "forward"): 600, account("runtime"): 400}
    assert charged(events, OPMAP, "CPU:1") == {
        of_layer("conv", "forward"): 900,
        account("runtime"): 100,
    }


def test_on_a_gpu_streams_count_and_the_hosts_ops_do_not(line):
    compute = line.thread("Stream #1(Compute)", device="GPU:0")
    copies = line.thread("Stream #2(MemcpyH2D)", device="GPU:0")
    line.call("train", 0, 1000).op(DENSE, 0, 1000)
    line.add(Kind.COPY_IN, "MemcpyH2D", 0, 200, on=copies).op(CONV, 150, 700, on=compute)
    line.add(Kind.COPY_OUT, "MemcpyD2H", 650, 800, on=copies)
    assert set(books(line.events(), OPMAP)["device"]) == {"GPU:0"}
    assert charged(line.events(), OPMAP, "GPU:0") == {
        account("host_to_device"): 150,
        of_layer("conv", "forward"): 550,
        account("device_to_host"): 100,
        account("runtime"): 200,
    }


def test_a_copy_of_one_gpu_is_not_charged_to_another(line):
    for number in (0, 1):
        line.op(CONV, 0, 500, on=line.thread("compute", device=f"GPU:{number}"))
    line.add(Kind.COPY_IN, "MemcpyH2D", 500, 800, on=line.thread("copy", device="GPU:1"))
    assert account("host_to_device") not in charged(line.events(), OPMAP, "GPU:0")
    assert charged(line.events(), OPMAP, "GPU:1")[account("host_to_device")] == 300


def test_a_collective_gives_way_to_ops(line):
    other = line.thread()
    line.op("all/CollectiveReduceV2", 0, 1000).op(CONV, 0, 300, on=other)
    assert charged(line.events(), OPMAP) == {
        of_layer("conv", "forward"): 300,
        account("collective"): 700,
    }


def test_an_op_of_the_runtime_and_an_unknown_one_are_the_functions_time(line):
    line.call("train", 0, 1000).op("Identity", 0, 400).op("never/heard/Of", 400, 700)
    assert charged(line.events(), OPMAP) == {account("runtime"): 1000}


def test_in_a_step_without_a_call_gaps_are_python_without_a_place(line):
    line.op(CONV, 100, 300)
    assert charged(line.events(), OPMAP) == {
        of_layer("conv", "forward"): 200,
        account("python"): 800,
    }


def test_without_any_evidence_gaps_are_unattributed():
    line = Timeline().op(CONV, 0, 300).op(CONV, 500, 1000)
    assert charged(line.events(), OPMAP) == {
        of_layer("conv", "forward"): 800,
        account("unattributed"): 200,
    }


def test_an_event_across_two_steps_is_charged_to_each_for_its_part(line):
    line.step(2, 1000, 1500).op(CONV, 800, 1200)
    rows = books(line.events(), OPMAP).filter(account=LAYER).sort("iteration")
    assert rows["charged_ns"].to_list() == [200, 200]


def test_inferred_time_has_no_op_time(line):
    line.call("train", 0, 1000).add(Kind.INPUT, "next", 0, 100)
    rows = books(line.events(), OPMAP)
    assert rows.filter(account="input_wait")["op_ns"].to_list() == [100]
    assert rows.filter(account="runtime")["op_ns"].to_list() == [None]


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        (Kind.OP, CONV, DENSE),
        (Kind.SPAN, "callback X.f", "callback Y.g"),
        (Kind.SPAN, "gc generation 0", "gc generation 1"),
    ],
)
def test_of_two_that_begin_and_end_together_the_same_is_charged_in_either_order(
    line, kind, first, second
):
    line.add(kind, first, 100, 300).add(kind, second, 100, 300)
    assert charged(line.events([0, 1, 2]), OPMAP) == charged(line.events([0, 2, 1]), OPMAP)


THINGS = st.sampled_from(
    [
        (Kind.OP, CONV, "Conv2D"),
        (Kind.OP, DENSE, "MatMul"),
        (Kind.OP, "fused", "Fused"),
        (Kind.OP, "replica_1/net/conv/Conv2D", "Conv2D"),
        (Kind.OP, "unknown", "Cast"),
        (Kind.OP, "all/CollectiveReduceV2", "CollectiveReduceV2"),
        (Kind.FUNCTION, "train", ""),
        (Kind.INPUT, "next", ""),
        (Kind.COPY_IN, "in", ""),
        (Kind.SPAN, "gc generation 0", ""),
        (Kind.SPAN, "callback X.f", ""),
        (Kind.SPAN, "callback Y.g", ""),
        (Kind.SAMPLE, "a.py:1 f", ""),
        (Kind.SAMPLE, "b.py:2 g", ""),
        (Kind.BLOCKED, "wait", ""),
    ]
)
FUSED = Entry(tuple(Share(LAYER, name, "forward", 1 / 3) for name in "abc"))


@st.composite
def timelines(draw):
    line = Timeline()
    for _ in range(2):
        line.thread()
    line.step(1, 0, 100).step(2, 100, 257)
    # Few different times, so that many events begin or end together.
    times = st.integers(-2, 18).map(lambda number: 16 * number)
    found = st.tuples(THINGS, times, times, st.integers(0, 2))
    for (kind, name, op_type), one_ns, other_ns, on in draw(st.lists(found, max_size=12)):
        begin_ns = min(one_ns, other_ns)
        end_ns = begin_ns if kind == Kind.SAMPLE else max(one_ns, other_ns)
        line.add(kind, name, begin_ns, end_ns, on=on if kind == Kind.OP else 0, type=op_type)
    order = draw(st.permutations(range(len(line.rows))))
    return line, order


@given(timelines())
def test_books_are_closed_and_alike_whatever_the_order_of_events(made):
    line, order = made
    opmap = OpMap({**OPMAP.entries, "fused": FUSED})
    first, second = books(line.events(), opmap), books(line.events(order), opmap)
    assert first.sort(first.columns).equals(second.sort(second.columns))
    sums = first.group_by("iteration", "device").agg(pl.sum("charged_ns"))
    for iteration, _, charged_ns in sums.iter_rows():
        assert charged_ns == {1: 100, 2: 157}[iteration]
    assert sums.height == 2 * first["device"].n_unique()
