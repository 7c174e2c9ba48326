"""From a program to machine operations: where products fuse into sums, and in which stages.

The choices are made here, once, so that one state and a vector of states run the same operations
and give the same bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from chasles.expr import Instruction, Program

FUSED = {"add": "fma", "sub": ("fms", "fnma")}


@dataclass(frozen=True)
class Stage:
    """Instructions to run in order, then the angles whose sines and cosines are taken together."""

    code: tuple[int, ...]
    angles: tuple[int, ...]


@dataclass(frozen=True)
class Lowered:
    """A program's instructions with fused products, and the stages they run in.

    fma(a, b, c) = a*b + c, fms = a*b - c, fnma = c - a*b. `waves[k]` is the stage number of each
    angle's sine and cosine; an instruction that was fused away is in no stage.
    """

    code: tuple[Instruction, ...]
    stages: tuple[Stage, ...]


def lower(program: Program, *, fuse: bool) -> Lowered:
    """Fuse products into sums (where the machine can) and put the instructions into stages."""
    code = _fused(program) if fuse else list(program.code)
    return Lowered(tuple(code), tuple(_stages(code, program.results)))


def _fused(program: Program) -> list[Instruction]:
    """Each sum takes in one product that no other instruction needs, or only sums need."""
    code = list(program.code)
    users: dict[int, list[int]] = {k: [] for k in range(len(code))}
    for k, instruction in enumerate(code):
        for a in instruction.args:
            users[a].append(k)
    kept = {r for refs in program.results for r in refs}
    free = {k for k, i in enumerate(code) if i.op in ("add", "sub")}
    products = [k for k, i in enumerate(code) if i.op == "mul" and k not in kept]
    for product in sorted(products, key=lambda k: (len(users[k]), k)):
        sums = users[product]
        if sums and len(set(sums)) == len(sums) and all(k in free for k in sums):
            a, b = program.code[product].args
            for k in sums:
                free.discard(k)
                code[k] = _fuse(program.code[k], product, a, b)
    return code


def _fuse(total: Instruction, product: int, a: int, b: int) -> Instruction:
    first, second = total.args
    if total.op == "add":
        return Instruction("fma", (a, b, second if first == product else first))
    if first == product:
        return Instruction("fms", (a, b, second))
    return Instruction("fnma", (a, b, first))


def _stages(code: Sequence[Instruction], results: Sequence[Sequence[int]]) -> list[Stage]:
    """Angles that need no sine or cosine themselves come first, and so on outward."""
    needed = _needed(code, results)
    level = [0] * len(code)
    for k in needed:
        op, args, _ = code[k]
        inner = max((level[a] for a in args), default=0)
        level[k] = inner + 1 if op in ("sin", "cos") else inner
    stages, done = [], set()
    angles_of = {k: code[k].args[0] for k in needed if code[k].op in ("sin", "cos")}
    for depth in range(max(level, default=0) + 1):
        angles = tuple(dict.fromkeys(a for k, a in angles_of.items() if level[k] == depth + 1))
        wanted = needed if not angles else _needed(code, [angles])
        ready = [k for k in wanted if k not in done and code[k].op not in ("sin", "cos")]
        if angles:
            done.update(ready)
        stages.append(Stage(tuple(ready), angles))
    return stages


def _needed(code: Sequence[Instruction], results: Sequence[Sequence[int]]) -> list[int]:
    """The instructions that some result needs, in order."""
    wanted = bytearray(len(code))
    for refs in results:
        for r in refs:
            wanted[r] = 1
    for k in range(len(code) - 1, -1, -1):
        if wanted[k]:
            for a in code[k].args:
                wanted[a] = 1
    return [k for k, w in enumerate(wanted) if w]
