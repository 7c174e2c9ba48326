"""The statements of a function in PTX, NVIDIA's assembly language, within CUDA C.

NVRTC's optimizer takes seconds for long straight-line programs, but cannot improve them: their
common expressions are already shared, and multiply-adds are already fused. Therefore arithmetic is
written as `asm` statements, which the optimizer passes on to the assembler. Other functions, such
as sine and cosine, stay in CUDA C. The registers of `asm` statements are declared at the beginning
of a function, and all its statements can use them.
"""

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from chasles.backends.cuda.body import Body
from chasles.backends.cuda.tiles import WARP

UNORDERED = "setp.nan.{t} {p}, {0}, {1}; add.rn.{t} {n}, {0}, {1}; selp.{t} {r}, {n}, {r}, {p};"
"""PTX instructions that replace a result with the sum of the two operands if either is NaN."""

OPERATIONS = {
    "add": "add.rn.{t} {r}, {0}, {1};",
    "sub": "sub.rn.{t} {r}, {0}, {1};",
    "mul": "mul.rn.{t} {r}, {0}, {1};",
    "neg": "neg.{t} {r}, {0};",
    "abs": "abs.{t} {r}, {0};",
    "sqrt": "sqrt.rn.{t} {r}, {0};",
    "fma": "fma.rn.{t} {r}, {0}, {1}, {2};",
    "fms": "neg.{t} {n}, {2}; fma.rn.{t} {r}, {0}, {1}, {n};",
    "fnma": "neg.{t} {n}, {0}; fma.rn.{t} {r}, {n}, {1}, {2};",
    "min": f"min.{{t}} {{r}}, {{0}}, {{1}}; {UNORDERED}",
    "max": f"max.{{t}} {{r}}, {{0}}, {{1}}; {UNORDERED}",
    "less": "setp.lt.{t} {p}, {0}, {1}; selp.{t} {r}, {one}, {zero}, {p};",
    "less_equal": "setp.le.{t} {p}, {0}, {1}; selp.{t} {r}, {one}, {zero}, {p};",
    "equal": "setp.eq.{t} {p}, {0}, {1}; selp.{t} {r}, {one}, {zero}, {p};",
    "select": "setp.neu.{t} {p}, {0}, {zero}; selp.{t} {r}, {1}, {2}, {p};",
}
"""Format strings of PTX instructions, by operation. The fields are r (register of the result), p
(predicate register), n (scratch register), t (type), zero, one, and the indices of operands.
"""

TYPED = {
    "float": {
        "div": "div.full.{t} {r}, {0}, {1};",
        "inverse": "rcp.approx.ftz.{t} {r}, {1};",
    },
    "double": {"div": "div.rn.{t} {r}, {0}, {1};"},
}
"""PTX instructions for divisions, by floating-point type."""

PROPAGATING = {
    "min": "min.NaN.{t} {r}, {0}, {1};",
    "max": "max.NaN.{t} {r}, {0}, {1};",
}
PROPAGATES = 80
"""PTX instructions for a minimum and a maximum that are NaN if an operand is NaN. These
instructions exist for float32 only, from compute capability 8.0 (`PROPAGATES`) on."""

WINDOW = 200
"""Number of instructions during which a value read from shared memory is reused from its register.
The number is large, because the assembler itself reloads a value when registers are scarce, but
rarely removes a read of a value that is still in a register.
"""

COMPARED = ("less", "less_equal", "equal")
"""Comparison operations. The result of a comparison stays in a predicate register. Operations that
select one of two values read this register directly."""

HERE = """#define HERE asm volatile(".reg .u32 here; mov.u32 here, %0;" \\
  :: "r"((unsigned)__cvta_generic_to_shared(tile + lane)));"""
"""C macro that defines the register `here`: the address of the thread's first entry in the tile of
its warp. A tile is the shared memory of a warp."""


@dataclass
class Assembly(Body):
    """Writer of a program's statements in PTX and CUDA C, for inputs and results in a tile.

    A tile is the shared memory of a warp.

    - store: function that returns the address of a result in the tile, or "" if the result is
      already there.
    - held: addresses of values in the tile.
    - capability: architecture as a number, such as 90.

    A result that is used again is read back from the tile, so that it need not stay in a register.
    """

    capability: int = PROPAGATES
    window: int = WINDOW
    _waiting: list[str] = field(default_factory=list)
    _reads: int = 0

    @property
    def _type(self) -> str:
        return f"f{8 * self.number.bytes}"

    @property
    def _kind(self) -> str:
        """Constraint letter for operands of `asm` statements, "f" (float) or "d" (double)."""
        return self.number.name[0]

    @cached_property
    def _table(self) -> dict[str, str]:
        """Format strings of PTX instructions, by operation, for this dtype and architecture."""
        short = self.number.bytes == 4 and self.capability >= PROPAGATES
        return OPERATIONS | TYPED[self.number.name] | (PROPAGATING if short else {})

    @cached_property
    def _words(self) -> dict[str, str]:
        """Fields of the format strings in `OPERATIONS` that are the same for all operations."""
        return {"t": self._type, "one": self._constant(1.0), "zero": self._constant(0.0)}

    def text(self) -> list[str]:
        """Return the lines of the function: declarations of registers, then all statements."""
        self._flush()
        size, t = len(self.plan.code), self._type
        names = ", ".join(f"{letter}<{size}>" for letter in "tscn")
        head = f'  asm volatile(".reg .{t} {names}, m<{self._reads}>; .reg .pred p<{size}>;");'
        return ["  HERE", head, *self.lines]

    def say(self, line: str) -> None:
        self._flush()
        super().say(line)

    def _flush(self) -> None:
        """Emit all pending PTX instructions as one `asm` statement."""
        if self._waiting:
            self.lines.append("  asm volatile(")
            self.lines += [f'    "{line}\\n"' for line in self._waiting]
            self.lines.append('    ::: "memory");')
            self._waiting.clear()

    def name(self, k: int, text: str, *, fixed: bool = True) -> None:
        """Declare a register for a value, given as a CUDA C expression."""
        super().name(k, text, fixed=fixed)
        if fixed:
            self._given(f"t{k}", f"t{k}")

    def _given(self, register: str, value: str) -> None:
        """Set a register to the value of a CUDA C expression."""
        super().say(f'asm volatile("mov.{self._type} {register}, %0;" :: "{self._kind}"({value}));')

    def seen(self, k: int) -> str:
        if self.plan.code[k].op == "const":
            return self.number.spelled(self.plan.code[k].data)
        register = self.use(k)
        if k in self.plan.turning_inputs:
            return register
        self._reads += 1
        value = f"x{self._reads}"
        moved = f'asm volatile("mov.{self._type} %0, {register};" : "={self._kind}"({value}));'
        self.say(f"real {value}; {moved}")
        return value

    def turn_near(self) -> None:
        super().turn_near()
        for k in self.plan.turning_inputs:
            self._given(f"t{k}", f"t{k}")

    def turn(self, angle: int, sine: str, cosine: str) -> None:
        super().turn(angle, sine, cosine)
        self._given(sine, sine)
        self._given(cosine, cosine)

    def _fetched(self, k: int) -> str:
        self._reads += 1
        self._waiting.append(f"ld.shared.{self._type} m{self._reads - 1}, {self.held[k]};")
        return f"m{self._reads - 1}"

    def _operate(self, k: int, operands: Sequence[str]) -> None:
        op, args, _ = self.plan.code[k]
        if op == "div" and self.plan.code[args[0]].data == 1.0:
            op = "inverse"
        if op not in self._table:
            self.name(k, self.spelled(k, [self.seen(a) for a in args]))
            return
        spelling, predicate = self._table[op], f"p{k}"
        if op == "select" and self.plan.code[args[0]].op in COMPARED:
            spelling, predicate = spelling.partition("; ")[2], f"p{args[0]}"
        own = {"r": f"t{k}", "n": f"n{k}", "p": predicate}
        self._waiting.append(spelling.format(*operands, **own, **self._words))
        self._named[k] = f"t{k}"

    def _deliver(self, k: int, output: int, index: int) -> None:
        value = self.use(k)
        if place := self.store(output, index, value):
            self._waiting.append(f"st.shared.{self._type} {place}, {value};")
            if k in self._named:
                self._read[k] = self._named.pop(k), self._time
                self.held[k] = place

    def _constant(self, value: float) -> str:
        return literal(value, self.number.bytes)


def literal(value: float, size: int) -> str:
    """Return the PTX literal of a value, written as its bits.

    size: size (bytes) of the value, 4 or 8.
    """
    kind = "f" if size == 4 else "d"
    try:
        bits = struct.pack(f">{kind}", value)
    except OverflowError:
        bits = struct.pack(f">{kind}", math.copysign(math.inf, value))
    return f"0{kind}{bits.hex().upper()}"


def place(number: int, size: int) -> str:
    """Return the PTX address of a thread's entry in a column of its tile.

    size: size (bytes) of an entry.
    """
    return f"[here+{number * WARP * size}]"
