"""The study of layers: seed 001, figure by figure."""

from timesink.studies.figures.layer_cases import CASES, PROFILED, case_of
from timesink.studies.figures.layers import layers
from timesink.studies.figures.profiling import profiling
from timesink.studies.figures.seed_figure import SeedFigure, file_name
from timesink.studies.measured import Done, Measured
from timesink.studies.study import Study


def figures(measured: Measured) -> list[SeedFigure]:
    """Make all of them, in the seed's order; settings that it did not have come behind."""
    made: list[SeedFigure] = []
    profiled = measured.of("profiling").done
    networks = dict.fromkeys([*PROFILED, *(_network(each) for each in profiled)])
    made += [
        profiling(network, [each for each in profiled if _network(each) == network])
        for network in networks
    ]
    runs: dict[tuple[str, int], list[Done]] = {key: [] for key in CASES}
    for each in measured.of("layers").done:
        key = (_network(each), each.planned.experiment.training.batch_size)
        runs.setdefault(key, []).append(each)
    for (network, batch_size), alike in runs.items():
        case = CASES.get((network, batch_size)) or case_of(network, batch_size)
        made += layers(f"{file_name(network)}-{batch_size}", case, alike)
    return made


def _network(done: Done) -> str:
    return done.planned.experiment.training.network


LAYERS = Study("layers", "001", "What each layer takes, and what seeing it costs", figures)
