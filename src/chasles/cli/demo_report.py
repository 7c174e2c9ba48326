"""What `chasles demo` shows: tables in the terminal, and a plot in a file."""

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from chasles.cli.demo import BATCH, Demo
from chasles.cli.output import write_picture
from chasles.cli.tables import table
from chasles.plots import motions
from chasles.plots.paper import finish, legend, sheet


def data(demo: Demo) -> dict[str, Any]:
    """What `show` shows, for programs: rad, rad/s, N m; seconds to compile, of a call, a state."""
    return {
        "robot": demo.robot.name,
        "duration": demo.t[-1],
        "joints": [
            {
                "name": name,
                "from": demo.q[0, k],
                "to": demo.q[-1, k],
                "peak_speed": np.max(np.abs(demo.qd[:, k])),
                "peak_torque": np.max(np.abs(demo.tau[:, k])),
                "rms_torque": np.sqrt(np.mean(demo.tau[:, k] ** 2)),
            }
            for k, name in enumerate(demo.robot.joints)
        ],
        "checks": [vars(check) | {"passed": check.passed} for check in demo.checks],
        "speeds": [vars(speed) for speed in demo.speeds],
    }


def show(demo: Demo, output: Path, console: Console) -> None:
    """The motion by joint, the checks, and what it cost; output: where the plot is."""
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
    console.print(f"Plot saved to {output}", markup=False, soft_wrap=True)


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
            f"{1e6 * speed.call:.2f}",
            f"{1e9 * speed.state:.1f}",
            f"[bold]{1e-6 / speed.state:.0f}[/]",
        )
    return rows


def plot(demo: Demo, path: Path) -> None:
    """Joint angles, torques and energies over time, as a picture file."""
    figure, (angles, torques, energies) = sheet(3)
    steps = demo.t[::2]
    some = slice(None, None, max(1, len(steps) // 12))
    for k in range(demo.robot.nv):
        angles.plot(demo.t, np.degrees(demo.q[:, k]), f"C{k}")
        angles.plot(steps[some], np.degrees(demo.recovered[some, k]), f"C{k}o", markersize=3)
    finish(angles, "joint angles (°); dots: integrated", "time (s)")
    motions.forces(demo.robot, demo.tau, demo.t, torques)
    motions.energies(demo.kinetic, demo.potential, demo.t, energies)
    some = slice(None, None, max(1, len(steps) // 25))
    energies.plot(steps[some], demo.work[some], "k.", label="work of the torques")
    legend(energies)
    write_picture(figure, path)
