"""Several kernels that run one after the other on a tile of states.

The kernels pass arrays to each other by name. Their arrays in `Program.tiled` stay in tiles: those
of the chain's inputs and outputs belong to the caller, and the others are in the workspace.
"""

from collections.abc import Sequence

from chasles.backends.cache import Artifact
from chasles.backends.llvm.code import Machine, assemble, load
from chasles.backends.llvm.kernel import Kernel
from chasles.backends.llvm.source import PARAMETERS
from chasles.expr import Interface


class Chain(Kernel):
    """A kernel that runs several kernels in turn on the same tile. All of them are tiled."""

    def __init__(self, kernels: Sequence[Kernel], interface: Interface) -> None:
        first = kernels[0]
        self.interface, self.dtype = interface, first.dtype
        bytes_each = Machine.host().width * 8
        passed, start = dict[str, int](), max(k.artifact.workspace for k in kernels)
        for v in (v for k in kernels for v in k.interface.outputs if v not in interface.outputs):
            passed[v.name] = start
            start += v.size * bytes_each
        work = sum(kernel.artifact.work for kernel in kernels)
        self.artifact = Artifact(interface, first.dtype.name, start, work, b"", tiled=True)
        lines = [f"declare void @part{n}(i64, ptr, ptr, ptr, ptr, ptr)" for n in range(len(kernels))]
        lines += [f"define void @tiled({PARAMETERS}) nounwind {{", "entry:"]
        for n, kernel in enumerate(kernels):
            lines += self._call(n, kernel.interface, passed)
        text = "\n".join([*lines, "  ret void", "}"])
        symbols = {f"part{n}": kernel.tiled_address for n, kernel in enumerate(kernels)}
        others = tuple(kernel.code for kernel in kernels)
        self.code = load(assemble(text, Machine.host()), symbols, ("tiled",), others)
        self.parts, self.tiled_address = tuple(kernels), self.code.address("tiled")

    def _call(self, n: int, part: Interface, passed: dict[str, int]) -> list[str]:
        """Return the lines that call a kernel. passed: offsets of arrays in the workspace."""
        inputs, outputs = ([v.name for v in x] for x in (self.interface.inputs, self.interface.outputs))
        lines = list[str]()
        for role, variables in (("in", part.inputs), ("out", part.outputs)):
            at = f"%{role}{n}"
            for table, kind in (("places", "ptr"), ("strides", "i64")):
                lines.append(f"  {at}_{table} = alloca [{max(len(variables), 1)} x {kind}]")
            for k, v in enumerate(variables):
                own = f"{at}_{k}"
                if role == "in" and v.name in inputs:
                    source, index = "in", inputs.index(v.name)
                elif v.name in outputs:
                    source, index = "out", outputs.index(v.name)
                else:
                    source, index = "", passed[v.name]
                if source:
                    lines += [
                        f"  {own}_from = getelementptr ptr, ptr %{source}_pointers, i64 {index}",
                        f"  {own} = load ptr, ptr {own}_from",
                        f"  {own}_step_from = getelementptr i64, ptr %{source}_strides, i64 {index}",
                        f"  {own}_step = load i64, ptr {own}_step_from",
                    ]
                else:
                    lines += [
                        f"  {own} = getelementptr i8, ptr %workspace, i64 {index}",
                        f"  {own}_step = add i64 0, 0",
                    ]
                lines += [
                    f"  {own}_to = getelementptr ptr, ptr {at}_places, i64 {k}",
                    f"  store ptr {own}, ptr {own}_to",
                    f"  {own}_step_to = getelementptr i64, ptr {at}_strides, i64 {k}",
                    f"  store i64 {own}_step, ptr {own}_step_to",
                ]
        tables = f"ptr %in{n}_places, ptr %in{n}_strides, ptr %out{n}_places, ptr %out{n}_strides"
        return [*lines, f"  call void @part{n}(i64 %count, {tables}, ptr %workspace)"]
