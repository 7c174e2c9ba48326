"""Loss of digits: far frames, a zig-zag arm, long chains (Featherstone 2008, chapter 10).

Repeats the book's numerical experiments and prints the errors. With a file name as argument, draws
the figure.
"""

import sys
from collections.abc import Sequence
from typing import IO, Any

import numpy as np

import chasles
from chasles.mathematics.planar import PlanarForce, PlanarInertia, PlanarMotion, PlanarTransform


def far_frame_error(distance: float, angle: float) -> float:
    """Return the error of a unit body's acceleration at its center, solved in a distant frame."""
    x, y = distance * np.cos(angle), distance * np.sin(angle)
    to_origin, back = PlanarTransform.of(0.0, -x, -y), PlanarTransform.of(0.0, x, y)
    inertia = to_origin @ PlanarInertia.from_center(1.0, 0.0, 0.0, 1.0)
    v, f = to_origin @ PlanarMotion(1.0, 0.0, 0.0), to_origin @ PlanarForce(1.0, -1.0, 1.0)
    bias = v.cross(inertia @ v)
    a = np.linalg.solve(np.array(inertia.matrix()), list((f - bias).vector()))
    found = np.array([*(back @ PlanarMotion(*a)).vector()])
    return float(np.max(np.abs(found - [1.0, -1.0, 1.0])))


def far_frames(distances: np.ndarray, samples: int) -> np.ndarray:
    """Return errors for each distance, averaged over random directions (figure 10.2)."""
    angles = np.random.default_rng(1).uniform(0.0, 2.0 * np.pi, samples)
    return np.array([np.mean([far_frame_error(d, a) for a in angles]) for d in distances])


def zigzag_accelerations() -> np.ndarray:
    """Return the accelerations due to forces rounded to three digits; the exact values are 1.

    See section 10.2.
    """
    arm = chasles.robots.zigzag(6)
    forces = arm.inverse_dynamics(arm.neutral(), np.zeros(6), np.ones(6))
    rounded = [float(f"{force:.3g}") for force in forces]
    return arm.forward_dynamics(arm.neutral(), np.zeros(6), rounded)


def chain_errors(joints: Sequence[int], samples: int) -> dict[str, list[float]]:
    """Return median errors of forward dynamics of chains of rods for two methods (section 10.1)."""
    errors: dict[str, list[float]] = {"articulated-body": [], "mass-matrix": []}
    for n in joints:
        robot, rng = (
            chasles.robots.planar(n).with_gravity((0.0, 0.0, 0.0)),
            np.random.default_rng(n),
        )
        q, qdd = rng.uniform(-np.pi, np.pi, (samples, n)), rng.normal(size=(samples, n))
        still = np.zeros_like(q)
        inverse = chasles.compile(robot, "inverse_dynamics", method="spatial", backend="numpy")
        tau = inverse(q, still, qdd)
        for method, found in errors.items():
            forward = chasles.compile(robot, "forward_dynamics", method=method, backend="numpy")
            wrong = np.max(np.abs(forward(q, still, tau) - qdd), axis=-1)
            found.append(float(np.median(wrong)))
    return errors


def draw(
    distances: np.ndarray,
    far: np.ndarray,
    joints: Sequence[int],
    chains: dict[str, list[float]],
    picture: str | IO[bytes],
) -> None:
    import matplotlib.pyplot as plt

    figure, ((a, b), (c, d)) = plt.subplots(2, 2, figsize=(8.4, 6.4), layout="constrained")
    _draw_body(a)
    b.loglog(distances, far, "o-", color="tab:blue")
    b.loglog(distances, 1e-16 * distances**2, "--", color="gray")
    b.set(title="error at C", xlabel="distance from O to C, m", ylabel="error")
    arm = chasles.robots.zigzag(6)
    points = [arm.forward_kinematics(arm.neutral(), frame=f"link{k}")[:3, 3] for k in range(1, 7)]
    points.append(arm.forward_kinematics(arm.neutral(), frame="tip")[:3, 3])
    x, _, z = np.array(points).T
    c.plot(x, z, "o-", color="tab:blue", linewidth=3.0)
    for k, value in enumerate(zigzag_accelerations()):
        c.annotate(f"{value:.4f}", (x[k], z[k]), xytext=(4, 6), textcoords="offset points")
    c.set(title="accelerations that should be 1", xlabel="m", ylabel="m")
    c.set_aspect("equal")
    c.set_ylim(-0.5, 3.8)
    for method, errors in chains.items():
        d.loglog(joints, errors, "o-", label=method)
    d.set(title="chains of rods", xlabel="joints", ylabel="median error of accelerations")
    d.set_xticks(joints, map(str, joints), minor=False)
    d.set_xticks([], minor=True)
    d.legend()
    for axes in (b, d):
        axes.grid(alpha=0.3)
    figure.savefig(picture, dpi=90)
    plt.close(figure)


def _draw_body(axes: Any) -> None:
    """Draw the body of figure 10.1, and the distant frame."""
    turn = np.linspace(0.0, 2.0 * np.pi, 60)
    axes.fill(10.0 + np.cos(turn), 4.0 + np.sin(turn), color="tab:blue", alpha=0.4)
    axes.plot([0.0, 10.0], [0.0, 4.0], ":", color="gray")
    for name, x, y in (("O", 0.0, 0.0), ("C", 10.0, 4.0)):
        axes.annotate("", (x + 2.0, y), (x, y), arrowprops={"arrowstyle": "->"})
        axes.annotate("", (x, y + 2.0), (x, y), arrowprops={"arrowstyle": "->"})
        axes.text(x - 0.9, y - 0.9, name)
    axes.set(title="a body and a far frame", xlim=(-2.0, 13.0), ylim=(-2.0, 7.0))
    axes.set_aspect("equal")
    axes.set_axis_off()


def main(
    samples: int = 200, joints: Sequence[int] = (3, 5, 10, 20, 40), picture: Any = None
) -> None:
    distances = np.logspace(-2, 5, 22)
    far, chains = far_frames(distances, samples), chain_errors(joints, samples)
    print(f"error at C: {far[0]:.0e} from 0.01 m, {far[-1]:.0e} from 100 km")
    print("zig-zag arm:", np.round(zigzag_accelerations(), 4))
    for method, errors in chains.items():
        print(f"{joints[-1]} joints, {method}: {errors[-1]:.0e}")
    if picture is not None:
        draw(distances, far, joints, chains, picture)


if __name__ == "__main__":
    main(picture=sys.argv[1] if len(sys.argv) > 1 else None)
