"""Three friction laws for a block on a slope, and a sliding rod without a unique solution.

Left: accelerations of a block that is released on a slope, down the slope and away from it. Under
Coulomb's law, the block sticks up to the angle arctan(mu) and slides on steeper slopes. Under the
convex law, it slides more slowly and lifts off (dilation). Right: Painleve's rod, whose lower end
slides on the ground while the rod leans away from the direction of sliding. In the colored region,
Coulomb's law has no unique solution. Run with the name of a picture file to draw the figure.
"""

import math
import sys

import numpy as np

from chasles import contact

MU = 0.5
GRAVITY = 9.81
LAWS = {
    "coulomb": (contact.coulomb, "tab:blue"),
    "polyhedral": (contact.polyhedral, "tab:green"),
    "convex": (contact.convex, "tab:orange"),
}


def slides(angles: np.ndarray) -> dict[str, np.ndarray]:
    """Return accelerations (n, 2) of a block of 1 kg: away from the slope, and down the slope."""
    down = np.array([math.cos(math.pi / 8.0), math.sin(math.pi / 8.0), 0.0])  # between two edges
    found = {}
    for name, (law, _) in LAWS.items():
        rows = []
        for angle in angles:
            c = GRAVITY * (math.sin(angle) * down - math.cos(angle) * np.array([0.0, 0.0, 1.0]))
            a = law(np.eye(3), c, [MU])[0] + c
            rows.append((a[2], a @ down))
        found[name] = np.array(rows)
    return found


def rod(angle: float, mu: float) -> str:
    """Return "unique", or the name of the error if a sliding rod has no unique motion.

    The slender rod has a mass of 1 kg and a length of 2 m, and slides without rotating.
    """
    s, c = math.sin(angle), math.cos(angle)
    arms = np.array([[-s, 0.0, c]])  # moment arms of tangential and normal forces
    G = np.eye(3) + 3.0 * arms.T @ arms
    try:
        contact.coulomb(G, [0.0, 0.0, -GRAVITY], [mu], [[-1.0, 0.0]])
    except contact.NoUniqueMotion as paradox:
        return type(paradox).__name__.lower()
    return "unique"


def main(steps: int = 120, picture: str = "") -> None:
    angles = np.linspace(0.0, 1.2, steps)
    by_law = slides(angles)
    tilts, mus = np.linspace(0.02, 1.55, steps), np.linspace(0.0, 3.0, steps)
    lost = np.array([[rod(t, mu) != "unique" for t in tilts] for mu in mus])
    print(f"accelerations on a slope of {np.degrees(angles[-1]):.0f} degrees:")
    for name, a in by_law.items():
        print(f"  {name:10} {a[-1, 1]:.3f} m/s2 down, {abs(a[-1, 0]):.3f} m/s2 away from the slope")
    least = np.min(mus[np.any(lost, axis=1)], initial=np.inf)
    print(f"rod: no unique solution above mu = {least:.2f} (theory: 4/3 = {4 / 3:.2f})")
    if picture:
        draw(angles, by_law, tilts, mus, lost, picture)


def draw(
    angles: np.ndarray,
    by_law: dict[str, np.ndarray],
    tilts: np.ndarray,
    mus: np.ndarray,
    lost: np.ndarray,
    picture: str,
) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for name, a in by_law.items():
        color = LAWS[name][1]
        left.plot(np.degrees(angles), a[:, 1], color=color, label=name)
        left.plot(np.degrees(angles), a[:, 0], color=color, linestyle=":")
    left.axvline(np.degrees(math.atan(MU)), color="0.7", linewidth=0.8)
    left.set(xlabel="slope, degrees", ylabel="acceleration, m/s²")
    left.set_title(f"block, mu = {MU} (dotted: away from the slope)")
    left.legend(frameon=False)
    right.contourf(np.degrees(tilts), mus, lost, levels=[0.5, 1.0], colors=["tab:red"], alpha=0.4)
    right.axhline(4.0 / 3.0, color="0.7", linewidth=0.8)
    right.text(62.0, 2.4, "inconsistent", ha="center")
    right.text(62.0, 0.6, "unique", ha="center")
    right.set(xlabel="angle of the rod, degrees", ylabel="mu", title="Painlevé's rod")
    figure.savefig(picture, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main(picture=sys.argv[1] if len(sys.argv) > 1 else "")
