"""Train a policy with which the quadruped Solo12 walks at a commanded speed.

    pip install 'chasles[learn]' torch example-robot-data
    python examples/learning/learn_walk.py --minutes 20 --seed 0 --output walk.pt
    python examples/learning/learn_walk.py --minutes 1.92 --robots 2048    # on an H200

The policy acts at 50 Hz. It observes the direction of gravity and the angular and linear velocity
in the body's frame, the heading, joint positions and velocities, the last action, the command and a
clock. Its actions are target positions of the joints. The contact time step is 2 ms. The option
`--device cuda`, the default if there is a GPU, runs simulation and training on the GPU.
"""

import argparse
from typing import Any

import numpy as np
import ppo
import torch

import chasles
from chasles import contact
from chasles.learning import RobotVectorEnv, State

FEET = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
RADIUS, FRICTION = 0.016, 0.8
STIFFNESS, DAMPING = 4.0, 0.2
"""Gains of the joint controllers, in N m/rad and N m s/rad."""

STAND = np.array([0.0, 0.8, -1.6, 0.0, 0.8, -1.6, 0.0, 0.8, -1.6, 0.0, 0.8, -1.6])
REACH = np.array([0.25, 0.45, 0.45] * 4)
"""Standing position of the joints, and the displacement from it for an action of 1, in rad."""

PERIOD = 0.5
"""Period of the clock that the policy observes, in s."""

LOWEST, MOST_TILTED = 0.12, 0.7
"""Height of the body in m, and cosine of its tilt, below which the robot counts as fallen."""


def gravity_seen(q: np.ndarray) -> np.ndarray:
    """Return the direction of gravity in the body's frame (n, 3)."""
    w, x, y, z = q[:, :4].T
    return -np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], axis=1)


def heading(q: np.ndarray) -> np.ndarray:
    """Return the angle between the body's forward direction and the x axis of the world (n,)."""
    w, x, y, z = q[:, :4].T
    return np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def velocity_over_ground(q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the components (n,) of the body's velocity along the world's x and y axes."""
    w, x, y, z = q[:, :4].T
    u, v, up = qd[:, 3:6].T
    ahead = (1 - 2 * (y * y + z * z)) * u + 2 * (x * y - w * z) * v + 2 * (x * z + w * y) * up
    aside = 2 * (x * y + w * z) * u + (1 - 2 * (x * x + z * z)) * v + 2 * (y * z - w * x) * up
    return ahead, aside


class Walk:
    """Walk along the x axis of the world at a commanded speed."""

    observations, actions = 3 + 3 + 3 + 2 + 12 + 12 + 12 + 1 + 2, 12

    def __init__(self, height: float, speeds: tuple[float, float] = (0.3, 0.6)) -> None:
        self.height, self.speeds = height, speeds

    def start(
        self, rng: np.random.Generator, count: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        q = np.zeros((count, 19))
        q[:, 0], q[:, 6] = 1.0, self.height + 0.005
        q[:, 7:] = STAND + rng.uniform(-0.1, 0.1, (count, 12))
        q[:, 6] += 0.01
        qd = 0.1 * rng.normal(size=(count, 18))
        return q, qd, rng.uniform(*self.speeds, (count, 1))

    def control(self, state: State) -> np.ndarray:
        return STAND + REACH * state.action

    def observe(self, state: State) -> np.ndarray:
        q, qd = state.q, state.qd
        angle = 2.0 * np.pi * state.time / PERIOD
        clock = np.stack([np.sin(angle), np.cos(angle)], axis=1)
        turned = np.stack([np.sin(heading(q)), np.cos(heading(q))], axis=1)
        seen = (gravity_seen(q), qd[:, :3], qd[:, 3:6], turned, q[:, 7:] - STAND, 0.1 * qd[:, 6:])
        return np.concatenate([*seen, state.action, state.command, clock], axis=1)

    def reward(self, state: State) -> np.ndarray:
        q, qd, down = state.q, state.qd, gravity_seen(state.q)
        ahead, aside = velocity_over_ground(q, qd)
        off = (ahead - state.command[:, 0]) ** 2 + aside**2
        gained = np.exp(-off / 0.04) + 0.3 * np.exp(-(heading(q) ** 2) / 0.1)
        lost = (
            0.5 * (down[:, 0] ** 2 + down[:, 1] ** 2)
            + 0.5 * qd[:, 5] ** 2
            + 0.02 * np.sum(qd[:, :3] ** 2, axis=1)
            + 20.0 * (q[:, 6] - self.height) ** 2
            + 0.01 * np.sum((state.action - state.previous) ** 2, axis=1)
            + 2e-5 * np.sum(qd[:, 6:] ** 2, axis=1)
        )
        return gained - lost - 2.0 * self.failed(state)

    def failed(self, state: State) -> np.ndarray:
        return (state.q[:, 6] < LOWEST) | (gravity_seen(state.q)[:, 2] > -MOST_TILTED)


def hold(t: Any, q: Any, qd: Any, p: Any) -> list[Any]:
    """Return PD torques of the joints for target positions p, and zero for the free base."""
    return [0.0] * 6 + [STIFFNESS * (p[k] - q[7 + k]) - DAMPING * qd[6 + k] for k in range(12)]


def environment(
    count: int, speeds: tuple[float, float] = (0.3, 0.6), device: str = "cpu"
) -> RobotVectorEnv:
    """Return an environment of robots on a plane, simulated on `device`: "cpu" or "cuda"."""
    robot = chasles.load("solo12", floating=True)
    stand = robot.neutral()
    stand[7:] = STAND
    lowest = min(robot.forward_kinematics(stand, frame=foot)[2, 3] for foot in FEET)
    law = contact.Rigid(friction=FRICTION)
    pairs = [contact.Pair(contact.Sphere(foot, RADIUS), contact.Plane(), law) for foot in FEET]
    task = Walk(RADIUS - lowest, speeds)
    steps: dict[str, Any] = {"dt": 0.002, "substeps": 10, "device": device, "compiled": True}
    return RobotVectorEnv(robot, task, count, control=hold, contacts=pairs, **steps)


def kept(
    policy: ppo.Policy, device: str, count: int = 1000, speed: float = 0.5, seed: int = 7
) -> float:
    """Return the share of episodes of ten seconds in which the speed stays within 0.1 m/s.

    The speed is measured along the initial forward direction, averaged over one second. The first
    two seconds of each episode are not evaluated. Episodes in which the robot falls are failures.
    """
    env = environment(count, (speed, speed), device)
    seen, _ = env.reset(seed=seed)
    assert env.state is not None
    places, fell = [env.state.q[:, 4].copy()], np.zeros(count, bool)
    for _ in range(env.longest - 1):
        seen, _, failed, _, _ = env.step(policy.act(seen))
        fell |= failed
        places.append(env.state.q[:, 4].copy())
    x = np.array(places)
    speeds = (x[50:] - x[:-50])[100:]  # averages over one second
    return float(np.mean(~fell & np.all(np.abs(speeds - speed) < 0.1, axis=0)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--robots", type=int, default=1024)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--output", default="walk.pt")
    given = parser.parse_args()
    env = environment(given.robots, device=given.device)

    def told(k: int, spent: float, reward: float, ended: float) -> None:
        if k % 10 == 0:
            print(f"{k:5d} {spent:7.0f} s  reward {reward:6.3f}  ends {ended:.4f}", flush=True)

    limits = {"seed": given.seed, "seconds": 60.0 * given.minutes, "device": given.device}
    policy, _ = ppo.train(env, 100_000, ppo.Options(), told=told, **limits)
    torch.save(policy.state_dict(), given.output)
    share = kept(policy, given.device)
    print(f"{share:.1%} of 1,000 episodes stay within 0.1 m/s of 0.5 m/s for ten seconds")


if __name__ == "__main__":
    main()
