"""What `chasles demo` shows: tables in the terminal, and a plot in a file."""

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from chasles.cli.demo import BATCH, Demo
from chasles.cli.tables import table


def show(demo: Demo, console: Console) -> None:
    """The motion by joint, the checks, and what it cost."""
    robot = demo.robot
    console.print(
        f"[bold]{robot.name}[/] moves {robot.nv} joints from rest to rest in {demo.t[-1]:g} s.\n"
        f"Torques of {len(demo.t)} states by inverse dynamics, in one call:"
    )
    console.print(_motion(demo))
    console.print("The motion must come back from the torques, their work must become energy:")
    console.print(_checks(demo))
    console.print(f"Functions are compiled for this robot; one core, one call or {BATCH} states:")
    console.print(_speeds(demo))


def _motion(demo: Demo) -> Table:
    rows = table(
        ["joint"], ["from °", "to °", "peak °/s", "peak N m", "rms N m", "of torque limit"]
    )
    peak, rms = np.max(np.abs(demo.tau), axis=0), np.sqrt(np.mean(demo.tau**2, axis=0))
    speed = np.degrees(np.max(np.abs(demo.qd), axis=0))
    start, end = np.degrees(demo.q[0]), np.degrees(demo.q[-1])
    for k, name in enumerate(demo.robot.joints):
        share = peak[k] / demo.robot.joint(name).limits.effort
        rows.add_row(
            f"[cyan]{name}[/]",
            f"{start[k]:.0f}",
            f"{end[k]:.0f}",
            f"{speed[k]:.0f}",
            f"{peak[k]:.2f}",
            f"{rms[k]:.2f}",
            f"{share:.0%}",
        )
    return rows


def _checks(demo: Demo) -> Table:
    rows = table(["", "should be zero"], ["largest", "allowed"])
    for check in demo.checks:
        mark = "[green]ok[/]" if check.passed else "[bold red]NO[/]"
        rows.add_row(
            mark, check.what, f"{check.value:.1e} {check.unit}", f"{check.bound:.0e} {check.unit}"
        )
    return rows


def _speeds(demo: Demo) -> Table:
    rows = table(
        ["function"], ["mul, add", "compile ms", "call µs", "ns/state", "million states/s"]
    )
    for speed in demo.speeds:
        rows.add_row(
            f"[cyan]{speed.function}[/]",
            f"{speed.operations}",
            f"{1e3 * speed.compile:.0f}",
            f"{1e6 * speed.call:.1f}",
            f"{1e9 * speed.state:.1f}",
            f"[bold]{1e-6 / speed.state:.0f}[/]",
        )
    return rows


def plot(demo: Demo, path: Path) -> None:
    """Joint angles, torques and energies over time, as a picture file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.3), layout="constrained")
    FigureCanvasAgg(figure)
    angles, torques, energies = figure.subplots(1, 3)
    steps = demo.t[::2]
    for k, name in enumerate(demo.robot.joints):
        angles.plot(demo.t, np.degrees(demo.q[:, k]), f"C{k}", label=name)
        some = slice(None, None, max(1, len(steps) // 12))
        angles.plot(steps[some], np.degrees(demo.recovered[some, k]), f"C{k}o", markersize=3)
        torques.plot(demo.t, demo.tau[:, k], f"C{k}", label=name)
    energies.plot(demo.t, demo.kinetic, label="kinetic")
    energies.plot(demo.t, demo.potential - demo.potential[0], label="potential, gained")
    energies.plot(demo.t, demo.kinetic + demo.potential - demo.potential[0], "k", label="sum")
    some = slice(None, None, max(1, len(steps) // 25))
    energies.plot(steps[some], demo.work[some], "k.", label="work of the torques")
    torques.legend(fontsize="x-small", ncols=2, frameon=False)
    energies.legend(fontsize="x-small", frameon=False)
    titles = (
        (angles, "joint angles (°); dots: integrated"),
        (torques, "torques (N m)"),
        (energies, "energy (J)"),
    )
    for axes, title in titles:
        axes.set_title(title, fontsize="medium")
        axes.set_xlabel("time (s)")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
