"""Jerk of an arm's tip for two smooth joint motions between the same poses.

Both motions start and end at rest. For the polynomial of degree five, often called minimum jerk,
the jerk is not zero at the start and the end. For the polynomial of degree seven, it is zero there.
Run with the name of a picture file to draw the figure.
"""

import sys

import numpy as np
from numpy.polynomial import Polynomial

import chasles

START = np.array([*np.radians([30.0, 60.0, -30.0, 0.0]), 0.097])  # rad, m (Mitra)
END = np.array([*np.radians([-40.0, 30.0, -70.0, 50.0]), 0.130])
SHAPES = {
    "degree 5": Polynomial([0, 0, 0, 10, -15, 6]),
    "degree 7": Polynomial([0, 0, 0, 0, 35, -84, 70, -20]),
}
"""Polynomials that rise from 0 to 1 in unit time."""


def motion(shape: Polynomial, t: np.ndarray, duration: float) -> list[np.ndarray]:
    """Return q, qd, qdd and qddd at times t."""
    way = [shape.deriv(k)(t / duration) / duration**k for k in range(4)]
    return [way[0][:, None] * (END - START) + START, *(w[:, None] * (END - START) for w in way[1:])]


def main(states: int = 1001, duration: float = 1.2, figure: str = "") -> None:
    robot = chasles.robots.microbot()
    t = np.linspace(0.0, duration, states)
    tips = {}
    for name, shape in SHAPES.items():
        tip = tips[name] = robot.frame_motion(*motion(shape, t, duration), frame="P")
        acceleration, jerk = tip[:, 1, 3:], tip[:, 2, 3:]
        summed = np.cumsum((jerk[1:] + jerk[:-1]) / 2.0 * t[1], axis=0)
        assert np.allclose(acceleration[1:] - acceleration[0], summed, atol=1e-3)
        size = np.linalg.norm(tip[:, :, 3:], axis=-1)
        print(
            f"{name}: at most {np.max(size[:, 0]):.2f} m/s, {np.max(size[:, 1]):.1f} m/s2, "
            f"{np.max(size[:, 2]):.0f} m/s3; jerk at the start {size[0, 2]:.0f} m/s3"
        )
    if figure:
        plot(t, tips, figure)


def plot(t: np.ndarray, tips: dict[str, np.ndarray], path: str) -> None:
    """Plot speed, acceleration and jerk of the tip over time."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    picture = Figure(figsize=(9.0, 3.0), layout="constrained")
    FigureCanvasAgg(picture)
    titles = "speed (m/s)", "acceleration (m/s²)", "jerk (m/s³)"
    for k, (axes, title) in enumerate(zip(picture.subplots(1, 3), titles, strict=True)):
        for name, tip in tips.items():
            axes.plot(t, np.linalg.norm(tip[:, k, 3:], axis=-1), label=name)
        axes.set_title(f"tip: {title}", fontsize="medium")
        axes.set_xlabel("time (s)")
        axes.set_ylim(bottom=0.0)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize="small", frameon=False)
    picture.savefig(path, dpi=110)


if __name__ == "__main__":
    main(figure=sys.argv[1] if len(sys.argv) > 1 else "")
