"""A stretch of a lowered program in LLVM's language, for one state or for a vector of states."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from chasles.backends.llvm.math import DOUBLE, Element, Writer, angles, arctangent
from chasles.backends.lowering import Lowered, Part


@dataclass(frozen=True)
class Target:
    """Target of code generation: number of lanes, fused products, dtype."""

    width: int
    fuse: bool
    element: Element = DOUBLE

    def writer(self, width: int | None = None) -> Writer:
        """A fresh writer for all lanes, or for another number of them."""
        return Writer(width or self.width, self.fuse, self.element, self.width)


SPELLING: dict[str, Callable[..., str]] = {
    "add": Writer.add,
    "sub": Writer.sub,
    "mul": Writer.mul,
    "div": lambda w, a, b: w.binary("fdiv", a, b),
    "neg": Writer.neg,
    "fma": Writer.fma,
    "fms": lambda w, a, b, c: w.fma(a, b, w.neg(c)),
    "fnma": Writer.fnma,
    "sqrt": lambda w, a: w.call("sqrt", a),
    "atan2": arctangent,
    "min": lambda w, a, b: w.call("minimum", a, b),
    "max": lambda w, a, b: w.call("maximum", a, b),
    "abs": lambda w, a: w.call("fabs", a),
}
"""Operations on vectors of numbers. Sines and cosines are taken in groups (`Stage.angles`);
comparisons and selections work on masks."""

COMPARISONS = {"less": "olt", "less_equal": "ole", "equal": "oeq"}

Place = tuple[str, int]
"""A tile and an index in it."""


class Body:
    """Writes one part of a lowered program for any number of lanes.

    results: where values are delivered, (tile, index) each. A value is stored as soon as it is
    made, so that it need not be kept.
    """

    def __init__(
        self, lowered: Lowered, part: Part, w: Writer, results: Mapping[int, list[Place]]
    ) -> None:
        self.code, self.place, self.w = lowered.code, lowered.place, w
        self._going = {k: list(places) for k, places in results.items()}
        for k, place in part.saved:
            self._going.setdefault(k, []).append(("%scratch", place))
        self._value: dict[int, str] = {}
        self._mask: dict[int, str] = {}
        self._angle: dict[tuple[str, int], Place] = {}
        for number, stage in enumerate(part.stages):
            for k in stage.code:
                self._write(k)
                self._store(k)
            if stage.angles:
                sines, cosines = angles(w, [self._use(a) for a in stage.angles], str(number))
                for index, angle in enumerate(stage.angles):
                    self._angle["sin", angle] = (sines, index)
                    self._angle["cos", angle] = (cosines, index)
        for k in list(self._going):
            self._store(k)

    def _store(self, k: int) -> None:
        for tile, index in self._going.pop(k, ()):
            value, place = self._use(k), self._address(tile, index)
            self.w.raw(f"  store {self.w.type} {value}, ptr {place}, align {self.w.bytes}")

    def _load(self, tile: str, index: int) -> str:
        place = self._address(tile, index)
        return self.w.emit(f"load {self.w.type}, ptr {place}, align {self.w.bytes}")

    def _address(self, tile: str, index: int) -> str:
        return self.w.at(tile, index, self.w.type)

    def _write(self, k: int) -> None:
        op, args, _ = self.code[k]
        if op in COMPARISONS:
            self._mask[k] = self.w.compare(COMPARISONS[op], *map(self._use, args))
        elif op == "select":
            condition, a, b = args
            self._value[k] = self.w.choose(self._condition(condition), self._use(a), self._use(b))
        elif op in SPELLING:
            self._value[k] = SPELLING[op](self.w, *map(self._use, args))

    def _use(self, k: int) -> str:
        """The name of a value: made in this part, an input, a constant, or from the scratch."""
        op, args, data = self.code[k]
        if op == "const":
            return self.w.constant(data)
        if k not in self._value:
            if op == "input":
                self._value[k] = self._load(f"%in{data[0]}", data[1])
            elif op in ("sin", "cos") and (op, args[0]) in self._angle:
                self._value[k] = self._load(*self._angle[op, args[0]])
            elif k in self._mask:
                ones, zeros = self.w.constant(1.0), self.w.constant(0.0)
                self._value[k] = self.w.choose(self._mask[k], ones, zeros)
            else:
                self._value[k] = self._load("%scratch", self.place[k])
        return self._value[k]

    def _condition(self, k: int) -> str:
        if k not in self._mask:
            self._mask[k] = self.w.compare("une", self._use(k), self.w.constant(0.0))
        return self._mask[k]
