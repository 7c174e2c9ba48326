"""A small structured language on top of LLVM IR, with conditions and loops as `with` blocks.

The fast entry (`llvm.entry`) is written in this language; straight-line kernels do not need it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from chasles.backends.llvm.math import Writer


class Routine(Writer):
    """Writer of an LLVM function; `head` is its signature, e.g. "internal i1 @same(ptr %a)"."""

    def __init__(self, head: str) -> None:
        super().__init__(1, False)
        self._head = head
        self._labels = 0

    def finished(self) -> str:
        """Return the LLVM IR of the function."""
        ended = "  unreachable\n}"  # terminates the empty block after the last return
        lines = [f"define {self._head} {{", "entry:", *self.reserved, *self.lines, ended]
        return "\n".join(lines) + "\n"

    # Values and variables -----------------------------------------------------------------------

    def variable(self, kind: str, value: str) -> str:
        """Emit a new variable on the stack, with an initial value; return its address."""
        place = self.room(1, kind)
        self.set(place, f"{kind} {value}")
        return place

    def get(self, place: str, kind: str = "i64") -> str:
        return self.emit(f"load {kind}, ptr {place}")

    def set(self, place: str, value: str) -> None:
        self.raw(f"  store {value}, ptr {place}")

    def entry_of(self, base: str, k: str, kind: str) -> str:
        """Emit code that loads an array entry."""
        return self.get(self.at(base, k, kind), kind)

    def put(self, base: str, k: str, kind: str, value: str) -> None:
        """Emit code that stores a value in an array entry."""
        self.set(self.at(base, k, kind), f"{kind} {value}")

    def compare(self, how: str, a: str, b: str | int, kind: str = "i64") -> str:
        return self.emit(f"icmp {how} {kind} {a}, {b}")

    def same(self, a: str, b: str) -> str:
        return self.compare("eq", a, b, "ptr")

    def is_null(self, a: str) -> str:
        return self.same(a, "null")

    def both(self, a: str, b: str) -> str:
        return self.emit(f"and i1 {a}, {b}")

    def either(self, a: str, b: str) -> str:
        return self.emit(f"or i1 {a}, {b}")

    def opposite(self, a: str) -> str:
        return self.emit(f"xor i1 {a}, true")

    def pick(self, condition: str, a: str, b: str, kind: str = "i64") -> str:
        return self.emit(f"select i1 {condition}, {kind} {a}, {kind} {b}")

    def plus(self, a: str, b: str | int) -> str:
        return self.emit(f"add i64 {a}, {b}")

    def minus(self, a: str, b: str | int) -> str:
        return self.emit(f"sub i64 {a}, {b}")

    def times(self, a: str, b: str | int) -> str:
        return self.emit(f"mul i64 {a}, {b}")

    def called(self, kind: str, function: str, *operands: str) -> str:
        """Emit a call and return its result; operands are given with their types."""
        return self.emit(f"call {kind} {function}({', '.join(operands)})")

    def do(self, function: str, *operands: str) -> None:
        """Emit a call to a function that returns nothing."""
        self.raw(f"  call void {function}({', '.join(operands)})")

    # Control flow -------------------------------------------------------------------------------

    def label(self) -> str:
        self._labels += 1
        return f"l{self._labels}"

    def start(self, label: str) -> None:
        """Emit a label, and a branch from the preceding code to it."""
        self.raw(f"  br label %{label}\n{label}:")

    def answer(self, value: str) -> None:
        """Emit a return.

        Code after the return runs only if a branch leads there, such as the branch of `when`.
        """
        self.raw(f"  ret {value}\n{self.label()}:")

    @contextmanager
    def when(self, condition: str, go: str = "") -> Iterator[None]:
        """Emit the code of a `with` block, which runs if a condition holds.

        go: label to which the block branches at its end, by default the label after the block.
        """
        yes, no = self.label(), self.label()
        self.raw(f"  br i1 {condition}, label %{yes}, label %{no}\n{yes}:")
        yield
        self.raw(f"  br label %{go or no}\n{no}:")

    def leave(self, condition: str, to: str) -> None:
        """Emit a branch to a label, taken if a condition holds."""
        no = self.label()
        self.raw(f"  br i1 {condition}, label %{to}, label %{no}\n{no}:")

    @contextmanager
    def each(self, count: str | int) -> Iterator[tuple[str, str]]:
        """Emit a loop over 0, ..., count - 1.

        Yield the index, and the label to which the code branches to continue with the next index.
        """
        place = self.variable("i64", "0")
        top, inside, further, end = (self.label() for _ in range(4))
        self.start(top)
        index = self.get(place)
        more = self.compare("slt", index, count)
        self.raw(f"  br i1 {more}, label %{inside}, label %{end}\n{inside}:")
        yield index, further
        self.start(further)
        self.set(place, f"i64 {self.plus(index, 1)}")
        self.raw(f"  br label %{top}\n{end}:")
