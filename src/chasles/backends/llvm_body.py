"""The straight-line body of a program in LLVM's language, for any number of lanes.

Inputs and outputs are tiles: one vector of lanes for each number. With a single lane a tile is the
caller's own row.
"""

from collections.abc import Callable

from chasles.backends.llvm_math import Writer, angles, arctangent
from chasles.backends.lowering import Lowered
from chasles.expr import Program

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


class Body:
    """Writes a lowered program's instructions for `width` lanes."""

    def __init__(self, program: Program, lowered: Lowered, width: int, *, fuse: bool) -> None:
        self.program, self.code = program, lowered.code
        self.w = Writer(width, fuse)
        self._value: dict[int, str] = {}
        self._mask: dict[int, str] = {}
        self._angle: dict[tuple[str, int], str] = {}
        for number, stage in enumerate(lowered.stages):
            for k in stage.code:
                self._write(k)
            if stage.angles:
                pairs = angles(self.w, [self._use(a) for a in stage.angles], str(number))
                for angle, (sine, cosine) in zip(stage.angles, pairs, strict=True):
                    self._angle["sin", angle] = sine
                    self._angle["cos", angle] = cosine

    def store(self, instruction: int, pointer: str, index: int) -> None:
        """Store a result in a tile."""
        value, t = self._use(instruction), self.w.type
        self.w.raw(f"  store {t} {value}, ptr {self._element(pointer, index)}, align {self._align}")

    def function(self, name: str, parameters: list[str], attributes: str) -> str:
        head = f"define internal void @{name}({', '.join(parameters)}) {attributes} {{\nentry:"
        return "\n".join([head, *self.w.reserved, *self.w.lines, "  ret void\n}\n"])

    @property
    def _align(self) -> int:
        return 8 * self.w.width

    def _element(self, pointer: str, index: int) -> str:
        return self.w.emit(f"getelementptr {self.w.type}, ptr {pointer}, i64 {index}")

    def _write(self, k: int) -> None:
        op, args, data = self.code[k]
        if op == "const":
            self._value[k] = self.w.constant(data)
        elif op == "input":
            place = self._element(f"%in{data[0]}", data[1])
            self._value[k] = self.w.emit(f"load {self.w.type}, ptr {place}, align {self._align}")
        elif op in COMPARISONS:
            self._mask[k] = self.w.compare(COMPARISONS[op], *map(self._use, args))
        elif op == "select":
            condition, a, b = args
            self._value[k] = self.w.choose(self._condition(condition), self._use(a), self._use(b))
        else:
            self._value[k] = SPELLING[op](self.w, *map(self._use, args))

    def _use(self, k: int) -> str:
        op, args, _ = self.code[k]
        if op in ("sin", "cos"):
            return self._angle[op, args[0]]
        if k in self._mask and k not in self._value:
            w = self.w
            self._value[k] = w.choose(self._mask[k], w.constant(1.0), w.constant(0.0))
        return self._value[k]

    def _condition(self, k: int) -> str:
        if k not in self._mask:
            self._mask[k] = self.w.compare("une", self._use(k), self.w.constant(0.0))
        return self._mask[k]
