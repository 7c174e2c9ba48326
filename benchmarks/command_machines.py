"""Compare accelerations of MJCF models with MuJoCo's: springs, tendons, actuators and damping on.

Contacts, limits, dry friction and equalities are off.
"""

import argparse
import sys
from collections import Counter

from benchmarks.corpus import in_packages
from benchmarks.machines import Compared, compared


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    site = "folders of installed packages; those of this Python by default"
    parser.add_argument("--site", nargs="+", default=sys.path, metavar="FOLDER", help=site)
    parser.add_argument("--packages", nargs="+", help="some packages only")


def run(chosen: argparse.Namespace) -> int:
    """Try all models that MuJoCo compiles; 1 where one differs without a warning."""
    counts: Counter[str] = Counter()
    for case in in_packages(chosen.site):
        if case.format != "MJCF" or case.package not in (chosen.packages or [case.package]):
            continue
        try:
            found = compared(case.path)
        except ValueError:  # MuJoCo does not compile it
            continue
        counts[_word(found)] += 1
        if not found.agrees or found.unsupported:
            told = "; ".join((*found.unsupported, found.refused))
            print(f"{case.path}: {found.passive:.1e} {found.actuated:.1e} {told}")
    print(dict(counts))
    return int(counts["differ"] > 0)


def _word(found: Compared) -> str:
    if found.refused:
        return "refused"
    if not found.explained:
        return "differ"
    return "agree, with a warning" if found.unsupported else "agree"
