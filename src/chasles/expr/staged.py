"""Programs whose results are matrix products computed by the backend."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from chasles.expr.program import Count, Instruction, Interface, Program, Variable


@dataclass(frozen=True)
class Staged(Interface):
    """Straight-line program `head` that computes matrices, followed by products of these matrices.

    Result k is the product of the outputs of `head` with indices chains[k]. Multiplications by
    constant zeros are skipped.
    """

    head: Program
    chains: tuple[tuple[int, ...], ...]

    @cached_property
    def count(self) -> Count:
        """Number of operations of each kind, including those of the matrix products."""
        before, n = self.head.count, self.products
        return replace(
            before, multiplications=before.multiplications + n, additions=before.additions + n
        )

    @cached_property
    def products(self) -> int:
        """Number of scalar multiplications in all matrix products."""
        pairs = 0
        for *lefts, last in self.chains:
            rows = self.present(last)
            for left in reversed(lefts):
                some = self.present(left)
                pairs += sum(len(rows[k]) for row in some for k in row)
                rows = [frozenset[int]().union(*(rows[k] for k in row)) for row in some]
        return pairs

    def present(self, factor: int) -> list[frozenset[int]]:
        """Return the column indices of the nonzero entries in each row of a matrix.

        Parameters
        ----------
        factor : int
            Index of the matrix among the outputs of `head`.

        Returns
        -------
        columns : list of frozenset of int
            One set of column indices per row.

        Examples
        --------
        >>> from chasles.expr import RULES, Arena, Program, Staged, Variable
        >>> x = Arena(RULES).input("x", 0)
        >>> name, shape = Variable("x", ()), Variable("A", (2, 2))
        >>> head = Program.from_outputs("head", [name], [(shape, [x, 0.0, 0.0, x])])
        >>> square = Staged("square", head.inputs, (Variable("B", (2, 2)),), (), head, ((0, 0),))
        >>> square.present(0)
        [frozenset({0}), frozenset({1})]
        """
        rows, columns = self.head.outputs[factor].shape
        refs, code = self.head.results[factor], self.head.code
        return [
            frozenset(c for c in range(columns) if not is_zero(code[refs[r * columns + c]]))
            for r in range(rows)
        ]

    def chosen(self, outputs: Sequence[Variable], numbers: Sequence[int]) -> "Staged":
        """Return a program that computes only some of the results, under new names.

        Parameters
        ----------
        outputs : sequence of Variable
            New name and shape of each result.
        numbers : sequence of int
            Indices of the results to keep.

        Returns
        -------
        program : Staged
            The program, without the outputs of `head` that it does not need.

        Examples
        --------
        >>> from chasles.expr import RULES, Arena, Program, Staged, Variable
        >>> x = Arena(RULES).input("x", 0)
        >>> name, shape = Variable("x", ()), Variable("A", (2, 2))
        >>> head = Program.from_outputs("head", [name], [(shape, [x, 0.0, 0.0, x])])
        >>> square = Staged("square", head.inputs, (Variable("B", (2, 2)),), (), head, ((0, 0),))
        >>> square.chosen([Variable("C", (2, 2))], [0]).outputs[0].name
        'C'
        """
        kept = [self.chains[k] for k in numbers]
        used = sorted({k for chain in kept for k in chain})
        head = replace(
            self.head,
            outputs=tuple(self.head.outputs[k] for k in used),
            results=tuple(self.head.results[k] for k in used),
        )
        chains = tuple(tuple(used.index(k) for k in chain) for chain in kept)
        return replace(self, outputs=tuple(outputs), head=head, chains=chains)


def is_zero(instruction: Instruction) -> bool:
    """Return True if an instruction is the constant zero."""
    return instruction.op == "const" and instruction.data == 0.0
