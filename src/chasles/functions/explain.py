"""The program that runs for a function: its method, passes, candidates and source."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from chasles import algorithms
from chasles.expr import Count, Program
from chasles.functions.cost import measured, recorder
from chasles.functions.doors import Wrench, checked_options, wrench_arguments
from chasles.functions.programs import Candidate, candidates
from chasles.model import Model
from chasles.model.passes import PASSES

_PACKAGE = Path(algorithms.__file__).parents[2]
SHORT = 12
"""Lines of a program that an explanation prints: the first, and the results."""


class Tried(NamedTuple):
    """One program that could run.

    method: its name. passes: those applied to the model before it. weight: its work, in which a
    division, root, sine or cosine counts as eight multiplications. The least weight runs.
    """

    method: str
    passes: tuple[str, ...]
    weight: int


class Applied(NamedTuple):
    """A pass that changed the model; what it does, and the operations after it."""

    name: str
    what: str
    operations: Count


@dataclass(frozen=True)
class Explanation:
    """What runs when a function of a robot is called.

    function: what is traced; for `forward_dynamics` of a robot with loops,
    "constrained_dynamics". method: the one that runs. candidates: all programs that were tried, in
    order; the first of those with the least weight runs. given: operations of the method on the
    robot as it was loaded. passes: the changes of the model, in order, each with the operations
    after it. source, lines: the file that is traced, and the first and last line of the algorithm
    in it. sources: all files of algorithms that contributed operations. program: the program.
    """

    robot: str
    function: str
    method: str
    candidates: tuple[Tried, ...]
    given: Count
    passes: tuple[Applied, ...]
    source: str
    lines: tuple[int, int]
    sources: tuple[str, ...]
    program: Program

    @property
    def reason(self) -> str:
        """Why this method runs."""
        tried = len(self.candidates)
        if tried == 1:
            return "the only candidate"
        return f"least work of {tried} candidates"

    def text(self, *, full: bool = False) -> str:
        """The explanation as text; full: with every line of the program."""
        first, last = self.lines
        rows = [("as loaded", self.given, "")]
        rows += [(each.name, each.operations, each.what) for each in self.passes]
        lines = [
            f"{self.function} of {self.robot}: method {self.method!r}, {self.reason}",
            f"source: {self.source}, lines {first} to {last}",
            *(f"    and {file}" for file in self.sources if file != self.source),
            "",
            f"{'pass':14}{'mul':>6}{'add':>6}{'div':>5}{'sqrt':>5}{'trig':>6}",
            *(f"{name:14}{_columns(count)}  {what}".rstrip() for name, count, what in rows),
            "",
            f"{'candidate':22}{'work':>6}  passes",
            *(f"{t.method:22}{t.weight:6}  {', '.join(t.passes)}" for t in self.candidates),
            "",
            *self.listing(full=full),
        ]
        return "\n".join(lines)

    def listing(self, *, full: bool = False) -> list[str]:
        """The lines of the program; not full: a long one without its middle."""
        lines = str(self.program).rstrip().split("\n")
        results = len(self.program.outputs)
        left_out = len(lines) - SHORT - results
        if full or left_out <= 1:
            return lines
        return [*lines[:SHORT], f"  ... ({left_out} more lines)", *lines[-results:]]

    def __str__(self) -> str:
        return self.text()


def _columns(count: Count) -> str:
    other = count.sines_and_cosines + count.arctangents
    roots, divisions = count.square_roots, count.divisions
    return f"{count.multiplications:6}{count.additions:6}{divisions:5}{roots:5}{other:6}"


def explain(
    model: Model,
    function: str,
    *,
    method: str = "fastest",
    dissipation: bool = False,
    f_ext: Mapping[str, Wrench] | None = None,
    parameters: Sequence[str] = (),
    **options: Any,
) -> Explanation:
    """Trace a function as `programs.program` does, and keep what it found on the way."""
    keys, _ = wrench_arguments(model, f_ext)
    given = dict(checked_options(model, function, options))
    given |= {"wrenches": keys, "parameters": tuple(dict.fromkeys(parameters))}
    found = candidates(model, function, method=method, dissipation=dissipation, **given)
    weights = [way.trace(model, **given).count.weight for way in found]
    best = found[weights.index(min(weights))]
    passes = _in_order(best.passes)
    counts = [
        Candidate(best.method, passes[:k]).trace(model, **given).count
        for k in range(len(passes) + 1)
    ]
    program = best.trace(model, record=recorder("simplified"), **given)
    algorithm = best.method.algorithm
    source, start = inspect.getsourcelines(algorithm)
    home = Path(algorithms.__file__).parent.relative_to(_PACKAGE).as_posix()
    parts = dict.fromkeys(f"{home}/{step.file}" for step in measured(program).steps)
    return Explanation(
        model.name,
        function,
        best.method.name,
        tuple(
            Tried(way.method.name, _in_order(way.passes), weight)
            for way, weight in zip(found, weights, strict=True)
        ),
        counts[0],
        tuple(
            Applied(name, PASSES[name].what, count)
            for name, count in zip(passes, counts[1:], strict=True)
        ),
        Path(inspect.getfile(algorithm)).relative_to(_PACKAGE).as_posix(),
        (start, start + len(source) - 1),
        tuple(parts),
        program,
    )


def _in_order(passes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in PASSES if name in passes)
