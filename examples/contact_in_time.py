"""Rigid contact in motion: a box rocks to rest, and a ball bounces, slides and rolls.

Left: the tilt of a tall box that is released on one edge, and the normal forces at its two edges.
Each impact multiplies its angular velocity by 1 - 3/2 sin^2 a, where a is the angle between the
diagonal and the tall side (Housner 1963). Right: the height of a ball thrown with backspin, and the
velocity of its lowest point, which is zero when the ball rolls. Run with the name of a picture file
to draw the figure.
"""

import math
import sys

import numpy as np

import chasles
from chasles.contact import Box, Pair, Plane, Rigid, Sphere
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia
from chasles.model import Description, JointData, LinkData

SIZE, RADIUS = (0.2, 0.3, 0.6), 0.3


def free(mass: float, moments: tuple[float, float, float]) -> chasles.Robot:
    """Return a robot with one body that moves freely."""
    inertia = RigidInertia.from_center(mass, Vector.zero(), Symmetric(*moments, 0.0, 0.0, 0.0))
    link, joint = LinkData("body", inertia), JointData("free", "free", None, "body")
    return chasles.Robot(Description("body", (link,), (joint,)))


def rocking(angle: float, duration: float) -> chasles.Trajectory:
    """Return the motion of a box that is released on one edge, at the given tilt."""
    x, y, z = (3.0 * s * s / 12.0 for s in SIZE)
    c, s = math.cos(angle), math.sin(angle)
    q = [math.cos(angle / 2), 0, math.sin(angle / 2), 0, 0.3 * s - 0.1 * c, 0, 0.1 * s + 0.3 * c]
    return chasles.simulate(
        free(3.0, (y + z, x + z, x + y)),
        q,
        np.zeros(6),
        duration=duration,
        dt=0.01,
        contacts=[Pair(Box("body", SIZE), Plane(), Rigid(0.6))],
    )


def thrown(duration: float) -> chasles.Trajectory:
    """Return the motion of a ball that is thrown with backspin."""
    moment = 0.4 * 2.0 * RADIUS**2
    return chasles.simulate(
        free(2.0, (moment, moment, moment)),
        [1.0, 0, 0, 0, 0, 0, RADIUS + 0.5],
        [0.0, -8.0, 0.0, 2.0, 0.0, 0.0],
        duration=duration,
        dt=0.01,
        contacts=[Pair(Sphere("body", RADIUS), Plane(), Rigid(0.2, 0.6))],
    )


def main(duration: float = 1.5, picture: str = "") -> None:
    box, ball = rocking(0.2, duration), thrown(duration)
    for name, motion in (("box", box), ("ball", ball)):
        kinds = [event.name.split()[0] for event in motion.events]
        print(name, ", ".join(f"{kinds.count(k)} {k}" for k in dict.fromkeys(kinds)))
    if picture:
        draw(box, ball, picture)


def draw(box: chasles.Trajectory, ball: chasles.Trajectory, picture: str) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(10, 5), sharex="col", layout="constrained")
    (tilt, height), (force, slip) = axes
    tilt.plot(box.t, np.degrees(2.0 * np.arctan2(box.q[:, 2], box.q[:, 0])))
    tilt.set(ylabel="tilt, degrees", title="a rocking box")
    forces = box.touching.forces[..., 2]
    force.plot(box.t, forces[:, 0] + forces[:, 2], label="left edge")
    force.plot(box.t, forces[:, 4] + forces[:, 6], label="right edge")
    force.set(xlabel="time, s", ylabel="normal force, N")
    force.legend(frameon=False, loc="center left")
    height.plot(ball.t, ball.q[:, 6] - RADIUS)
    height.set(ylabel="height, m", title="a ball with backspin")
    robot = free(2.0, (0.072, 0.072, 0.072))
    velocity = robot.frame_velocity(ball.q, ball.qd, frame="body")
    slip.plot(ball.t, velocity[:, 3] - RADIUS * velocity[:, 1])
    slip.set(xlabel="time, s", ylabel="slip, m/s")
    figure.savefig(picture, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main(picture=sys.argv[1] if len(sys.argv) > 1 else "")
