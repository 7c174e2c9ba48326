"""The benchmarks: `python -m benchmarks` and a command; each has `--help`."""

import argparse
import importlib
import sys
from collections.abc import Sequence

COMMANDS = {
    "compare": ("benchmarks.command_compare", "chasles, Pinocchio and MuJoCo in one run"),
    "calls": ("benchmarks.command_calls", "every way of calling, beside Pinocchio"),
    "chains": ("benchmarks.command_chains", "robots of 10 to 1000 bodies"),
    "stores": ("benchmarks.command_stores", "large results beside what memory takes"),
    "motions": ("benchmarks.command_motions", "rollouts beside MuJoCo's"),
    "contact": ("benchmarks.command_contact", "steps with contact beside MuJoCo"),
    "inverse-kinematics": (
        "benchmarks.command_inverse_kinematics",
        "random poses, beside the Robotics Toolbox",
    ),
    "branches": ("benchmarks.command_branches", "all postures of random poses"),
    "trajectories": ("benchmarks.command_trajectories", "paths in time, beside TOPP-RA and Ruckig"),
    "distances": ("benchmarks.command_distances", "a sphere model's distances from itself"),
    "identification": (
        "benchmarks.command_identification",
        "identified parameters beside the truth; the throughput of normal equations",
    ),
    "logs": ("benchmarks.command_logs", "logs larger than memory: states a second, and memory"),
    "clusters": (
        "benchmarks.command_clusters",
        "many logs on local Dask clusters: scheduling overhead, killed workers",
    ),
    "c": ("benchmarks.command_c", "exported C beside Pinocchio"),
    "gpu": ("benchmarks.command_gpu", "kernels on a GPU beside what it can do"),
    "verify": ("benchmarks.command_verify", "how long `chasles verify` takes"),
    "corpus": ("benchmarks.command_corpus", "every robot file of installed packages"),
    "machines": ("benchmarks.command_machines", "accelerations of MJCF models beside MuJoCo"),
    "view": ("benchmarks.command_view", "the viewer, in a browser without a graphics card"),
}
"""One row a command: a module with `arguments(parser)` and `run(chosen)`, loaded on use, since no
machine needs all the libraries that all of them compare with."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 1 where an answer was wrong, whatever the times."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Times, as ratios to peers in the same run; all answers are checked.",
        epilog="commands: " + "; ".join(f"{name}: {what}" for name, (_, what) in COMMANDS.items()),
    )
    parser.add_argument("command", choices=COMMANDS)
    name = parser.parse_args(given[:1]).command
    module = importlib.import_module(COMMANDS[name][0])
    own = argparse.ArgumentParser(prog=f"python -m benchmarks {name}", description=module.__doc__)
    module.arguments(own)
    return int(module.run(own.parse_args(given[1:])))


if __name__ == "__main__":
    raise SystemExit(main())
