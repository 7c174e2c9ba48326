"""Operations of forward dynamics: mass-matrix method and articulated-body algorithm.

For n joints and a tree of depth d, the mass-matrix method takes O(n d²) operations, and the
articulated-body algorithm takes O(n). On a long chain, the articulated-body algorithm is therefore
cheaper (Featherstone 2008, figure 10.4). On a binary tree, both costs grow at the same rate
(figure 10.5). Operations are counted in three ways: with the book's formulas ("printed"), on
programs by the rules for counting by hand ("by hand"), and on simplified programs ("counted"). Run
with the name of a picture file to draw the figure.
"""

import sys
from pathlib import Path

import chasles
from chasles.functions.cost import Rules

sys.path.append(str(Path(__file__).parents[1] / "docs"))  # published tables

from building.published.featherstone import Branching, best, composite_body, factor_and_solve

ROADS = {"mass-matrix": "tab:blue", "articulated-body": "tab:orange"}
Curves = dict[str, dict[str, list[int]]]


def printed(n: int, children: int) -> dict[str, int]:
    """Return the operations of both methods by the best rows of table 10.1 and by Eq 10.12."""
    tree = Branching.even(n, children)
    parts = (best("RNEA").at(n), composite_body(tree), factor_and_solve(tree))
    return dict(zip(ROADS, (sum(map(sum, parts)), sum(best("ABA").at(n))), strict=True))


def by_hand(n: int, children: int) -> dict[str, int]:
    """Return the operations of both methods in programs, by the rules for counting by hand."""
    return _counts(n, children, tuple(ROADS), "book")


def counted(n: int, children: int) -> dict[str, int]:
    """Return the operations of both methods and of the default method after simplification."""
    return _counts(n, children, (*ROADS, "fastest"), "simplified")


def _counts(n: int, children: int, methods: tuple[str, ...], rules: Rules) -> dict[str, int]:
    robot, function = chasles.robots.general_tree(n, children), "forward_dynamics"
    costs = {m: chasles.cost(robot, function, method=m, rules=rules) for m in methods}
    return {m: cost.flops + cost.divisions for m, cost in costs.items()}


def curves(sizes: range, children: int) -> Curves:
    """Return the operations for each number of joints, by way of counting and by method."""
    rows = {"printed": printed, "by hand": by_hand, "counted": counted}
    found: Curves = {}
    for name, row in rows.items():
        columns = [row(n, children) for n in sizes]
        found[name] = {road: [column[road] for column in columns] for road in columns[0]}
    return found


def crossing(sizes: range, roads: dict[str, list[int]]) -> str:
    """Return the smallest number of joints for which articulated bodies take fewer operations."""
    pairs = zip(sizes, roads["mass-matrix"], roads["articulated-body"], strict=True)
    return next((f"from {n} joints on" for n, a, b in pairs if b < a), "at none of these sizes")


def main(joints: int = 18, picture: str = "") -> None:
    sizes = range(2, joints + 1)
    trees = {"chain": curves(sizes, 1), "binary tree": curves(sizes, 2)}
    for shape, found in trees.items():
        for name, roads in found.items():
            print(f"{shape}, {name}: articulated bodies are cheaper {crossing(sizes, roads)}")
    if picture:
        plot(sizes, trees, picture)


def plot(sizes: range, trees: dict[str, Curves], path: str) -> None:
    """Plot operations over the number of joints, for a chain and a binary tree."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (shape, found) in zip(figure.subplots(1, 2), trees.items(), strict=True):
        for road, color in ROADS.items():
            for name, line in (("printed", "--"), ("by hand", ":"), ("counted", "-")):
                axes.plot(sizes, found[name][road], line, color=color, label=f"{road}, {name}")
        axes.plot(sizes, found["counted"]["fastest"], color="black", label="fastest, counted")
        axes.set_title(shape, fontsize="medium")
        axes.set_xlabel("joints")
        axes.set_xticks(sizes[::4])
        axes.set_ylim(bottom=0.0)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_ylabel("multiplications and additions")
    axes.legend(fontsize="small", frameon=False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(picture=sys.argv[1] if len(sys.argv) > 1 else "")
