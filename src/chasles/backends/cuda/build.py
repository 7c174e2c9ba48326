"""Choice of a kernel's form (`cuda.source`), thread count and register count.

Most choices follow from the compiler's report. Compiling a long program takes seconds, so one
choice is made beforehand: whether to use a crew, which is a group of warps that share the work of
32 states (`cuda.crew`). This choice depends on how many warps would be active on a multiprocessor.
"""

import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from chasles.backends.cuda import driver as cuda_driver
from chasles.backends.cuda.body import LONG, planned
from chasles.backends.cuda.crew import Crew, Size, limbwise
from chasles.backends.cuda.forms import Form
from chasles.backends.cuda.solo import Solo
from chasles.backends.cuda.source import source
from chasles.backends.cuda.tiles import HEADER, WARP, Tiled
from chasles.backends.cuda.twins import twins
from chasles.expr import Program

Layout = Literal["rows", "strided", "few", "loop", "search", "tries"]
"""Purpose of a kernel, which determines its form.

- "rows": many states in rows.
- "strided": many states in columns or with any strides.
- "few": few states with any strides.
- "loop": a step that is repeated a given number of times.
- "search": a step that is repeated until each problem is solved or abandoned, with one thread per
  problem.
- "tries": like "search", but with one warp per problem.
"""

BLOCK = 128
"""Number of threads in a block that does not use shared memory."""

ALONE: tuple[Form, ...] = ("direct", "loop", "search", "tries")
"""Kernel forms (`cuda.source`) whose threads do not share memory."""

SHORT = 64
"""Maximum row size (bytes) for which each thread reads its own row, equal to two memory sectors."""

MOST = 255
"""Maximum number of registers per thread."""

REGISTERS = 65536
"""Number of registers per multiprocessor."""

SHARED = {"sm_75": 64, "sm_80": 163, "sm_87": 163, "sm_90": 227, "sm_100": 227, "sm_103": 227}
"""Shared memory (KiB) that blocks can use per multiprocessor, by architecture; 99 if not listed."""

OTHERS = 18
"""Number of registers per thread that hold addresses and counters instead of values."""

CREWS = ((1, 150), (1, 248), (2, 248), (4, 248))
"""Candidate sizes of a crew (a group of warps): (number of warps, registers per thread)."""

ALL, OWN, CACHE = 8, 244, 28 * 1024
"""Limits for kernels in which each warp processes its own states (`cuda.solo`).

- ALL: number of warps on a multiprocessor.
- OWN: number of registers per thread that hold values.
- CACHE: local memory (bytes) that these warps may use together, equal to the cache that is left if
  a kernel uses all shared memory.
"""

SHARED_CODE = 0.65
"""Largest fraction of a program's instructions that may remain when limbs with the same structure
share code (`cuda.twins`). If more remain, for example because an external wrench acts on only one
of the limbs, each limb has its own code."""

LENGTHY = 2000
"""Minimum number of instructions for which crews (groups of warps) are considered for batches of
few states."""

GAIN, PARKED = 1.75, 1.3
"""Factors by which a crew (group of warps) must increase the number of active warps to be used.
GAIN applies to crews of several warps. PARKED applies to a crew of one warp, which moves values to
shared memory when registers run out, but does not wait for other warps.
"""

SHARED_WORK = 1.4
"""Threshold for using a crew (a group of warps that process the same states) for small batches. The
number of busy warps in the crew, averaged over the program, must exceed this value."""

DRIVER = 1024
"""Shared memory (bytes) that the driver reserves in each block."""

WORTH = 0.7
"""Smallest register limit to try, as a fraction of the registers used without a limit."""

SLIGHT = 0.01
"""Ratio of spilled values to instructions above which a kernel is compiled a second time, with cuts
(`cuda.body.STRETCH`). Below it, the gain would be small, and compiling can be slow: the CUDA 13.0
compiler takes minutes for the mass matrix of a humanoid.
"""


@dataclass(frozen=True)
class Built:
    """A kernel's machine code and launch parameters.

    - block: number of threads per block for large batches.
    - shared: shared memory (bytes) per warp or crew.
    - columns: outputs that must be passed as columns.
    - registers, spilled: registers and spilled bytes per thread.
    - crew: number of warps that together process 32 states.
    - stays: True if each thread processes several states in turn. A launch then needs no more
      blocks than fit on the multiprocessors at once.
    """

    form: Form
    block: int
    shared: int
    columns: tuple[int, ...]
    registers: int
    spilled: int
    code: bytes
    crew: int = 1
    stays: bool = False

    def to_bytes(self) -> bytes:
        """Return the kernel as the bytes of a cache entry."""
        facts = json.dumps({k: v for k, v in asdict(self).items() if k != "code"})
        return facts.encode() + b"\n" + self.code

    @staticmethod
    def from_bytes(content: bytes) -> "Built":
        """Return the kernel stored in a cache entry that `to_bytes` wrote."""
        facts, code = content.split(b"\n", 1)
        data = json.loads(facts)
        return Built(**{**data, "columns": tuple(data["columns"])}, code=code)


def forms(program: Program, itemsize: int, layout: Layout) -> Sequence[Form]:
    """Return the kernel variants (forms) to try, in order of preference.

    A form that keeps inputs in shared memory comes first if rows are long or if the program needs
    many registers. For few states, this form is "columns", because moving whole rows does not help.
    """
    if layout in ("loop", "search", "tries"):
        return (layout,)
    longest = max((v.size for v in (*program.inputs, *program.outputs)), default=0)
    tiled: Form = "rows" if layout == "rows" else "columns"
    long_rows = layout == "rows" and longest * itemsize > SHORT
    if long_rows or planned(program).words(itemsize) > 2 * MOST:
        return (tiled, "direct")
    return ("direct", tiled)


def build(program: Program, dtype: str, architecture: str, layout: Layout) -> Built:
    """Compile a program with the first kernel form that fits (see `forms`).

    The form "direct" must fit in registers, and all other forms must fit in shared memory. If no
    form fits, the form "direct" is used, and values are spilled to local memory.
    """
    if _sides(program) == 1:
        program = replace(program, alike=())
    if layout == "few" and (chosen := _few(program, dtype, architecture)):
        return _with_crew(program, dtype, architecture, "columns", chosen)
    short = []
    for form in forms(program, np.dtype(dtype).itemsize, layout):
        built = _form(program, dtype, architecture, form)
        if built is not None and (form != "direct" or not built.spilled):
            return built
        short += [built] if built is not None else []
    return short[0]


def _form(program: Program, dtype: str, architecture: str, form: Form) -> Built | None:
    """Compile a kernel in a given form, or return None if it does not fit in shared memory.

    The number of registers is reduced if more blocks then fit on a multiprocessor and no values are
    spilled to memory.
    """
    if chosen := _crew(program, dtype, architecture, form):
        return _with_crew(program, dtype, architecture, form, chosen)
    block = BLOCK if form in ALONE else WARP
    built = _compiled(program, dtype, architecture, form, 0)
    shared = shared_memory(architecture)
    if built.shared > shared:
        return None
    if form in ("search", "tries"):  # a lower register limit would not help
        return built
    granted = -(-max(built.registers, 1) // 8) * 8  # registers are allocated in groups of eight
    fit = REGISTERS // (block * granted)
    by_memory = shared // built.shared if built.shared else fit + 1
    limit = REGISTERS // (block * (fit + 1)) // 8 * 8
    if not built.spilled and fit < by_memory and limit >= WORTH * built.registers:
        tighter = _compiled(program, dtype, architecture, form, fit + 1)
        return built if tighter.spilled else tighter
    return built


class _Chosen(NamedTuple):
    """The chosen crew (group of warps), and the number of crews that fit on a multiprocessor."""

    crew: Crew
    fits: int


def _with_crew(
    program: Program, dtype: str, architecture: str, form: Form, chosen: _Chosen
) -> Built:
    """Compile a kernel for crews (groups of warps that process the same states).

    If the form is "loop", or if each warp processes its own states (`cuda.solo`), all warps of a
    multiprocessor belong to one block.
    """
    (warps, registers, *_), fits = chosen.crew.crew, chosen.fits
    solo = isinstance(chosen.crew, Solo)
    block = WARP * warps * (fits if form == "loop" or solo else 1)
    least = REGISTERS // (block * _granted(registers * np.dtype(dtype).itemsize // 4))
    written = source(program, dtype, form, block=block, least=least, crew=chosen.crew)
    made = cuda_driver.compile(written.text, architecture)
    facts = made.registers, made.spilled, made.code
    stays = solo and form == "rows"
    return Built(form, block, written.shared, (), *facts, crew=warps, stays=stays)


def _crew(program: Program, dtype: str, architecture: str, form: Form) -> _Chosen | None:
    """Return the crew (group of warps that process the same states) with the most active warps.

    Return None if single warps are faster, or if long rows of results leave no shared memory.
    """
    words, plan = np.dtype(dtype).itemsize // 4, planned(program)
    needed = plan.words(4 * words) if form == "loop" else plan.alive * words
    if form in ("direct", "search", "tries") or needed <= (MOST if form == "loop" else CREWS[0][1]):
        return None
    tiled = Tiled(program, dtype, form, 0) if form != "loop" else None
    if tiled and tiled.columns:
        return None
    excess = max(0, needed - CREWS[-1][1]) / CREWS[-1][1]
    alone = _fit(architecture, 1, needed, tiled.shared if tiled else 0)
    best, most, apart = None, 0.0, max(0.0, 1 - excess) * alone
    solo = _solo(program, dtype, architecture, form)
    for crew, fits in (*solo, *_crews(program, dtype, architecture, form)):
        rate, gain = crew.active * fits, GAIN if crew.crew.warps > 1 else PARKED
        if rate > max(most, gain * apart):
            best, most = _Chosen(crew, fits), rate
    return best


def _few(program: Program, dtype: str, architecture: str) -> _Chosen | None:
    """Return the crew (group of warps) with the most active warps for a small batch.

    Return None if the program is short, or if crews do not help.
    """
    if len(planned(program).order) < LENGTHY:
        return None
    crews = [(crew, n) for crew, n in _crews(program, dtype, architecture, "columns") if n]
    crew, fits = max(crews, key=lambda pair: pair[0].active)
    return _Chosen(crew, fits) if crew.active > SHARED_WORK else None


def _crews(
    program: Program, dtype: str, architecture: str, form: Form
) -> Iterator[tuple[Crew, int]]:
    """Yield candidate crews (groups of warps), and how many of each fit on a multiprocessor.

    Limbs with the same structure (twins, such as a left and a right leg) share code if this
    shortens the code enough, and if shared memory does not reduce the number of crews that fit.
    """
    sizes = [(w, r, Size(w, r * 4 // np.dtype(dtype).itemsize)) for w, r in CREWS]
    sides, found = _sides(program), False
    for warps, registers, size in sizes:
        if sides > 1 and warps % sides == 0:
            crew = Crew(program, dtype, form, size._replace(shared=True))
            fits = _fit(architecture, warps, registers, crew.shared)
            if fits == _fit(architecture, warps, registers, 0):
                yield crew, fits
                found = True
    if not found:
        for warps, registers, size in sizes:
            crew = Crew(program, dtype, form, size)
            yield crew, _fit(architecture, warps, registers, crew.shared)


def _solo(
    program: Program, dtype: str, architecture: str, form: Form
) -> tuple[tuple[Crew, int], ...]:
    """Return the kernel in which each warp processes a tile by itself, if all live values fit.

    Nearly all live values must fit in registers and shared memory. The rest must fit in the part of
    the cache that serves local memory.
    """
    words = np.dtype(dtype).itemsize // 4
    room = (shared_memory(architecture) // ALL // HEADER - 1) * HEADER
    size = Size(1, OWN // words, columns=room // (4 * words * WARP))
    spare = CACHE // (4 * words * WARP * ALL)
    values = size.registers + size.columns + spare
    if form not in ("rows", "columns") or limbwise(program).words(4) > values:
        return ()
    solo = Solo(program, dtype, form, size)
    return ((solo, ALL),) if solo.size <= size.columns and solo.spare <= spare else ()


def _sides(program: Program) -> int:
    """Return the number of limbs that run the same code, or 1 if each limb has its own code."""
    found = twins(program)
    shorter = found is not None and len(found.program.code) <= SHARED_CODE * len(program.code)
    return found.sides if found and shorter else 1


def _fit(architecture: str, warps: int, registers: int, shared: int) -> int:
    """Return the number of crews that fit on a multiprocessor."""
    by_registers = REGISTERS // (WARP * warps * _granted(registers))
    return min(by_registers, shared_memory(architecture) // (shared + DRIVER))


def _granted(registers: int) -> int:
    """Return the number of registers allocated to a thread, a multiple of eight."""
    return -(-min(registers + OTHERS, MOST) // 8) * 8


def shared_memory(architecture: str) -> int:
    """Return the shared memory (bytes) available to blocks on a multiprocessor."""
    return SHARED.get(architecture, 99) * 1024


def _compiled(program: Program, dtype: str, architecture: str, form: Form, least: int) -> Built:
    """Compile a kernel; if it spills too many registers, also try a version with cuts.

    A cut is a branch that is never taken (`cuda.body.STRETCH`).
    """
    block = BLOCK if form in ALONE else WARP
    found = []
    # Two blocks must fit on a multiprocessor; the driver uses 1 KiB of each block's shared memory.
    most = shared_memory(architecture) // 2 - 1024
    slight = SLIGHT * len(program.code) * np.dtype(dtype).itemsize
    for cuts in (False, True):
        written = source(program, dtype, form, block=block, least=least, cuts=cuts, most=most)
        made = _machine_code(written.text, architecture)
        facts = made.registers, made.spilled, made.code
        found.append(Built(form, block, written.shared, written.columns, *facts))
        if made.spilled <= slight or form == "direct" or len(program.code) > LONG:
            break
    return min(found, key=lambda built: built.spilled)


@functools.lru_cache(4)
def _machine_code(text: str, architecture: str) -> cuda_driver.Compiled:
    """Compile the source of a kernel, and cache the code for layouts with the same source."""
    return cuda_driver.compile(text, architecture)
