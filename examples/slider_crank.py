"""Position, velocity and acceleration of a slider crank over one turn at constant crank speed.

One call solves the loop equations for all crank angles. Velocities and accelerations follow from
linear equations. With a file name as argument, draws the figure.
"""

import sys
from typing import IO, Any

import numpy as np

import chasles

SPEED = 2.0  # crank speed, rad/s


def draw(angle: np.ndarray, curves: dict[str, np.ndarray], picture: str | IO[bytes]) -> None:
    import matplotlib.pyplot as plt

    figure, rows = plt.subplots(3, 1, sharex=True, figsize=(6.4, 5.6), layout="constrained")
    for row, (name, values) in zip(rows, curves.items(), strict=True):
        row.plot(np.degrees(angle), values, color="tab:blue")
        row.set_ylabel(name)
        row.grid(alpha=0.3)
    rows[0].set_title("slider crank, l1 = 1 m, l2 = 3 m, crank at 2 rad/s")
    rows[-1].set_xlabel("crank angle, degrees")
    rows[-1].set_xticks(range(0, 361, 60))
    figure.savefig(picture, dpi=100)
    plt.close(figure)


def main(steps: int = 1000, picture: Any = None) -> None:
    robot = chasles.robots.slider_crank(l1=1.0, l2=3.0)
    angle = np.linspace(0.0, 2.0 * np.pi, steps)
    q = robot.assemble(angle[:, None])
    qd, qdd = robot.complete(q, [SPEED], [0.0])
    slider = robot.velocity_slice("a").start
    residual = np.max(np.abs(robot.loop_residual(q)))
    print(robot.mobility())
    print(f"{steps} positions, loop residual {residual:.0e}")
    curves = {
        "a, m": q[:, slider],
        "velocity, m/s": qd[:, slider],
        "acceleration, m/s²": qdd[:, slider],
    }
    for name, values in curves.items():
        print(f"{name}: {values.min():.4f} to {values.max():.4f}")
    if picture is not None:
        draw(angle, curves, picture)


if __name__ == "__main__":
    main(picture=sys.argv[1] if len(sys.argv) > 1 else None)
