"""What a kernel does in which order: instructions with few values alive, angles first.

An input that only turns (every use of it is an angle, or a sum that is one) may be replaced by the
same angle less whole turns. All of them are checked together, once, so that the sines and cosines
themselves need no branch.
"""

from dataclasses import dataclass
from functools import cached_property

from chasles.backends.lowering import deepest_first, fused
from chasles.backends.schedule import few_alive, most_alive
from chasles.expr import Instruction, Program

NEAR = 8
"""An angle may be a sum of this many checked inputs: each is checked to an eighth of the limit."""

MANY, TURNS, LONG = 100, 8, 5000
"""With more than MANY values alive, results are tried in TURNS other orders too; programs that are
LONG would take too much time."""

WAITING = ("const", "input", "sin", "cos")
"""Values that occupy no register while they wait: they are read where they are needed."""

_SUMS = ("add", "sub", "neg")


@dataclass(frozen=True)
class Plan:
    """A program with its products fused, and the order in which a thread runs it."""

    program: Program

    @cached_property
    def code(self) -> list[Instruction]:
        """The instructions, products fused."""
        return fused(self.program)

    @cached_property
    def order(self) -> list[int]:
        """All instructions that are needed, few values alive at a time."""
        results = list(dict.fromkeys(r for refs in self.program.results for r in refs))
        order = self._from([results])
        if most_alive(self.code, order, WAITING) > MANY and len(order) < LONG:
            starts = [len(results) * k // TURNS for k in range(1, TURNS)]
            more = [results[start:] + results[:start] for start in starts]
            return few_alive(self.code, [order, self._from(more)], WAITING)
        return order

    def _from(self, orders: list[list[int]]) -> list[int]:
        """The best order found when results are wanted in some orders, or backwards."""
        both = [roots for order in orders for roots in (order, order[::-1])]
        return few_alive(self.code, [deepest_first(self.code, roots) for roots in both], WAITING)

    def words(self, itemsize: int) -> int:
        """Registers (of four bytes) for all that is alive at once, inputs and angles included."""
        return most_alive(self.code, self.order, ("const",)) * itemsize // 4

    @cached_property
    def places(self) -> dict[int, list[tuple[int, int]]]:
        """Where each result goes: (output, index), possibly several."""
        found: dict[int, list[tuple[int, int]]] = {}
        for output, refs in enumerate(self.program.results):
            for index, r in enumerate(refs):
                found.setdefault(r, []).append((output, index))
        return found

    @cached_property
    def angles(self) -> list[int]:
        """The angles whose sines and cosines depend on no others, and can be taken first."""
        depends = set()
        for k in self.order:
            if self.code[k].op in ("sin", "cos") or any(a in depends for a in self.code[k].args):
                depends.add(k)
        turned = [self.code[k].args[0] for k in self.order if self.code[k].op in ("sin", "cos")]
        return [a for a in dict.fromkeys(turned) if a not in depends]

    @cached_property
    def users(self) -> dict[int, list[int]]:
        """The instructions that need each value."""
        found: dict[int, list[int]] = {k: [] for k in self.order}
        for k in self.order:
            for a in self.code[k].args:
                found[a].append(k)
        return found

    @cached_property
    def _turning(self) -> set[int]:
        """Values of which whole turns may be left out: only angles are made of them."""
        found: set[int] = set()
        for k in reversed(self.order):
            if k in self.places or self.code[k].op not in ("input", *_SUMS):
                continue
            if all(self.code[u].op in ("sin", "cos") or u in found for u in self.users[k]):
                found.add(k)
        return found

    @cached_property
    def _terms(self) -> dict[int, list[int]]:
        """For each angle that is a sum of few turning inputs and constants, those inputs."""
        found = {}
        for angle in self.angles:
            terms, stack = [], [angle]
            while stack:
                k = stack.pop()
                terms.append(k)
                if k in self._turning:
                    stack.extend(self.code[k].args)
            leaves = [k for k in terms if k not in self._turning or not self.code[k].args]
            fixed = [k for k in leaves if self.code[k].op == "const"]
            plain = all(k in fixed or k in self._turning for k in leaves)
            if plain and len(leaves) <= NEAR and all(abs(self.code[k].data) < 7 for k in fixed):
                found[angle] = [k for k in leaves if k not in fixed]
        return found

    @cached_property
    def turning_inputs(self) -> list[int]:
        """The inputs to be checked, and brought near where they are far away."""
        return list(dict.fromkeys(k for terms in self._terms.values() for k in terms))

    def is_near(self, angle: int) -> bool:
        """Whether an angle is small enough once the turning inputs are near."""
        return angle in self._terms

    def only_turns(self, k: int) -> bool:
        """Whether a value is an input of which nothing but its own sine and cosine are needed."""
        return (
            self.code[k].op == "input"
            and k not in self.places
            and all(self.code[u].op in ("sin", "cos") for u in self.users[k])
        )
