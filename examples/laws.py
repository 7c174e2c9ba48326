"""A ball thrown with backspin, simulated with all contact laws, rigid and soft.

The parameters of the laws are chosen so that the ball rebounds at about half of its speed. For each
law, prints the height of the first rebound, the slip after it, the largest penetration and the
final rolling speed. With a file name as argument, draws the height of the ball and the velocity of
its lowest point.
"""

import sys
from typing import IO

import numpy as np

import chasles
from chasles import contact
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia
from chasles.model import Description, JointData, LinkData

MASS, RADIUS, HEIGHT, FRICTION = 1.0, 0.1, 0.3, 0.15
SIDEWAYS = contact.SoftFriction(FRICTION, 1e5, 1e2)


def soft(normal: contact.NormalLaw) -> contact.SoftContact:
    return contact.SoftContact(normal, SIDEWAYS)


def rigid(law: contact.ImpactLaw | None) -> contact.Rigid:
    return contact.Rigid(FRICTION, 0.5, law)


SURFACE = contact.SoftSurface(4e4, 100.0)
HALF = contact.SoftSurface(2.0 * SURFACE.stiffness, 2.0 * SURFACE.damping)
LAWS: dict[str, contact.Rigid | contact.SoftContact] = {
    "Rigid, by Moreau": rigid(None),
    "Rigid, Newton": rigid(contact.Newton(0.5, FRICTION)),
    "Rigid, Poisson": rigid(contact.Poisson(0.5, FRICTION)),
    "Rigid, Stronge": rigid(contact.Stronge(0.5, FRICTION)),
    "Rigid, Sticking": rigid(contact.Sticking(0.5)),
    "SoftSurface": soft(SURFACE),
    "TwoSoftSurfaces": soft(contact.TwoSoftSurfaces(HALF, HALF)),
    "HuntCrossley": soft(contact.HuntCrossley(1e6, 0.55)),
    "AzadFeatherstone": soft(contact.AzadFeatherstone(1e6, 2.4e3)),
}


def ball() -> chasles.Robot:
    """Return a solid ball that moves freely."""
    moment = 0.4 * MASS * RADIUS**2
    inertia = RigidInertia.from_center(
        MASS, Vector.zero(), Symmetric(moment, moment, moment, 0.0, 0.0, 0.0)
    )
    joint = JointData("free", "free", None, "ball")
    return chasles.Robot(Description("ball", (LinkData("ball", inertia),), (joint,)))


def thrown(
    robot: chasles.Robot, law: contact.Rigid | contact.SoftContact, duration: float
) -> chasles.Trajectory:
    """Return the motion of a ball thrown forward at 1 m/s from `HEIGHT`, with backspin."""
    pair = contact.Pair(contact.Sphere("ball", RADIUS), contact.Plane(), law)
    q = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, RADIUS + HEIGHT])
    qd = np.array([0.0, -20.0, 0.0, 1.0, 0.0, 0.0])
    exact = isinstance(law, contact.Rigid)
    options = {"dt": 5e-3} if exact else {"integrator": "dopri5", "dt": 5e-3, "rtol": 1e-7}
    return chasles.simulate(robot, q, qd, duration=duration, contacts=[pair], **options)


def slip(robot: chasles.Robot, motion: chasles.Trajectory) -> np.ndarray:
    """Return the velocity of the ball's lowest point."""
    velocity = robot.frame_velocity(motion.q, motion.qd, frame="ball")
    return velocity[:, 3] - RADIUS * velocity[:, 1]


def row(robot: chasles.Robot, motion: chasles.Trajectory) -> str:
    assert motion.touching is not None
    gap = motion.touching.gaps[:, 0]
    landed = np.flatnonzero(gap < 1e-6)[0]
    away = landed + np.flatnonzero(gap[landed:] > 1e-4)[0]
    rise, deep = np.max(gap[away:]), abs(min(np.min(gap), 0.0))
    rolling = robot.frame_velocity(motion.q[-1], motion.qd[-1], frame="ball")[3]
    return f"{rise:.3f} | {slip(robot, motion)[away]:.2f} | {1e3 * deep:.2f} | {rolling:.3f}"


def main(duration: float = 1.5, picture: str | IO[bytes] | None = None) -> None:
    robot, motions = ball(), {}
    print("| law | rebound height (m) | remaining slip (m/s) | ", end="")
    print("largest penetration (mm) | final rolling speed (m/s) |")
    print("|---|---|---|---|---|")
    for name, law in LAWS.items():
        motions[name] = thrown(robot, law, duration)
        print(f"| {name} | {row(robot, motions[name])} |")
    if picture is not None:
        draw(robot, motions, picture)


def draw(
    robot: chasles.Robot, motions: dict[str, chasles.Trajectory], picture: str | IO[bytes]
) -> None:
    import matplotlib.pyplot as plt

    figure, (height, sliding) = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
    for name, motion in motions.items():
        assert motion.touching is not None
        style = "-" if name.startswith("Rigid") else "--"
        height.plot(motion.t, motion.touching.gaps[:, 0], style, linewidth=1.0, label=name)
        sliding.plot(motion.t, slip(robot, motion), style, linewidth=1.0)
    height.set(xlabel="time, s", ylabel="height, m", title="a ball with backspin")
    sliding.set(xlabel="time, s", ylabel="slip of its lowest point, m/s")
    height.legend(frameon=False, fontsize="x-small")
    figure.savefig(picture, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main(picture=sys.argv[1] if len(sys.argv) > 1 else None)
