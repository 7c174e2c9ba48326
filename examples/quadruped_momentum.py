"""Momentum of a quadruped that kicks its legs in free fall.

Motor torques do not change the total momentum. The angular momentum about the center of mass is
constant, and the linear momentum changes by weight times time.
"""

import numpy as np

import chasles


def main(duration: float = 0.5, dt: float = 1e-3) -> None:
    robot = chasles.robots.quadruped()
    rng = np.random.default_rng(0)
    q, qd = robot.neutral(), rng.normal(scale=0.5, size=robot.nv)
    strength = rng.normal(scale=2.0, size=robot.nv)
    strength[robot.velocity_slice("floating_base")] = 0.0  # the trunk floats freely
    before, orientation = robot.momentum(q, qd), q[:4]

    steps = round(duration / dt)
    for k in range(steps):  # midpoint rule on the configuration space
        tau = strength * np.sin(20.0 * (k + 0.5) * dt)
        middle = robot.integrate(q, 0.5 * dt * qd)
        qd_middle = qd + 0.5 * dt * robot.forward_dynamics(q, qd, tau)
        qd = qd + dt * robot.forward_dynamics(middle, qd_middle, tau)
        q = robot.integrate(q, dt * qd_middle)

    after = robot.momentum(q, qd)
    mass = sum(link.inertia.m for link in robot.model.source.links)
    change = after - before - np.concatenate([np.zeros(3), mass * robot.gravity * steps * dt])
    turned = 2.0 * np.degrees(np.arccos(min(1.0, abs(orientation @ q[:4]) / np.linalg.norm(q[:4]))))
    print(f"the trunk turned by {turned:.1f} degrees")
    print(f"angular momentum {np.round(after[:3], 4)} kg m2/s, change {change[:3]}")
    print(f"linear momentum {np.round(after[3:], 4)} kg m/s, error {change[3:]}")
    assert np.max(np.abs(change)) < 1e-3


if __name__ == "__main__":
    main()
