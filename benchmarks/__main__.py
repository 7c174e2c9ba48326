"""Command line of the benchmarks: `python -m benchmarks COMMAND`; each command has `--help`."""

import argparse
import importlib
import sys
from collections.abc import Sequence

from rich.console import Console

from benchmarks.console import WrongAnswer

COMMANDS = {
    "compare": ("benchmarks.command_compare", "dynamics, compared with Pinocchio and MuJoCo"),
    "calls": ("benchmarks.command_calls", "all ways of calling a function from Python"),
    "chains": ("benchmarks.command_chains", "robots with 10 to 1000 bodies"),
    "stores": ("benchmarks.command_stores", "large results, compared with memory bandwidth"),
    "motions": ("benchmarks.command_motions", "rollouts, compared with MuJoCo"),
    "contact": ("benchmarks.command_contact", "time steps with contact, compared with MuJoCo"),
    "inverse-kinematics": (
        "benchmarks.command_inverse_kinematics",
        "poses, compared with the Robotics Toolbox and pink",
    ),
    "branches": ("benchmarks.command_branches", "all closed-form solutions for random poses"),
    "trajectories": ("benchmarks.command_trajectories", "time-optimal paths and S-curves"),
    "distances": ("benchmarks.command_distances", "self-collision distances of a sphere model"),
    "identification": (
        "benchmarks.command_identification",
        "accuracy of identified parameters; speed of normal equations",
    ),
    "logs": ("benchmarks.command_logs", "logs larger than memory: states per second, peak memory"),
    "clusters": (
        "benchmarks.command_clusters",
        "many logs on local Dask clusters: scheduling overhead, killed workers",
    ),
    "c": ("benchmarks.command_c", "exported C, compared with Pinocchio"),
    "gpu": ("benchmarks.command_gpu", "GPU kernels, compared with the limits of the GPU"),
    "verify": ("benchmarks.command_verify", "run time of `chasles verify`"),
    "corpus": ("benchmarks.command_corpus", "all robot files of installed packages"),
    "machines": ("benchmarks.command_machines", "MJCF models, compared with MuJoCo"),
    "view": ("benchmarks.command_view", "speed of the viewer in a browser without a graphics card"),
}
"""Module and description of each command.

A module contains the functions `arguments(parser)` and `run(chosen)`. It is imported only when its
command runs, because each command needs other libraries.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status, which is 1 if a result was wrong."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Run a benchmark. Libraries are timed alternately and all results are checked.",
        epilog="commands: " + "; ".join(f"{name}: {what}" for name, (_, what) in COMMANDS.items()),
    )
    parser.add_argument("command", choices=COMMANDS)
    name = parser.parse_args(given[:1]).command
    module = importlib.import_module(COMMANDS[name][0])
    own = argparse.ArgumentParser(prog=f"python -m benchmarks {name}", description=module.__doc__)
    module.arguments(own)
    try:
        return int(module.run(own.parse_args(given[1:])))
    except WrongAnswer as error:
        Console(stderr=True).print(f"wrong result: {error}", markup=False)
        return 1


if __name__ == "__main__":
    raise SystemExit(main())
