"""Impact of a falling rod with friction: three laws of restitution, one of which creates energy.

The inclined rod (1 kg, 1 m) falls and slides forward without rotating, and its lower end hits the
ground. Left: the ratio of the energy after the impact to the energy before. Right: slip and normal
velocity of the end as functions of the normal impulse, for an inclination at which slip reverses.
Run with the name of a picture file to draw the figure.
"""

import sys
from typing import IO, Any

import numpy as np

from chasles import contact
from chasles.motion.laws.slip import Slip

RESTITUTION, FRICTION = 0.9, 0.5
LEAN, MU = np.array(0.7), np.array(FRICTION)
LAWS = {"Newton": contact.Newton, "Poisson": contact.Poisson, "Stronge": contact.Stronge}


def end_of_rod(angle: np.ndarray) -> np.ndarray:
    """Return the inverse inertia (1/kg) at a rod's lower end: tangent, tangent, normal."""
    side, up = 0.5 * np.sin(angle), 0.5 * np.cos(angle)
    W = np.zeros((*angle.shape, 3, 3))
    W[..., 0, 0], W[..., 1, 1], W[..., 2, 2] = 1 + 12 * up * up, 1.0, 1 + 12 * side * side
    W[..., 0, 2] = W[..., 2, 0] = -12 * side * up
    return W


def kept(W: np.ndarray, zeta: np.ndarray, impulse: np.ndarray) -> np.ndarray:
    """Return the ratio of the energy after the impact to the energy before, for a mass of 1 kg.

    The rod does not rotate before the impact.
    """
    after = zeta + np.einsum("...ij,...j->...i", W, impulse)
    gain = 0.5 * np.sum(impulse * (zeta + after), axis=-1)
    return np.asarray(1.0 + gain / (0.5 * np.sum(zeta * zeta, axis=-1)))


def draw(
    angles: np.ndarray, energies: dict[str, np.ndarray], path: np.ndarray, picture: str | IO[bytes]
) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
    for name, energy in energies.items():
        left.plot(np.degrees(angles), energy, label=name)
    left.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
    left.set_xlabel("angle of the rod from the vertical, degrees")
    left.set_ylabel("energy after / before")
    left.legend()
    right.plot(path[:, 0], path[:, 1], label="slip")
    right.plot(path[:, 0], path[:, 2], label="normal velocity")
    right.axhline(0.0, color="black", linewidth=0.8)
    right.set_xlabel("normal impulse, N s")
    right.set_ylabel("velocity of the end, m/s")
    right.legend()
    figure.savefig(picture, dpi=100)
    plt.close(figure)


def main(steps: int = 200, picture: Any = None) -> None:
    angles = np.linspace(0.02, 1.55, steps)
    W, zeta = end_of_rod(angles), np.array([0.8, 0.0, -1.0])
    energies = {
        name: kept(W, zeta, law(RESTITUTION, FRICTION).impulse(W, zeta))
        for name, law in LAWS.items()
    }
    for name, energy in energies.items():
        print(f"{name:8} energy after / before: at most {np.max(energy):.3f}")
    lean = Slip(*(np.broadcast_to(a, (steps, *a.shape)) for a in (end_of_rod(LEAN), zeta, MU)))
    impulses = np.linspace(0.0, 0.8, steps)
    path = lean.follow(lean.start(), "impulse", impulses)
    if picture is not None:
        draw(angles, energies, np.column_stack([impulses, path[:, [4, 6]]]), picture)


if __name__ == "__main__":
    main(picture=sys.argv[1] if len(sys.argv) > 1 else None)
