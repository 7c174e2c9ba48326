"""Inverse and forward dynamics of an arm for a million random states, each in one call."""

import time

import numpy as np

import chasles


def main(states: int = 1_000_000) -> None:
    robot = chasles.robots.puma560()
    rng = np.random.default_rng(0)
    q = robot.random(rng, size=states)
    qd, qdd = rng.normal(size=(2, states, robot.nv))
    tau, back = np.empty((2, states, robot.nv))

    runs = {
        "inverse_dynamics": lambda: robot.inverse_dynamics(q, qd, qdd, out=tau),
        "forward_dynamics": lambda: robot.forward_dynamics(q, qd, tau, out=back),
    }
    for name, run in runs.items():
        run()  # compile, and allocate memory pages
        begin = time.perf_counter()
        run()
        seconds = time.perf_counter() - begin
        print(f"{name}: {states} states in {seconds:.3f} s, {1e9 * seconds / states:.0f} ns each")

    error = np.max(np.abs(back - qdd))
    print(f"largest error of accelerations after a round trip: {error:.1e} rad/s2")
    assert error < 1e-8


if __name__ == "__main__":
    main()
