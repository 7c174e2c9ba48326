"""Solve random poses with inverse kinematics, beside the Robotics Toolbox and pink."""

import argparse

from benchmarks.console import count, output
from benchmarks.reaching import arms

PARTS = ("arms",)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--poses", type=count, default=100_000, help="Poses. Default: 100,000.")
    parser.add_argument("--robots", nargs="+", choices=arms.ARMS, default=list(arms.ARMS))
    parser.add_argument(
        "--peer-poses", type=count, default=500, help="Poses for the toolbox. Default: 500."
    )


def run(chosen: argparse.Namespace) -> int:
    if "arms" in chosen.parts:
        output().print(arms.table(chosen.robots, chosen.poses, chosen.peer_poses))
    return 0
