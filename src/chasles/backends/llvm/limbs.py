"""Code for a single state of a robot with similar limbs: limbs in SIMD lanes, trunk as scalars.

Instructions that are the same for several limbs (`Program.alike`) become one vector operation. The
arithmetic is the same as in scalar code, so the results are bitwise identical.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from chasles.backends.llvm.math import Writer
from chasles.backends.llvm.tiles import SPELLING, Body, Place
from chasles.backends.lowering import NEVER, Lowered, Part, Stage, deepest_first
from chasles.expr import Instruction, Program

LANES = frozenset({"input", "const", "sin", "cos", *SPELLING} - {"atan2"})
"""Operations that are computed for several limbs at once, in SIMD lanes."""


def packed(program: Program, lowered: Lowered) -> dict[int, tuple[int, ...]]:
    """Return the instructions that are computed together in SIMD lanes, as groups of indices.

    A group consists of the same instruction for several limbs, and is listed under the index of
    each of its instructions. Groups are not used in a program that is split into parts.
    """
    if len(lowered.parts) > 1:
        return {}
    together = (pack for pack in program.alike if lowered.code[pack[0]].op in LANES)
    return {k: pack for pack in together for k in pack}


class LimbBody(Body):
    """Writer of a program for one state; each SIMD lane computes one of several similar limbs."""

    def __init__(
        self,
        lowered: Lowered,
        pack: Mapping[int, tuple[int, ...]],
        w: Writer,
        results: Mapping[int, list[Place]],
    ) -> None:
        self._pack, self._lanes = pack, dict[tuple[int, ...], str]()
        super().__init__(replace(lowered, far=NEVER), _ordered(lowered, pack), w, results)

    @contextmanager
    def _wide(self, width: int) -> Iterator[Writer]:
        """Change the number of SIMD lanes that the writer uses, within a `with` block."""
        before = self.w.width
        self.w.take(width)
        try:
            yield self.w
        finally:
            self.w.take(before)

    def _write(self, k: int) -> None:
        pack = self._pack.get(k)
        if pack is None or self.code[k].op not in SPELLING:
            super()._write(k)
            return
        columns = zip(*(self.code[each].args for each in pack), strict=True)
        operands = [self._together(column) for column in columns]
        with self._wide(len(pack)) as w:
            self._lanes[pack] = SPELLING[self.code[k].op](w, *operands)

    def _store(self, k: int) -> None:
        for each in self._pack.get(k, (k,)):
            super()._store(each)

    def _together(self, column: tuple[int, ...]) -> str:
        """Return a SIMD vector with the values of several instructions, one in each lane."""
        if column not in self._lanes:
            self._lanes[column] = self._gathered(column)
        return self._lanes[column]

    def _gathered(self, column: tuple[int, ...]) -> str:
        first, w, name = column[0], self.w, self.w.element.name
        if all(self.code[k].op == "const" for k in column):
            numbers = (f"{name} {w.element.spelled(self.code[k].data)}" for k in column)
            return f"<{', '.join(numbers)}>"
        if self.code[first].op in ("sin", "cos"):
            places = [self._angle[self.code[k].op, self.code[k].args[0]] for k in column]
            table, start = places[0]
            if places == [(table, start + n) for n in range(len(column))]:
                place = w.at(table, start, name)
                with self._wide(len(column)):
                    return w.emit(f"load {w.type}, ptr {place}, align {w.element.bytes}")
        if column.count(first) == len(column):
            value, zeros = self._use(first), f"<{len(column)} x i32> zeroinitializer"
            return w.emit(f"shufflevector {w.type} {value}, {w.type} poison, {zeros}")
        vector = "poison"
        for n, k in enumerate(column):
            number = w.emit(f"extractelement {w.type} {self._use(k)}, i64 0")
            with self._wide(len(column)):
                vector = w.emit(f"insertelement {w.type} {vector}, {name} {number}, i64 {n}")
        return vector

    def _use(self, k: int) -> str:
        """Return the LLVM name of an instruction's result, extracted from a vector if necessary."""
        pack = self._pack.get(k, ())
        if k not in self._value and pack in self._lanes and self.code[k].op in SPELLING:
            lane, vector = f"<1 x i32> <i32 {pack.index(k)}>", self._lanes[pack]
            kind = f"<{len(pack)} x {self.w.element.name}>"
            self._value[k] = self.w.emit(f"shufflevector {kind} {vector}, {kind} poison, {lane}")
        return super()._use(k)


def _ordered(lowered: Lowered, pack: Mapping[int, tuple[int, ...]]) -> Part:
    """Return the program with its instructions ordered so that limbs are computed together.

    For each group that becomes one vector operation, only the first instruction is listed.
    """
    (part,), code = lowered.parts, lowered.code
    first = {k: pack.get(k, (k,))[0] for k in range(len(code))}
    joined = []
    for k, instruction in enumerate(code):
        needed = dict.fromkeys(first[a] for e in pack.get(k, (k,)) for a in code[e].args)
        joined.append(Instruction(instruction.op, tuple(needed)))
    order = deepest_first(joined, list(dict.fromkeys(first[r] for r in part.results)))
    done: set[int] = set()
    stages = []
    for stage in part.stages:
        wanted = {first[k] for k in stage.code} - done
        done |= wanted
        angles = dict.fromkeys(e for a in stage.angles for e in pack.get(a, (a,)))
        stages.append(Stage(tuple(k for k in order if k in wanted), tuple(angles)))
    return Part(tuple(stages), (), part.results)


def widths(pack: Mapping[int, Sequence[int]]) -> set[int]:
    """Return all vector widths (numbers of lanes) that occur in `pack`."""
    return {len(each) for each in pack.values()}
