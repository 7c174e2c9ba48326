"""Sine, cosine and arctangent as branch-free vector code in LLVM IR.

For sine and cosine, multiples of pi/2 are subtracted from the argument, with pi/2 split into three
parts (Cody and Waite). Then the kernel polynomials of fdlibm (Sun Microsystems 1993) are evaluated
on [-pi/4, pi/4]; in single precision, the polynomials of Cephes (Moshier 1989) are used. Errors
stay below 2 ulp for arguments up to a limit. Larger arguments are rare; they are passed to the C
library, lane by lane. For the arctangent, the approximations of Cephes are used.
"""

import struct
from dataclasses import dataclass, field, replace

import numpy as np


@dataclass(frozen=True)
class Element:
    """A floating-point type: its LLVM and NumPy names, its size, and constants for math functions.

    - sine, cosine: polynomial coefficients.
    - half_pi_fused, half_pi_split: parts of pi/2 for argument reduction, with and without fused
      multiply-add, respectively.
    - limit_fused, limit_split: largest angle (rad) for vector code, with and without fused
      multiply-add, respectively; larger angles are passed to the C library.
    - shift: value that is added to round a floating-point number to an integer. The low bits of the
      sum then contain the integer.
    - numerator, denominator: rational approximation of the arctangent.
    - bend: ratio above which the argument of the arctangent is reduced.
    """

    name: str
    dtype: str
    bits: int
    type_number: int
    sine: tuple[float, ...]
    cosine: tuple[float, ...]
    numerator: tuple[float, ...]
    denominator: tuple[float, ...]
    bend: float
    half_pi_fused: tuple[float, ...]
    half_pi_split: tuple[float, ...]
    limit_fused: float
    limit_split: float
    shift: float

    @property
    def bytes(self) -> int:
        return self.bits // 8

    def spelled(self, value: float) -> str:
        """Return a value in LLVM's notation: the bits of the double that represents it exactly."""
        rounded = value if self.bits == 64 else float(np.float32(value))
        return f"0x{struct.pack('>d', rounded).hex().upper()}"


DOUBLE = Element(
    name="double",
    dtype="float64",
    bits=64,
    type_number=12,
    sine=(-1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
          2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10),
    cosine=(4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
            -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11),
    numerator=(-6.485021904942025371773e1, -1.228866684490136173410e2, -7.500855792314704667340e1,
               -1.615753718733365076637e1, -8.750608600031904122785e-1),
    denominator=(1.945506571482613964425e2, 4.853903996359136964868e2, 4.328810604912902668951e2,
                 1.650270098316988542046e2, 2.485846490142306297962e1, 1.0),
    bend=0.66,
    half_pi_fused=(1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33),
    half_pi_split=(1.57079632673412561417, 6.07710050630396597660e-11, 2.02226624879595063154e-21),
    limit_fused=1e6,
    limit_split=1e6,
    shift=6755399441055744.0,
)  # fmt: skip

# Without fused multiply-add, single precision has too few bits to reduce angles, so all angles are
# passed to the C library.
SINGLE = Element(
    name="float",
    dtype="float32",
    bits=32,
    type_number=11,
    sine=(-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4),
    cosine=(4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5),
    numerator=(-3.33329491539e-1, 1.99777106478e-1, -1.38776856032e-1, 8.05374449538e-2),
    denominator=(1.0,),
    bend=0.41421356,
    half_pi_fused=(1.57079637, -4.37113883e-08, -1.71512451e-15),
    half_pi_split=(1.5703125, 4.837512969970703125e-4, 7.549789948768648e-8),
    limit_fused=1e5,
    limit_split=0.0,
    shift=12582912.0,
)

ELEMENTS = {element.dtype: element for element in (DOUBLE, SINGLE)}


@dataclass
class Writer:
    """Writer of LLVM instructions on vectors of `width` elements, with a new name for each result.

    widest: number of elements in the machine's widest vectors.
    """

    width: int
    fuse: bool
    element: Element = DOUBLE
    widest: int = 1
    lines: list[str] = field(default_factory=list)
    reserved: list[str] = field(default_factory=list)
    used: int = 0

    def __post_init__(self) -> None:
        self.take(self.width)

    def take(self, width: int) -> None:
        """Set the number of vector elements for the following operations.

        Type names are created only here, not once for each of many thousands of operations.

        - type, mask, integers: LLVM types of vectors of floating-point values, flags and integers.
        - bytes: size (bytes) of a vector.
        - suffix: suffix of LLVM function names for such vectors.
        """
        self.width, bits = width, self.element.bits
        self.type = f"<{self.width} x {self.element.name}>"
        self.mask = f"<{self.width} x i1>"
        self.integers = f"<{self.width} x i{bits}>"
        self.bytes = self.width * self.element.bytes
        self.suffix = f"v{self.width}f{bits}"
        self._constants: dict[str, str] = {}

    def name(self) -> str:
        self.used += 1
        return f"%x{self.used}"

    def emit(self, text: str) -> str:
        self.used += 1
        name = f"%x{self.used}"
        self.lines.append(f"  {name} = {text}")
        return name

    def raw(self, line: str) -> None:
        self.lines.append(line)

    def at(self, base: str, offset: int | str, kind: str = "i8") -> str:
        """Emit code that computes the address of an array entry.

        kind: LLVM type of the entries, by default bytes.
        """
        return self.emit(f"getelementptr {kind}, ptr {base}, i64 {offset}")

    def field(self, base: str, offset: int, kind: str) -> str:
        """Emit code that loads a field of a structure."""
        return self.emit(f"load {kind}, ptr {self.at(base, offset)}")

    def store(self, base: str, offset: int, value: str) -> None:
        """Emit code that stores a value in a field of a structure."""
        self.raw(f"  store {value}, ptr {self.at(base, offset)}")

    def room(self, count: int, kind: str) -> str:
        """Reserve space on the stack for `count` values of type `kind`; return its address."""
        name = self.name()
        self.reserved.append(f"  {name} = alloca [{count} x {kind}]")
        return name

    def reserve(self, count: int) -> str:
        """Reserve space on the stack for `count` vectors; return its address."""
        name = self.name()
        self.reserved.append(f"  {name} = alloca [{count} x {self.type}], align 64")
        return name

    def function(self, head: str) -> str:
        """Return the LLVM IR of the finished function, which has no return value."""
        lines = [f"define {head} {{\nentry:", *self.reserved, *self.lines, "  ret void\n}\n"]
        return "\n".join(lines)

    def constant(self, value: float) -> str:
        text = self.element.spelled(value)
        found = self._constants.get(text)
        if found is None:
            one = f"{self.element.name} {text}"
            found = self._constants[text] = f"<{', '.join([one] * self.width)}>"
        return found

    def integer(self, value: int) -> str:
        return f"<{', '.join([f'i{self.element.bits} {value}'] * self.width)}>"

    def call(self, intrinsic: str, *args: str) -> str:
        type = self.type
        operands = ", ".join([f"{type} {a}" for a in args])
        return self.emit(f"call {type} @llvm.{intrinsic}.{self.suffix}({operands})")

    def binary(self, op: str, a: str, b: str) -> str:
        return self.emit(f"{op} {self.type} {a}, {b}")

    def add(self, a: str, b: str) -> str:
        return self.binary("fadd", a, b)

    def sub(self, a: str, b: str) -> str:
        return self.binary("fsub", a, b)

    def mul(self, a: str, b: str) -> str:
        return self.binary("fmul", a, b)

    def neg(self, a: str) -> str:
        return self.emit(f"fneg {self.type} {a}")

    def fma(self, a: str, b: str, c: str) -> str:
        """Emit code that computes a*b + c, fused if the machine supports fused multiply-add."""
        return self.call("fma", a, b, c) if self.fuse else self.add(self.mul(a, b), c)

    def fnma(self, a: str, b: str, c: str) -> str:
        """Emit code that computes c - a*b, fused if the machine supports fused multiply-add."""
        return self.fma(self.neg(a), b, c) if self.fuse else self.sub(c, self.mul(a, b))

    def compare(self, relation: str, a: str, b: str) -> str:
        return self.emit(f"fcmp {relation} {self.type} {a}, {b}")

    def choose(self, mask: str, a: str, b: str) -> str:
        return self.emit(f"select {self.mask} {mask}, {self.type} {a}, {self.type} {b}")

    def polynomial(self, x: str, coefficients: tuple[float, ...]) -> str:
        """Emit code that evaluates a polynomial at x by Horner's rule.

        The constant coefficient comes first.
        """
        total = self.constant(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            total = self.fma(total, x, self.constant(c))
        return total

    def as_integers(self, a: str) -> str:
        return self.emit(f"bitcast {self.type} {a} to {self.integers}")

    def as_numbers(self, a: str) -> str:
        return self.emit(f"bitcast {self.integers} {a} to {self.type}")


def sine_and_cosine(w: Writer, x: str) -> tuple[str, str]:
    """Emit code that computes the sine and cosine of x, accurate for |x| up to `limit(w)`."""
    e = w.element
    shifted = w.fma(x, w.constant(0.6366197723675814), w.constant(e.shift))
    turns = w.sub(shifted, w.constant(e.shift))
    r = _reduced(w, x, turns)
    z = w.mul(r, r)
    sine = w.fma(w.mul(z, r), w.polynomial(z, e.sine), r)
    cosine = w.polynomial(z, (1.0, -0.5, *e.cosine))
    quadrant = w.as_integers(shifted)
    odd = w.emit(f"trunc {w.integers} {quadrant} to {w.mask}")
    low = w.emit(f"shl {w.integers} {quadrant}, {w.integer(e.bits - 2)}")
    flip_sine = w.emit(f"and {w.integers} {low}, {w.integer(-(2 ** (e.bits - 1)))}")
    ahead = w.emit(f"add {w.integers} {low}, {w.integer(2 ** (e.bits - 2))}")
    flip_cosine = w.emit(f"and {w.integers} {ahead}, {w.integer(-(2 ** (e.bits - 1)))}")
    return (
        _flipped(w, w.choose(odd, cosine, sine), flip_sine),
        _flipped(w, w.choose(odd, sine, cosine), flip_cosine),
    )


def _reduced(w: Writer, x: str, turns: str) -> str:
    """Emit code that computes x - turns * pi/2, with pi/2 split into three parts for accuracy.

    Without fused multiply-add, the third subtraction also corrects the rounding error of the
    second.
    """
    if w.fuse:
        for part in w.element.half_pi_fused:
            x = w.fnma(turns, w.constant(part), x)
        return x
    first, second, third = (w.mul(turns, w.constant(part)) for part in w.element.half_pi_split)
    near = w.sub(x, first)
    r = w.sub(near, second)
    lost = w.sub(w.sub(near, r), second)
    return w.sub(r, w.sub(third, lost))


def _flipped(w: Writer, value: str, sign: str) -> str:
    return w.as_numbers(w.emit(f"xor {w.integers} {w.as_integers(value)}, {sign}"))


def arctangent(w: Writer, y: str, x: str) -> str:
    """Emit code that computes atan2(y, x) from the ratio of the smaller to the larger magnitude."""
    ay, ax = w.call("fabs", y), w.call("fabs", x)
    steep = w.compare("ogt", ay, ax)
    small, large = w.choose(steep, ax, ay), w.choose(steep, ay, ax)
    ratio = w.binary("fdiv", small, large)
    ratio = w.choose(w.compare("oeq", small, large), w.constant(1.0), ratio)
    ratio = w.choose(w.compare("oeq", large, w.constant(0.0)), small, ratio)
    big = w.compare("ogt", ratio, w.constant(w.element.bend))
    moved = w.binary("fdiv", w.sub(ratio, w.constant(1.0)), w.add(ratio, w.constant(1.0)))
    t = w.choose(big, moved, ratio)
    z = w.mul(t, t)
    fraction = w.binary(
        "fdiv", w.polynomial(z, w.element.numerator), w.polynomial(z, w.element.denominator)
    )
    angle = w.fma(w.mul(t, z), fraction, t)
    offset = w.choose(big, w.constant(0.5 * 6.123233995736766e-17), w.constant(0.0))
    start = w.choose(big, w.constant(0.7853981633974483), w.constant(0.0))
    angle = w.add(start, w.add(angle, offset))
    turned = w.sub(w.constant(1.5707963267948966), w.sub(angle, w.constant(6.123233995736766e-17)))
    angle = w.choose(steep, turned, angle)
    behind = w.emit(f"icmp slt {w.integers} {w.as_integers(x)}, {w.integer(0)}")
    turned = w.sub(w.constant(3.141592653589793), w.sub(angle, w.constant(1.2246467991473532e-16)))
    return w.call("copysign", w.choose(behind, turned, angle), y)


def limit(w: Writer) -> float:
    """Return the largest angle (rad) for which the vector code of sine and cosine is accurate."""
    return w.element.limit_fused if w.fuse else w.element.limit_split


def cold_angles(w: Writer) -> str:
    """Generate LLVM IR that computes sines and cosines of large angles with the C library."""
    t = w.element.name
    same = "fadd double {0}, 0x8000000000000000"
    to_double, back = (
        ("fpext float {0} to double", "fptrunc double {0} to float") if t == "float" else [same] * 2
    )
    return f"""
declare double @chasles_sin(double)
declare double @chasles_cos(double)
declare {t} @llvm.fabs.f{w.element.bits}({t})

define internal void @cold_angles(ptr %x, ptr %s, ptr %c, i64 %n) cold noinline {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %step ]
  %px = getelementptr {t}, ptr %x, i64 %i
  %v = load {t}, ptr %px
  %a = call {t} @llvm.fabs.f{w.element.bits}({t} %v)
  %far = fcmp ogt {t} %a, {w.element.spelled(limit(w))}
  br i1 %far, label %exact, label %step
exact:
  %d = {to_double.format("%v")}
  %ds = call double @chasles_sin(double %d)
  %dc = call double @chasles_cos(double %d)
  %vs = {back.format("%ds")}
  %vc = {back.format("%dc")}
  %ps = getelementptr {t}, ptr %s, i64 %i
  %pc = getelementptr {t}, ptr %c, i64 %i
  store {t} %vs, ptr %ps
  store {t} %vc, ptr %pc
  br label %step
step:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""


def angles(w: Writer, arguments: list[str], label: str) -> tuple[str, str]:
    """Emit a loop that computes sines and cosines of several angles; return the two arrays.

    The loop uses the machine's widest vectors; a vector holds one or more of the arguments. One
    test of the sum of squares detects large angles, whose sines and cosines are then computed by
    separate code.
    """
    given, share = w, w.widest // w.width
    n = -(-len(arguments) // share)
    x, s, c = (w.reserve(n * share) for _ in range(3))
    filled = arguments + [w.constant(0.0)] * (n * share - len(arguments))
    for k, value in enumerate(filled):
        w.raw(f"  store {w.type} {value}, ptr {w.at(x, k, w.type)}")
    w = replace(w, width=w.widest)
    before, loop, check, cold, join = (
        f"{name}{label}" for name in ("before", "angles", "check", "cold", "join")
    )
    index, squares, more = f"%{loop}_i", f"%{loop}_squares", f"%{loop}_more"
    zero = w.constant(0.0)
    w.raw(f"  br label %{before}\n{before}:\n  br label %{loop}\n{loop}:")
    w.raw(f"  {index} = phi i64 [ 0, %{before} ], [ {index}_next, %{loop} ]")
    w.raw(f"  {squares} = phi {w.type} [ {zero}, %{before} ], [ %{loop}_total, %{loop} ]")
    at_x, at_s, at_c = (w.at(p, index, w.type) for p in (x, s, c))
    angle = w.emit(f"load {w.type}, ptr {at_x}")
    sine, cosine = sine_and_cosine(w, angle)
    w.raw(f"  store {w.type} {sine}, ptr {at_s}")
    w.raw(f"  store {w.type} {cosine}, ptr {at_c}")
    square = w.mul(angle, angle)
    w.raw(f"  %{loop}_total = fadd {w.type} {squares}, {square}")
    w.raw(f"  {index}_next = add i64 {index}, 1")
    w.raw(f"  {more} = icmp ult i64 {index}_next, {n}")
    w.raw(f"  br i1 {more}, label %{loop}, label %{check}\n{check}:")
    far = w.compare("ugt", f"%{loop}_total", w.constant(limit(w) ** 2))
    flags = w.emit(f"bitcast {w.mask} {far} to i{w.width}")
    any_far = w.emit(f"icmp ne i{w.width} {flags}, 0")
    w.raw(f"  br i1 {any_far}, label %{cold}, label %{join}, !prof !0\n{cold}:")
    w.raw(f"  call void @cold_angles(ptr {x}, ptr {s}, ptr {c}, i64 {n * w.width})")
    w.raw(f"  br label %{join}\n{join}:")
    given.used = w.used
    return s, c
