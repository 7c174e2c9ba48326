"""An iterative kernel made of the kernels `begin`, `refine` (until convergence) and `end`.

    begin(inputs) -> point, memory, data
    refine(point, memory, data) -> point, memory
    rescue(point, memory, data) -> point, memory
    adjust(point, memory, data) -> memory
    end(inputs, point, memory, data) -> outputs

`point` is the current iterate, `memory` the solver state, and `data` holds values that stay fixed
during the iterations. The first entry of `memory` is 0 until the state has converged; the second is
the number of iterations. An iteration returns a converged state unchanged, so the result of a state
does not depend on its neighbors in a batch. The optional `rescue` replaces `refine` for late states
(those that have run at least `quick` iterations). `refine` returns late states unchanged. The
optional `adjust` runs after the iterations, on tiles with marked states. The mark is the first of
the last `marks` entries of `memory`. If the mark is 0, `adjust` returns the `memory` of the state
unchanged.

Like every kernel, the combined kernel has a function `batch`, so it can be used in loops and by
threads. A single state runs as a batch of one.

A batch runs in chunks of a few tiles (blocks of states, one per SIMD lane). Points, memories and
data stay in tiles (`Program.tiled`), without a transpose between programs. A tile is refined as a
whole while at least three quarters of its states have not converged. Then the remaining states of
all tiles are refined in a separate tile. As soon as a state in this tile has converged or is late,
the next state takes its lane. Finally, late states are rescued in the same way.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from chasles.backends.cache import Artifact
from chasles.backends.llvm import iterated_source
from chasles.backends.llvm.code import Machine, assemble, load
from chasles.backends.llvm.iterated_source import Layout
from chasles.backends.llvm.kernel import Kernel
from chasles.expr import Interface

USUAL_REFINEMENTS = 2
"""Typical number of iterations per state, for an estimate of the work."""

PARTS = ("begin", "refine", "rescue", "adjust", "end")


class Iterated(Kernel):
    """An iterative kernel that combines several kernels (see `chasles.backends.llvm.iterated`)."""

    alone = False

    def __init__(self, kernels: Sequence[Kernel], quick: int, marks: int) -> None:
        optional = {"rescue": quick, "adjust": marks}
        names = [name for name in PARTS if optional.get(name, True)]
        parts = dict(zip(names, kernels, strict=True))
        begin, end = parts["begin"], parts["end"]
        inputs, carried = len(begin.interface.inputs), begin.interface.outputs
        for name, kernel in list(parts.items())[1:-1]:
            changed = carried[1:2] if name == "adjust" else carried[:2]
            assert kernel.interface.inputs == carried, "inputs of an iteration"
            assert kernel.interface.outputs == changed, "outputs of an iteration"
        assert end.interface.inputs[inputs:] == carried, "inputs of end"
        self.dtype = begin.dtype
        size = self.dtype.itemsize
        own = max(k.artifact.workspace for k in kernels)
        outputs, sizes = len(end.interface.outputs), [v.size for v in carried]
        lanes = Machine.host().width * 8 // size
        layout = Layout(inputs, outputs, sizes, own, size, lanes, quick, marks)
        self.block = layout.count * lanes
        given, taken = begin.interface, end.interface
        self.interface = Interface("step", given.inputs, taken.outputs, given.nonzero)
        works = [kernel.artifact.work for kernel in kernels]
        work = works[0] + USUAL_REFINEMENTS * works[1] + works[-1]
        self.artifact = Artifact(self.interface, self.dtype.name, layout.space, work, b"")
        addresses = {f"{name}_tiled": kernel.tiled_address for name, kernel in parts.items()}
        others = tuple(kernel.code for kernel in kernels)
        text = iterated_source.text(layout)
        self.code = load(assemble(text, Machine.host()), addresses, ("batch",), others)
        self.parts, self.batch_address = tuple(kernels), self.code.address("batch")


def iterated(kernels: Sequence[Any], quick: int = 0, marks: int = 0) -> Iterated:
    """Combine the kernels `begin`, `refine`, `rescue`, `adjust` and `end`, all of the same dtype.

    - quick: number of iterations after which `rescue` replaces `refine`, or 0 without `rescue`.
    - marks: number of entries at the end of `memory` that `adjust` uses, or 0 without `adjust`.
    """
    assert len({np.dtype(kernel.dtype) for kernel in kernels}) == 1
    return Iterated(kernels, quick, marks)
