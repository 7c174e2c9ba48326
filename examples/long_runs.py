"""Energy error over a minute: adaptive steps to 1e-9, variational integrator without visible drift.

The robots are a Panda (from the package example-robot-data) and a PUMA 560 without motor torques,
and a quadruped that floats without gravity, with joint velocities up to 2 rad/s. With a file name
as argument, draws the energy error of the variational integrator.
"""

import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, files
from typing import IO, Any

import numpy as np

import chasles

DURATION = 60.0
MEAN = 10.0  # averaging period, s


def panda() -> chasles.Robot | None:
    """Return a Panda with locked fingers, or None if example-robot-data is not installed."""
    try:
        found = [file for file in files("example-robot-data") or () if file.name == "panda.urdf"]
    except PackageNotFoundError:
        return None
    if not found:
        return None
    robot = chasles.load(str(found[0].locate()))
    return robot.lock({name: 0.0 for name in robot.joints if "finger" in name})


def robots() -> Iterator[chasles.Robot]:
    """Yield the arms with gravity and the quadruped without gravity."""
    arm = panda()
    if arm is None:
        print("panda: skipped; to include it, run pip install example-robot-data")
    else:
        yield arm
    yield chasles.robots.puma560()
    yield chasles.robots.quadruped().with_gravity([0.0, 0.0, 0.0])


def start(robot: chasles.Robot) -> tuple[np.ndarray, np.ndarray]:
    """Return a random state: at rest with gravity, moving at up to 2 rad/s without gravity."""
    rng = np.random.default_rng(1)
    q = robot.random(rng)
    qd = rng.uniform(-2.0, 2.0, size=robot.nv)
    return q, (0.0 * qd if robot.gravity.any() else qd)


def energies(
    robot: chasles.Robot, duration: float, integrator: str, **options: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return times, and the change of energy relative to the largest kinetic energy."""
    q, qd = start(robot)
    motion = chasles.simulate(
        robot,
        q,
        qd,
        duration=duration,
        integrator=integrator,
        progress=sys.stdout.isatty(),
        **options,
    )
    kinetic = robot.kinetic_energy(motion.q, motion.qd)
    energy = kinetic + robot.potential_energy(motion.q)
    return motion.t, (energy - energy[0]) / np.max(kinetic)


def means(t: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Return the mean of each period of ten seconds."""
    return np.array(
        [np.mean(change[(t >= k) & (t < k + MEAN)]) for k in np.arange(0.0, t[-1], MEAN)]
    )


def slope(values: np.ndarray) -> tuple[float, float]:
    """Return the slope of a line fitted to values at 0, 1, 2, ..., and its standard error."""
    k = np.arange(len(values)) - 0.5 * (len(values) - 1)
    a = float(k @ values / (k @ k))
    left = values - np.mean(values) - a * k
    return a, float(np.sqrt(left @ left / (len(values) - 2) / (k @ k)))


def draw(curves: dict[str, tuple[np.ndarray, np.ndarray]], picture: str | IO[bytes]) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        len(curves), 1, figsize=(7.6, 4.4), sharex=True, layout="constrained"
    )
    for axis, (name, (t, change)) in zip(axes, curves.items(), strict=True):
        axis.plot(t, change, linewidth=0.4)
        axis.plot(np.arange(len(means(t, change))) * MEAN + MEAN / 2.0, means(t, change), "k.")
        axis.set_title(name, fontsize="medium")
        axis.grid(alpha=0.3)
    axes[-1].set_xlabel("time, s (dots: means of 10 s)")
    figure.supylabel("change of energy /\nlargest kinetic energy", fontsize="medium")
    figure.savefig(picture, dpi=100)
    plt.close(figure)


def main(duration: float = DURATION, picture: str | IO[bytes] | None = None) -> None:
    curves = {}
    for robot in robots():
        name = f"{robot.name}, {len(robot.joints)} joints"
        t, change = energies(robot, duration, "dopri5", rtol=1e-11, atol=1e-11)
        print(f"{name}, dopri5, rtol 1e-11: {np.max(np.abs(change)):.1e}, {len(t) - 1} steps")
        assert np.max(np.abs(change)) < 1e-9
        t, change = energies(robot, duration, "variational", dt=1e-3)
        print(f"{name}, variational, dt 1 ms: {np.max(np.abs(change)):.1e}, means of 10 s:", end="")
        print(" ", *(f"{mean:.1e}" for mean in means(t, change)))
        assert np.max(np.abs(change)) < 1e-3
        if len(means(t, change)) > 2:
            print(
                "  slope of the means per 10 s: {:.1e}, standard error {:.1e}".format(
                    *slope(means(t, change))
                )
            )
            assert np.ptp(means(t, change)) < 0.5 * np.max(np.abs(change))
        curves[name] = t, change
    if picture is not None:
        draw(curves, picture)


if __name__ == "__main__":
    main(picture=sys.argv[1] if len(sys.argv) > 1 else None)
