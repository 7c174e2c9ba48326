"""Kernels in which every thread processes one state by itself.

A kernel of the form "direct" reads all inputs into registers first, from arrays with any strides. A
kernel of the form "loop" repeats a step. The outputs of a step (states) are the first inputs of the
next step and stay in registers. The other inputs (controls) are read in every step. States are
written to records after every `every` steps and after the last step.
"""

from collections.abc import Sequence
from typing import Literal

from chasles.backends.c.body import number_of
from chasles.backends.cuda.body import Body, Plan, planned
from chasles.expr import Program

Form = Literal["direct", "rows", "columns", "loop", "search", "tries"]


def stored(output: int, index: str, value: str) -> str:
    """Return the statement that stores a result in its array."""
    return f"out{output}[{index} * column_out{output}] = {value};"


class Threads:
    """Base class of kernel writers, with code that locates a thread's inputs and outputs.

    - tables: definitions of additional constants.
    - more: additional parameters of the kernel.
    - strides: names of the strides that the kernel takes for each array.
    - shared: shared memory (bytes) per warp.
    - columns: indices of outputs that are stored in columns in every form (`Source.columns`).
    - before, after: lines before and after the body.
    """

    tables: Sequence[str] = ()
    more: Sequence[str] = ()
    strides: Sequence[str] = ("row", "column")
    shared: int = 0
    columns: tuple[int, ...] = ()
    before: Sequence[str] = ()
    after: Sequence[str] = ()

    def __init__(self, program: Program, dtype: str, form: Form) -> None:
        self.program, self.form = program, form
        self.plan = self._plan()
        self.number, code = number_of(dtype), self.plan.code
        self.body = Body(self.plan, self.number, self._deliver)
        self.inputs = sorted((code[k].data, k) for k in self.plan.order if code[k].op == "input")

    def _plan(self) -> Plan:
        return planned(self.program)

    def run(self, *, cuts: bool) -> None:
        """Emit the statements of the program."""
        self.body.run(self.plan.order, cuts=cuts)

    def _deliver(self, output: int, index: int, value: str) -> str:
        return stored(output, f"{index}", value)

    def _begin(self, name: str) -> list[str]:
        """Generate code that computes the addresses of the thread's state in all arrays."""
        return [
            f"  const long long {name} = blockIdx.x * (long long)blockDim.x + threadIdx.x;",
            f"  if ({name} >= count) return;",
            *(f"  in{k} += {name} * row_in{k};" for k in range(len(self.program.inputs))),
            *(f"  out{k} += {name} * row_out{k};" for k in range(len(self.program.outputs))),
        ]


class Direct(Threads):
    """Kernel in which each thread reads its inputs and writes its results without shared memory."""

    def __init__(self, program: Program, dtype: str, form: Form) -> None:
        super().__init__(program, dtype, form)
        self.before, turning = self._begin("state"), self.plan.turning_inputs
        for (array, index), k in self.inputs:
            self.body.name(k, f"in{array}[{index} * column_in{array}]", fixed=k not in turning)
        if turning:
            self.body.bring_near([f"t{k}" for k in turning])


class Looped(Threads):
    """Kernel that repeats a step; arrays have a third stride, between steps or records."""

    more = ("long long steps", "long long every")
    strides = ("row", "along", "column")

    def __init__(self, program: Program, dtype: str, form: Form) -> None:
        super().__init__(program, dtype, form)
        states = len(program.outputs)
        sizes = [v.size for v in program.inputs[:states]]
        assert sizes == [v.size for v in program.outputs], "outputs and first inputs differ"
        self.before = self._begin("robot")
        self._read(own=True)
        self.body.say("long long left = every;")
        self.body.say("for (long long step = steps; step > 0; step--) {")
        self._read(own=False)
        self.body.turn_near()
        self.after = self._end()

    def _read(self, *, own: bool) -> None:
        """Emit code that reads the inputs: states if `own` is True, otherwise controls."""
        for (array, index), k in self.inputs:
            if (array < len(self.program.outputs)) == own:
                fixed = not own and k not in self.plan.turning_inputs
                self.body.name(k, f"in{array}[{index} * column_in{array}]", fixed=fixed)

    def _deliver(self, output: int, index: int, value: str) -> str:
        return f"const real next{output}_{index} = {value};"

    def _end(self) -> list[str]:
        """Generate code that ends a step: update states and controls, and store a record if due."""
        outputs = self.program.outputs
        lines = [f"  t{k} = next{a}_{i};" for (a, i), k in self.inputs if a < len(outputs)]
        controls = range(len(outputs), len(self.program.inputs))
        lines += [f"  in{k} += along_in{k};" for k in controls]
        lines.append("  if (--left == 0 || step == 1) {")
        for k, variable in enumerate(outputs):
            for index in range(variable.size):
                lines.append(f"    out{k}[{index} * column_out{k}] = next{k}_{index};")
            lines.append(f"    out{k} += along_out{k};")
        return [*lines, "    left = every;", "  }", "  }"]
