"""The fast entry alone, many times a second: argument lists drawn from things made before.

They are those of `tests/backends/entry_stress.py`. Arrays are used over and over, alias each other,
and are written by `out=`: a case follows from the seeds of its process, not from its own alone.
"""

import random
from pathlib import Path

from entries import SUBJECTS, subject
from entry_stress import _compare, _draw, _pool

from fuzz.target import Case, allowed
from fuzz.targets import TARGETS

COMPARED = 0.02
"""The part of the calls that is also made by the Python path, with the same outcome."""


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
