"""Measure how many small errors in the algorithms `verify` detects.

    python tests/mutation.py --count 200 --seed 1
    python tests/mutation.py --count 60 --shared

A mutant is a module with one changed sign, index or term. Each mutant runs in a separate process,
on states that were computed by the original sources. A mutant is "caught" if a check finds wrong
values. It has "survived" if all checks pass although at least one program differs from the
original. It is "endless" if it exceeds the time limit. Only these three results count. Mutants
that raise an error ("raised") are not counted, because anybody would notice the error. Mutants
whose programs are all as before ("unchanged") are not counted either. Mutants are drawn until the
requested number has been counted.
"""

import argparse
import ast
import collections
import contextlib
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import pickle
import random
import resource
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(importlib.util.find_spec("chasles").origin).parent
ALGORITHMS = ("algorithms",)
SHARED = ("model/joints", "model/spaces.py")
"""Modules that all methods share, so that the methods cannot check each other there."""

PATIENCE = 10.0
"""Processor time after which a mutant is "endless", in multiples of that of the original sources.

The factor is so large that a busy machine does not make a mutant endless. Endless mutants are
counted as not caught.
"""

COUNTED = ("caught", "survived", "endless")


# Mutants ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mutant:
    """A module with one change: the index of the changed node, and the index of its replacement."""

    path: Path
    place: int
    kind: int

    @property
    def module(self) -> str:
        """Dotted name of the module."""
        parts = self.path.relative_to(ROOT).with_suffix("").parts
        return ".".join(("chasles", *(p for p in parts if p != "__init__")))

    @property
    def source(self) -> str:
        """Source of the changed module."""
        tree = ast.parse(self.path.read_text())
        old, new = self._nodes(tree)
        _replace(tree, old, new)
        return ast.unparse(ast.fix_missing_locations(tree))

    def _nodes(self, tree: ast.AST) -> tuple[Any, ast.AST]:
        old = list(ast.walk(tree))[self.place]
        return old, list(changed(old))[self.kind]

    def __str__(self) -> str:
        old, new = self._nodes(ast.parse(self.path.read_text()))
        where = f"{self.path.relative_to(ROOT).as_posix()}:{old.lineno}"
        return f"{where}: {ast.unparse(old)}  ->  {ast.unparse(new)}"


def mutants(path: Path, function: str = "") -> Iterator[Mutant]:
    """Yield all mutants of a file, or of one function: each changes one sign, index or term."""
    tree = ast.parse(path.read_text())
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    functions = [n for n in functions if function in ("", n.name)]
    code = {id(n) for f in functions for statement in f.body for n in ast.walk(statement)}
    for place, node in enumerate(ast.walk(tree)):
        if id(node) in code:
            yield from (Mutant(path, place, kind) for kind, _ in enumerate(changed(node)))


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the replacements of a node."""
    match node:
        case ast.BinOp(left, ast.Add(), right):
            yield ast.BinOp(left, ast.Sub(), right)
            yield left
        case ast.BinOp(left, ast.Sub(), right):
            yield ast.BinOp(left, ast.Add(), right)
            yield left
        case ast.BinOp(left, ast.Mult(), _):
            yield left
        case ast.UnaryOp(ast.USub(), operand):
            yield operand
        case ast.AugAssign(target, ast.Add(), value):
            yield ast.AugAssign(target, ast.Sub(), value)
            yield ast.Pass()
        case ast.AugAssign(target, ast.Sub(), value):
            yield ast.AugAssign(target, ast.Add(), value)
            yield ast.Pass()
        case ast.Attribute(value, "T", ast.Load()):
            yield value
        case ast.Subscript(value, ast.Name(name), ctx) if name in SWAPPED:
            yield ast.Subscript(value, ast.Name(SWAPPED[name], ast.Load()), ctx)
        case ast.Subscript(value, ast.Constant(int(k)), ctx):
            yield ast.Subscript(value, ast.Constant(k + 1 if k < 2 else k - 1), ctx)
        case ast.Constant(float(x)) if x not in (0.0, 1.0):
            yield ast.Constant(1.5 * x)


SWAPPED = {"i": "p", "p": "i", "j": "i"}
"""Indices that are easily confused, and their replacements."""


def _replace(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, field, ast.copy_location(new, old))
            elif isinstance(value, list):
                value[:] = [ast.copy_location(new, old) if v is old else v for v in value]


def shuffled(parts: tuple[str, ...], seed: int) -> list[Mutant]:
    """Return all mutants of some folders and files, in random order."""
    paths = [p for part in parts for p in sorted([ROOT / part, *(ROOT / part).rglob("*.py")])]
    found = [m for path in paths if path.suffix == ".py" for m in mutants(path)]
    return random.Random(seed).sample(found, len(found))


# States for the mutants ------------------------------------------------------------------------


class State(NamedTuple):
    """Description and state of a robot, computed by the original sources."""

    source: Any
    mimic: bool
    numbers: tuple[Any, ...]


def prepared(count: int | None = None) -> bytes:
    """Return pickled states of the first `count` robots, or of all; small robots come first."""
    import chasles
    from chasles.checks.trial import trial
    from chasles.mathematics.linear import Vector
    from chasles.mathematics.rotations import matrix_from_rpy
    from chasles.mathematics.spatial import Transform
    from chasles.model import LoopData, gear

    built = chasles.robots

    def moved(t: Any) -> Any:
        return 0.9 + 0.5 * t + 0.7 * t * t

    def bare(robot: chasles.Robot) -> chasles.Robot:
        """Return a robot without rotors, whose link frames differ from the joint frames."""
        frame = Transform.from_pose(matrix_from_rpy(0.3, -0.5, 0.8), Vector.of(0.11, -0.07, 0.05))
        source = robot.model.source
        joints = tuple(replace(j, armature=0.0, child_pose=frame) for j in source.joints)
        return chasles.Robot(replace(source, joints=joints))

    robots = [
        built.general_chain(3),
        built.planar(3),
        built.random_tree(4, 3),
        bare(built.random_tree(4, 10)),
        built.random_tree(4, 14, floating=True),
        built.four_bar(),
        built.general_chain(3).with_couplings(gear("gear", "joint2", {"joint1": 0.6})),
        built.random_tree(4, 5).drive({"joint1": moved}),
        built.five_bar().drive({"left": moved}),
        built.general_chain(8).with_loops(LoopData("knee", "universal", "link2", "link8")),
        built.random_tree(9, 3),
        built.general_tree(12, 2).with_loops(LoopData("yoke", "universal", "link8", "link12")),
        built.puma560(),
        built.delta(),
        built.random_tree(9, 14, floating=True),
    ]
    states = []
    for k, robot in enumerate(robots[:count]):
        at = trial(robot, 10 + k)
        source = at.closed.source if robot.model.loop_rows else robot.model.source
        numbers = (at.t, at.q, at.qd, at.qdd, at.direction, at.wrench)
        states.append(State(source, robot.model.mimics, numbers))
    return pickle.dumps(states)


SMALL = 10
"""Number of robots small enough that all methods of all functions can be traced for them."""


def caught(states: bytes) -> str:
    """Return the first failed check as "caught: ..." or "raised: ...", or "" if all checks pass."""
    import chasles
    from chasles.checks.trial import Trial
    from chasles.checks.verify import checks, results

    for state in pickle.loads(states):
        robot = chasles.Robot(state.source, mimic=state.mimic)
        at = Trial(robot, robot.model, *state.numbers)
        for result in results([at], 0, checks(compiled=False)):
            if not result.ok:
                return f"{'raised' if 'Error:' in result.detail else 'caught'}: {result}"
    return ""


def digest(states: bytes) -> str:
    """Return a hash of all programs of the algorithms for the smaller robots."""
    import chasles
    from chasles.algorithms import DERIVATIVES, METHODS
    from chasles.functions.programs import Derivative, program
    from chasles.functions.tracing import signature
    from chasles.model import ModelError

    whole = hashlib.sha256()
    for state in pickle.loads(states)[:SMALL]:
        model = chasles.Robot(state.source, mimic=state.mimic).model
        for function, rows in METHODS.items():
            known = signature(rows[0].algorithm).options
            options: dict[str, Any] = (
                {"frame": next(reversed(model.frames))} if "frame" in known else {}
            )
            options |= {"known": (model.bodies[0].data.name,)} if "known" in known else {}
            if function == "actuator_forces":
                options |= {"actuated": tuple(range(model.nv)), "weights": (1.0,) * model.nv}
            if "order" in known:
                options["order"] = 2
            for row in rows:
                with contextlib.suppress(ModelError, ValueError, AssertionError, AttributeError):
                    whole.update(program(model, function, method=row.name, **options).hash.encode())
        for function in DERIVATIVES:
            with contextlib.suppress(ModelError, ValueError):
                by = Derivative("jacobian", ("q", "qd"))
                whole.update(program(model, function, derivative=by).hash.encode())
    return whole.hexdigest()


# Running ---------------------------------------------------------------------------------------


class Changed(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Import hook that replaces the source of one module by the changed source."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return a spec for the changed module, and None for all others."""
        if name != self.mutant.module:
            return None
        package = self.mutant.path.name == "__init__.py"
        spec = importlib.util.spec_from_loader(
            name, self, origin=str(self.mutant.path), is_package=package
        )
        if package:
            spec.submodule_search_locations = [str(self.mutant.path.parent)]
        return spec

    def get_source(self, name: str) -> str:
        """Return the changed source."""
        return self.mutant.source

    def is_package(self, name: str) -> bool:
        """Return True if the module is a package."""
        return self.mutant.path.name == "__init__.py"


def verdict(mutant: Mutant | None, states: bytes, usual: str, limit: float = 0.0) -> str:
    """Try a mutant in a separate process; return "caught", "raised" or another verdict.

    The others are "unchanged", "survived" and "endless". If mutant is None, return the hash of the
    original programs. `limit` is the maximum processor time in s; 0 means no limit.
    """
    read, write = os.pipe()
    child = os.fork()
    if not child:
        signal.setitimer(signal.ITIMER_PROF, limit)  # ends the process at the limit
        with os.fdopen(write, "w") as out:
            try:
                out.write(_verdict(mutant, states, usual))
            except BaseException as error:
                out.write(f"raised: {type(error).__name__}: {error}")
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return said or f"endless: more than {limit:.0f} s"


def _verdict(mutant: Mutant | None, states: bytes, usual: str) -> str:
    for name in [n for n in sys.modules if n.split(".")[0] == "chasles"]:
        del sys.modules[name]
    if mutant is None:
        failed = caught(states)
        assert not failed, failed
        return digest(states)
    sys.meta_path.insert(0, Changed(mutant))
    failed = caught(states)
    if failed:
        return failed
    return "unchanged" if digest(states) == usual else "survived"


def tried(chosen: list[Mutant]) -> Iterator[tuple[Mutant, str]]:
    """Yield each mutant with its verdict."""
    states = prepared()
    usual = verdict(None, states, "")
    assert len(usual) == 64, f"the true sources are not as they should be: {usual}"
    work = resource.getrusage(resource.RUSAGE_CHILDREN)
    limit = PATIENCE * (work.ru_utime + work.ru_stime)
    print(f"{len(chosen)} mutants; the limit is {limit:.0f} s, {PATIENCE:.0f} times the usual work")
    for mutant in chosen:
        yield mutant, verdict(mutant, states, usual, limit)


def main() -> None:
    """Try mutants until the requested number has been counted, and print how many were caught."""
    words = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    words.add_argument("--count", type=int, default=200, help="how many shall count")
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--skip", type=int, default=0, help="mutants that another run has tried")
    words.add_argument("--shared", action="store_true", help="of joints, which methods share")
    given = words.parse_args()
    chosen = shuffled(SHARED if given.shared else ALGORITHMS, given.seed)[given.skip :]
    counts: collections.Counter[str] = collections.Counter()
    for k, (mutant, said) in enumerate(tried(chosen), 1):
        word, _, why = said.partition(": ")
        counts[word] += 1
        print(f"{k:4d} {word:9s} {mutant}   {why[:100]}".rstrip(), flush=True)
        counted = sum(counts[word] for word in COUNTED)
        if counted == given.count:
            break
    share = 100.0 * counts["caught"] / max(counted, 1)
    others = ", ".join(f"{n} {word}" for word, n in counts.items() if word != "caught")
    print(f"{counts['caught']} of {counted} caught ({share:.1f} %); {others}")


if __name__ == "__main__":
    main()
