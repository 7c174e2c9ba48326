"""A step as a CUDA kernel that repeats it: one thread a robot, its states in registers throughout.

The outputs of the step are the first inputs of the next. The other inputs, controls, are read anew
in every step. After every so many steps, and after the last, states are written to records.
"""

from collections.abc import Sequence

from chasles.backends.c_body import number_of
from chasles.backends.cuda_body import Body
from chasles.backends.cuda_plan import Plan
from chasles.expr import Program


class Looped:
    """The loop around a step, as other forms of kernels are written.

    Arrays have a third stride, that from one step, or one record, to the next.
    """

    more: Sequence[str] = ("long long steps", "long long every")
    strides: Sequence[str] = ("row", "along", "column")
    shared: int = 0
    columns: tuple[int, ...] = ()
    before: Sequence[str] = ()

    def __init__(self, program: Program, dtype: str) -> None:
        self.program, self.plan = program, Plan(program)
        states = len(program.outputs)
        sizes = [v.size for v in program.inputs[:states]]
        assert sizes == [v.size for v in program.outputs], "outputs must be the first inputs"
        self.inputs = sorted(
            (self.plan.code[k].data, k) for k in self.plan.order if self.plan.code[k].op == "input"
        )
        self.body = Body(self.plan, number_of(dtype), _as_next)
        self._begin()
        self._read(own=True)
        self.body.say("long long left = every;")
        self.body.say("for (long long step = steps; step > 0; step--) {")
        self._read(own=False)
        self.body.turn_near()
        self.after = self._end()

    def _is_state(self, array: int) -> bool:
        return array < len(self.program.outputs)

    def _begin(self) -> None:
        """Where the thread's robot is in all arrays."""
        self.body.say("const long long robot = blockIdx.x * (long long)blockDim.x + threadIdx.x;")
        self.body.say("if (robot >= count) return;")
        for role, variables in (("in", self.program.inputs), ("out", self.program.outputs)):
            for k in range(len(variables)):
                self.body.say(f"{role}{k} += robot * row_{role}{k};")

    def _read(self, *, own: bool) -> None:
        """The states, or the controls."""
        for (array, index), k in self.inputs:
            if self._is_state(array) == own:
                fixed = not own and k not in self.plan.turning_inputs
                self.body.name(k, f"in{array}[{index} * column_in{array}]", fixed=fixed)

    def _end(self) -> list[str]:
        """The next states and controls; records, where they are due."""
        lines = [
            f"  t{k} = {_next(array, index)};"
            for (array, index), k in self.inputs
            if self._is_state(array)
        ]
        controls = range(len(self.program.outputs), len(self.program.inputs))
        lines += [f"  in{k} += along_in{k};" for k in controls]
        lines.append("  if (--left == 0 || step == 1) {")
        for k, variable in enumerate(self.program.outputs):
            for index in range(variable.size):
                lines.append(f"    out{k}[{index} * column_out{k}] = {_next(k, index)};")
            lines.append(f"    out{k} += along_out{k};")
        return [*lines, "    left = every;", "  }", "  }"]


def _next(array: int, index: int) -> str:
    """The name of a number of a state after the step."""
    return f"next{array}_{index}"


def _as_next(array: int, index: int, value: str) -> str:
    return f"const real {_next(array, index)} = {value};"
