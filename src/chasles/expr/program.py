"""Straight-line programs with named inputs and outputs."""

import hashlib
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

from chasles.expr.lanes import packs
from chasles.expr.ops import OPS
from chasles.expr.scalar import Arena, Number, Scalar, apply


class Variable(NamedTuple):
    """Name and shape of an input or output of a program."""

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Instruction(NamedTuple):
    """Operation on the results of earlier instructions.

    `args` contains the indices of these instructions. `data` is (index of the input, flat index of
    the entry) for "input", and the value for "const".
    """

    op: str
    args: tuple[int, ...]
    data: Any = None


@dataclass(frozen=True)
class Count:
    """Number of operations of each kind in a program."""

    multiplications: int = 0
    additions: int = 0
    divisions: int = 0
    square_roots: int = 0
    sines_and_cosines: int = 0
    arctangents: int = 0
    negations: int = 0
    selections: int = 0

    @property
    def flops(self) -> int:
        """Number of multiplications and additions."""
        return self.multiplications + self.additions

    @property
    def weight(self) -> int:
        """Estimated cost, in equivalent multiplications.

        A division, square root, sine, cosine or arctangent counts as eight multiplications.
        """
        slow = self.divisions + self.square_roots + self.sines_and_cosines + self.arctangents
        return self.flops + self.selections + 8 * slow

    @staticmethod
    def of(ops: Iterable[str]) -> "Count":
        """Count operations by kind.

        Parameters
        ----------
        ops : iterable of str
            Names of operations, such as "mul". Inputs and constants are not counted.

        Returns
        -------
        count : Count
            Number of operations of each kind.

        Examples
        --------
        >>> from chasles.expr import Count
        >>> print(Count.of(["mul", "mul", "add", "sin"]))
        2 multiplications, 1 addition, 1 sine or cosine
        """
        columns = Counter(OPS[op].counts_as for op in ops)
        del columns["free"]
        return Count(**columns)

    def __str__(self) -> str:
        parts = [(f.name.replace("_", " "), getattr(self, f.name)) for f in fields(Count)]
        words = [f"{n} {name if n != 1 else _ONE.get(name, name[:-1])}" for name, n in parts if n]
        return ", ".join(words) or "no operations"


_ONE = {"sines and cosines": "sine or cosine"}


@dataclass(frozen=True)
class Interface:
    """Inputs and outputs of a program.

    `nonzero` lists the quaternions in the inputs; none of them may be zero. Each quaternion is
    specified by the index of the input and the index of the first of its four entries.
    """

    name: str
    inputs: tuple[Variable, ...]
    outputs: tuple[Variable, ...]
    nonzero: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Program(Interface):
    """Straight-line program. Each instruction follows its arguments.

    `results` contains, for each output, the instruction indices of its entries in C order. A
    program is immutable, does not refer to the trace that created it, and can be pickled, printed
    and hashed.
    """

    results: tuple[tuple[int, ...], ...]
    code: tuple[Instruction, ...]
    origins: tuple[Any, ...] = field(default=(), compare=False, repr=False)
    """Origin of each instruction, if the trace recorded it (`Arena.origins`)."""
    cuts: tuple[int, ...] = field(default=(), compare=False, repr=False)
    """Index of the first instruction in each segment of an ordered trace (`Arena.cut`).

    The tuple is empty if the trace is not ordered.
    """
    limbs: tuple[tuple[int, ...], ...] = field(default=(), compare=False, repr=False)
    """Limb index of every input and output entry, or -1 if the entry belongs to no limb.

    Backends may use this hint, which does not affect results, to split a program.
    """
    alike: tuple[tuple[int, ...], ...] = field(default=(), compare=False, repr=False)
    """Groups of instructions that perform the same operation in different limbs.

    Each group has one instruction per limb (`expr.lanes`). Backends may use this hint, which does
    not affect results, to vectorize the instructions."""

    tiled: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    """Names of inputs and outputs that are stored as SIMD vectors, with one state per lane.

    The programs that an iterative solver runs one after another (`llvm.iterated`) share these
    arrays.
    """

    batched: bool = field(default=False, compare=False, repr=False)
    """True to run a single state as a batch of one, which is slower but halves the compile time."""

    def limb(self, array: int, index: int) -> int:
        """Return the index of the limb to which an array entry belongs, or -1 if there is none.

        Parameters
        ----------
        array : int
            Index of the array. Inputs come first, then outputs.
        index : int
            Index of the entry in C order.

        Returns
        -------
        limb : int
            Index of the limb, or -1.

        Examples
        --------
        >>> import chasles
        >>> chasles.compile(chasles.robots.planar(1), "gravity_forces").program.limb(0, 0)
        0
        """
        entries = self.limbs[array] if self.limbs else ()
        return entries[index] if entries else -1

    @staticmethod
    def from_outputs(
        name: str, inputs: Sequence[Variable], outputs: Sequence[tuple[Variable, Sequence[Number]]]
    ) -> "Program":
        """Return a program that evaluates expressions.

        Parameters
        ----------
        name : str
            Name of the program.
        inputs : sequence of Variable
            All inputs that occur in the expressions.
        outputs : sequence of (Variable, sequence of Number)
            Outputs, each with the expressions for its entries in C order.

        Returns
        -------
        program : Program
            Program with its instructions in depth-first order or, if the arena is ordered, in the
            order of the trace.

        Examples
        --------
        >>> from chasles.expr import RULES, Arena, Program, Variable, sin
        >>> arena = Arena(RULES)
        >>> outputs = [(Variable("y", ()), [2.0 * sin(arena.input("x", 0))])]
        >>> print(Program.from_outputs("f", [Variable("x", ())], outputs), end="")
        program f(x[])
          t2 = sin(x[0])
          t3 = 2.0 * t2
          return y[] = t3
        """
        position = {variable.name: k for k, variable in enumerate(inputs)}
        arena = next((e.arena for _, es in outputs for e in es if type(e) is Scalar), Arena({}))
        roots = [
            [e if type(e) is Scalar else arena.const(float(e)) for e in es] for _, es in outputs
        ]
        every = [r for group in roots for r in group]
        order = _as_traced(arena, every) if arena.ordered else _depth_first(every)
        number = {node: k for k, node in enumerate(order)}
        code = []
        for node in order:
            op, args, data = node.op, node.args, node.data
            if op == "input":
                data = (position[data[0]], data[1])
            code.append(Instruction(op, tuple([number[a] for a in args]) if args else (), data))
        ages = [node.digest for node in order] if arena.ordered else []
        return Program(
            name,
            tuple(inputs),
            tuple(variable for variable, _ in outputs),
            (),
            tuple(tuple(number[r] for r in group) for group in roots),
            tuple(code),
            tuple(map(arena.origins.get, number)) if arena.origins else (),
            tuple(sorted({bisect_left(ages, cut) for cut in arena.cuts})) if ages else (),
            alike=tuple(tuple(number[n] for n in pack) for pack in packs(order, arena.seats)),
        )

    def given(self, name: str, values: Sequence[float]) -> "Program":
        """Return a copy of the program in which the last input is replaced by constants.

        Parameters
        ----------
        name : str
            Name of the last input.
        values : sequence of float
            Entries of this input, in C order.

        Returns
        -------
        program : Program
            Program without this input.

        Examples
        --------
        >>> import chasles
        >>> program = chasles.compile(chasles.robots.planar(1), "gravity_forces").program
        >>> program.given("q", [0.5]).inputs
        ()
        """
        *inputs, last = self.inputs
        assert (last.name, last.size) == (name, len(values))
        code = tuple(
            Instruction("const", (), values[i.data[1]])
            if i.op == "input" and i.data[0] == len(inputs)
            else i
            for i in self.code
        )
        return replace(self, inputs=tuple(inputs), code=code)

    @property
    def interface(self) -> Interface:
        """Name, inputs and outputs of the program, without its instructions."""
        return Interface(self.name, self.inputs, self.outputs, self.nonzero)

    def replay(self, inputs: Mapping[str, Sequence[Number]], arena: Arena | None) -> list[Number]:
        """Evaluate all instructions with expressions or floats as inputs.

        Parameters
        ----------
        inputs : mapping from str to sequence of Number
            Entries of each input, in C order.
        arena : Arena or None
            Arena of the expressions; None if all inputs are floats.

        Returns
        -------
        values : list of Number
            One value for each instruction.

        Examples
        --------
        >>> import chasles
        >>> program = chasles.compile(chasles.robots.planar(1), "gravity_forces").program
        >>> len(program.replay({"q": [0.5]}, None)) == len(program.code)
        True
        """
        build = apply if arena is None else arena.build
        columns = [inputs[v.name] for v in self.inputs]
        values: list[Number] = []
        for op, args, data in self.code:
            if op == "input":
                values.append(columns[data[0]][data[1]])
            elif op == "const":
                values.append(data)
            else:
                values.append(build(op, *(values[a] for a in args)))
        return values

    def applied(self, inputs: Mapping[str, Sequence[Number]], arena: Arena) -> list[list[Number]]:
        """Evaluate the outputs with expressions or floats as inputs.

        Parameters
        ----------
        inputs : mapping from str to sequence of Number
            Entries of each input, in C order.
        arena : Arena
            Arena of the expressions.

        Returns
        -------
        outputs : list of list of Number
            Entries of each output, in C order.

        Examples
        --------
        >>> import chasles
        >>> from chasles.expr import RULES, Arena
        >>> program = chasles.compile(chasles.robots.planar(1), "gravity_forces").program
        >>> arena = Arena(RULES)
        >>> program.applied(program.variables(arena), arena)
        [[mul(cos(q[0]), 4.905)]]
        """
        values = self.replay(inputs, arena)
        return [[values[r] for r in refs] for refs in self.results]

    def variables(self, arena: Arena) -> dict[str, list[Scalar]]:
        """Create symbols for all inputs of this program.

        Parameters
        ----------
        arena : Arena
            Arena in which the symbols are created.

        Returns
        -------
        symbols : dict from str to list of Scalar
            Symbols for the entries of each input, in C order.

        Examples
        --------
        >>> import chasles
        >>> from chasles.expr import RULES, Arena
        >>> program = chasles.compile(chasles.robots.planar(1), "gravity_forces").program
        >>> program.variables(Arena(RULES))
        {'q': [q[0]]}
        """
        return {v.name: [arena.input(v.name, k) for k in range(v.size)] for v in self.inputs}

    @cached_property
    def count(self) -> Count:
        """Number of operations of each kind after simplification."""
        return Count.of(i.op for i in self.code)

    @cached_property
    def depth(self) -> int:
        """Number of operations in the longest dependency chain, not counting sign changes."""
        depths: list[int] = []
        for op, args, _ in self.code:
            below = max((depths[a] for a in args), default=0)
            depths.append(below + (OPS[op].counts_as not in ("free", "negations")))
        return max((depths[r] for group in self.results for r in group), default=0)

    @cached_property
    def hash(self) -> str:
        """SHA-256 hash of the program in text form; the hash is the same on every machine."""
        return hashlib.sha256(str(self).encode()).hexdigest()

    @cached_property
    def live(self) -> int:
        """Maximum number of values that are live at the same time."""
        last = {a: k for k, i in enumerate(self.code) for a in i.args}
        last.update({r: len(self.code) for group in self.results for r in group})
        alive = peak = 0
        ends = Counter(last[k] for k, i in enumerate(self.code) if i.op != "const" and k in last)
        for k, instruction in enumerate(self.code):
            alive += (instruction.op != "const" and k in last) - ends[k]
            peak = max(peak, alive)
        return peak

    def __str__(self) -> str:
        """Return the program in readable form, with one line per instruction."""
        names = [self._name(k) for k in range(len(self.code))]
        lines = [f"program {self.name}({', '.join(map(_declare, self.inputs))})"]
        for name, (op, args, _) in zip(names, self.code, strict=True):
            if op not in ("input", "const"):
                lines.append(f"  {name} = {_SPELLING[op].format(*(names[a] for a in args))}")
        for variable, refs in zip(self.outputs, self.results, strict=True):
            lines.append(f"  return {_declare(variable)} = {', '.join(names[r] for r in refs)}")
        return "\n".join(lines) + "\n"

    def _name(self, k: int) -> str:
        op, _, data = self.code[k]
        if op == "input":
            return f"{self.inputs[data[0]].name}[{data[1]}]"
        return repr(data) if op == "const" else f"t{k}"


def _depth_first(roots: Iterable[Scalar]) -> list[Scalar]:
    """Return all nodes on which the output nodes `roots` depend, each after its arguments."""
    done: set[Scalar] = set()
    order = []
    for root in roots:
        stack = [root]
        while stack:
            node = stack[-1]
            if node in done:
                stack.pop()
                continue
            waiting = [a for a in node.args if a not in done]
            if waiting:
                stack += waiting[::-1]
                continue
            stack.pop()
            done.add(node)
            order.append(node)
    return order


def _as_traced(arena: Arena, roots: Iterable[Scalar]) -> list[Scalar]:
    """Return all nodes on which the output nodes `roots` depend, in the order of the trace.

    Inputs and constants come first.
    """
    needed = set(roots)
    for node in reversed(list(arena.nodes)):
        if node in needed and node.args:
            needed.update(node.args)
    return sorted([node for node in arena.nodes if node in needed], key=attrgetter("digest"))


ARITHMETIC = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "neg": "-{0}",
}
"""Format strings for arithmetic operations in C-like languages."""

_SPELLING = {
    op.name: f"{op.name}({', '.join(f'{{{k}}}' for k in range(op.arity))})" for op in OPS.values()
} | ARITHMETIC


def _declare(variable: Variable) -> str:
    return f"{variable.name}[{', '.join(map(str, variable.shape))}]"


def interpret(program: Program, inputs: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    """Evaluate a program, one instruction at a time.

    Parameters
    ----------
    program : Program
        Program to evaluate.
    inputs : mapping from str to sequence of float
        Entries of each input, in C order.

    Returns
    -------
    outputs : dict from str to list of float
        Entries of each output, in C order.

    Notes
    -----
    The arithmetic follows IEEE 754 and never raises an exception: 1/0 is infinite, and the square
    root of -1 is NaN.

    Examples
    --------
    >>> import chasles
    >>> from chasles import expr
    >>> program = chasles.compile(chasles.robots.planar(1), "gravity_forces").program
    >>> expr.interpret(program, {"q": [0.0]})
    {'result': [4.905]}
    """
    given = {v.name: [float(x) for x in inputs[v.name]] for v in program.inputs}
    values = program.replay(given, None)
    return {
        variable.name: [values[r] for r in refs]
        for variable, refs in zip(program.outputs, program.results, strict=True)
    }
