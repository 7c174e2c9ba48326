"""Computed-torque control: an arm follows sine waves, with its payload known and ignored.

The controller uses inverse dynamics: tau = M (qdd_wanted + Kp e + Kd edot) + h. If the controller's
model includes the payload, the errors decay like independent damped oscillators. Otherwise, errors
remain.
"""

import numpy as np

import chasles
from chasles.control import computed_torque

STIFFNESS, DAMPING = 100.0, 20.0  # 1/s2 and 1/s: critically damped, 10 rad/s


def wanted(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return desired positions, velocities and accelerations: a slow sine wave for each joint."""
    rate = np.array([1.0, 0.8, 1.2, 1.5, 1.1, 0.9])
    middle = np.radians([0.0, 45.0, -90.0, 0.0, 30.0, 0.0])
    swing = 0.4 * np.sin(rate * t)
    return middle + swing, 0.4 * rate * np.cos(rate * t), -(rate**2) * swing


def follow(arm: chasles.Robot, model: chasles.Robot, duration: float, dt: float) -> np.ndarray:
    """Return the final position errors of `arm`, controlled with inverse dynamics of `model`."""
    q, qd = wanted(0.0)[0] + 0.05, np.zeros(arm.nv)
    for t in np.arange(0.0, duration, dt):
        tau = computed_torque(model, q, qd, *wanted(t), stiffness=STIFFNESS, damping=DAMPING)
        qd = qd + dt * arm.forward_dynamics(q, qd, tau)
        q = arm.integrate(q, dt * qd)
    return q - wanted(t + dt)[0]


def main(duration: float = 3.0, dt: float = 1e-3) -> None:
    arm = chasles.robots.puma560()
    loaded = arm.attach("tool", mass=2.0, center=(0.0, 0.0, 0.1))
    for name, model in (("known", loaded), ("ignored", arm)):
        error = np.degrees(np.max(np.abs(follow(loaded, model, duration, dt))))
        print(f"payload {name}: largest error after {duration:g} s: {error:.3f} degrees")


if __name__ == "__main__":
    main()
