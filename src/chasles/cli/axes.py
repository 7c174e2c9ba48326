"""Parser for the `--over` options of `chasles sweep`: values, ranges and distributions."""

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chasles.errors import InputError

RANGE = re.compile(r"([^:]+):([^:]+):([0-9]{1,9})")
LAW = re.compile(r"(uniform|normal)\(([^,]+),([^,]+)\)")
MOST = 10**9
"""Maximum number of runs in a sweep."""


@dataclass(frozen=True)
class Axis:
    """A varied quantity: grid `values`, or a distribution `law` with parameters `numbers`."""

    name: str
    values: tuple[float, ...] = ()
    law: str = ""
    numbers: tuple[float, float] = (0.0, 0.0)

    def drawn(self, rng: np.random.Generator) -> float:
        """Draw a random value from the distribution."""
        return float(getattr(rng, self.law)(*self.numbers))


@dataclass(frozen=True)
class Axes:
    """All runs of a sweep, with `samples` random runs per grid point.

    The first quantity varies slowest. Random values depend only on the seed and the run index.
    """

    axes: tuple[Axis, ...]
    samples: int = 1
    seed: int = 0

    @property
    def names(self) -> list[str]:
        return [axis.name for axis in self.axes]

    @property
    def count(self) -> int:
        """Total number of runs."""
        return math.prod((len(axis.values) for axis in self.axes if not axis.law), start=1) * max(
            self.samples, 1
        )

    def values(self, run: int) -> dict[str, float]:
        """Return the value of each varied quantity in the given run, by name."""
        point, rng = run // self.samples, np.random.default_rng([self.seed, run])
        found: dict[str, float] = {}
        for axis in reversed([axis for axis in self.axes if not axis.law]):
            point, k = divmod(point, len(axis.values))
            found[axis.name] = axis.values[k]
        for axis in self.axes:
            if axis.law:
                found[axis.name] = axis.drawn(rng)
        return {name: found[name] for name in self.names}


def parsed(words: Sequence[str], samples: int | None, seed: int) -> Axes:
    """Parse `--over` options into axes. `samples` is the number of runs per grid point."""
    axes = tuple(_axis(word) for word in words)
    names = [axis.name for axis in axes]
    for one, other in itertools.combinations(names, 2):
        if one == other:
            raise InputError(
                "E-SWEEP-002", f"{one!r} appears twice", "give it only once", part="--over"
            )
    random = any(axis.law for axis in axes)
    if random and samples is None:
        problem, remedy = "distributions need a number of runs", "give --samples"
        raise InputError("E-SWEEP-003", problem, remedy, part="--over")
    if not axes:
        problem, remedy = "there is nothing to vary", "give --over NAME=VALUES"
        raise InputError("E-SWEEP-004", problem, remedy, part="--over")
    found = Axes(axes, samples or 1, seed)
    if found.count > MOST:
        problem, remedy = f"{found.count:.3g} runs are too many", f"use at most {MOST:.0e} runs"
        raise InputError("E-SWEEP-005", problem, remedy, part="--over")
    return found


def _axis(word: str) -> Axis:
    name, equals, text = word.partition("=")
    try:
        if not (name and equals and text):
            raise ValueError
        if law := LAW.fullmatch(text):
            first, second = _number(law[2]), _number(law[3])
            if (law[1] == "normal" and second < 0.0) or (law[1] == "uniform" and second < first):
                raise ValueError
            return Axis(name, law=law[1], numbers=(first, second))
        if span := RANGE.fullmatch(text):
            count = int(span[3])
            if not 1 <= count <= 10**6:
                raise ValueError
            spaced = np.linspace(_number(span[1]), _number(span[2]), count)
            return Axis(name, tuple(map(float, spaced)))
        return Axis(name, tuple(map(_number, text.split(","))))
    except ValueError:
        problem = f"invalid quantity {word!r:.80}"
        remedy = "give NAME=A,B,..., NAME=FROM:TO:COUNT, NAME=uniform(A,B) or NAME=normal(MEAN,SD)"
        raise InputError("E-SWEEP-001", problem, remedy, part="--over") from None


def _number(text: str) -> float:
    if not math.isfinite(found := float(text)):
        raise ValueError
    return found
