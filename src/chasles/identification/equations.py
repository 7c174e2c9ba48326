"""Identification equations as one compiled program, and their Gram matrices.

Row j of the equations is W_j (beta - beta_0) = e_j. W_j holds the columns of the base regressor
that are nonzero in that row. e_j is the measured torque minus the torque of the given robot. The
Gram matrix of [W_j, e_j] is sufficient for least squares with any number of samples and any weights
of the rows.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from chasles import backends
from chasles.backends.arrays import Kernel
from chasles.expr import RULES, Arena, Number, Program, Scalar, Variable, absolute, less, select
from chasles.functions.programs import program
from chasles.identification.linear import Base, LinearModel
from chasles.identification.regression import Factors
from chasles.identification.unknowns import TERMS, At
from chasles.tasks import THREADS, ahead

BLOCK = 512
"""Number of states per block, chosen so that their equations fit into the processor's cache."""

Sample = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Samples q, qd, qdd, tau and external wrenches: a row per state, six columns per wrench."""


@dataclass(frozen=True)
class Grams:
    """Gram matrices of the identification equations [W_j, e_j], summed over samples.

    `sums` has the shape (rows, b + 1, b + 1) for b base parameters. `count` is the number of
    samples. `used` is the number of samples used in each row, excluding samples at rest.
    """

    sums: np.ndarray
    count: int
    used: np.ndarray

    def __add__(self, other: "Grams") -> "Grams":
        return Grams(self.sums + other.sums, self.count + other.count, self.used + other.used)

    def factors(self, base: Base, nominal: np.ndarray) -> Factors:
        """Return factors R_j of the Gram matrices of the equations A_j x = b_j.

        R_j' R_j = [A_j, b_j]' [A_j, b_j], and x contains all parameters. These equations follow
        from those for the base parameters, W_j (beta - beta_0) = e_j. With K = `base.combination`,
        A_j = W_j K and b_j = e_j + W_j K nominal.
        """
        rows, size, _ = self.sums.shape
        lengths = np.sqrt(np.maximum(np.einsum("rii->ri", self.sums), 0.0))
        lengths[lengths == 0.0] = 1.0
        unit = self.sums / (lengths[:, :, None] * lengths[:, None, :])
        values, V = np.linalg.eigh(unit)
        root = np.sqrt(np.maximum(values, 0.0))[:, :, None] * np.swapaxes(V, 1, 2)
        R = root * lengths[:, None, :]
        k = base.combination.shape[1]
        full = np.zeros((rows, max(size, k + 1), k + 1))
        full[:, :size, :k] = R[:, :, :-1] @ base.combination
        full[:, :size, k] = R[:, :, -1] + full[:, :size, :k] @ nominal
        return Factors(full, self.used.astype(float))


@dataclass(frozen=True)
class Equations:
    """Identification equations for the base parameters of a robot without closed loops."""

    model: LinearModel
    base: Base

    def _traced(self) -> tuple[Program, list[list[int]]]:
        """Return the program for the equations [W_j, e_j], and the column indices of each W_j.

        The equations are stored one after another, each padded with zeros to full SIMD vectors.
        """
        arena, inputs = Arena(RULES), self.inputs()
        given = {v.name: [arena.input(v.name, k) for k in range(v.size)] for v in inputs}
        numbers, places = list[Number](), []
        for kept, row in self.rows(given, arena):
            numbers += [*row, *[0.0] * (backends.gram_width(len(row)) - len(row))]
            places.append(kept)
        output = Variable("rows", (len(numbers),)), numbers
        return Program.from_outputs("equations", inputs, [output]), places

    def inputs(self) -> list[Variable]:
        """Return the inputs of the equations: states, torques, and external wrenches if any."""
        nq, nv = self.model.robot.nq, self.model.robot.nv
        shapes = {"q": nq, "qd": nv, "qdd": nv, "tau": nv}
        shapes |= {"loads": 6 * len(self.model.wrenches)} if self.model.wrenches else {}
        return [Variable(name, (size,)) for name, size in shapes.items()]

    def rows(
        self, given: dict[str, list[Scalar]], arena: Arena
    ) -> Iterator[tuple[list[int], list[Number]]]:
        """Yield the base-parameter indices and the symbols [W_j, e_j] of each row j."""
        model = self.model.bare.model

        keys = self.model.wrenches
        loads = {key.argument: given["loads"][6 * k : 6 * k + 6] for k, key in enumerate(keys)}

        def of(function: str, **options: Any) -> list[Number]:
            made, known = program(model, function, **options), {**given, **loads}
            return made.applied({v.name: known[v.name] for v in made.inputs}, arena)[0]

        Y, tau = self._inertias(of("regressor")), of("inverse_dynamics", wrenches=keys)
        known = self.model.nominal[10 * len(self.model.links) :]
        count = len(Y) // model.nv
        for j in range(model.nv):
            terms = self._terms(j, given)
            entries = [*Y[count * j : count * (j + 1)], *terms]
            kept = [k for k, c in enumerate(self.base.columns) if _acts(entries[c])]
            rest: Number = given["tau"][j] - tau[j]
            for term, value in zip(terms, known, strict=True):
                if value and _acts(term):
                    rest = rest - value * term
            row = [*(entries[self.base.columns[k]] for k in kept), rest]
            if j in self.model.dry:
                moves = less(self.model.rest(j), absolute(given["qd"][j]))
                row = [select(moves, entry, 0.0) for entry in row]
            yield kept, row

    def _inertias(self, Y: list[Number]) -> list[Number]:
        """Return the columns of the regressor Y (of all bodies) for the unknown parameters."""
        if self.model.map is None:
            return Y
        rows = np.array(Y, object).reshape(self.model.robot.nv, -1)
        return list((rows @ self.model.map).ravel())

    def _terms(self, j: int, given: dict[str, list[Scalar]]) -> list[Number]:
        """Return the entries of row j that multiply the joint terms (damping, friction, ...)."""
        found: list[Number] = []
        qd, qdd = given["qd"][j], given["qdd"][j]
        for kind, joint in self.model.unknowns:
            row, place, rest = self.model.place(joint)
            at = At(given["q"][place] - rest, qd, qdd, _sign(qd), self.model.slip)
            found.append(TERMS[kind].column(at) if row == j else 0.0)
        return found

    @cached_property
    def _made(self) -> tuple[Kernel, list[np.ndarray]]:
        traced, places = self._traced()
        recipe = ("equations", traced.hash)
        kernel = backends.known(recipe, lambda: traced, backends.USUAL, "float64")
        kernel = kernel or backends.compile(traced, backends.USUAL, "float64", recipe)
        return kernel, [np.array([*kept, len(self.base)]) for kept in places]

    def grams(self, sample: Sample) -> Grams:
        """Return the Gram matrices of a batch of states, computed on one thread."""
        kernel, places = self._made
        own = backends.grams([backends.gram_width(len(place)) for place in places])
        rows = np.empty((BLOCK, *kernel.interface.outputs[0].shape))
        taken = zip(sample, self.inputs(), strict=False)
        arrays = [np.ascontiguousarray(x, float) for x, _ in taken]
        for first in range(0, len(arrays[0]), BLOCK):
            part = [x[first : first + BLOCK] for x in arrays]
            some = rows[: len(part[0])]
            kernel(part, [some], 1)
            own.add(some)
        size = len(self.base) + 1
        sums = np.zeros((len(places), size, size))
        for j, (place, found) in enumerate(zip(places, own.matrices, strict=True)):
            sums[j, place[:, None], place] = found[: len(place), : len(place)]
        return Grams(sums, len(arrays[0]), self.model.moving(arrays[0], arrays[1]).sum(axis=0))

    def total(self, samples: Iterable[Sample], threads: int = THREADS) -> Grams:
        """Return the sum of the Gram matrices over all batches of states, read in order."""
        return sum(ahead(self.grams, samples, threads), self.none())

    def none(self) -> Grams:
        """Return zero Gram matrices, the initial value of a sum."""
        size = len(self.base) + 1
        rows = self.model.robot.nv
        return Grams(np.zeros((rows, size, size)), 0, np.zeros(rows, int))


def _sign(qd: Scalar) -> Number:
    """Return the sign of a symbolic velocity: 1, -1 or 0."""
    return select(less(0.0, qd), 1.0, select(less(qd, 0.0), -1.0, 0.0))


def _acts(entry: Number) -> bool:
    """Return True if a symbolic entry is not identically zero."""
    return isinstance(entry, Scalar) or entry != 0.0
