"""Energy of mechanisms with closed loops over ten seconds, which changes by less than 1e-8.

Each mechanism is simulated from a given state with steps of 1 ms, in independent coordinates that
are replaced by others during the motion if necessary. A missing force or a drift of the loops would
change the energy. The change is relative to the largest kinetic energy. With a file name as
argument, draws the figure.
"""

import sys
from collections.abc import Callable
from typing import IO, Any, NamedTuple

import numpy as np

import chasles

MILLISECOND = 1e-3
STIFFNESS = 60.0  # stiffness of the springs, N m/rad


class Start(NamedTuple):
    """A robot, its initial state, and joints with springs, which are relaxed in this state."""

    robot: chasles.Robot
    q: np.ndarray
    qd: np.ndarray
    springs: tuple[str, ...] = ()

    def tau(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        forces = np.zeros_like(qd)
        for joint in self.springs:
            place, freedom = self.robot.position_slice(joint), self.robot.velocity_slice(joint)
            forces[..., freedom] = STIFFNESS * (self.q[place] - q[..., place])
        return forces

    def energy(self, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the total energy and the kinetic energy."""
        places = [self.robot.position_slice(joint).start for joint in self.springs]
        stored = 0.5 * STIFFNESS * np.sum((q[..., places] - self.q[places]) ** 2, axis=-1)
        kinetic = self.robot.kinetic_energy(q, qd)
        return kinetic + self.robot.potential_energy(q) + stored, kinetic


def start(robot: chasles.Robot, y: Any, yd: Any, *springs: str, gravity: bool = True) -> Start:
    robot = robot if gravity else robot.with_gravity([0.0, 0.0, 0.0])
    q = robot.assemble(y)
    return Start(robot, q, robot.complete(q, yd), springs)


R = chasles.robots
MECHANISMS: dict[str, Callable[[], Start]] = {
    "four-bar": lambda: start(R.four_bar(1.0, 0.5, 0.9, 0.8), [0.5], [2.0]),
    "four-bar, turning": lambda: start(R.four_bar(1.0, 0.5, 0.9, 0.8), [0.5], [2.0], gravity=False),
    "double rocker": lambda: start(R.four_bar(1.0, 0.9, 0.5, 0.7), [1.0], [1.0], gravity=False),
    "slider crank": lambda: start(R.slider_crank(0.5, 1.0), [0.7], [2.0]),
    "slider crank, turning": lambda: start(R.slider_crank(0.5, 1.0), [0.7], [2.0], gravity=False),
    "slider rocker": lambda: start(R.slider_crank(1.0, 0.6), [0.3], [1.0], gravity=False),
    "triangle": lambda: start(R.triangle(0.5, 0.7), [1.0, 0.3], [0.5, 0.5]),
    "five-bar, springs": lambda: start(R.five_bar(), [2.2, 0.9], [1.0, -1.0], "left", "right"),
    "six-bar": lambda: start(R.six_bar(), [0.5], [2.0]),
    "Stewart platform": lambda: start(
        R.stewart(), [0.0] * 6, [0.6, -0.6, 0.3, 0.18, -0.42, 0.12], gravity=False
    ),
    "delta, springs": lambda: start(R.delta(), [0.0] * 3, [2.0, -1.0, 0.5], "arm1", "arm2", "arm3"),
}


def draw(curves: dict[str, tuple[np.ndarray, np.ndarray]], picture: str | IO[bytes]) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.6, 4.4), layout="constrained")
    colors = plt.get_cmap("tab20").colors  # type: ignore[attr-defined]
    for color, (name, (t, change)) in zip(colors, curves.items(), strict=False):
        most = np.maximum(np.maximum.accumulate(change), 1e-17)
        axes.semilogy(t[1:], most[1:], color=color, label=name)
    axes.axhline(1e-8, color="black", linestyle=":", linewidth=1.0)
    axes.set_xlabel("time, s")
    axes.set_ylabel("largest change of energy so far /\nlargest kinetic energy")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(picture, dpi=100)
    plt.close(figure)


def main(duration: float = 10.0, names: Any = tuple(MECHANISMS), picture: Any = None) -> None:
    curves = {}
    for name in names:
        first = MECHANISMS[name]()
        motion = chasles.simulate(
            first.robot, first.q, first.qd, duration=duration, dt=MILLISECOND, tau=first.tau
        )
        energy, kinetic = first.energy(motion.q, motion.qd)
        change = np.abs(energy - energy[0]) / np.max(kinetic)
        curves[name] = motion.t, change
        rate, chosen = np.max(np.abs(motion.qd)), len(motion.rechosen)
        print(f"{name}: {np.max(change):.1e}, rates up to {rate:.1f}, {chosen} coordinate changes")
        assert np.max(change) < 1e-8
    if picture is not None:
        draw(curves, picture)


if __name__ == "__main__":
    main(picture=sys.argv[1] if len(sys.argv) > 1 else None)
