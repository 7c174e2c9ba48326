"""Solve random poses with inverse kinematics, beside the Robotics Toolbox and pink."""

import argparse

from benchmarks.console import count, output
from benchmarks.reaching import arms, beyond, humanoid, loops, on_gpu

PARTS = ("arms", "unreachable", "loops", "humanoid")
GPU = "gpu"
"""The part that needs a GPU, and runs where it is asked for."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", nargs="+", choices=(*PARTS, GPU), default=list(PARTS))
    parser.add_argument("--poses", type=count, default=100_000, help="Poses. Default: 100,000.")
    parser.add_argument("--robots", nargs="+", choices=arms.ARMS, default=list(arms.ARMS))
    parser.add_argument(
        "--peer-poses", type=count, default=500, help="Poses for the toolbox. Default: 500."
    )
    parser.add_argument(
        "--sample", type=count, default=100, help="Unreachable poses for SciPy. Default: 100."
    )
    parser.add_argument(
        "--gpu-poses",
        nargs="+",
        type=count,
        default=[2**22, 2**24],
        help="Poses on a GPU, one row each. Default: 4 M and 16 M.",
    )
    parser.add_argument("--starts", type=count, default=30, help="Starts of SciPy. Default: 30.")


def run(chosen: argparse.Namespace) -> int:
    if "arms" in chosen.parts:
        output().print(arms.table(chosen.robots, chosen.poses, chosen.peer_poses))
    if "unreachable" in chosen.parts:
        poses = min(chosen.poses, 10_000)
        output().print(beyond.table(chosen.robots, poses, chosen.sample, chosen.starts))
    if "loops" in chosen.parts:
        output().print(loops.table(min(chosen.poses, 10_000)))
    if "humanoid" in chosen.parts:
        output().print(humanoid.table(min(chosen.poses, 10_000), min(chosen.peer_poses, 50)))
    if GPU in chosen.parts:
        output().print(on_gpu.table(chosen.robots, chosen.gpu_poses))
    return 0
