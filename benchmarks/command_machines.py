"""Compare accelerations of MJCF models with MuJoCo, including springs, tendons and actuators.

Damping is included too. Contacts, limits, dry friction and equality constraints are disabled.
"""

import argparse
import sys
from collections import Counter

from benchmarks.corpus import in_packages
from benchmarks.machines import Compared, compared


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    site = "folders of installed packages (default: those of this Python)"
    parser.add_argument("--site", nargs="+", default=sys.path, metavar="FOLDER", help=site)
    parser.add_argument("--packages", nargs="+", help="names of packages to read (default: all)")


def run(chosen: argparse.Namespace) -> int:
    """Compare all models that MuJoCo can compile. Return 1 if one differs without a warning."""
    counts: Counter[str] = Counter()
    for case in in_packages(chosen.site):
        if case.format != "MJCF" or case.package not in (chosen.packages or [case.package]):
            continue
        try:
            found = compared(case.path)
        except ValueError:  # MuJoCo cannot compile the file
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
