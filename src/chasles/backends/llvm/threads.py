"""Threads that share the rows of a batch, in machine code.

A caller submits its work, processes part of it, and returns when all rows have been processed. This
sequence is a single call to a C function, during which Python does not raise interrupts. Therefore
an interrupt cannot leave a lock acquired, or leave a thread writing to arrays that the caller has
freed. The threads are Python threads, but while they wait for work, they run machine code and do
not hold the GIL.
"""

import _thread
import ctypes
import functools
import os
import sys
from collections.abc import Mapping
from typing import Any

from chasles.backends import arrays
from chasles.backends.llvm import checked
from chasles.backends.llvm.code import Code, Machine, assemble, load

PIECES = 8
"""Average number of row ranges per thread. Late or slow threads process fewer ranges."""

PATIENCE = 2_000_000_000
"""Approximate number of operations per thread in one call to machine code. Python handles
interrupts only between these calls."""

_LOCK, _WORK, _DONE, _JOBS, _SIZE = 0, 128, 256, 384, 448
"""Layout of the thread pool in memory (bytes): offsets of the lock, of two condition variables and
of the list of jobs, and total size."""

_NEXT, _BODY, _GIVEN, _END, _SHARE, _TAKEN, _WANTED, _ACTIVE, _STATUS = range(0, 72, 8)
"""Offsets (bytes) of the fields of a job, which is stored on its caller's stack.

- _NEXT: the next job.
- _BODY: the function `body(given, first, last)`, which computes rows first, ..., last - 1 and
  returns 0 on success.
- _GIVEN: the argument `given` of this function.
- _END, _SHARE: index after the last row, and number of rows that a thread takes at once.
- _TAKEN: index of the first row that no thread has taken yet.
- _WANTED, _ACTIVE: number of threads that may still join the job, and number of threads that
  have joined and not yet finished.
- _STATUS: a nonzero status that the function returned, else 0.
"""


def field(name: str, kind: str, owner: str, place: int) -> str:
    """Return LLVM IR that computes the address of a field and loads the field."""
    where = f"%{name}.at = getelementptr i8, ptr %{owner}, i64 {place}"
    return f"{where}\n  %{name} = load {kind}, ptr %{name}.at"


MOVED = """
; Compute the address of a row in each array.
define internal void @moved(i64 %count, ptr %to, ptr %from, ptr %steps, i64 %row) {
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %do ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %do, label %end
do:
  %from.at = getelementptr ptr, ptr %from, i64 %k
  %start = load ptr, ptr %from.at
  %step.at = getelementptr i64, ptr %steps, i64 %k
  %step = load i64, ptr %step.at
  %far = mul i64 %step, %row
  %place = getelementptr i8, ptr %start, i64 %far
  %to.at = getelementptr ptr, ptr %to, i64 %k
  store ptr %place, ptr %to.at
  %next = add i64 %k, 1
  br label %loop
end:
  ret void
}
"""

SOURCE = f"""
declare i32 @lock(ptr)
declare i32 @unlock(ptr)
declare i32 @wait(ptr, ptr, i32, i32)
declare i32 @wake_one(ptr)
declare i32 @wake_all(ptr)
declare ptr @malloc(i64)
declare void @free(ptr)
declare i64 @llvm.umin.i64(i64, i64)

; Take ranges of a job until none is left.
define internal void @labour(ptr %job) noinline {{
entry:
  {field("body", "ptr", "job", _BODY)}
  {field("given", "ptr", "job", _GIVEN)}
  {field("end", "i64", "job", _END)}
  {field("share", "i64", "job", _SHARE)}
  %taken = getelementptr i8, ptr %job, i64 {_TAKEN}
  %status = getelementptr i8, ptr %job, i64 {_STATUS}
  br label %loop
loop:
  %first = atomicrmw add ptr %taken, i64 %share seq_cst
  %some = icmp ult i64 %first, %end
  br i1 %some, label %do, label %return
do:
  %past = add i64 %first, %share
  %last = call i64 @llvm.umin.i64(i64 %past, i64 %end)
  %answer = call i64 %body(ptr %given, i64 %first, i64 %last)
  %fine = icmp eq i64 %answer, 0
  br i1 %fine, label %loop, label %stop
stop:
  store atomic i64 %answer, ptr %status seq_cst, align 8
  store atomic i64 %end, ptr %taken seq_cst, align 8
  br label %return
return:
  ret void
}}

; The loop of a thread: wait for a job that may have more threads, help with it, and repeat forever.
define void @serve(ptr %pool) {{
entry:
  %work = getelementptr i8, ptr %pool, i64 {_WORK}
  %done = getelementptr i8, ptr %pool, i64 {_DONE}
  %jobs = getelementptr i8, ptr %pool, i64 {_JOBS}
  call i32 @lock(ptr %pool)
  br label %look
look:
  %top = load ptr, ptr %jobs
  br label %scan
scan:
  %job = phi ptr [ %top, %look ], [ %next, %other ]
  %none = icmp eq ptr %job, null
  br i1 %none, label %sleep, label %ask
ask:
  {field("wanted", "i64", "job", _WANTED)}
  {field("next", "ptr", "job", _NEXT)}
  %wants = icmp ne i64 %wanted, 0
  br i1 %wants, label %join, label %other
other:
  br label %scan
sleep:
  call i32 @wait(ptr %work, ptr %pool, i32 -1, i32 0)
  br label %look
join:
  %fewer = sub i64 %wanted, 1
  store i64 %fewer, ptr %wanted.at
  {field("active", "i64", "job", _ACTIVE)}
  %more = add i64 %active, 1
  store i64 %more, ptr %active.at
  call i32 @unlock(ptr %pool)
  call void @labour(ptr %job)
  call i32 @lock(ptr %pool)
  store i64 0, ptr %wanted.at
  %now = load i64, ptr %active.at
  %left = sub i64 %now, 1
  store i64 %left, ptr %active.at
  %last = icmp eq i64 %left, 0
  br i1 %last, label %tell, label %look
tell:
  call i32 @wake_all(ptr %done)
  br label %look
}}

; Process rows first, ..., last - 1 on the caller's thread and `helpers` others, in ranges of
; multiples of `step`. Return 0, or the first nonzero status of a body.
define i64 @share(ptr %pool, ptr %body, ptr %given, i64 %first, i64 %last, i64 %step,
                  i64 %helpers) {{
entry:
  %count = sub i64 %last, %first
  %job = alloca [9 x i64], align 64
  %work = getelementptr i8, ptr %pool, i64 {_WORK}
  %done = getelementptr i8, ptr %pool, i64 {_DONE}
  %jobs = getelementptr i8, ptr %pool, i64 {_JOBS}
  %few = icmp ule i64 %count, %step
  %lonely = icmp eq i64 %helpers, 0
  %alone = or i1 %few, %lonely
  br i1 %alone, label %own, label %several
own:
  %answer = call i64 %body(ptr %given, i64 %first, i64 %last)
  ret i64 %answer
several:
  %threads = add i64 %helpers, 1
  %pieces = mul i64 %threads, {PIECES}
  %stepped = mul i64 %pieces, %step
  %rest = add i64 %stepped, -1
  %up = add i64 %count, %rest
  %steps = udiv i64 %up, %stepped
  %share = mul i64 %steps, %step
  %next = getelementptr i8, ptr %job, i64 {_NEXT}
  %body.at = getelementptr i8, ptr %job, i64 {_BODY}
  %given.at = getelementptr i8, ptr %job, i64 {_GIVEN}
  %end.at = getelementptr i8, ptr %job, i64 {_END}
  %share.at = getelementptr i8, ptr %job, i64 {_SHARE}
  %taken.at = getelementptr i8, ptr %job, i64 {_TAKEN}
  %wanted.at = getelementptr i8, ptr %job, i64 {_WANTED}
  %active.at = getelementptr i8, ptr %job, i64 {_ACTIVE}
  %status.at = getelementptr i8, ptr %job, i64 {_STATUS}
  store ptr %body, ptr %body.at
  store ptr %given, ptr %given.at
  store i64 %last, ptr %end.at
  store i64 %share, ptr %share.at
  store i64 %first, ptr %taken.at
  store i64 %helpers, ptr %wanted.at
  store i64 0, ptr %active.at
  store i64 0, ptr %status.at
  call i32 @lock(ptr %pool)
  %top = load ptr, ptr %jobs
  store ptr %top, ptr %next
  store ptr %job, ptr %jobs
  call i32 @unlock(ptr %pool)
  br label %call
call:
  %called = phi i64 [ 0, %several ], [ %called.next, %call ]
  call i32 @wake_one(ptr %work)
  %called.next = add i64 %called, 1
  %call.more = icmp ult i64 %called.next, %helpers
  br i1 %call.more, label %call, label %start
start:
  call void @labour(ptr %job)
  call i32 @lock(ptr %pool)
  br label %find
find:
  %place = phi ptr [ %jobs, %start ], [ %each, %find ]
  %each = load ptr, ptr %place
  %found = icmp eq ptr %each, %job
  br i1 %found, label %unlink, label %find
unlink:
  %after = load ptr, ptr %next
  store ptr %after, ptr %place
  br label %leave
leave:
  %active = load i64, ptr %active.at
  %over = icmp eq i64 %active, 0
  br i1 %over, label %end, label %sleep
sleep:
  call i32 @wait(ptr %done, ptr %pool, i32 -1, i32 0)
  br label %leave
end:
  call i32 @unlock(ptr %pool)
  %status = load i64, ptr %status.at
  ret i64 %status
}}

; A body that runs a kernel on rows. Given: the kernel's function `batch`, the size (bytes) of its
; workspace, the numbers of inputs and outputs, and its four tables for the first row.
define i64 @rows(ptr %given, i64 %first, i64 %last) {{
entry:
  {field("batch", "ptr", "given", 0)}
  {field("size", "i64", "given", 8)}
  {field("inputs", "i64", "given", 16)}
  {field("outputs", "i64", "given", 24)}
  {field("ins", "ptr", "given", 32)}
  {field("in_steps", "ptr", "given", 40)}
  {field("outs", "ptr", "given", 48)}
  {field("out_steps", "ptr", "given", 56)}
  %in = alloca ptr, i64 %inputs
  %out = alloca ptr, i64 %outputs
  %room = add i64 %size, 64
  %memory = call ptr @malloc(i64 %room)
  %full = icmp eq ptr %memory, null
  br i1 %full, label %fail, label %go
fail:
  ret i64 1
go:
  call void @moved(i64 %inputs, ptr %in, ptr %ins, ptr %in_steps, i64 %first)
  call void @moved(i64 %outputs, ptr %out, ptr %outs, ptr %out_steps, i64 %first)
  %number = ptrtoint ptr %memory to i64
  %up = add i64 %number, 63
  %even = and i64 %up, -64
  %workspace = inttoptr i64 %even to ptr
  %count = sub i64 %last, %first
  call void %batch(i64 %count, ptr %in, ptr %in_steps, ptr %out, ptr %out_steps, ptr %workspace)
  call void @free(ptr %memory)
  ret i64 0
}}
{MOVED}"""
"""LLVM IR of `share` (run by callers), `serve` (run by threads) and `rows` (runs a kernel)."""

_NAMES = ("lock", "unlock", "wait", "wake_one", "wake_all")
_POSIX = (
    *("pthread_mutex_lock", "pthread_mutex_unlock", "pthread_cond_wait"),
    *("pthread_cond_signal", "pthread_cond_broadcast"),
)
_WINDOWS = (
    *("AcquireSRWLockExclusive", "ReleaseSRWLockExclusive", "SleepConditionVariableSRW"),
    *("WakeConditionVariable", "WakeAllConditionVariable"),
)
"""Names of POSIX functions and of the corresponding Windows functions. Both are called with the
same arguments; `pthread_cond_wait` ignores the last two (timeout and flags)."""


def _libraries() -> tuple[Any, Any]:
    """Return the system's threading library, and the C library."""
    if sys.platform == "win32":
        return ctypes.CDLL("kernel32"), ctypes.CDLL("ucrtbase")
    return ctypes.CDLL(None), ctypes.CDLL(None)


def _addresses(library: Any, names: Mapping[str, str]) -> dict[str, int]:
    found = {name: getattr(library, known) for name, known in names.items()}
    return {name: ctypes.cast(f, ctypes.c_void_p).value or 0 for name, f in found.items()}


def memory() -> dict[str, int]:
    """Return the addresses of `malloc` and `free`."""
    return _addresses(_libraries()[1], {name: name for name in ("malloc", "free")})


def symbols() -> dict[str, int]:
    """Return the addresses of all functions that the source calls."""
    own = _WINDOWS if sys.platform == "win32" else _POSIX
    return memory() | _addresses(_libraries()[0], dict(zip(_NAMES, own, strict=True)))


class Pool:
    """Thread pool whose threads are started on first use, also in a child process after a fork."""

    def __init__(self, code: Code) -> None:
        self.code, self.rows, self.share = code, code.address("rows"), code.address("share")
        size, pointer = ctypes.c_ssize_t, ctypes.c_void_p
        self._memory = ctypes.create_string_buffer(_SIZE + 64)
        self.address = -(-ctypes.addressof(self._memory) // 64) * 64
        kinds = (pointer, pointer, pointer, size, size, size, size)
        self._share = ctypes.CFUNCTYPE(size, *kinds)(self.share)
        self._serve = ctypes.CFUNCTYPE(None, pointer)(code.address("serve"))
        # The pool is never freed, because its threads keep using its memory.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))
        checked.enter(self.address, self.address + _SIZE)
        self._begin()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        """Reset the pool, initially and after a fork: no threads, no jobs, and locks released."""
        self._started = 0
        ctypes.memset(self.address, 0, _SIZE)
        if sys.platform != "win32":  # on Windows, a lock that contains zeros is valid
            library, _ = _libraries()
            for begin, place in (("mutex", _LOCK), ("cond", _WORK), ("cond", _DONE)):
                start = getattr(library, f"pthread_{begin}_init")
                start(ctypes.c_void_p(self.address + place), None)

    def threads(self, wanted: int) -> int:
        """Start the threads that a call needs besides the calling thread; return their number."""
        helpers = min(wanted, max(arrays.cores(), 2)) - 1
        while self._started < helpers:
            try:
                _thread.start_new_thread(self._serve, (self.address,))
            except RuntimeError:  # no thread can be started, or the interpreter is exiting
                return self._started
            self._started += 1  # an interrupt before this line only leaves an unused thread
        return helpers

    @checked.ends
    def __call__(
        self, body: int, given: int, count: int, step: int, threads: int, work: int
    ) -> None:
        """Process rows 0, ..., count - 1 with the function at address `body`, on several threads.

        work: approximate number of operations per row. Python handles interrupts after about every
        `PATIENCE` operations per thread. After an interrupt, the remaining rows are not processed.
        """
        helpers = self.threads(threads) if threads > 1 and count > step else 0
        part = max(PATIENCE * (helpers + 1) // (max(work, 1) * step), 1) * step
        for first in range(0, count, part):
            last = min(first + part, count)
            if self._share(self.address, body, given, first, last, step, helpers):
                raise MemoryError


@functools.cache
def pool() -> Pool:
    """Return the thread pool of this process."""
    return Pool(load(assemble(SOURCE, Machine.host()), symbols(), ("share", "serve", "rows")))
