"""Operation counts as functions of the number of joints, for every method of dynamics.

Multiplications and additions are counted by the rules of Balafoutis and Patel (1991), for arms with
n revolute joints and general geometry. Dashed lines in the figure show the formulas printed in
their tables, for their own and other authors' methods. With a file name as argument, draws the
figure.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "docs"))  # published tables

from building.published import BY_METHOD, Polynomial, methods_of, whole

MANY = 20_000  # methods with more operations than this for six joints are left out


def traced(function: str, lengths: Sequence[int]) -> dict[str, list[int]]:
    """Return the operations of each method for each number of joints."""
    known = methods_of(function)
    short = [name for name in known if sum(whole(function, name, 6, "general")) < MANY]
    return {name: [sum(whole(function, name, n, "general")) for n in lengths] for name in short}


def draw(lengths: Sequence[int], counts: dict[str, dict[str, list[int]]], picture: Any) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(15.0, 6.6), layout="constrained")
    for axis, table in zip(axes, BY_METHOD, strict=True):
        for k, (name, values) in enumerate(counts[table.function].items()):
            axis.plot(lengths, values, color=f"C{k % 10}", marker=".v^s"[k // 10 % 4], label=name)
        for k, formula in enumerate(table.rows):
            M, A = map(Polynomial.read, formula.counts)
            at = lengths if formula.at is None else [formula.at]
            look = {"color": "0.45", "linewidth": 0.8, "dashes": (4, 1 + k % 4)}
            mark = {"marker": "x"} if formula.at else {}
            axis.plot(at, [float(M(n) + A(n)) for n in at], label=formula.author, **look, **mark)
        axis.set_yscale("log")
        axis.set_title(table.title.lower())
        axis.set_xlabel("joints")
        axis.grid(alpha=0.3, which="both")
        axis.legend(fontsize=6, ncols=2)
    axes[0].set_ylabel("multiplications and additions")
    figure.savefig(picture, dpi=80)
    plt.close(figure)


def main(lengths: Sequence[int] = range(2, 13), picture: Any = None) -> None:
    counts = {table.function: traced(table.function, lengths) for table in BY_METHOD}
    for function, methods in counts.items():
        for k, n in enumerate(lengths):
            best = min(methods, key=lambda name: methods[name][k])
            print(f"{function}, {n} joints: {best}, {methods[best][k]} operations")
    if picture is not None:
        draw(lengths, counts, picture)


if __name__ == "__main__":
    main(picture=sys.argv[1] if len(sys.argv) > 1 else None)
