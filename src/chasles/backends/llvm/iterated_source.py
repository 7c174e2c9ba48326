"""Source of an iterative kernel (`llvm.iterated`), in LLVM IR.

All functions of the kernel use the same tile layout.
"""

from collections.abc import Sequence

TILES, CACHED = 32, 1_300_000
"""Maximum number and total size (bytes) of the tiles in a chunk of states. In a large chunk, fewer
SIMD lanes are idle when most states have converged.
"""

GROUP = 16
"""Number of entries copied per iteration of the loop that moves a state between tiles."""

TAKEN = "i64, ptr, ptr, ptr, ptr, ptr"


class Layout:
    """Layout of a thread's memory: kernel workspace, tables of addresses, and tiles.

    - inputs, outputs: numbers of inputs and outputs.
    - sizes: numbers of entries per state in the arrays point, memory and data (`llvm.iterated`).
    - own: size (bytes) of the kernel workspace.
    - size, lanes: bytes per element, and number of states in a tile.
    - quick: number of iterations after which `rescue` replaces `refine`, or 0 without `rescue`.
    - marks: number of entries at the end of a state's memory that belong to `adjust`, or 0 without
      `adjust`. The first of these entries selects the state for `adjust`.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        sizes: Sequence[int],
        own: int,
        size: int,
        lanes: int,
        quick: int,
        marks: int,
    ) -> None:
        self.inputs, self.outputs, self.sizes = inputs, outputs, sizes
        self.size, self.lanes, self.quick, self.marks = size, lanes, quick, marks
        self.kind = {8: "double", 4: "float"}[size]
        self.ins = even(own)
        self.outs = self.ins + even(8 * (inputs + 3))
        self.strides = self.outs + even(8 * outputs)
        self.owners = self.strides + even(8 * (inputs + 3))
        self.tiles = self.owners + even(8 * lanes)
        self.starts = [0, *(size * lanes * sum(sizes[: k + 1]) for k in range(2))]
        self.mark = size * lanes * (sum(sizes[:2]) - marks)
        self.group = min(GROUP, sum(sizes))
        self.tile = even(size * lanes * sum(sizes))
        self.count = min(max(CACHED // self.tile, 4), TILES)
        self.space = self.tiles + (self.count + 1) * self.tile


def even(place: int) -> int:
    """Return an offset rounded up to a multiple of 64 bytes, the alignment of vectors."""
    return -(-place // 64) * 64


def text(layout: Layout) -> str:
    """Generate the LLVM module with the function `batch`, which processes states in chunks."""
    pooled = ["refine", *(["rescue"] if layout.quick else [])]
    names = ["begin", *pooled, *(["adjust"] if layout.marks else []), "end"]
    declared = "\n".join(f"declare void @{name}_tiled({TAKEN})" for name in names)
    parts = [declared, "declare i64 @llvm.umin.i64(i64, i64)", _aimed(layout), _lanes(layout)]
    parts += [_adjusted(layout)] if layout.marks else []
    return "\n".join([*parts, *(_pool(layout, name) for name in pooled), _batch(layout)])


def _aimed(layout: Layout) -> str:
    """Generate the function that fills the tables with the addresses of a tile's arrays.

    %row: first row of the tile in the caller's arrays.
    """

    def shifted(role: str, count: int, to: int) -> list[str]:
        lines = [f"  %{role}_table = getelementptr i8, ptr %workspace, i64 {to}"]
        for i in range(count):
            a = f"{role}{i}"
            lines += [
                f"  %{a}_at = getelementptr ptr, ptr %{role}_pointers, i64 {i}",
                f"  %{a}_first = load ptr, ptr %{a}_at",
                f"  %{a}_wide = getelementptr i64, ptr %{role}_strides, i64 {i}",
                f"  %{a}_step = load i64, ptr %{a}_wide",
                f"  %{a}_far = mul i64 %{a}_step, %row",
                f"  %{a}_here = getelementptr i8, ptr %{a}_first, i64 %{a}_far",
                f"  %{a}_to = getelementptr ptr, ptr %{role}_table, i64 {i}",
                f"  store ptr %{a}_here, ptr %{a}_to",
            ]
        return lines

    n = layout.inputs
    lines = shifted("in", n, layout.ins) + shifted("out", layout.outputs, layout.outs)
    for i, start in enumerate(layout.starts):
        lines += [
            f"  %carried{i} = getelementptr i8, ptr %tile, i64 {start}",
            f"  %place{i} = getelementptr ptr, ptr %in_table, i64 {n + i}",
            f"  store ptr %carried{i}, ptr %place{i}",
        ]
    body = "\n".join(lines)
    return f"""
define internal void @aimed(i64 %row, ptr %tile, ptr %in_pointers, ptr %in_strides,
                            ptr %out_pointers, ptr %out_strides, ptr %workspace) {{
entry:
{body}
  ret void
}}"""


def _lanes(layout: Layout) -> str:
    """Generate LLVM functions that count unconverged states, copy states and locate states."""
    kind, lanes, every = layout.kind, layout.lanes, sum(layout.sizes)
    return f"""
define internal i64 @open(ptr %tile) {{
entry:
  %memory = getelementptr i8, ptr %tile, i64 {layout.starts[1]}
  br label %loop
loop:
  %lane = phi i64 [ 0, %entry ], [ %next, %loop ]
  %found = phi i64 [ 0, %entry ], [ %more, %loop ]
  %at = getelementptr {kind}, ptr %memory, i64 %lane
  %status = load {kind}, ptr %at
  %open = fcmp oeq {kind} %status, 0.0
  %one = zext i1 %open to i64
  %more = add i64 %found, %one
  %next = add i64 %lane, 1
  %again = icmp ult i64 %next, {lanes}
  br i1 %again, label %loop, label %end
end:
  ret i64 %more
}}

define internal void @copied(ptr %to, ptr %from, i64 %count, i64 %wide) {{
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %far = mul i64 %k, %wide
  %source = getelementptr {kind}, ptr %from, i64 %far
  %target = getelementptr {kind}, ptr %to, i64 %far
  %x = load {kind}, ptr %source
  store {kind} %x, ptr %target
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %end
end:
  ret void
}}

; Copy the numbers of several lanes together, so that neighbors share cache lines.
; The last group overlaps the one before it.
define internal void @gathered(ptr %to, ptr %from, i64 %pairs) {{
entry:
  %some = icmp ugt i64 %pairs, 0
  br i1 %some, label %group, label %end
group:
  %g = phi i64 [ 0, %entry ], [ %g_next, %group_on ]
  %first = call i64 @llvm.umin.i64(i64 %g, i64 {every - layout.group})
  %far = mul i64 %first, {lanes}
  br label %pair
pair:
  %p = phi i64 [ 0, %group ], [ %p_next, %pair ]
  %from_at = getelementptr ptr, ptr %from, i64 %p
  %to_at = getelementptr ptr, ptr %to, i64 %p
  %from_lane = load ptr, ptr %from_at
  %to_lane = load ptr, ptr %to_at
  %source = getelementptr {kind}, ptr %from_lane, i64 %far
  %target = getelementptr {kind}, ptr %to_lane, i64 %far
{_copies(layout)}
  %p_next = add i64 %p, 1
  %p_more = icmp ult i64 %p_next, %pairs
  br i1 %p_more, label %pair, label %group_on
group_on:
  %g_next = add i64 %g, {layout.group}
  %g_more = icmp ult i64 %g_next, {every}
  br i1 %g_more, label %group, label %end
end:
  ret void
}}

define internal ptr @lane(ptr %tiles, i64 %row) {{
entry:
  %number = udiv i64 %row, {lanes}
  %place = urem i64 %row, {lanes}
  %far = mul i64 %number, {layout.tile}
  %tile = getelementptr i8, ptr %tiles, i64 %far
  %lane = getelementptr {kind}, ptr %tile, i64 %place
  ret ptr %lane
}}"""


def _copies(layout: Layout) -> str:
    """Generate code that copies one group of entries of a state from %source to %target."""
    kind, lines = layout.kind, list[str]()
    for k in range(layout.group):
        far = k * layout.lanes
        lines += [
            f"  %source{k} = getelementptr {kind}, ptr %source, i64 {far}",
            f"  %x{k} = load {kind}, ptr %source{k}",
            f"  %target{k} = getelementptr {kind}, ptr %target, i64 {far}",
            f"  store {kind} %x{k}, ptr %target{k}",
        ]
    return "\n".join(lines)


def _adjusted(layout: Layout) -> str:
    """Generate the LLVM function that calls `adjust` for a tile if any of its states is marked."""
    lanes, vector = layout.lanes, f"<{layout.lanes} x {layout.kind}>"
    return f"""
define internal void @adjusted(ptr %tile, ptr %places, ptr %strides, ptr %workspace) {{
entry:
  %at = getelementptr i8, ptr %tile, i64 {layout.mark}
  %marks = load {vector}, ptr %at, align {layout.size}
  %marked = fcmp une {vector} %marks, zeroinitializer
  %bits = bitcast <{lanes} x i1> %marked to i{lanes}
  %none = icmp eq i{lanes} %bits, 0
  br i1 %none, label %end, label %adjust
adjust:
  %memory = getelementptr ptr, ptr %places, i64 1
  call void @adjust_tiled(i64 {lanes}, ptr %places, ptr %strides, ptr %memory, ptr %strides,
                          ptr %workspace)
  br label %end
end:
  ret void
}}"""


def _pool(layout: Layout, name: str) -> str:
    """Generate the function that runs `refine` or `rescue` on all unconverged states of a chunk.

    `refine` is repeated until each state has converged or, unless `quick` is 0, has run `quick`
    iterations in total. `rescue` is repeated until each state has converged.
    """
    kind, lanes, start = layout.kind, layout.lanes, layout.starts[1]
    few = sum(layout.sizes[:2])
    return f"""
define internal void @{name}_pool(i64 %rows, ptr %tiles, ptr %places, ptr %strides,
                                  ptr %workspace) {{
entry:
  %owners = getelementptr i8, ptr %workspace, i64 {layout.owners}
  %pool = getelementptr i8, ptr %tiles, i64 {layout.count * layout.tile}
  %memory = getelementptr i8, ptr %pool, i64 {start}
  %scan = alloca i64
  %to = alloca [{lanes} x ptr]
  %source = alloca [{lanes} x ptr]
  store i64 0, ptr %scan
  br label %clear
clear:
  %c = phi i64 [ 0, %entry ], [ %c_next, %clear ]
  %c_owner = getelementptr i64, ptr %owners, i64 %c
  store i64 -1, ptr %c_owner
  %c_status = getelementptr {kind}, ptr %memory, i64 %c
  store {kind} 1.0, ptr %c_status
  %c_next = add i64 %c, 1
  %c_more = icmp ult i64 %c_next, {lanes}
  br i1 %c_more, label %clear, label %round
round:
  br label %lane
lane:
  %l = phi i64 [ 0, %round ], [ %l_next, %lane_on ]
  %active = phi i64 [ 0, %round ], [ %active_on, %lane_on ]
  %new = phi i64 [ 0, %round ], [ %new_on, %lane_on ]
  %owner_at = getelementptr i64, ptr %owners, i64 %l
  %owner = load i64, ptr %owner_at
  %status_at = getelementptr {kind}, ptr %memory, i64 %l
  %own = getelementptr {kind}, ptr %pool, i64 %l
  %free = icmp slt i64 %owner, 0
  br i1 %free, label %seek, label %taken
taken:
{_needed(layout, name, "taken", "%status_at")}
  br i1 %taken_needed, label %works, label %retire
retire:
  %home = call ptr @lane(ptr %tiles, i64 %owner)
  call void @copied(ptr %home, ptr %own, i64 {few}, i64 {lanes})
  store i64 -1, ptr %owner_at
  store {kind} 1.0, ptr %status_at
  br label %seek
seek:
  %s = load i64, ptr %scan
  %inside = icmp ult i64 %s, %rows
  br i1 %inside, label %look, label %empty
look:
  %s_next = add i64 %s, 1
  store i64 %s_next, ptr %scan
  %from = call ptr @lane(ptr %tiles, i64 %s)
  %from_status = getelementptr i8, ptr %from, i64 {start}
{_needed(layout, name, "found", "%from_status")}
  br i1 %found_needed, label %fill, label %seek
fill:
  %to_at = getelementptr ptr, ptr %to, i64 %new
  store ptr %own, ptr %to_at
  %source_at = getelementptr ptr, ptr %source, i64 %new
  store ptr %from, ptr %source_at
  %new_more = add i64 %new, 1
  store i64 %s, ptr %owner_at
  br label %works
works:
  %new_works = phi i64 [ %new_more, %fill ], [ %new, %taken ]
  %active_new = add i64 %active, 1
  br label %lane_on
empty:
  br label %lane_on
lane_on:
  %active_on = phi i64 [ %active_new, %works ], [ %active, %empty ]
  %new_on = phi i64 [ %new_works, %works ], [ %new, %empty ]
  %l_next = add i64 %l, 1
  %l_more = icmp ult i64 %l_next, {lanes}
  br i1 %l_more, label %lane, label %ready
ready:
  call void @gathered(ptr %to, ptr %source, i64 %new_on)
  %none = icmp eq i64 %active_on, 0
  br i1 %none, label %end, label %iterate
iterate:
  call void @{name}_tiled(i64 {lanes}, ptr %places, ptr %strides, ptr %places, ptr %strides,
                          ptr %workspace)
  br label %round
end:
  ret void
}}"""


def _needed(layout: Layout, name: str, prefix: str, status: str) -> str:
    """Generate code that tests whether a state needs another iteration of `refine` or `rescue`."""
    kind, p = layout.kind, prefix
    lines = [
        f"  %{p}_status = load {kind}, ptr {status}",
        f"  %{p}_open = fcmp oeq {kind} %{p}_status, 0.0",
        f"  %{p}_count_at = getelementptr {kind}, ptr {status}, i64 {layout.lanes}",
        f"  %{p}_count = load {kind}, ptr %{p}_count_at",
    ]
    late = name == "rescue" or not layout.quick
    most = "0x7FF0000000000000" if late else str(float(layout.quick))
    lines += [
        f"  %{p}_early = fcmp olt {kind} %{p}_count, {most}",
        f"  %{p}_needed = and i1 %{p}_open, %{p}_early",
    ]
    return "\n".join(lines)


def _batch(layout: Layout) -> str:
    """Generate the function for many states, in chunks of several tiles.

    Each program runs for all tiles before the next program starts, so that its code stays in the
    cache. In the last tile, unused lanes repeat the last row. The iterations run in these lanes
    too, because the function `end` writes the results of these lanes to that row.
    """
    n, lanes = layout.inputs, layout.lanes
    strides = "\n".join(
        f"  %step_from{i} = getelementptr i64, ptr %in_strides, i64 {i}\n"
        f"  %step{i} = load i64, ptr %step_from{i}\n"
        f"  %step_to{i} = getelementptr i64, ptr %strides, i64 {i}\n"
        f"  store i64 %step{i}, ptr %step_to{i}"
        for i in range(n)
    )
    most = layout.quick - 1 if layout.quick else 1 << 30
    pools = "\n".join(
        f"  call void @{name}_pool(i64 %whole, ptr %tiles, ptr %places, ptr %strides, "
        "ptr %workspace)"
        for name in ("refine", *(["rescue"] if layout.quick else []))
    )
    adjusted = "  call void @adjusted(ptr %e_tile, ptr %places, ptr %strides, ptr %workspace)"
    given = "ptr %in_pointers, ptr %in_strides, ptr %out_pointers, ptr %out_strides"
    here = f"{given}, ptr %workspace"
    return f"""
define void @batch(i64 %count, {given}, ptr %workspace) {{
entry:
  %ins = getelementptr i8, ptr %workspace, i64 {layout.ins}
  %outs = getelementptr i8, ptr %workspace, i64 {layout.outs}
  %strides = getelementptr i8, ptr %workspace, i64 {layout.strides}
  %tiles = getelementptr i8, ptr %workspace, i64 {layout.tiles}
  %pool = getelementptr i8, ptr %tiles, i64 {layout.count * layout.tile}
  %places = getelementptr ptr, ptr %ins, i64 {n}
{strides}
  br label %chunk
chunk:
  %first = phi i64 [ 0, %entry ], [ %first_next, %finished ]
  %left = sub i64 %count, %first
  %rows = call i64 @llvm.umin.i64(i64 %left, i64 {layout.count * lanes})
  %above = add i64 %rows, {lanes - 1}
  %whole = and i64 %above, {-lanes}
  br label %begin
begin:
  %b = phi i64 [ 0, %chunk ], [ %b_next, %begin ]
  %b_left = sub i64 %rows, %b
  %b_rows = call i64 @llvm.umin.i64(i64 %b_left, i64 {lanes})
  %b_tile = call ptr @lane(ptr %tiles, i64 %b)
  %b_row = add i64 %first, %b
  call void @aimed(i64 %b_row, ptr %b_tile, {here})
  call void @begin_tiled(i64 %b_rows, ptr %ins, ptr %strides, ptr %places, ptr %strides,
                         ptr %workspace)
  %b_next = add i64 %b, {lanes}
  %b_more = icmp ult i64 %b_next, %rows
  br i1 %b_more, label %begin, label %tile
tile:
  %t = phi i64 [ 0, %begin ], [ %t_next, %refined ]
  %t_tile = call ptr @lane(ptr %tiles, i64 %t)
  call void @aimed(i64 %first, ptr %t_tile, {here})
  br label %look
look:
  %round = phi i64 [ 0, %tile ], [ %round_next, %refine ]
  %open = call i64 @open(ptr %t_tile)
  %quarters = mul i64 %open, 4
  %many = icmp uge i64 %quarters, {3 * lanes}
  %early = icmp ult i64 %round, {most}
  %go = and i1 %many, %early
  br i1 %go, label %refine, label %refined
refine:
  call void @refine_tiled(i64 {lanes}, ptr %places, ptr %strides, ptr %places, ptr %strides,
                          ptr %workspace)
  %round_next = add i64 %round, 1
  br label %look
refined:
  %t_next = add i64 %t, {lanes}
  %t_more = icmp ult i64 %t_next, %rows
  br i1 %t_more, label %tile, label %rest
rest:
  call void @aimed(i64 %first, ptr %pool, {here})
{pools}
  br label %end
end:
  %e = phi i64 [ 0, %rest ], [ %e_next, %end ]
  %e_left = sub i64 %rows, %e
  %e_rows = call i64 @llvm.umin.i64(i64 %e_left, i64 {lanes})
  %e_tile = call ptr @lane(ptr %tiles, i64 %e)
  %e_row = add i64 %first, %e
  call void @aimed(i64 %e_row, ptr %e_tile, {here})
{adjusted if layout.marks else ""}
  call void @end_tiled(i64 %e_rows, ptr %ins, ptr %strides, ptr %outs, ptr %out_strides,
                       ptr %workspace)
  %e_next = add i64 %e, {lanes}
  %e_more = icmp ult i64 %e_next, %rows
  br i1 %e_more, label %end, label %finished
finished:
  %first_next = add i64 %first, %rows
  %again = icmp ult i64 %first_next, %count
  br i1 %again, label %chunk, label %done
done:
  ret void
}}"""
