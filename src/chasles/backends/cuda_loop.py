"""A step repeated on a GPU: one launch for all steps of all robots, one thread a robot."""

from collections.abc import Sequence
from typing import Any

from chasles.backends.cuda import MANY, Kernel, on_cupy
from chasles.backends.cuda_driver import architecture
from chasles.backends.cuda_layout import Arrays, strides
from chasles.backends.cuda_source import WARP


class Loop:
    """A kernel whose outputs are its first inputs, repeated."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def __call__(
        self,
        states: Sequence[Any],
        controls: Sequence[Any],
        records: Sequence[Any],
        steps: int,
        every: int,
        threads: int | None = None,
    ) -> None:
        """Advance states (count, size) by so many steps: CuPy's arrays on the current device.

        controls: the other inputs, (count or 1, steps or 1, size), shared where 1. records: for
        each state (count, kept, size), filled after every `every` steps and after the last. Any
        strides will do. The states themselves stay as they are. Nothing waits for the result.
        """
        assert threads is None
        device = states[0].data.device_id
        self.run(on_cupy(self.kernel.dtype, device), states, controls, records, steps, every)

    def run(
        self,
        library: Arrays,
        states: Sequence[Any],
        controls: Sequence[Any],
        records: Sequence[Any],
        steps: int,
        every: int,
    ) -> None:
        """The same for arrays of any library."""
        parameters = [len(states[0]), -1, steps, every]
        for array in states:
            address, extent = library.look(array)
            row, column = strides(extent)
            parameters += (address, row, 0, column)
        for array in (*controls, *records):
            address, extent = library.look(array)
            parameters += (address, *strides(extent))
        built, function = self.kernel.loaded(architecture(library.device), "loop")
        count = len(states[0])
        block = built.block if count >= MANY else WARP
        where = library.stream, library.device
        function.launch((-(-count // block), 1), (block, 1), 0, parameters, *where)
