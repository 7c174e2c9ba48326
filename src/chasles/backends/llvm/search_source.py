"""LLVM IR of functions that solve many inverse-kinematics problems (see `search.py`)."""

from chasles.backends.llvm.loop_source import BLOCK, entry, place
from chasles.backends.llvm.threads import field

NUMBERS = ("tries", "ranked", "inputs", "size", "space", "table", "others")
TABLES = ("ins", "in_rows", "sizes", "places", "begins", "begin_row", "ranks", "starts", "memories")
RESULTS = ("points", "ends", "steps")
GIVEN = (*((name, "i64") for name in NUMBERS), *((name, "ptr") for name in (*TABLES, *RESULTS)))
"""Parameters of `search`.

Integers:

- tries: number of attempts before the final one, which starts at the best configuration found.
- ranked, inputs: numbers of ranked attempts and of kernel inputs.
- size: size (bytes) of the memory for a block of searches.
- space, table: offsets of the workspace and of the search table in the block's memory.
- others: index, in `starts`, of the initial configuration for the first attempt that is not ranked.

Tables:

- ins, in_rows: addresses and row strides (bytes) of the kernel's inputs for all problems. The
  first two entries of both tables are unused.
- sizes: row sizes (bytes) of the kernel inputs.
- places: offset of each input in the block's memory.
- begins, begin_row: initial configuration of each problem's first attempt, and row stride (bytes).
- ranks: index, in `starts`, of the initial configuration of each ranked attempt.
- starts: all initial configurations.
- memories: initial solver states of all attempts.

Results:

- points, ends: final configurations and solver states.
- steps: number of steps, and index of the last attempt, for each problem.
"""

FIELDS = "\n".join("  " + field(*each, "given", 8 * k) for k, each in enumerate(GIVEN))


def row(name: str, start: str, size: str, index: str) -> str:
    """Generate LLVM IR that computes the address of a row from its index and size."""
    return (
        f"  %{name}.far = mul i64 %{index}, %{size}\n"
        f"  %{name} = getelementptr i8, ptr %{start}, i64 %{name}.far"
    )


PLACES = """  %point.size = load i64, ptr %sizes
  %memory.size.at = getelementptr i64, ptr %sizes, i64 1
  %memory.size = load i64, ptr %memory.size.at
  %point.rows = load ptr, ptr %memory
  %memory.rows.at = getelementptr ptr, ptr %memory, i64 1
  %memory.rows = load ptr, ptr %memory.rows.at
  %searches = getelementptr i8, ptr %memory, i64 %table"""
"""Code that computes the addresses of configurations, solver states and the search table."""

SHARED = f"{FIELDS}\n{PLACES}"

SOURCE = f"""
declare void @batch(i64, ptr, ptr, ptr, ptr, ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.umin.i64(i64, i64)
declare ptr @malloc(i64)
declare void @free(ptr)

; Begin a try of a search's problem: at its first point, at a ranked start, at another start, or,
; after all other tries, at the best point found.
define internal void @begin(ptr %given, ptr %memory, i64 %slot, i64 %problem, i64 %try) {{
entry:
{SHARED}
{row("to", "point.rows", "point.size", "slot")}
  %is.first = icmp eq i64 %try, 0
  br i1 %is.first, label %first, label %later
first:
  %begin.size = load i64, ptr %begin_row
{row("begin", "begins", "begin.size", "problem")}
  br label %copy
later:
  %is.last = icmp eq i64 %try, %tries
  br i1 %is.last, label %last, label %start
last:
{row("best", "points", "point.size", "problem")}
  br label %copy
start:
  %number = sub i64 %try, 1
  %is.ranked = icmp ult i64 %number, %ranked
  br i1 %is.ranked, label %by.rank, label %by.order
by.rank:
  %rank.row = mul i64 %problem, %ranked
  %rank.index = add i64 %rank.row, %number
{entry("rank", "i64", "ranks", "rank.index")}
  br label %found
by.order:
  %past = sub i64 %number, %ranked
  %order = add i64 %past, %others
  br label %found
found:
  %row = phi i64 [ %rank, %by.rank ], [ %order, %by.order ]
{row("other", "starts", "point.size", "row")}
  br label %copy
copy:
  %from = phi ptr [ %begin, %first ], [ %best, %last ], [ %other, %found ]
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %point.size, i1 false)
{row("own", "memory.rows", "memory.size", "slot")}
{row("fresh", "memories", "memory.size", "try")}
  call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr %fresh, i64 %memory.size, i1 false)
  %slot.row = mul i64 %slot, 3
  %try.index = add i64 %slot.row, 1
{place("try.at", "i64", "searches", "try.index")}
  store i64 %try, ptr %try.at
  ret void
}}

; Give a search a problem: copy the problem's inputs to the search's rows. Inputs that all problems
; share are copied only to new rows (at clock 0).
define internal void @take(ptr %given, ptr %memory, i64 %slot, i64 %problem, i64 %clock) {{
entry:
{SHARED}
  %slot.row = mul i64 %slot, 3
{place("problem.at", "i64", "searches", "slot.row")}
  store i64 %problem, ptr %problem.at
  %clock.index = add i64 %slot.row, 2
{place("clock.at", "i64", "searches", "clock.index")}
  store i64 %clock, ptr %clock.at
  %again = icmp ne i64 %clock, 0
  br label %loop
loop:
  %k = phi i64 [ 2, %entry ], [ %k.next, %next ]
  %more = icmp ult i64 %k, %inputs
  br i1 %more, label %do, label %end
do:
{entry("there", "ptr", "ins", "k")}
{entry("step", "i64", "in_rows", "k")}
  %shared = icmp eq i64 %step, 0
  %there.yet = and i1 %shared, %again
  br i1 %there.yet, label %next, label %copy
copy:
{entry("bytes", "i64", "sizes", "k")}
{entry("rows", "ptr", "memory", "k")}
{row("from", "there", "step", "problem")}
{row("to", "rows", "bytes", "slot")}
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  br label %next
next:
  %k.next = add i64 %k, 1
  br label %loop
end:
  call void @begin(ptr %given, ptr %memory, i64 %slot, i64 %problem, i64 0)
  ret void
}}

; Move the last search to the place of another search.
define internal void @move(ptr %given, ptr %memory, i64 %slot, i64 %last) {{
entry:
{SHARED}
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %k.next, %do ]
  %more = icmp ult i64 %k, %inputs
  br i1 %more, label %do, label %end
do:
{entry("bytes", "i64", "sizes", "k")}
{entry("rows", "ptr", "memory", "k")}
{row("from", "rows", "bytes", "last")}
{row("to", "rows", "bytes", "slot")}
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  %k.next = add i64 %k, 1
  br label %loop
end:
  %row.size = add i64 0, 24
{row("search.from", "searches", "row.size", "last")}
{row("search.to", "searches", "row.size", "slot")}
  call void @llvm.memcpy.p0.p0.i64(ptr %search.to, ptr %search.from, i64 24, i1 false)
  ret void
}}

; Store what a search has found so far.
define internal void @keep(ptr %given, ptr %memory, i64 %slot, i64 %problem) {{
entry:
{SHARED}
{row("from", "point.rows", "point.size", "slot")}
{row("to", "points", "point.size", "problem")}
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %point.size, i1 false)
{row("own", "memory.rows", "memory.size", "slot")}
{row("end", "ends", "memory.size", "problem")}
  call void @llvm.memcpy.p0.p0.i64(ptr %end, ptr %own, i64 %memory.size, i1 false)
  ret void
}}

; A body (`llvm.threads`) that searches some problems, one block of problems at a time.
define i64 @search(ptr %given, i64 %first, i64 %last) {{
entry:
  %size.place = getelementptr i8, ptr %given, i64 {8 * NUMBERS.index("size")}
  %whole = load i64, ptr %size.place
  %room = add i64 %whole, 64
  %all = call ptr @malloc(i64 %room)
  %full = icmp eq ptr %all, null
  br i1 %full, label %fail, label %ready
fail:
  ret i64 1
ready:
  %all.number = ptrtoint ptr %all to i64
  %up = add i64 %all.number, 63
  %even = and i64 %up, -64
  %memory = inttoptr i64 %even to ptr
{FIELDS}
  br label %place
place:
  %p = phi i64 [ 0, %ready ], [ %p.next, %place ]
{entry("far", "i64", "places", "p")}
  %rows.p = getelementptr i8, ptr %memory, i64 %far
{place("pointer.at", "ptr", "memory", "p")}
  store ptr %rows.p, ptr %pointer.at
  %p.next = add i64 %p, 1
  %p.more = icmp ult i64 %p.next, %inputs
  br i1 %p.more, label %place, label %placed
placed:
{PLACES}
  %workspace = getelementptr i8, ptr %memory, i64 %space
  %problems = sub i64 %last, %first
  %at.once = call i64 @llvm.umin.i64(i64 %problems, i64 {BLOCK})
  br label %fill
fill:
  %f = phi i64 [ 0, %placed ], [ %f.next, %fill ]
  %f.problem = add i64 %first, %f
  call void @take(ptr %given, ptr %memory, i64 %f, i64 %f.problem, i64 0)
  %f.next = add i64 %f, 1
  %f.more = icmp ult i64 %f.next, %at.once
  br i1 %f.more, label %fill, label %filled
filled:
  %next.begin = add i64 %first, %at.once
  br label %step
step:
  %active = phi i64 [ %at.once, %filled ], [ %active.now, %stepped ]
  %next = phi i64 [ %next.begin, %filled ], [ %next.now, %stepped ]
  %clock.before = phi i64 [ 0, %filled ], [ %clock, %stepped ]
  call void @batch(i64 %active, ptr %memory, ptr %sizes, ptr %memory, ptr %sizes, ptr %workspace)
  %clock = add i64 %clock.before, 1
  br label %look
look:
  %slot = phi i64 [ 0, %step ], [ %slot.next, %looked ]
  %active.now = phi i64 [ %active, %step ], [ %active.next, %looked ]
  %next.now = phi i64 [ %next, %step ], [ %next.next, %looked ]
  %left = icmp ult i64 %slot, %active.now
  br i1 %left, label %judge, label %stepped
judge:
{row("own", "memory.rows", "memory.size", "slot")}
  %status = load double, ptr %own
  %runs = fcmp oeq double %status, 0.0
  br i1 %runs, label %stay, label %ended
ended:
  %slot.row = mul i64 %slot, 3
{entry("problem", "i64", "searches", "slot.row")}
  %try.index = add i64 %slot.row, 1
{entry("try", "i64", "searches", "try.index")}
  %clock.index = add i64 %slot.row, 2
{entry("since", "i64", "searches", "clock.index")}
  %solved = fcmp oeq double %status, 1.0
  br i1 %solved, label %won, label %lost
won:
  call void @keep(ptr %given, ptr %memory, i64 %slot, i64 %problem)
  br label %over
lost:
{row("end", "ends", "memory.size", "problem")}
  %best.at = getelementptr double, ptr %end, i64 1
  %best = load double, ptr %best.at
  %cost.at = getelementptr double, ptr %own, i64 1
  %cost = load double, ptr %cost.at
  %better = fcmp olt double %cost, %best
  br i1 %better, label %improve, label %retry
improve:
  call void @keep(ptr %given, ptr %memory, i64 %slot, i64 %problem)
  br label %retry
retry:
  %again = icmp ult i64 %try, %tries
  br i1 %again, label %renew, label %over
renew:
  %try.next = add i64 %try, 1
  call void @begin(ptr %given, ptr %memory, i64 %slot, i64 %problem, i64 %try.next)
  br label %stay
over:
  %taken = sub i64 %clock, %since
  %steps.row = mul i64 %problem, 2
{place("count.at", "i64", "steps", "steps.row")}
  store i64 %taken, ptr %count.at
  %tried.at = getelementptr i64, ptr %count.at, i64 1
  store i64 %try, ptr %tried.at
  %waiting = icmp ult i64 %next.now, %last
  br i1 %waiting, label %refill, label %shrink
refill:
  call void @take(ptr %given, ptr %memory, i64 %slot, i64 %next.now, i64 %clock)
  %next.after = add i64 %next.now, 1
  br label %stay
shrink:
  %fewer = sub i64 %active.now, 1
  call void @move(ptr %given, ptr %memory, i64 %slot, i64 %fewer)
  br label %looked
stay:
  %next.same = phi i64 [ %next.now, %judge ], [ %next.now, %renew ], [ %next.after, %refill ]
  %slot.after = add i64 %slot, 1
  br label %looked
looked:
  %slot.next = phi i64 [ %slot.after, %stay ], [ %slot, %shrink ]
  %active.next = phi i64 [ %active.now, %stay ], [ %fewer, %shrink ]
  %next.next = phi i64 [ %next.same, %stay ], [ %next.now, %shrink ]
  br label %look
stepped:
  %any = icmp ne i64 %active.now, 0
  br i1 %any, label %step, label %done
done:
  call void @free(ptr %all)
  ret i64 0
}}
"""
