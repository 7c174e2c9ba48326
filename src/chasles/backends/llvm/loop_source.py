"""Source of a loop that repeats a step for blocks of states, in LLVM IR."""

from chasles.backends.llvm.threads import MOVED, field

BLOCK = 64
"""Default number of states in a block. All steps of a block run before the next block begins, so
that the states stay in the cache."""

AT_ONCE = 64
"""Number of records of a state that are collected in the cache and then written together. The
records of one state are contiguous, but those of different states are far apart in memory."""

NUMBERS, TABLES = 6, 10
"""Numbers of integer parameters and of address parameters of the function `repeat`. The integers
come first."""

GIVEN = (
    *((name, "i64") for name in ("steps", "every", "inputs", "outputs", "kept", "size", "space")),
    *((name, "ptr") for name in ("ins", "in_rows", "in_steps", "sizes")),
    *((name, "ptr") for name in ("records", "record_rows", "record_steps")),
    *((name, "ptr") for name in ("fresh_places", "near_places", "near_rows")),
)
"""Arguments of `blocks`.

- steps, every: number of steps, and number of steps between records.
- inputs, outputs, kept: numbers of input, output and record arrays.
- size, space: size (bytes) of a thread's memory, and the kernel workspace's offset in this memory.
- ins, in_rows, in_steps: addresses, row strides and step strides (bytes) of the inputs, as for
  `repeat`.
- sizes: row sizes (bytes) of the outputs.
- records, record_rows, record_steps: addresses, row strides and step strides (bytes) of the
  records, as for `repeat`.
- fresh_places, near_places: offsets in the thread's memory at which results and records,
  respectively, are collected.
- near_rows: row strides (bytes) of the collected records.
"""


def place(name: str, kind: str, table: str, index: str) -> str:
    """Generate LLVM IR that computes the address of a table entry."""
    return f"  %{name} = getelementptr {kind}, ptr %{table}, i64 %{index}"


def entry(name: str, kind: str, table: str, index: str) -> str:
    """Generate LLVM IR that loads a table entry."""
    return f"{place(f'{name}.at', kind, table, index)}\n  %{name} = load {kind}, ptr %{name}.at"


_ONE = ("declare void @one(ptr, ptr)\n", "  call void @one(ptr %in, ptr %fresh)\n")

SOURCE = f"""
{_ONE[0]}declare void @batch(i64, ptr, ptr, ptr, ptr, ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.umin.i64(i64, i64)
declare ptr @malloc(i64)
declare void @free(ptr)
{MOVED}

define internal void @copied(i64 %rows, ptr %to, i64 %stride, ptr %from, i64 %size) {{
entry:
  %dense = icmp eq i64 %stride, %size
  br i1 %dense, label %whole, label %loop
whole:
  %all = mul i64 %rows, %size
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %all, i1 false)
  ret void
loop:
  %row = phi i64 [ 0, %entry ], [ %next, %loop ]
  %there = mul i64 %row, %stride
  %here = mul i64 %row, %size
  %target = getelementptr i8, ptr %to, i64 %there
  %source = getelementptr i8, ptr %from, i64 %here
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %size, i1 false)
  %next = add i64 %row, 1
  %more = icmp ult i64 %next, %rows
  br i1 %more, label %loop, label %end
end:
  ret void
}}

; Repeat a step. Tables: for the inputs, addresses and strides between rows and between steps; for
; the outputs, addresses (of the states themselves) and sizes of a row; for the `kept` records,
; addresses and strides between rows and between records. `fresh` receives the results of a single
; state, and then changes places with the state: nothing is copied, except after an odd number of
; steps, when the last results are moved to the place of the states.
define void @repeat(i64 %rows, i64 %steps, i64 %every, i64 %inputs, i64 %outputs, i64 %kept,
                    ptr %in, ptr %in_rows, ptr %in_steps, ptr %state, ptr %sizes,
                    ptr %record, ptr %record_rows, ptr %record_steps, ptr %fresh, ptr %workspace) {{
entry:
  %alone = icmp eq i64 %rows, ALONE
  %any = icmp ne i64 %kept, 0
  br label %loop
loop:
  %step = phi i64 [ 1, %entry ], [ %next, %again ]
  br i1 %alone, label %single, label %many
single:
{_ONE[1]}  br label %return
return:
  %r = phi i64 [ 0, %single ], [ %r_next, %return ]
{entry("r_new", "ptr", "fresh", "r")}
{entry("r_old", "ptr", "in", "r")}
{place("r_state", "ptr", "state", "r")}
  store ptr %r_old, ptr %r_new.at
  store ptr %r_new, ptr %r_old.at
  store ptr %r_new, ptr %r_state
  %r_next = add i64 %r, 1
  %r_more = icmp ult i64 %r_next, %outputs
  br i1 %r_more, label %return, label %advance
many:
  call void @batch(i64 %rows, ptr %in, ptr %in_rows, ptr %state, ptr %sizes, ptr %workspace)
  br label %advance
advance:
  %a = phi i64 [ 0, %return ], [ 0, %many ], [ %a_next, %advance ]
{entry("a_old", "ptr", "in", "a")}
{entry("a_step", "i64", "in_steps", "a")}
  %a_new = getelementptr i8, ptr %a_old, i64 %a_step
  store ptr %a_new, ptr %a_old.at
  %a_next = add i64 %a, 1
  %a_more = icmp ult i64 %a_next, %inputs
  br i1 %a_more, label %advance, label %due
due:
  %past = urem i64 %step, %every
  %whole = icmp eq i64 %past, 0
  %last = icmp eq i64 %step, %steps
  %now = or i1 %whole, %last
  %keep = and i1 %now, %any
  br i1 %keep, label %records, label %again
records:
  %k = phi i64 [ 0, %due ], [ %k_next, %records ]
{entry("k_to", "ptr", "record", "k")}
{entry("k_rows", "i64", "record_rows", "k")}
{entry("k_steps", "i64", "record_steps", "k")}
{entry("k_state", "ptr", "state", "k")}
{entry("k_size", "i64", "sizes", "k")}
  call void @copied(i64 %rows, ptr %k_to, i64 %k_rows, ptr %k_state, i64 %k_size)
  %k_on = getelementptr i8, ptr %k_to, i64 %k_steps
  store ptr %k_on, ptr %k_to.at
  %k_next = add i64 %k, 1
  %k_more = icmp ult i64 %k_next, %kept
  br i1 %k_more, label %records, label %again
again:
  %next = add i64 %step, 1
  %more = icmp ule i64 %next, %steps
  br i1 %more, label %loop, label %over
over:
  %turns = and i64 %steps, 1
  %odd = icmp ne i64 %turns, 0
  %away = and i1 %alone, %odd
  br i1 %away, label %home, label %end
home:
  %h = phi i64 [ 0, %over ], [ %h_next, %home ]
{entry("h_from", "ptr", "in", "h")}
{entry("h_to", "ptr", "fresh", "h")}
{entry("h_size", "i64", "sizes", "h")}
{place("h_state", "ptr", "state", "h")}
  call void @llvm.memcpy.p0.p0.i64(ptr %h_to, ptr %h_from, i64 %h_size, i1 false)
  store ptr %h_from, ptr %h_to.at
  store ptr %h_to, ptr %h_from.at
  store ptr %h_to, ptr %h_state
  %h_next = add i64 %h, 1
  %h_more = icmp ult i64 %h_next, %outputs
  br i1 %h_more, label %home, label %end
end:
  ret void
}}

; Compute addresses at given offsets from a base address.
define internal void @placed(i64 %count, ptr %to, ptr %from, ptr %far) {{
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %do ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %do, label %end
do:
{entry("each", "i64", "far", "k")}
  %place = getelementptr i8, ptr %from, i64 %each
  %to.at = getelementptr ptr, ptr %to, i64 %k
  store ptr %place, ptr %to.at
  %next = add i64 %k, 1
  br label %loop
end:
  ret void
}}

; A body (`llvm.threads`) that runs the steps of some states, one block of states at a time. The
; records of a block are collected in `near`, and many are written at a time.
define i64 @blocks(ptr %given, i64 %first, i64 %last) {{
entry:
{chr(10).join("  " + field(*each, "given", 8 * k) for k, each in enumerate(GIVEN))}
  %room = add i64 %size, 64
  %all = call ptr @malloc(i64 %room)
  %full = icmp eq ptr %all, null
  br i1 %full, label %fail, label %go
fail:
  ret i64 1
go:
  %number = ptrtoint ptr %all to i64
  %up = add i64 %number, 63
  %even = and i64 %up, -64
  %memory = inttoptr i64 %even to ptr
  %record = getelementptr ptr, ptr %memory, i64 %inputs
  %fresh = getelementptr ptr, ptr %record, i64 %kept
  %workspace = getelementptr i8, ptr %memory, i64 %space
  call void @placed(i64 %outputs, ptr %fresh, ptr %memory, ptr %fresh_places)
  %chunk = mul i64 %every, {AT_ONCE}
  %rounding = sub i64 %every, 1
  br label %block
block:
  %start = phi i64 [ %first, %go ], [ %start.next, %over ]
  %states = sub i64 %last, %start
  %rows = call i64 @llvm.umin.i64(i64 %states, i64 BLOCK)
  call void @moved(i64 %inputs, ptr %memory, ptr %ins, ptr %in_rows, i64 %start)
  %alone = icmp eq i64 %rows, 1
  br i1 %alone, label %single, label %many
single:
  call void @moved(i64 %kept, ptr %record, ptr %records, ptr %record_rows, i64 %start)
  call void @repeat(i64 1, i64 %steps, i64 %every, i64 %inputs, i64 %outputs, i64 %kept,
                    ptr %memory, ptr %in_rows, ptr %in_steps, ptr %memory, ptr %sizes, ptr %record,
                    ptr %record_rows, ptr %record_steps, ptr %fresh, ptr %workspace)
  br label %over
many:
  %step = phi i64 [ 0, %block ], [ %step.next, %written ]
  %done = phi i64 [ 0, %block ], [ %done.next, %written ]
  %left = sub i64 %steps, %step
  %n = call i64 @llvm.umin.i64(i64 %left, i64 %chunk)
  call void @placed(i64 %kept, ptr %record, ptr %memory, ptr %near_places)
  call void @repeat(i64 %rows, i64 %n, i64 %every, i64 %inputs, i64 %outputs, i64 %kept,
                    ptr %memory, ptr %in_rows, ptr %in_steps, ptr %memory, ptr %sizes, ptr %record,
                    ptr %near_rows, ptr %sizes, ptr %fresh, ptr %workspace)
  %n.up = add i64 %n, %rounding
  %now = udiv i64 %n.up, %every
  br label %each
each:
  %k = phi i64 [ 0, %many ], [ %k.next, %next ]
  %any = icmp ult i64 %k, %kept
  br i1 %any, label %write, label %written
write:
{entry("to", "ptr", "records", "k")}
{entry("to_rows", "i64", "record_rows", "k")}
{entry("to_steps", "i64", "record_steps", "k")}
{entry("near", "i64", "near_places", "k")}
{entry("from_rows", "i64", "near_rows", "k")}
{entry("each_size", "i64", "sizes", "k")}
  %from = getelementptr i8, ptr %memory, i64 %near
  br label %row
row:
  %r = phi i64 [ 0, %write ], [ %r.next, %row ]
  %state = add i64 %start, %r
  %far = mul i64 %state, %to_rows
  %along = mul i64 %done, %to_steps
  %there = add i64 %far, %along
  %target = getelementptr i8, ptr %to, i64 %there
  %here = mul i64 %r, %from_rows
  %source = getelementptr i8, ptr %from, i64 %here
  call void @copied(i64 %now, ptr %target, i64 %to_steps, ptr %source, i64 %each_size)
  %r.next = add i64 %r, 1
  %r.more = icmp ult i64 %r.next, %rows
  br i1 %r.more, label %row, label %next
next:
  %k.next = add i64 %k, 1
  br label %each
written:
  %step.next = add i64 %step, %n
  %done.next = add i64 %done, %now
  %more = icmp ult i64 %step.next, %steps
  br i1 %more, label %many, label %over
over:
  %start.next = add i64 %start, BLOCK
  %further = icmp ult i64 %start.next, %last
  br i1 %further, label %block, label %end
end:
  call void @free(ptr %all)
  ret i64 0
}}
"""


def source(block: int, alone: bool = True) -> str:
    """Return the source for blocks of `block` states.

    alone: True if the kernel has a function `one` for a single state.
    """
    text = SOURCE.replace("BLOCK", str(block)).replace("ALONE", str(int(alone)))
    return text if alone else text.replace(_ONE[0], "").replace(_ONE[1], "")
