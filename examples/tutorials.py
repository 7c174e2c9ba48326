"""Draw the pictures at the top of the tutorials: moving robots as lines between their frames.

Earlier positions are pale, and paths of frames are dotted. With a folder as argument, writes
`top_<tutorial>.png` for each tutorial into it.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

import chasles

DARK, ORANGE = "#1f4e79", "#d95f02"
SIZE = (7.2, 3.0)


def segments(robot: chasles.Robot, q: np.ndarray, tip: str | None) -> list[np.ndarray]:
    """Return lines (2, 3) from each link to its child links, and to the tip."""
    joints = [joint for joint in robot.model.source.joints if joint.parent is not None]
    ends = [(joint.parent, joint.child) for joint in joints]
    if tip is not None:
        ends.append((joints[-1].child, tip))
    names = sorted({name for pair in ends for name in pair})
    at = {name: robot.forward_kinematics(q, frame=name)[:3, 3] for name in names}
    return [np.array([at[first], at[second]]) for first, second in ends]


def postures(
    robot: chasles.Robot,
    path: np.ndarray,
    axes: Any,
    *,
    tip: str | None = None,
    flat: bool = False,
    shown: int = 7,
    shift: Sequence[float] = (0.0, 0.0, 0.0),
) -> None:
    """Draw a robot along a path (n, nq), and the path of its tip."""
    pick = np.linspace(0, len(path) - 1, shown).astype(int)
    columns = [0, 2] if flat else [0, 1, 2]
    for number, k in enumerate(pick):
        strength = 0.12 + 0.88 * ((number + 1) / len(pick)) ** 2
        style = {"color": DARK, "alpha": strength, "lw": 2.0, "solid_capstyle": "round"}
        for line in segments(robot, path[k], tip):
            axes.plot(*(line + shift)[:, columns].T, marker="o", ms=2.5, **style)
    if tip is not None:
        way = robot.forward_kinematics(path, frame=tip)[:, :3, 3] + shift
        axes.plot(*way[:, columns].T, ":", color=ORANGE, lw=1.4)


def arm(axes: Any) -> None:
    robot = chasles.robots.puma560()
    q = np.array([0.0, 0.8, -2.4, 0.0, 0.9, 0.0])
    goal = robot.forward_kinematics(q, frame="tool")[:3, 3] + [0.0, 0.4, 0.0]
    move = chasles.trajectory.line(robot, "tool", goal, start=q, duration=2.0)
    postures(robot, move(np.linspace(0.0, 2.0, 41))[0], axes, tip="tool")


def reach(axes: Any) -> None:
    robot = chasles.robots.puma560()
    start, end = np.array([[0.0, 0.8, -2.4, 0.0, 0.9, 0.0], [1.2, 0.4, -0.9, 0.6, 0.4, 0.0]])
    move = chasles.trajectory.minimum_jerk(start, end, duration=1.0, robot=robot)
    postures(robot, move(np.linspace(0.0, 1.0, 41))[0], axes, tip="tool", shown=9)


def quadruped(axes: Any) -> None:
    robot = chasles.robots.quadruped()
    q = robot.state({"floating_base": [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.4]})
    q[7:] = np.tile([0.0, 0.8, -1.6], 4)
    qd = np.zeros(robot.nv)
    qd[3:6] = [2.0, 0.0, 3.0]
    flight = robot.simulate(q, qd, duration=0.5, dt=2e-3)
    postures(robot, flight.q, axes, tip="front_left_foot", shown=4)


def closed_loop(axes: Any) -> None:
    robot = chasles.robots.four_bar(1.0, 0.5, 0.9, 0.8)
    crank = np.linspace(0.0, 2.0 * np.pi, 61)[:, None]
    guess, path = robot.assemble([0.0]), []
    for angle in crank:
        guess = robot.assemble(angle, guess=guess)
        path.append(guess)
    ends = (("crank", 0.5), ("coupler", 0.9), ("rocker", 0.8))
    for number, q in enumerate(path[::8]):
        poses = {name: robot.forward_kinematics(q, frame=name) for name, _ in ends}
        bars = [np.array([poses[n][:3, 3], (poses[n] @ [x, 0.0, 0.0, 1.0])[:3]]) for n, x in ends]
        for bar in bars:
            axes.plot(*bar[:, :2].T, "o-", color=DARK, ms=3, alpha=0.12 + 0.11 * number, lw=2.0)
    middle = robot.forward_kinematics(np.array(path), frame="coupler") @ [0.45, 0.3, 0.0, 1.0]
    axes.plot(*middle[:, :2].T, ":", color=ORANGE, lw=1.6)


def batch(axes: Any) -> None:
    robot = chasles.robots.puma560()
    q = robot.random(np.random.default_rng(0), 4000)
    points = robot.forward_kinematics(q, frame="tool")[:, :3, 3]
    axes.plot(*points.T, ".", color=DARK, ms=1.0, alpha=0.35)


def c_export(axes: Any) -> None:
    robot, q = chasles.robots.planar(2), np.array([0.3, -0.8])
    postures(robot, q[None], axes, tip="tip", flat=True, shown=1)
    for joint, tau in zip(("link1", "link2"), robot.gravity_forces(q), strict=True):
        x, _, z = robot.forward_kinematics(q, frame=joint)[:3, 3]
        axes.annotate(f"{tau:.2f} N m", (x, z), (x + 0.05, z + 0.12), color=ORANGE)


def simulation(axes: Any) -> None:
    robot = chasles.robots.planar(2)
    run = robot.simulate([0.0, 0.5], [0.0, 0.0], duration=1.5, dt=1e-3)
    postures(robot, run.q, axes, tip="tip", flat=True, shown=12)


def gradients(axes: Any) -> None:
    def push(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        return 2.0 * np.tanh(50.0 * qd)  # N m, along the motion

    robot = chasles.robots.planar(1)
    run = chasles.simulate(robot, [-np.pi / 2], [0.1], duration=10.0, dt=5e-3, tau=push)
    up = int(np.argmax(np.abs(run.q[:, 0] + np.pi / 2) > np.pi))
    postures(robot, run.q[: up + 1], axes, tip="tip", flat=True, shown=20)


PICTURES: Mapping[str, tuple[Callable[[Any], None], bool]] = {
    "arm": (arm, False),
    "reach": (reach, False),
    "quadruped": (quadruped, False),
    "closed-loop": (closed_loop, True),
    "batch": (batch, False),
    "c-export": (c_export, True),
    "simulation": (simulation, True),
    "gradients": (gradients, True),
}
"""Drawing function for each tutorial, and True if its picture is planar."""


def main(pictures: Mapping[str, str | IO[bytes]] | None = None) -> None:
    import matplotlib.pyplot as plt

    for name, file in (pictures or {}).items():
        draw, flat = PICTURES[name]
        figure = plt.figure(figsize=SIZE)
        place = (0.02, 0.02, 0.96, 0.96) if flat else (-0.2, -0.3, 1.4, 1.6)
        axes = figure.add_axes(place, projection=None if flat else "3d")
        draw(axes)
        axes.set_aspect("equal")
        if not flat:
            spans = [np.ptp(getattr(axes, f"get_{axis}lim")()) for axis in "xyz"]
            axes.set_box_aspect(spans)
        axes.margins(0.08)
        axes.set_axis_off()
        figure.savefig(file, dpi=110)
        plt.close(figure)
        print(f"drawn: {name}")


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    main({name: str(folder / f"top_{name}.png") for name in PICTURES})
