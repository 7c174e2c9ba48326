"""LLVM functions that look up regions of memory, for bounds checks (`llvm.checked`).

Python owns the memory of the region table. A slot (the table entry of one region) is taken by one
atomic exchange of its first word, so threads need no lock. Readers ignore slots that are being
taken or freed.
"""

from chasles.backends import objects
from chasles.backends.objects import DATA, DESCR, HEAD, RANK, SHAPE, STRIDES, TYPE

SLOTS = 4096
"""Number of slots in each half of the region table: one half for Python, one for machine code."""

WORDS = 3
"""Number of words per slot: start address of the region (0 if the slot is free), end address, and
owner."""

LENGTH = 2 + 2 * SLOTS * WORDS
"""Number of words in the region table. The first two words count the slots in use by Python and by
machine code. The slots for Python follow, then those for machine code."""


def _scan(name: str, first: int, count: str, inside: str) -> str:
    """Generate code that loops over `count` slots of the region table.

    - first: index of the first slot's first word in the table.
    - inside: code of the loop body, which branches to %{name}.next.
    """
    n = name
    return f"""{n}:
  br label %{n}.loop
{n}.loop:
  %{n}.k = phi i64 [ 0, %{n} ], [ %{n}.after, %{n}.next ]
  %{n}.some = icmp ult i64 %{n}.k, {count}
  br i1 %{n}.some, label %{n}.do, label %{n}.end
{n}.do:
  %{n}.word = mul i64 %{n}.k, {WORDS}
  %{n}.far = add i64 %{n}.word, {first}
  %{n}.lo.at = getelementptr i64, ptr @chasles_regions, i64 %{n}.far
  %{n}.hi.at = getelementptr i64, ptr %{n}.lo.at, i64 1
  %{n}.owner.at = getelementptr i64, ptr %{n}.lo.at, i64 2
{inside}
{n}.next:
  %{n}.after = add i64 %{n}.k, 1
  br label %{n}.loop
{n}.end:"""


_MACHINE = 2 + SLOTS * WORDS
"""Index of the first word, in the region table, of the slots for machine code."""


def _searched(name: str, first: int, used: int) -> str:
    """Generate code that branches to %fine if a single memory region allows the access.

    The region must contain the address %from and all accessed bytes, from %start up to %end
    (exclusive). The code sets %seen if any region contains the address %from.
    """
    n = name
    inside = f"""  %{n}.lo = load atomic i64, ptr %{n}.lo.at monotonic, align 8
  %{n}.hi = load atomic i64, ptr %{n}.hi.at monotonic, align 8
  %{n}.low = icmp ule i64 %{n}.lo, %from
  %{n}.high = icmp ult i64 %from, %{n}.hi
  %{n}.held = and i1 %{n}.low, %{n}.high
  br i1 %{n}.held, label %{n}.hit, label %{n}.next
{n}.hit:
  store i1 true, ptr %seen
  %{n}.first = icmp ule i64 %{n}.lo, %start
  %{n}.last = icmp ule i64 %end, %{n}.hi
  %{n}.within = and i1 %{n}.first, %{n}.last
  br i1 %{n}.within, label %fine, label %{n}.next"""
    count = f"""  %{n}.used.at = getelementptr i64, ptr @chasles_regions, i64 {used}
  %{n}.used = load atomic i64, ptr %{n}.used.at monotonic, align 8
  br label %{n}
"""
    return count + _scan(name, first, f"%{n}.used", inside)


_TAKE = """  %pair = cmpxchg ptr %s.lo.at, i64 0, i64 %lo seq_cst seq_cst
  %mine = extractvalue { i64, i1 } %pair, 1
  br i1 %mine, label %take, label %s.next
take:
  store atomic i64 %own, ptr %s.owner.at monotonic, align 8
  store atomic i64 %hi, ptr %s.hi.at release, align 8
  %used.at = getelementptr i64, ptr @chasles_regions, i64 1
  %used = add i64 %s.k, 1
  %before = atomicrmw umax ptr %used.at, i64 %used seq_cst
  br label %done"""
"""LLVM IR that takes a slot of the region table if the slot is free."""

_GIVE = """  %theirs = load atomic i64, ptr %s.owner.at monotonic, align 8
  %same = icmp eq i64 %theirs, %own
  br i1 %same, label %give, label %s.next
give:
  store atomic i64 0, ptr %s.owner.at monotonic, align 8
  store atomic i64 0, ptr %s.hi.at monotonic, align 8
  store atomic i64 0, ptr %s.lo.at release, align 8
  br label %s.next"""
"""LLVM IR that frees a slot of the region table if the caller owns the slot."""

HELPERS = f"""
@chasles_regions = external global i64
@chasles_full = internal constant [24 x i8] c"chasles: table is full\\0A\\00"
declare i64 @chasles_write(i32, ptr, i64)
declare void @chasles_abort()

; Allow access to memory until its owner leaves.
define internal void @chasles_enter(ptr %base, i64 %size, ptr %owner) noinline nounwind {{
entry:
  %lo = ptrtoint ptr %base to i64
  %hi = add i64 %lo, %size
  %own = ptrtoint ptr %owner to i64
  %none = icmp eq i64 %lo, 0
  br i1 %none, label %done, label %s
{_scan("s", _MACHINE, str(SLOTS), _TAKE)}
  call i64 @chasles_write(i32 2, ptr @chasles_full, i64 23)
  call void @chasles_abort()
  unreachable
done:
  ret void
}}

; Forget the regions of an owner.
define internal void @chasles_leave(ptr %owner) noinline nounwind {{
entry:
  %own = ptrtoint ptr %owner to i64
  %used.at = getelementptr i64, ptr @chasles_regions, i64 1
  %used = load atomic i64, ptr %used.at monotonic, align 8
  br label %s
{_scan("s", _MACHINE, "%used", _GIVE)}
  ret void
}}

; Abort unless one region contains both an access and the pointer from which it was computed.
define internal void @chasles_access(ptr %root, ptr %place, i64 %size, i1 %known, ptr %text,
                                     i64 %length) noinline nounwind {{
entry:
  %seen = alloca i1
  store i1 false, ptr %seen
  %from = ptrtoint ptr %root to i64
  %start = ptrtoint ptr %place to i64
  %end = add i64 %start, %size
  %nothing = icmp eq i64 %size, 0
  br i1 %nothing, label %fine, label %look
look:
{_searched("m", _MACHINE, 1)}
{_searched("p", 2, 0)}
  %held = load i1, ptr %seen
  %wrong = or i1 %held, %known
  br i1 %wrong, label %stop, label %fine
stop:
  call i64 @chasles_write(i32 2, ptr %text, i64 %length)
  call void @chasles_abort()
  unreachable
fine:
  ret void
}}
"""

_ARRAY_KIND = 8 * list(objects.CONTEXT).index("array_type")

ARRAY = f"""
; If an object is a NumPy array, allow access to the memory from its first to its last element.
define internal void @chasles_array(ptr %item, ptr %owner) noinline nounwind {{
entry:
  %kind.at = getelementptr i8, ptr %item, i64 {HEAD - 8}
  %kind = load ptr, ptr %kind.at
  %wanted.at = getelementptr i8, ptr @context, i64 {_ARRAY_KIND}
  %wanted = load ptr, ptr %wanted.at
  %right = icmp eq ptr %kind, %wanted
  br i1 %right, label %go, label %done
go:
  %data.at = getelementptr i8, ptr %item, i64 {DATA}
  %data = load ptr, ptr %data.at
  %rank.at = getelementptr i8, ptr %item, i64 {RANK}
  %rank = load i32, ptr %rank.at
  %axes = zext i32 %rank to i64
  %shape.at = getelementptr i8, ptr %item, i64 {SHAPE}
  %shape = load ptr, ptr %shape.at
  %strides.at = getelementptr i8, ptr %item, i64 {STRIDES}
  %strides = load ptr, ptr %strides.at
  %descr.at = getelementptr i8, ptr %item, i64 {DESCR}
  %descr = load ptr, ptr %descr.at
  %number.at = getelementptr i8, ptr %descr, i64 {TYPE}
  %number = load i32, ptr %number.at
  %single = icmp eq i32 %number, 11
  %int = icmp eq i32 %number, 5
  %short = or i1 %single, %int
  %bytes = select i1 %short, i64 4, i64 8
  br label %loop
loop:
  %k = phi i64 [ 0, %go ], [ %next, %on ]
  %back = phi i64 [ 0, %go ], [ %back.next, %on ]
  %ahead = phi i64 [ %bytes, %go ], [ %ahead.next, %on ]
  %more = icmp ult i64 %k, %axes
  br i1 %more, label %do, label %end
do:
  %size.at = getelementptr i64, ptr %shape, i64 %k
  %size = load i64, ptr %size.at
  %empty = icmp eq i64 %size, 0
  br i1 %empty, label %done, label %on
on:
  %step.at = getelementptr i64, ptr %strides, i64 %k
  %step = load i64, ptr %step.at
  %steps = sub i64 %size, 1
  %far = mul i64 %steps, %step
  %down = icmp slt i64 %far, 0
  %lower = select i1 %down, i64 %far, i64 0
  %upper = select i1 %down, i64 0, i64 %far
  %back.next = add i64 %back, %lower
  %ahead.next = add i64 %ahead, %upper
  %next = add i64 %k, 1
  br label %loop
end:
  %first = getelementptr i8, ptr %data, i64 %back
  %length = sub i64 %ahead, %back
  call void @chasles_enter(ptr %first, i64 %length, ptr %owner)
  br label %done
done:
  ret void
}}
"""
