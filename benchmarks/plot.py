"""Plot the speed relative to Pinocchio, for single calls and for batches."""

from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks.compare import Comparison
from benchmarks.robots import CASES


def plot(comparison: Comparison, path: Path) -> None:
    """Save a plot with one panel for single calls and one for batches, with bars per function."""
    robots = list(dict.fromkeys(row.robot for row in comparison.rows))
    functions = list(dict.fromkeys(row.function for row in comparison.rows))
    figure = Figure(figsize=(9.0, 1.2 + 0.7 * len(functions)), layout="constrained")
    FigureCanvasAgg(figure)
    single, batch = figure.subplots(1, 2, sharey=True)
    width = 0.8 / len(robots)
    for row in comparison.rows:
        k = robots.index(row.robot)
        place = functions.index(row.function) + (k + 0.5) * width - 0.4
        ratios = ((single, row.speedup.single_call), (batch, row.speedup.pinocchio))
        for axes, ratio in ratios:
            axes.barh(place, ratio, width, color=f"C{k}")
            axes.text(ratio, place, f" {ratio:.1f}", va="center", fontsize="x-small")
    titles = (
        (single, "single calls from Python"),
        (batch, f"batches of {comparison.effort.batch}, one core"),
    )
    for axes, title in titles:
        axes.set_title(title, fontsize="medium")
        axes.set_xlabel("speed relative to Pinocchio")
        axes.axvline(1.0, color="k", linewidth=0.8)
        axes.margins(x=0.12)
        axes.spines[["top", "right"]].set_visible(False)
    single.set_yticks(
        range(len(functions)),
        [name.replace("_derivatives", ",\nderivatives") for name in functions],
    )
    single.invert_yaxis()
    handles = [single.barh(0.0, 0.0, color=f"C{k}") for k in range(len(robots))]
    titles_of_robots = [CASES[name].title for name in robots]
    batch.legend(handles, titles_of_robots, fontsize="x-small", frameon=False)
    figure.savefig(path, dpi=110)
