"""Fast calls of the fast entry, with random argument lists from a fixed set of objects.

The objects are those of `tests/backends/entry_stress.py`. Arrays are reused, alias each other, and
are written through `out=`. A case therefore depends on the earlier cases in its process.
"""

import random
from pathlib import Path

from entries import SUBJECTS, subject
from entry_stress import _compare, _draw, _pool

from fuzz.target import Case, allowed
from fuzz.targets import TARGETS

COMPARED = 0.02
"""Fraction of the calls that are compared with the Python path."""


def make() -> Case:
    names = list(SUBJECTS)
    pools = {name: _pool(subject(name)) for name in names}

    def case(rng: random.Random, folder: Path) -> None:
        for _ in range(TARGETS["entry"].calls):
            name = rng.choice(names)
            given, named = _draw(rng, pools[name])
            if rng.random() < COMPARED:
                _compare(name, given, named)
                continue
            try:
                subject(name).entry(*given, **named)
            except Exception as error:
                if not allowed(error):
                    raise

    return case
