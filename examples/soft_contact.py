"""Soft contact: the force on a falling ball under four laws, and the friction on a dragged block.

Left: the normal force of each law as a function of the gap during one impact. Right: the friction
on a block that moves back and forth, and sticks and slips. Run with the name of a picture file to
draw the figure.
"""

import sys
from typing import IO, Any

import numpy as np

from chasles import contact

MASS, SPEED = 1.0, 1.0
LAWS: dict[str, contact.NormalLaw] = {
    "SoftSurface": contact.SoftSurface(4e3, 20.0),
    "TwoSoftSurfaces": contact.TwoSoftSurfaces(
        contact.SoftSurface(8e3, 20.0), contact.SoftSurface(8e3, 80.0)
    ),
    "HuntCrossley": contact.HuntCrossley(4e4, 0.4),
    "AzadFeatherstone": contact.AzadFeatherstone(4e4, 250.0),
}
FRICTION = contact.SoftFriction(0.5, 5e3, 20.0)


def bounce(law: contact.NormalLaw, h: float) -> np.ndarray:
    """Return gap, force and velocity (n, 3) of a ball during one impact."""
    gap, rate, state = 0.0, -SPEED, [0.0] * law.states
    rows = []
    while gap <= 0.0:
        force, _ = law.response(state, gap, rate)
        rows.append((gap, force, rate))
        rate += h * force / MASS
        gap += h * rate
        state = law.advanced(state, force, gap, h)
    return np.array(rows)


def drag(h: float, amplitude: float = 2e-3, normal: float = 10.0) -> np.ndarray:
    """Return displacement and friction (n, 2) of a block in sinusoidal motion."""
    state, rows = [0.0], []
    for t in np.arange(0.0, 1.25, h):
        turn = 2.0 * np.pi * t
        forces, _ = FRICTION.response(state, normal, [2.0 * np.pi * amplitude * np.cos(turn)])
        rows.append((amplitude * np.sin(turn), forces[0]))
        state = FRICTION.advanced(state, forces, h)
    return np.array(rows)


def draw(bounces: dict[str, np.ndarray], dragged: np.ndarray, picture: str | IO[bytes]) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
    for name, rows in bounces.items():
        left.plot(1e3 * rows[:, 0], rows[:, 1], label=name)
    left.set_xlabel("gap, mm")
    left.set_ylabel("force, N")
    left.legend(fontsize="small")
    right.plot(1e3 * dragged[:, 0], dragged[:, 1])
    right.set_xlabel("displacement of the block, mm")
    right.set_ylabel("friction, N")
    figure.savefig(picture, dpi=100)
    plt.close(figure)


def main(h: float = 1e-5, picture: Any = None) -> None:
    bounces = {name: bounce(law, h) for name, law in LAWS.items()}
    for name, rows in bounces.items():
        print(
            f"{name:16} rebound {rows[-1, 2]:.3f} m/s, depth {1e3 * -rows[:, 0].min():.1f} mm, "
            f"force {rows[:, 1].max():.0f} N"
        )
    dragged = drag(100 * h)
    print(f"largest friction {np.abs(dragged[:, 1]).max():.3f} N, bound 5 N")
    if picture is not None:
        draw(bounces, dragged, picture)


if __name__ == "__main__":
    main(picture=sys.argv[1] if len(sys.argv) > 1 else None)
