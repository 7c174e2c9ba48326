"""Run fuzz targets: `python -m fuzz TARGET --minutes N --seed S`. Option `--list` lists them."""

import argparse
import json
import os
import sys
from pathlib import Path

from fuzz import ROOT

SOAK, DROPS = "soak", "drops"


def main() -> int:
    """Run the targets given on the command line; return 1 if there are findings, else 0."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("target", nargs="?", help="Name of a target, or 'all'.")
    parser.add_argument("--list", action="store_true", help="List the targets.")
    parser.add_argument(
        "--minutes", type=float, default=1.0, help="Minutes per target. Default: 1."
    )
    parser.add_argument("--seed", type=int, default=0, help="Seed of the first case. Default: 0.")
    parser.add_argument("--replay", type=int, metavar="SEED", help="Run one case in this process.")
    parser.add_argument(
        "--checked", action=argparse.BooleanOptionalAction, help="Run all cases in checked mode."
    )
    parser.add_argument(
        "--findings", type=Path, default=ROOT / "build" / "fuzz", help="Folder for findings."
    )
    given = parser.parse_args()
    if given.replay is not None and given.checked is not None:
        os.environ["CHASLES_CHECKED"] = str(int(given.checked))

    from fuzz import runner  # after the mode has been set
    from fuzz.child import attempt
    from fuzz.targets import TARGETS

    if given.list or given.target is None:
        for name, target in TARGETS.items():
            print(f"{name:12}{target.what}")
        print(f"{SOAK:12}Use and delete robots in one process, and monitor its memory.")
        print(f"{DROPS:12}Drop random bodies and robots on random ground, with time stepping.")
        return 0
    if given.target == SOAK:
        from fuzz.soak import soak

        wrong = soak(60.0 * given.minutes, given.seed)
        print("\n".join(wrong) or "no findings")
        return int(bool(wrong))
    if given.target == DROPS:
        from fuzz.drops import drops

        wrong = drops(60.0 * given.minutes, given.seed)
        print("\n".join(wrong) or "no findings")
        return int(bool(wrong))
    names = [n for n in TARGETS if n != "self"] if given.target == "all" else [given.target]
    if not set(names) <= set(TARGETS):
        parser.error(f"unknown target {given.target!r}; use --list to list the targets")
    if given.replay is not None:
        found = attempt(given.target, TARGETS[given.target].make(), given.replay)
        print("no findings" if found is None else found.pop("trace"))
        if found is not None:
            print(json.dumps(found, indent=1)[:2000])
        return int(found is not None)
    reports = [
        runner.run(name, 60.0 * given.minutes, given.seed, given.findings, given.checked)
        for name in names
    ]
    for report in reports:
        print(report.line())
        for kind, count in report.kinds.most_common():
            print(f"  {count} x {kind}")
    return int(any(report.kinds for report in reports))


if __name__ == "__main__":
    sys.exit(main())
