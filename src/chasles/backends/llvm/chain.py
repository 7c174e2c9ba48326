"""Several kernels that run one after the other on a tile (one state per SIMD lane).

The kernels have tiled arrays (`Program.tiled`), which they pass to each other by name. The inputs
and outputs of the chain are the caller's arrays, and the other arrays are in the workspace. A
kernel may occur several times, with different arrays.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from chasles.backends.arrays import Link
from chasles.backends.cache import Artifact
from chasles.backends.llvm.code import Machine, assemble, load
from chasles.backends.llvm.kernel import Kernel
from chasles.backends.llvm.source import PARAMETERS
from chasles.expr import Interface, Variable


class Chain(Kernel):
    """A kernel that runs several kernels in turn on the same tile.

    The inputs of the chain are those of the first kernel; `outputs` lists the names of the chain's
    outputs. An output that is also an input is written by the last kernel, because earlier kernels
    may still read the input.
    """

    def __init__(self, links: Sequence[Link], outputs: Sequence[str]) -> None:
        first, kernels = links[0].kernel, list({id(x.kernel): x.kernel for x in links}.values())
        self.dtype, inputs = first.dtype, first.interface.inputs
        sizes, start = dict[str, int](), max(k.artifact.workspace for k in kernels)
        passed = dict[str, int]()
        for link in links:
            for name, variable in link.written.items():
                sizes[name] = variable.size
                if name not in outputs and name not in passed:
                    passed[name] = start
                    start += variable.size * Machine.host().width * 8
        known, given = [v.name for v in inputs], [Variable(n, (sizes[n],)) for n in outputs]
        early = {name for link in links[:-1] for name in link.written}
        assert not early & {*known} & {*outputs}, "an input is overwritten before its last use"
        self.interface = Interface(first.interface.name, inputs, tuple(given), ())
        work = sum(link.kernel.artifact.work for link in links)
        self.artifact = Artifact(self.interface, first.dtype.name, start, work, b"", tiled=True)
        number = {id(kernel): n for n, kernel in enumerate(kernels)}
        lines = [f"declare void @part{n}({TAKEN})" for n in range(len(kernels))]
        lines += [f"define void @tiled({PARAMETERS}) nounwind {{", "entry:"]
        places = _Places(known, list(outputs), passed)
        for k, link in enumerate(links):
            lines += _call(str(k), f"@part{number[id(link.kernel)]}", link, places)
        text = "\n".join([*lines, "  ret void", "}"])
        symbols = {f"part{n}": kernel.tiled_address for n, kernel in enumerate(kernels)}
        others = tuple(kernel.code for kernel in kernels)
        self.code = load(assemble(text, Machine.host()), symbols, ("tiled",), others)
        self.parts, self.tiled_address = tuple(kernels), self.code.address("tiled")


TAKEN = "i64, ptr, ptr, ptr, ptr, ptr"


class _Places(NamedTuple):
    """Input and output names of a chain of kernels, and workspace offsets of its other arrays."""

    inputs: Sequence[str]
    outputs: Sequence[str]
    passed: Mapping[str, int]

    def lines(self, own: str, name: str, *, read: bool) -> list[str]:
        """Generate LLVM IR that sets `own` to an array's address, and `own.step` to its stride."""
        if name in self.passed:
            return [
                f"  {own} = getelementptr i8, ptr %workspace, i64 {self.passed[name]}",
                f"  {own}.step = add i64 0, 0",
            ]
        role = "in" if read and name in self.inputs else "out"
        index = (self.inputs if role == "in" else self.outputs).index(name)
        return [
            f"  {own}.from = getelementptr ptr, ptr %{role}_pointers, i64 {index}",
            f"  {own} = load ptr, ptr {own}.from",
            f"  {own}.step.from = getelementptr i64, ptr %{role}_strides, i64 {index}",
            f"  {own}.step = load i64, ptr {own}.step.from",
        ]


def _call(k: str, function: str, link: Link, places: _Places) -> list[str]:
    """Return the lines of LLVM IR that call one kernel of a chain."""
    lines, tables = list[str](), list[str]()
    for role, names in (("in", link.read), ("out", list(link.written))):
        for table, kind in (("places", "ptr"), ("strides", "i64")):
            tables.append(f"ptr %{role}{k}.{table}")
            lines.append(f"  %{role}{k}.{table} = alloca [{len(names)} x {kind}]")
        for n, name in enumerate(names):
            own = f"%{role}{k}.{n}"
            lines += [
                *places.lines(own, name, read=role == "in"),
                f"  {own}.to = getelementptr ptr, ptr %{role}{k}.places, i64 {n}",
                f"  store ptr {own}, ptr {own}.to",
                f"  {own}.step.to = getelementptr i64, ptr %{role}{k}.strides, i64 {n}",
                f"  store i64 {own}.step, ptr {own}.step.to",
            ]
    return [*lines, f"  call void {function}(i64 %count, {', '.join(tables)}, ptr %workspace)"]
