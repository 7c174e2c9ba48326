"""Train a policy that balances a pole on a cart, with 256 robots at once, in half a minute.

pip install 'chasles[learn]' torch
python examples/learning/learn_balance.py [curve.png]
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import ppo

import chasles
from chasles.learning import RobotVectorEnv, State

CART = """
<mujoco model="cart and pole">
  <worldbody>
    <body name="cart"><joint name="slide" type="slide" axis="1 0 0" range="-2 2" limited="true"/>
      <inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
      <body name="pole"><joint name="hinge" type="hinge" axis="0 1 0"/>
        <inertial pos="0 0 0.5" mass="0.1" diaginertia="0.0083 0.0083 1e-4"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""

FORCE = 10.0
"""Largest force on the cart, in N."""


class Balance:
    """Task: keep the pole upright; an episode fails at a tilt of 0.4 rad, or at x = 1.9 m."""

    observations, actions = 4, 1

    def start(
        self, rng: np.random.Generator, count: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        q, qd = rng.uniform(-0.2, 0.2, (2, count, 2))
        return q, qd, np.zeros((count, 0))

    def control(self, state: State) -> np.ndarray:
        return FORCE * state.action

    def observe(self, state: State) -> np.ndarray:
        return np.concatenate([state.q, state.qd], axis=1)

    def reward(self, state: State) -> np.ndarray:
        x, angle = state.q.T
        return 1.0 - 0.1 * x**2 - angle**2 - 0.01 * state.action[:, 0] ** 2

    def failed(self, state: State) -> np.ndarray:
        x, angle = state.q.T
        return (np.abs(angle) > 0.4) | (np.abs(x) > 1.9)


def push(t: Any, q: Any, qd: Any, p: Any) -> list[Any]:
    """Return the joint forces: a force on the cart, and none at the hinge."""
    return [p[0], 0.0]


def environment(count: int) -> RobotVectorEnv:
    """Return an environment with the given number of carts."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cart.xml"
        file.write_text(CART)
        robot = chasles.load(file)
    return RobotVectorEnv(robot, Balance(), count, control=push, dt=0.005, substeps=4)


def balanced(policy: ppo.Policy, count: int = 200) -> float:
    """Return the share of new episodes of ten seconds without failure."""
    env = environment(count)
    seen, _ = env.reset(seed=1)
    fell = np.zeros(count, bool)
    for _ in range(env.longest):
        seen, _, failed, _, _ = env.step(policy.act(seen))
        fell |= failed
    return float(1.0 - fell.mean())


def main() -> None:
    env = environment(256)
    policy, curve = ppo.train(env, updates=60, options=ppo.Options(hidden=(64, 64)))
    print(f"trained in {curve[-1][0]:.0f} s, mean reward per step {curve[-1][1]:.3f}")
    print(f"{balanced(policy):.0%} of new episodes stay upright for ten seconds")
    if len(sys.argv) > 1:
        from matplotlib import pyplot

        seconds, rewards = np.array(curve).T
        pyplot.plot(seconds, rewards)
        pyplot.xlabel("training time (s)")
        pyplot.ylabel("mean reward per step")
        pyplot.savefig(sys.argv[1], dpi=110)


if __name__ == "__main__":
    main()
