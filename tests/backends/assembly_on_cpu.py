"""Translate PTX within CUDA C to C++, with instructions as defined in NVIDIA's PTX manual."""

import re

from chasles.backends.cuda.assembly import HERE
from chasles.backends.cuda.tiles import WARP

MEANINGS = {
    "mov": "{0} = {1};",
    "add.rn": "{0} = {1} + {2};",
    "sub.rn": "{0} = {1} - {2};",
    "mul.rn": "{0} = {1} * {2};",
    "div.rn": "{0} = {1} / {2};",
    "div.full": "{0} = {1} / {2};",
    "rcp.approx.ftz": "{0} = 1 / {1};",
    "fma.rn": "{0} = std::fma({1}, {2}, {3});",
    "neg": "{0} = -{1};",
    "abs": "{0} = std::fabs({1});",
    "sqrt.rn": "{0} = std::sqrt({1});",
    "min": "{0} = std::fmin({1}, {2});",
    "max": "{0} = std::fmax({1}, {2});",
    "min.NaN": "{0} = {1} != {1} || {2} != {2} ? (real)NAN : std::fmin({1}, {2});",
    "max.NaN": "{0} = {1} != {1} || {2} != {2} ? (real)NAN : std::fmax({1}, {2});",
    "setp.lt": "{0} = {1} < {2};",
    "setp.le": "{0} = {1} <= {2};",
    "setp.eq": "{0} = {1} == {2};",
    "setp.neu": "{0} = !({1} == {2});",
    "setp.nan": "{0} = {1} != {1} || {2} != {2};",
    "selp": "{0} = {3} ? {1} : {2};",
    "ld.shared": "{0} = {1};",
    "st.shared": "{0} = {1};",
}
"""C++ statements of PTX instructions without their types. C++ rounds to nearest by default."""


def translated(text: str) -> str:
    """Return the text of a kernel with its `asm` statements translated to C++."""
    return re.sub(
        r"asm volatile\((.*?)\);", _statement, text.replace(HERE, "#define HERE"), flags=re.S
    )


def _statement(found: re.Match[str]) -> str:
    """Translate one `asm` statement, which has several instructions and at most one C++ operand."""
    body, _, operands = found[1].partition("::" if "::" in found[1] else " : ")
    named = re.search(r'"=?[fd]"\((\w+)\)', operands)
    lines = "".join(re.findall(r'"([^"]*)"', body)).replace("\\n", "")
    each = [line.strip() for line in lines.split(";") if line.strip()]
    return " ".join(_instruction(line, named[1] if named else "") for line in each)


def _instruction(line: str, operand: str) -> str:
    name, rest = line.split(" ", 1)
    parts = [part.strip() for part in rest.split(",")]
    if name == ".reg":
        kind, parts[0] = parts[0].split(" ")
        names = (re.fullmatch(r"(\w+)<(\d+)>", part) for part in parts)
        sizes = [(each[1], int(each[2]) + 1) for each in names if each]
        real = "bool" if kind == ".pred" else "real"
        return " ".join(f"static thread_local {real} {n}_[{size}];" for n, size in sizes)
    name, _, kind = name.rpartition(".")
    assert kind in ("f32", "f64"), line
    return MEANINGS[name].format(*(_operand(part, operand) for part in parts))


def _operand(text: str, outside: str) -> str:
    if text == "%0":
        return outside
    if address := re.fullmatch(r"\[here\+(\d+)\]", text):
        return f"tile[{address[1]} / ({WARP} * sizeof(real)) * LANES + lane]"
    if number := re.fullmatch(r"0([fd])([0-9A-F]+)", text):
        kind = {"f": "float, unsigned", "d": "double, unsigned long long"}[number[1]]
        return f"bits<{kind}>(0x{number[2]})"
    letter, index = text[0], text[1:]
    assert index.isdigit(), text
    return f"{letter}_[{index}]"
