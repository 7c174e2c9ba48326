"""LLVM IR of functions that solve a single inverse-kinematics problem (see `search.Alone`)."""

from chasles.backends.llvm.loop_source import entry, place
from chasles.backends.llvm.ranking import LANES
from chasles.backends.llvm.search_source import FIELDS, PLACES, row
from chasles.backends.llvm.threads import field

OWN = (
    *((name, "i64") for name in ("poses", "guessed")),
    *((name, "ptr") for name in ("given", "ranking", "memory", "matrices", "offsets")),
    *((name, "ptr") for name in ("lower", "upper", "sides", "counts", "outs")),
)
"""Parameters of `alone`: two integers, then the addresses of arrays.

- poses: number of target poses.
- guessed: 1 if `begins` holds the caller's initial guess, else 0.
- given, ranking: parameters of `search` and `rank` for one problem.
- memory: workspace in which the searches run.
- matrices: target poses (16 entries each).
- offsets: offset at which each pose is copied into the kernel's input.
- lower, upper: limits of the configuration.
- sides: active limit of each coordinate, one byte each: 1 (upper), -1 (lower) or 0 (none).
- counts: number of solver steps of each attempt.
- outs: results of one solver step; must not overlap any input.
"""

REFUSED = 2
"""Value that `alone` returns if a pose is invalid or a guess is not finite."""

_FIELDS = "\n".join("  " + field(*each, "own", 8 * k) for k, each in enumerate(OWN))

ORTHOGONAL = "0x3EB0C6F7A0B5ED8D"
"""Tolerance for the entries of R R' - I (R: rotation matrix): 1e-6, as the bits of a double."""

INFINITE = "0x7FF0000000000000"


def _posed() -> str:
    """Generate an LLVM function that copies a (4, 4) matrix and tests whether it is a pose."""
    lines = ["define internal i1 @posed(ptr %from, ptr %to) {", "entry:"]
    for k in range(16):
        lines += [f"  %at{k} = getelementptr double, ptr %from, i64 {k}"]
        lines += [f"  %x{k} = load double, ptr %at{k}"]
        lines += [f"  %none{k} = fsub double %x{k}, %x{k}"]
        before = f"%finite{k - 1}" if k else "0.0"
        lines += [f"  %finite{k} = fadd double {before}, %none{k}"]
    for k in range(12):
        to = 9 + k // 4 if k % 4 == 3 else 3 * (k // 4) + k % 4
        lines += [f"  %to{k} = getelementptr double, ptr %to, i64 {to}"]
        lines += [f"  store double %x{k}, ptr %to{k}"]
    terms: list[str] = []

    def term(text: str) -> None:
        terms.append(f"%ok{len(terms)}")
        lines.append(f"  {terms[-1]} = {text}")

    for r in range(3):
        for c in range(r, 3):
            name = f"%p{r}{c}"
            for k in range(3):
                lines += [f"  {name}{k} = fmul double %x{4 * r + k}, %x{4 * c + k}"]
            lines += [f"  {name}s = fadd double {name}0, {name}1"]
            lines += [f"  {name}t = fadd double {name}s, {name}2"]
            lines += [f"  {name}d = fsub double {name}t, {1.0 if r == c else 0.0}"]
            lines += [f"  {name}a = call double @llvm.fabs.f64(double {name}d)"]
            term(f"fcmp ole double {name}a, {ORTHOGONAL}")
    for i, j, k in ((1, 2, 0), (2, 0, 1), (0, 1, 2)):
        lines += [f"  %c{k}a = fmul double %x{i}, %x{4 + j}"]
        lines += [f"  %c{k}b = fmul double %x{j}, %x{4 + i}"]
        lines += [f"  %c{k} = fsub double %c{k}a, %c{k}b"]
        lines += [f"  %c{k}d = fmul double %c{k}, %x{8 + k}"]
    lines += ["  %det.two = fadd double %c0d, %c1d", "  %det = fadd double %det.two, %c2d"]
    term("fcmp ogt double %det, 0.0")
    term("fcmp oeq double %finite15, 0.0")
    for k in range(12, 16):
        term(f"fcmp oeq double %x{k}, {1.0 if k == 15 else 0.0}")
    whole = terms[0]
    for n, each in enumerate(terms[1:]):
        lines.append(f"  %and{n} = and i1 {whole}, {each}")
        whole = f"%and{n}"
    return "\n".join([*lines, f"  ret i1 {whole}", "}"])


ALONE = f"""
declare void @one(ptr, ptr)
declare double @llvm.fabs.f64(double)

{_posed()}

; Clamp a point to its limits; return false if a coordinate is not finite.
define internal i1 @inside(ptr %point, i64 %size, ptr %lower, ptr %upper) {{
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %k.next, %loop ]
  %bad = phi double [ 0.0, %entry ], [ %bad.next, %loop ]
{entry("x", "double", "point", "k")}
{entry("low", "double", "lower", "k")}
{entry("high", "double", "upper", "k")}
  %none = fsub double %x, %x
  %bad.next = fadd double %bad, %none
  %below = fcmp olt double %x, %low
  %raised = select i1 %below, double %low, double %x
  %above = fcmp ogt double %raised, %high
  %cut = select i1 %above, double %high, double %raised
  store double %cut, ptr %x.at
  %k.next = add i64 %k, 1
  %done = shl i64 %k.next, 3
  %more = icmp ult i64 %done, %size
  br i1 %more, label %loop, label %end
end:
  %fine = fcmp oeq double %bad.next, 0.0
  ret i1 %fine
}}

; Store the limit that each coordinate of a point is at: 1 (upper), -1 (lower) or 0.
define internal void @sided(ptr %point, i64 %size, ptr %lower, ptr %upper, ptr %sides) {{
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %k.next, %loop ]
{entry("x", "double", "point", "k")}
{entry("low", "double", "lower", "k")}
{entry("high", "double", "upper", "k")}
  %above = fcmp oge double %x, %high
  %below = fcmp ole double %x, %low
  %up = zext i1 %above to i8
  %down = zext i1 %below to i8
  %side = sub i8 %up, %down
{place("side.at", "i8", "sides", "k")}
  store i8 %side, ptr %side.at
  %k.next = add i64 %k, 1
  %done = shl i64 %k.next, 3
  %more = icmp ult i64 %done, %size
  br i1 %more, label %loop, label %end
end:
  ret void
}}

; Store the number of steps that a try of a search has taken.
define internal void @counted(ptr %own.memory, i64 %try, ptr %counts) {{
entry:
  %count.at = getelementptr double, ptr %own.memory, i64 2
  %count = load double, ptr %count.at
  %number = fptosi double %count to i64
{place("to", "i64", "counts", "try")}
  store i64 %number, ptr %to
  ret void
}}

; Run the try that the first search has begun, alone, to its end; return true if it is solved.
define internal i1 @attempted(ptr %memory, ptr %sizes, ptr %outs, i64 %try, ptr %counts) {{
entry:
  %point = load ptr, ptr %memory
  %own.at = getelementptr ptr, ptr %memory, i64 1
  %own = load ptr, ptr %own.at
  %moved = load ptr, ptr %outs
  %after.at = getelementptr ptr, ptr %outs, i64 1
  %after = load ptr, ptr %after.at
  %point.size = load i64, ptr %sizes
  %own.size.at = getelementptr i64, ptr %sizes, i64 1
  %own.size = load i64, ptr %own.size.at
  br label %step
step:
  call void @one(ptr %memory, ptr %outs)
  call void @llvm.memcpy.p0.p0.i64(ptr %point, ptr %moved, i64 %point.size, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr %after, i64 %own.size, i1 false)
  %status = load double, ptr %own
  %runs = fcmp oeq double %status, 0.0
  br i1 %runs, label %step, label %end
end:
  call void @counted(ptr %own, i64 %try, ptr %counts)
  %solved = fcmp oeq double %status, 1.0
  ret i1 %solved
}}

define i64 @alone(ptr %own) {{
entry:
{_FIELDS}
{FIELDS}
{PLACES}
  %workspace = getelementptr i8, ptr %memory, i64 %space
  %goals.at = getelementptr ptr, ptr %ins, i64 2
  %goals = load ptr, ptr %goals.at
  %any.pose = icmp ne i64 %poses, 0
  br i1 %any.pose, label %pose, label %stated
pose:
  %p = phi i64 [ 0, %entry ], [ %p.next, %fine ]
  %pose.size = add i64 0, 128
{row("matrix", "matrices", "pose.size", "p")}
{entry("offset", "i64", "offsets", "p")}
{place("goal", "double", "goals", "offset")}
  %ok = call i1 @posed(ptr %matrix, ptr %goal)
  br i1 %ok, label %fine, label %refuse
fine:
  %p.next = add i64 %p, 1
  %p.more = icmp ult i64 %p.next, %poses
  br i1 %p.more, label %pose, label %stated
refuse:
  ret i64 {REFUSED}
stated:
  %worst.at = getelementptr double, ptr %ends, i64 1
  store double {INFINITE}, ptr %worst.at
  %has.guess = icmp ne i64 %guessed, 0
  br i1 %has.guess, label %guess, label %rank
guess:
  %finite = call i1 @inside(ptr %begins, i64 %point.size, ptr %lower, ptr %upper)
  br i1 %finite, label %first, label %refuse
first:
  call void @llvm.memcpy.p0.p0.i64(ptr %points, ptr %begins, i64 %point.size, i1 false)
  call void @take(ptr %given, ptr %memory, i64 0, i64 0, i64 0)
  %at.once = call i1 @attempted(ptr %memory, ptr %sizes, ptr %outs, i64 0, ptr %counts)
  %first.cost.at = getelementptr double, ptr %memory.rows, i64 1
  %first.cost = load double, ptr %first.cost.at
  %first.fine = fcmp olt double %first.cost, {INFINITE}
  %first.kept = or i1 %at.once, %first.fine
  br i1 %first.kept, label %keep.first, label %rank.rest
keep.first:
  call void @keep(ptr %given, ptr %memory, i64 0, i64 0)
  br i1 %at.once, label %finish, label %rank.rest
rank.rest:
  %ranked.rest = call i64 @rank(ptr %ranking, i64 0, i64 1)
  br label %lanes
rank:
  %ranked.all = call i64 @rank(ptr %ranking, i64 0, i64 1)
  %nearest.at = getelementptr i64, ptr %ranks, i64 -1
  %nearest = load i64, ptr %nearest.at
{row("begin.from", "starts", "point.size", "nearest")}
  call void @llvm.memcpy.p0.p0.i64(ptr %begins, ptr %begin.from, i64 %point.size, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %points, ptr %begins, i64 %point.size, i1 false)
  br label %lanes
lanes:
  %next.begin = phi i64 [ 1, %rank.rest ], [ 0, %rank ]
  %left.tries = sub i64 %tries, %next.begin
  %width = call i64 @llvm.umin.i64(i64 %left.tries, i64 {LANES})
  %no.lanes = icmp eq i64 %width, 0
  br i1 %no.lanes, label %last, label %fill
fill:
  %f = phi i64 [ 0, %lanes ], [ %f.next, %fill ]
  %f.try = add i64 %next.begin, %f
  call void @take(ptr %given, ptr %memory, i64 %f, i64 0, i64 0)
  call void @begin(ptr %given, ptr %memory, i64 %f, i64 0, i64 %f.try)
  %f.next = add i64 %f, 1
  %f.more = icmp ult i64 %f.next, %width
  br i1 %f.more, label %fill, label %filled
filled:
  %next.filled = add i64 %next.begin, %width
  br label %step
step:
  %active = phi i64 [ %width, %filled ], [ %active.now, %stepped ]
  %next = phi i64 [ %next.filled, %filled ], [ %next.now, %stepped ]
  %winner = phi i64 [ %tries, %filled ], [ %winner.now, %stepped ]
  %best = phi i64 [ 0, %filled ], [ %best.now, %stepped ]
  call void @batch(i64 %active, ptr %memory, ptr %sizes, ptr %memory, ptr %sizes, ptr %workspace)
  br label %look
look:
  %slot = phi i64 [ 0, %step ], [ %slot.next, %looked ]
  %active.now = phi i64 [ %active, %step ], [ %active.next, %looked ]
  %next.now = phi i64 [ %next, %step ], [ %next.next, %looked ]
  %winner.now = phi i64 [ %winner, %step ], [ %winner.next, %looked ]
  %best.now = phi i64 [ %best, %step ], [ %best.next, %looked ]
  %left = icmp ult i64 %slot, %active.now
  br i1 %left, label %judge, label %stepped
judge:
  %slot.row = mul i64 %slot, 3
  %try.index = add i64 %slot.row, 1
{entry("try", "i64", "searches", "try.index")}
  %idle = icmp ugt i64 %try, %winner.now
  br i1 %idle, label %shrink, label %needed
needed:
{row("its", "memory.rows", "memory.size", "slot")}
  %status = load double, ptr %its
  %runs = fcmp oeq double %status, 0.0
  br i1 %runs, label %stay, label %ended
ended:
  call void @counted(ptr %its, i64 %try, ptr %counts)
  %solved = fcmp oeq double %status, 1.0
  br i1 %solved, label %won, label %lost
won:
  call void @keep(ptr %given, ptr %memory, i64 %slot, i64 0)
  br label %shrink
lost:
  %known = icmp ult i64 %winner.now, %tries
  br i1 %known, label %renew, label %compare
compare:
  %worst = load double, ptr %worst.at
  %cost.at = getelementptr double, ptr %its, i64 1
  %cost = load double, ptr %cost.at
  %better = fcmp olt double %cost, %worst
  %equal = fcmp oeq double %cost, %worst
  %earlier = icmp ult i64 %try, %best.now
  %tied = and i1 %equal, %earlier
  %improves = or i1 %better, %tied
  br i1 %improves, label %improve, label %renew
improve:
  call void @keep(ptr %given, ptr %memory, i64 %slot, i64 0)
  br label %renew
renew:
  %best.new = phi i64 [ %best.now, %lost ], [ %best.now, %compare ], [ %try, %improve ]
  %again = icmp ult i64 %next.now, %winner.now
  br i1 %again, label %begun, label %shrink
begun:
  call void @begin(ptr %given, ptr %memory, i64 %slot, i64 0, i64 %next.now)
  %next.after = add i64 %next.now, 1
  br label %stay
shrink:
  %winner.new = phi i64 [ %winner.now, %judge ], [ %try, %won ], [ %winner.now, %renew ]
  %best.same = phi i64 [ %best.now, %judge ], [ %best.now, %won ], [ %best.new, %renew ]
  %fewer = sub i64 %active.now, 1
  call void @move(ptr %given, ptr %memory, i64 %slot, i64 %fewer)
  br label %looked
stay:
  %next.same = phi i64 [ %next.now, %needed ], [ %next.after, %begun ]
  %best.stay = phi i64 [ %best.now, %needed ], [ %best.new, %begun ]
  %slot.after = add i64 %slot, 1
  br label %looked
looked:
  %slot.next = phi i64 [ %slot.after, %stay ], [ %slot, %shrink ]
  %active.next = phi i64 [ %active.now, %stay ], [ %fewer, %shrink ]
  %next.next = phi i64 [ %next.same, %stay ], [ %next.now, %shrink ]
  %winner.next = phi i64 [ %winner.now, %stay ], [ %winner.new, %shrink ]
  %best.next = phi i64 [ %best.stay, %stay ], [ %best.same, %shrink ]
  br label %look
stepped:
  %any = icmp ne i64 %active.now, 0
  br i1 %any, label %step, label %over
over:
  %found = icmp ult i64 %winner.now, %tries
  br i1 %found, label %finish, label %last
last:
  call void @take(ptr %given, ptr %memory, i64 0, i64 0, i64 0)
  call void @begin(ptr %given, ptr %memory, i64 0, i64 0, i64 %tries)
  %late = call i1 @attempted(ptr %memory, ptr %sizes, ptr %outs, i64 %tries, ptr %counts)
  br i1 %late, label %better.end, label %look.end
look.end:
  %end.cost.at = getelementptr double, ptr %memory.rows, i64 1
  %end.cost = load double, ptr %end.cost.at
  %end.worst = load double, ptr %worst.at
  %end.less = fcmp olt double %end.cost, %end.worst
  br i1 %end.less, label %better.end, label %finish
better.end:
  call void @keep(ptr %given, ptr %memory, i64 0, i64 0)
  br label %finish
finish:
  %which = phi i64 [ 0, %keep.first ], [ %winner.now, %over ], [ %tries, %look.end ],
    [ %tries, %better.end ]
  br label %sum
sum:
  %t = phi i64 [ 0, %finish ], [ %t.next, %sum ]
  %total = phi i64 [ 0, %finish ], [ %total.next, %sum ]
{entry("taken", "i64", "counts", "t")}
  %total.next = add i64 %total, %taken
  %t.next = add i64 %t, 1
  %t.more = icmp ule i64 %t.next, %which
  br i1 %t.more, label %sum, label %result
result:
  store i64 %total.next, ptr %steps
  %tried.at = getelementptr i64, ptr %steps, i64 1
  store i64 %which, ptr %tried.at
  call void @sided(ptr %points, i64 %point.size, ptr %lower, ptr %upper, ptr %sides)
  ret i64 0
}}
"""
