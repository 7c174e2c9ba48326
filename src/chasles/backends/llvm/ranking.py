"""LLVM IR code that finds, for each search, the initial configurations nearest to its goals."""

import numpy as np

from chasles.backends.llvm.threads import field

LANES, CHAINS = 8, 4
"""Vector width, and number of vector sums computed at once. The starts (initial configurations) are
divided into `LANES` groups, and each lane of a vector processes the starts of one group."""


def ranking(fuse: bool) -> str:
    """Generate the function `rank`, which finds the nearest start per group and sorts these starts.

    Starts are initial configurations. For each problem, the nearest starts are sorted by their
    distance from the problem's goals. Up to a term that all starts share, the squared distance is a
    constant plus the dot product of a coefficient row with the goals; each start has its own
    constant and row. The rows of LANES starts are stored transposed in one tile, with the constants
    last.
    """
    kind = f"<{LANES} x double>"
    each = range(CHAINS)
    fields = [("numbers", "i64"), ("tiles", "i64"), ("goals", "ptr"), ("goal_row", "i64")]
    fields += [("table", "ptr"), ("ranks", "ptr")]

    def spread(name: str, value: str) -> str:
        mask = f"<{LANES} x i32> zeroinitializer"
        return (
            f"  %{name}.one = insertelement {kind} poison, double {value}, i32 0\n"
            f"  %{name} = shufflevector {kind} %{name}.one, {kind} poison, {mask}"
        )

    def sum_of(c: int) -> str:
        place = f"%v{c}.at = getelementptr {kind}, ptr %tile{c}, i64 %k"
        load_ = f"  {place}\n  %v{c} = load {kind}, ptr %v{c}.at, align 8\n"
        if fuse:
            operands = f"{kind} %v{c}, {kind} %x, {kind} %sum{c}"
            return f"{load_}  %sum{c}.next = call {kind} @llvm.fma.v{LANES}f64({operands})"
        product = f"  %p{c} = fmul {kind} %v{c}, %x\n"
        return f"{load_}{product}  %sum{c}.next = fadd {kind} %p{c}, %sum{c}"

    lines = [f"declare {kind} @llvm.fma.v{LANES}f64({kind}, {kind}, {kind})"]
    lines += ["define i64 @rank(ptr %given, i64 %first, i64 %last) {", "entry:"]
    lines += ["  " + field(*pair, "given", 8 * k) for k, pair in enumerate(fields)]
    lines += [
        f"  %order = alloca [{LANES} x i64], align 64",
        f"  %number = alloca [{LANES} x double], align 64",
        "  %columns = add i64 %numbers, 1",
        "  br label %problem",
        "problem:",
        "  %p = phi i64 [ %first, %entry ], [ %p.next, %ranked ]",
        "  %goal.far = mul i64 %p, %goal_row",
        "  %goal = getelementptr i8, ptr %goals, i64 %goal.far",
        "  br label %tile",
        "tile:",
        "  %t = phi i64 [ 0, %problem ], [ %t.next, %better ]",
    ]
    infinite = ", ".join(["double 0x7FF0000000000000"] * LANES)
    lines.append(f"  %best = phi {kind} [ <{infinite}>, %problem ], [ %best{CHAINS - 1}, %better ]")
    lines.append(
        f"  %which = phi {kind} [ zeroinitializer, %problem ], [ %which{CHAINS - 1}, %better ]"
    )
    for c in each:
        lines += [
            f"  %number{c} = add i64 %t, {c}",
            f"  %place{c} = mul i64 %number{c}, %columns",
            f"  %tile{c} = getelementptr {kind}, ptr %table, i64 %place{c}",
            f"  %last{c}.at = getelementptr {kind}, ptr %tile{c}, i64 %numbers",
            f"  %last{c} = load {kind}, ptr %last{c}.at, align 8",
        ]
    lines += ["  br label %term", "term:", "  %k = phi i64 [ 0, %tile ], [ %k.next, %term ]"]
    lines += [f"  %sum{c} = phi {kind} [ %last{c}, %tile ], [ %sum{c}.next, %term ]" for c in each]
    lines += ["  %goal.at = getelementptr double, ptr %goal, i64 %k"]
    lines += ["  %goal.k = load double, ptr %goal.at", spread("x", "%goal.k")]
    lines += [sum_of(c) for c in each]
    lines += ["  %k.next = add i64 %k, 1", "  %k.more = icmp ult i64 %k.next, %numbers"]
    lines += ["  br i1 %k.more, label %term, label %better", "better:"]
    before = ("%best", "%which")
    for c in each:
        lines += [
            f"  %near{c} = fcmp olt {kind} %sum{c}.next, {before[0]}",
            f"  %best{c} = select <{LANES} x i1> %near{c}, {kind} %sum{c}.next, {kind} {before[0]}",
            f"  %number{c}.f = uitofp i64 %number{c} to double",
            spread(f"number{c}.v", f"%number{c}.f"),
            f"  %which{c} = select <{LANES} x i1> %near{c}, {kind} %number{c}.v, "
            f"{kind} {before[1]}",
        ]
        before = (f"%best{c}", f"%which{c}")
    lines += [
        f"  %t.next = add i64 %t, {CHAINS}",
        "  %t.more = icmp ult i64 %t.next, %tiles",
        "  br i1 %t.more, label %tile, label %sort",
        "sort:",
        f"  store {kind} {before[1]}, ptr %number, align 64",
        f"  %rank.row = mul i64 %p, {LANES}",
        "  %rank.first = getelementptr i64, ptr %ranks, i64 %rank.row",
        *_places(before[0]),
        "  br label %place",
        "place:",
        "  %l = phi i64 [ 0, %sort ], [ %l.next, %place ]",
        "  %r.at = getelementptr i64, ptr %order, i64 %l",
        "  %r = load i64, ptr %r.at",
        "  %number.at = getelementptr double, ptr %number, i64 %l",
        "  %number.f = load double, ptr %number.at",
        "  %number.i = fptoui double %number.f to i64",
        f"  %start = mul i64 %number.i, {LANES}",
        "  %start.lane = add i64 %start, %l",
        "  %rank.at = getelementptr i64, ptr %rank.first, i64 %r",
        "  store i64 %start.lane, ptr %rank.at",
        "  %l.next = add i64 %l, 1",
        f"  %l.more = icmp ult i64 %l.next, {LANES}",
        "  br i1 %l.more, label %place, label %ranked",
        "ranked:",
        "  %p.next = add i64 %p, 1",
        "  %p.more = icmp ult i64 %p.next, %last",
        "  br i1 %p.more, label %problem, label %end",
        "end:",
        "  ret i64 0",
        "}",
    ]
    return "\n".join(lines)


def _places(far: str) -> list[str]:
    """Generate LLVM IR that sorts SIMD lanes by distance and stores the rank of each lane."""
    kind, flags, whole = (f"<{LANES} x {each}>" for each in ("double", "i1", "i64"))
    lines, sum_ = [], "zeroinitializer"
    for j in range(LANES):
        later = ", ".join(f"i1 {str(lane > j).lower()}" for lane in range(LANES))
        same = ", ".join([f"i32 {j}"] * LANES)
        lines += [
            f"  %far{j} = shufflevector {kind} {far}, {kind} poison, <{LANES} x i32> <{same}>",
            f"  %less{j} = fcmp olt {kind} %far{j}, {far}",
            f"  %same{j} = fcmp oeq {kind} %far{j}, {far}",
            f"  %tied{j} = and {flags} %same{j}, <{later}>",
            f"  %before{j} = or {flags} %less{j}, %tied{j}",
            f"  %one{j} = zext {flags} %before{j} to {whole}",
            f"  %sum.{j} = add {whole} {sum_}, %one{j}",
        ]
        sum_ = f"%sum.{j}"
    return [*lines, f"  store {whole} {sum_}, ptr %order, align 64"]


def table(met: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the table (tiles, size + 1, LANES) that `rank` uses to compare starts and goals.

    Starts are initial configurations, and `met` (starts, size) contains the goals that each start
    attains. The distance of a start is the weighted sum of squared differences between these goals
    and the goals of the problem.
    """
    assert len(met) % (LANES * CHAINS) == 0
    rows = np.concatenate([-2.0 * weights * met, (weights * met * met).sum(1)[:, None]], axis=1)
    return np.ascontiguousarray(rows.reshape(-1, LANES, rows.shape[1]).swapaxes(1, 2))
