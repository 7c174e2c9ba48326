"""Which kernel a program gets: its form, threads in a block, and registers, by compiling and
reading the compiler's report."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from chasles.backends import cuda_nvrtc
from chasles.backends.cuda_source import WARP, Form, source
from chasles.expr import Interface, Program

BLOCK = 128
"""Threads in a block that shares nothing."""

SHORT = 64
"""Bytes of a row up to which threads may each read their own: two sectors of memory."""

REGISTERS = 65536
"""Registers of a multiprocessor."""

SHARED = 227 * 1024
"""Bytes of shared memory that blocks can have on a multiprocessor."""

WORTH = 0.7
"""A tighter limit on registers is tried down to this share of what the compiler would take."""


@dataclass(frozen=True)
class Built:
    """A kernel's machine code and how to launch it.

    block: threads in a block. shared: bytes of shared memory of each warp. columns: outputs that
    must be given as columns. registers, spilled: of a thread, spilled in bytes.
    """

    form: Form
    block: int
    shared: int
    columns: tuple[int, ...]
    registers: int
    spilled: int
    code: bytes

    def to_bytes(self) -> bytes:
        """All of it, as an entry of the cache holds it."""
        facts = {k: v for k, v in asdict(self).items() if k != "code"}
        return json.dumps(facts).encode() + b"\n" + self.code

    @staticmethod
    def from_bytes(content: bytes) -> "Built":
        """What `to_bytes` wrote."""
        facts, code = content.split(b"\n", 1)
        data = json.loads(facts)
        return Built(**{**data, "columns": tuple(data["columns"])}, code=code)


def forms(interface: Interface, itemsize: int, *, rows: bool) -> Sequence[Form]:
    """The forms to choose from for arrays in rows, or else in columns or with any strides."""
    longest = max((v.size for v in (*interface.inputs, *interface.outputs)), default=0)
    if not rows:
        return ("direct", "columns")
    return ("rows", "direct") if longest * itemsize > SHORT else ("direct", "rows")


def build(program: Program, dtype: str, architecture: str, choice: Sequence[Form]) -> Built:
    """The first of some forms that needs no more registers than there are; else the one that is
    least short of them."""
    found = []
    for form in choice:
        built = _form(program, dtype, architecture, form)
        if built is not None:
            found.append(built)
            if not built.spilled or form == "rows":
                break
    return min(found, key=lambda built: built.spilled)


def _form(program: Program, dtype: str, architecture: str, form: Form) -> Built | None:
    """A form with as few registers as it can have without spilling; None if it has no room."""
    block = BLOCK if form == "direct" else WARP
    built = _compiled(program, dtype, architecture, form, 0)
    if built.shared > SHARED:
        return None
    fit = REGISTERS // (block * _granted(built.registers))
    by_memory = SHARED // built.shared if built.shared else fit + 1
    limit = REGISTERS // (block * (fit + 1)) // 8 * 8
    if not built.spilled and fit < by_memory and limit >= WORTH * built.registers:
        tighter = _compiled(program, dtype, architecture, form, fit + 1)
        return built if tighter.spilled else tighter
    return built


def _granted(registers: int) -> int:
    """Registers are granted in groups of eight."""
    return -(-max(registers, 1) // 8) * 8


def _compiled(program: Program, dtype: str, architecture: str, form: Form, least: int) -> Built:
    block = BLOCK if form == "direct" else WARP
    written = source(program, dtype, form, block=block, least=least)
    made = cuda_nvrtc.compile(written.text, architecture)
    return Built(
        form, block, written.shared, written.columns, made.registers, made.spilled, made.code
    )
