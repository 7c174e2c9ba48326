"""Forward dynamics by two roads: through the mass matrix, or by articulated bodies.

The first takes of the order of n d² operations for n joints and a tree of depth d, the second of n:
on a chain they cross (Featherstone 2008, figure 10.4), on a binary tree they run side by side
(figure 10.5). By the formulas that the book prints, counted on programs as one counts by hand, and
counted after simplification. Run with the name of a picture file to see it.
"""

import sys
from pathlib import Path

import chasles
from chasles.functions.cost import Rules

sys.path.append(str(Path(__file__).parents[1] / "docs"))  # tables of books

from building.published.featherstone import Branching, best, composite_body, factor_and_solve

ROADS = {"mass-matrix": "tab:blue", "articulated-body": "tab:orange"}
Curves = dict[str, dict[str, list[int]]]


def printed(n: int, children: int) -> dict[str, int]:
    """Products and sums by the best rows of table 10.1 and Eq 10.12, for both roads."""
    tree = Branching.even(n, children)
    parts = (best("RNEA").at(n), composite_body(tree), factor_and_solve(tree))
    return dict(zip(ROADS, (sum(map(sum, parts)), sum(best("ABA").at(n))), strict=True))


def by_hand(n: int, children: int) -> dict[str, int]:
    """Both roads counted on programs by the rules of counting by hand."""
    return _counts(n, children, tuple(ROADS), "book")


def counted(n: int, children: int) -> dict[str, int]:
    """What is left of both roads after simplification, and what the robot takes by default."""
    return _counts(n, children, (*ROADS, "fastest"), "simplified")


def _counts(n: int, children: int, methods: tuple[str, ...], rules: Rules) -> dict[str, int]:
    robot, function = chasles.robots.general_tree(n, children), "forward_dynamics"
    costs = {m: chasles.cost(robot, function, method=m, rules=rules) for m in methods}
    return {m: cost.flops + cost.divisions for m, cost in costs.items()}


def curves(sizes: range, children: int) -> Curves:
    """By formula and by count, the operations for each number of joints."""
    rows = {"printed": printed, "by hand": by_hand, "counted": counted}
    found: Curves = {}
    for name, row in rows.items():
        columns = [row(n, children) for n in sizes]
        found[name] = {road: [column[road] for column in columns] for road in columns[0]}
    return found


def crossing(sizes: range, roads: dict[str, list[int]]) -> str:
    """Where articulated bodies take fewer operations."""
    pairs = zip(sizes, roads["mass-matrix"], roads["articulated-body"], strict=True)
    return next((f"from {n} joints on" for n, a, b in pairs if b < a), "nowhere so far")


def main(joints: int = 18, picture: str = "") -> None:
    sizes = range(2, joints + 1)
    trees = {"chain": curves(sizes, 1), "binary tree": curves(sizes, 2)}
    for shape, found in trees.items():
        for name, roads in found.items():
            print(f"{shape}, {name}: articulated bodies are ahead {crossing(sizes, roads)}")
    if picture:
        plot(sizes, trees, picture)


def plot(sizes: range, trees: dict[str, Curves], path: str) -> None:
    """Operations over the number of joints, a chain and a binary tree side by side."""
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
