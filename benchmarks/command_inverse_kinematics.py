"""Time inverse kinematics for random poses, and compare it with other libraries."""

import argparse

from benchmarks.console import count, output
from benchmarks.reaching import arms, beyond, humanoid, loops, on_gpu

PARTS = ("arms", "unreachable", "loops", "humanoid")
GPU = "gpu"
"""Part that requires a GPU. It runs only if requested."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", nargs="+", choices=(*PARTS, GPU), default=list(PARTS))
    parser.add_argument(
        "--poses", type=count, default=100_000, help="Number of poses; default: 100,000."
    )
    parser.add_argument("--robots", nargs="+", choices=arms.ARMS, default=list(arms.ARMS))
    parser.add_argument(
        "--peer-poses",
        type=count,
        default=500,
        help="Poses for the Robotics Toolbox; default: 500.",
    )
    parser.add_argument(
        "--sample", type=count, default=100, help="Unreachable poses for SciPy; default: 100."
    )
    parser.add_argument(
        "--gpu-poses",
        nargs="+",
        type=count,
        default=[2**22, 2**24],
        help="Numbers of poses on a GPU; default: 2^22 and 2^24.",
    )
    parser.add_argument("--starts", type=count, default=30, help="Starts of SciPy; default: 30.")


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
