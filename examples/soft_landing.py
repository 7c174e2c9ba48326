"""Landing of a quadruped on soft ground, simulated in one compiled rollout.

Top: the height of the trunk. Bottom: the ground force on the front feet and on the rear feet,
compared with half the weight. Run with the name of a picture file to draw the figure.
"""

import sys
from typing import IO, Any

import numpy as np

import chasles
from chasles import contact
from chasles.rollouts import PDControl

FEET = tuple(f"{end}_{side}_foot" for end in ("front", "rear") for side in ("left", "right"))
RADIUS = 0.02
GROUND = contact.SoftContact(contact.SoftSurface(2e4, 400.0), contact.SoftFriction(0.8, 2e4, 400.0))


def landing(robot: chasles.Robot, height: float, dt: float, duration: float) -> chasles.Trajectory:
    """Return the motion of a robot dropped from a height (m), with PD control of the legs."""
    stance = robot.neutral()
    stance[7:] = np.tile([0.0, 0.8, -1.6], 4)
    q = stance.copy()
    lowest = min(robot.forward_kinematics(q, frame=foot)[2, 3] for foot in FEET)
    q[6] = height + RADIUS - lowest
    hold = PDControl(stiffness=150.0, damping=4.0, target=stance)  # the trunk floats freely
    pairs = [contact.Pair(contact.Sphere(foot, RADIUS), contact.Plane(), GROUND) for foot in FEET]
    steps = round(duration / dt)
    return robot.rollout(q, np.zeros(18), hold, dt=dt, steps=steps, every=4, contacts=pairs)


def draw(robot: chasles.Robot, motion: chasles.Trajectory, picture: str | IO[bytes]) -> None:
    import matplotlib.pyplot as plt

    assert motion.touching is not None
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(8.0, 4.6), sharex=True, layout="constrained"
    )
    above.plot(motion.t, motion.q[:, 6])
    above.set_ylabel("height of the trunk, m")
    up = motion.touching.forces[..., 2]
    for name, feet in (("front feet", slice(0, 2)), ("rear feet", slice(2, 4))):
        below.plot(motion.t, up[:, feet].sum(axis=1), label=name)
    below.axhline(0.5 * robot.mass * 9.81, color="gray", lw=0.8, label="half the weight")
    below.set_ylabel("force of the ground, N")
    below.set_xlabel("time, s")
    below.legend(fontsize="small")
    figure.savefig(picture, dpi=100)
    plt.close(figure)


def main(dt: float = 5e-4, duration: float = 3.0, picture: Any = None) -> None:
    robot = chasles.robots.quadruped()
    motion = landing(robot, 0.3, dt, duration)
    assert motion.touching is not None
    total = motion.touching.forces[-1].sum(axis=0)
    print(f"ground force after {duration:g} s: {total[2]:.1f} N, weight {9.81 * robot.mass:.1f} N")
    print(f"largest penetration of the feet: {-1e3 * motion.touching.gaps.min():.1f} mm")
    if picture is not None:
        draw(robot, motion, picture)


if __name__ == "__main__":
    main(picture=sys.argv[1] if len(sys.argv) > 1 else None)
