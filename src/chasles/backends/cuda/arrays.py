"""Functions in LLVM IR that read array objects for the GPU entry function (`cuda.entry`).

An array is represented as a DLTensor of DLPack: data, device, rank, dtype, shape, strides, offset.
For each library, one function (the reader) fills a DLTensor from an object, and another stores the
library's current stream. Both return zero on success and never raise an exception. PyTorch has C
functions for both (DLPack's exchange interface); CuPy arrays are read through attributes.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from chasles.backends.llvm.math import Writer
from chasles.backends.objects import HEAD, TUPLE

AXES = 8
"""Maximum number of axes of an array argument of the fast GPU entry point."""

TENSOR = 7 + 2 * AXES
"""Number of 8-byte words that store a DLTensor, its shape and strides, and a flag that is 1 if
the array is stored in columns (`COLUMNS`)."""

DATA, PLACE, AXES_PLACE, KIND, BITS, SHAPE, STRIDES, OFFSET, ROOM = 0, 8, 16, 20, 21, 24, 32, 40, 48
COLUMNS = ROOM + 16 * AXES
"""Offsets (bytes) of the fields of a DLTensor, of the space for its shape and strides (`ROOM`), and
of a flag (`COLUMNS`). The flag is 1 if the array is stored in columns, with the states contiguous
for each entry."""

INPUTS, OUTPUTS, TYPE, OTHER, READER, STREAM, HELPER, READ, CURRENT, COUNT, FIRST = range(11)
"""Indices of the 8-byte words in the data structure that describes a GPU entry (`cuda.entry`).

- INPUTS, OUTPUTS: numbers of inputs and outputs.
- TYPE, OTHER: the two array types that are accepted; equal if a library has only one.
- READER, STREAM: functions of this module that read a library's array and get its stream.
- HELPER, READ, CURRENT: a Python object and two C functions that READER and STREAM use.
- COUNT: number of plans (prepared launches).
- FIRST: index of the first word after these fields.
"""

READING = "ptr %d, ptr %object, ptr %tensor, i1 %read"
"""Parameters of a reader: the descriptor, an object, a DLTensor, and a flag (1 for inputs)."""

FLOAT, CUDA = 2, 2
"""DLPack codes for floating-point data and for CUDA memory."""


class Text(Writer):
    """Writer of one function in LLVM IR, in which the label `no` marks the exit on failure."""

    def __init__(self) -> None:
        super().__init__(1, False)
        self.labels = 0

    def label(self) -> str:
        self.labels += 1
        return f"l{self.labels}"

    def to(self, label: str) -> None:
        """Begin a new block with this label, and emit a branch to it."""
        self.raw(f"  br label %{label}\n{label}:")

    def require(self, condition: str, otherwise: str = "no") -> None:
        on = self.label()
        self.raw(f"  br i1 {condition}, label %{on}, label %{otherwise}\n{on}:")

    def is_zero(self, status: str, kind: str = "i32") -> str:
        return self.emit(f"icmp eq {kind} {status}, {'null' if kind == 'ptr' else 0}")

    def both(self, *conditions: str) -> str:
        first, *others = conditions
        for other in others:
            first = self.emit(f"and i1 {first}, {other}")
        return first

    def word(self, base: str, k: int | str, kind: str = "i64") -> str:
        return self.emit(f"load {kind}, ptr {self.at(base, k, 'i64')}")

    def put(self, base: str, k: int | str, value: str) -> None:
        self.raw(f"  store {value}, ptr {self.at(base, k, 'i64')}")

    def variable(self, kind: str, value: str | int) -> str:
        place = self.room(1, kind)
        self.raw(f"  store {kind} {value}, ptr {place}")
        return place

    def get(self, place: str, kind: str = "i64") -> str:
        return self.emit(f"load {kind}, ptr {place}")

    def set(self, place: str, value: str) -> None:
        self.raw(f"  store {value}, ptr {place}")

    def offset(self, k: str, each: int, first: int = 0) -> str:
        """Emit code that computes `first + each * k`, the offset of item k of a table."""
        return self.emit(f"add i64 {self.emit(f'mul i64 {k}, {each}')}, {first}")

    @contextmanager
    def each(self, count: str) -> Iterator[str]:
        """Emit a loop over 0, ..., `count` - 1; yield the name of the loop counter."""
        place, (test, body, after) = self.variable("i64", 0), (self.label() for _ in range(3))
        self.to(test)
        k = self.get(place)
        more = self.emit(f"icmp ult i64 {k}, {count}")
        self.raw(f"  br i1 {more}, label %{body}, label %{after}\n{body}:")
        yield k
        self.set(place, f"i64 {self.emit(f'add i64 {k}, 1')}")
        self.raw(f"  br label %{test}\n{after}:")

    @contextmanager
    def when(self, condition: str, otherwise: str = "") -> Iterator[None]:
        """Emit the code of a `with` block, which runs if a condition holds.

        otherwise: label to branch to if the condition does not hold, by default after the block.
        """
        yes, after = self.label(), otherwise or self.label()
        self.raw(f"  br i1 {condition}, label %{yes}, label %{after}\n{yes}:")
        yield
        if not otherwise:
            self.to(after)

    def drop(self, objects: str, count: str) -> None:
        with self.each(count) as k:
            self.raw(f"  call void @Py_DecRef(ptr {self.word(objects, k, 'ptr')})")

    def finished(self, head: str, value: str, otherwise: str = "") -> str:
        """Return the LLVM IR of the function, with return values for success and for failure."""
        ends = [f"  ret {value}"] + ([f"no:\n  ret {otherwise}"] if otherwise else [])
        return "\n".join([f"define {head} {{\nentry:", *self.reserved, *self.lines, *ends, "}\n"])


# Python attributes -----------------------------------------------------------------------------


def _attribute(w: Text) -> str:
    """Generate a function that returns an attribute, or null (without an exception) on failure."""
    found = w.emit("call ptr @PyObject_GetAttr(ptr %object, ptr %name)")
    with w.when(w.is_zero(found, "ptr")):
        w.raw("  call void @PyErr_Clear()")
    return w.finished("internal ptr @attribute(ptr %object, ptr %name)", f"ptr {found}")


def _has(w: Text) -> str:
    """Generate a function that tests whether an object's attribute is a given object."""
    found = w.emit("call ptr @attribute(ptr %object, ptr %name)")
    w.require(w.emit(f"icmp ne ptr {found}, null"))
    w.raw(f"  call void @Py_DecRef(ptr {found})")
    same = w.emit(f"icmp eq ptr {found}, %wanted")
    head = "internal i1 @has(ptr %object, ptr %name, ptr %wanted)"
    return w.finished(head, f"i1 {same}", "i1 false")


def _integer(w: Text, item: str, target: str) -> str:
    """Emit code that stores the value of a Python integer; return a flag for success."""
    number = w.emit(f"call i64 @PyLong_AsLongLong(ptr {item})")
    w.raw(f"  store i64 {number}, ptr {target}")
    fine = w.variable("i1", "true")
    with w.when(w.emit(f"icmp eq i64 {number}, -1")):
        w.set(fine, f"i1 {w.is_zero(w.emit('call ptr @PyErr_Occurred()'), 'ptr')}")
        w.raw("  call void @PyErr_Clear()")
    return w.get(fine, "i1")


def _number(w: Text) -> str:
    """Generate a function that reads an integer attribute and returns true on success."""
    found = w.emit("call ptr @attribute(ptr %object, ptr %name)")
    w.require(w.emit(f"icmp ne ptr {found}, null"))
    fine = _integer(w, found, "%target")
    w.raw(f"  call void @Py_DecRef(ptr {found})")
    head = "internal i1 @number(ptr %object, ptr %name, ptr %target)"
    return w.finished(head, f"i1 {fine}", "i1 false")


def _numbers(w: Text) -> str:
    """Generate a function that reads a tuple of integers from an attribute.

    The function returns the length of the tuple, or -1 on failure.
    """
    found = w.emit("call ptr @attribute(ptr %object, ptr %name)")
    w.require(w.emit(f"icmp ne ptr {found}, null"))
    is_tuple = w.emit(f"icmp eq ptr {w.field(found, HEAD - 8, 'ptr')}, @tuple_type")
    count = w.field(found, HEAD, "i64")
    right = w.both(is_tuple, w.emit(f"icmp ule i64 {count}, {AXES}"))
    fine = w.variable("i1", right)
    with w.each(w.emit(f"select i1 {right}, i64 {count}, i64 0")) as k:
        item = w.word(w.at(found, TUPLE), k, "ptr")
        whole = _integer(w, item, w.at("%target", k, "i64"))
        w.set(fine, f"i1 {w.both(w.get(fine, 'i1'), whole)}")
    w.raw(f"  call void @Py_DecRef(ptr {found})")
    answer = w.emit(f"select i1 {w.get(fine, 'i1')}, i64 {count}, i64 -1")
    head = "internal i64 @numbers(ptr %object, ptr %name, ptr %target)"
    return w.finished(head, f"i64 {answer}", "i64 -1")


# Array libraries -------------------------------------------------------------------------------


def _cupy_reader(w: Text) -> str:
    """Generate the function that reads CuPy arrays. Strides are read only if necessary."""
    dtype = w.emit("call ptr @attribute(ptr %object, ptr @name_dtype)")
    w.require(w.emit(f"icmp ne ptr {dtype}, null"))
    w.raw(f"  call void @Py_DecRef(ptr {dtype})")
    double, single = (w.emit(f"icmp eq ptr {dtype}, @{name}") for name in ("double", "single"))
    w.require(w.emit(f"or i1 {double}, {single}"))
    size = w.emit(f"select i1 {double}, i32 64, i32 32")
    kind = w.emit(f"or i32 {w.emit(f'shl i32 {size}, 8')}, {FLOAT | 1 << 16}")
    w.store("%tensor", KIND, f"i32 {kind}")
    memory, device = w.emit("call ptr @attribute(ptr %object, ptr @name_data)"), w.room(1, "i64")
    w.require(w.emit(f"icmp ne ptr {memory}, null"))
    placed = w.emit(f"call i1 @number(ptr {memory}, ptr @name_ptr, ptr %tensor)")
    known = w.emit(f"call i1 @number(ptr {memory}, ptr @name_device_id, ptr {device})")
    w.raw(f"  call void @Py_DecRef(ptr {memory})")
    w.require(w.both(placed, known))
    where = w.emit(f"or i64 {w.emit(f'shl i64 {w.get(device)}, 32')}, {CUDA}")
    w.store("%tensor", PLACE, f"i64 {where}")
    shape, strides = w.at("%tensor", ROOM), w.at("%tensor", ROOM + 8 * AXES)
    rank = w.emit(f"call i64 @numbers(ptr %object, ptr @name_shape, ptr {shape})")
    w.require(w.emit(f"icmp sge i64 {rank}, 0"))
    w.store("%tensor", AXES_PLACE, f"i32 {w.emit(f'trunc i64 {rank} to i32')}")
    for place, value in ((SHAPE, f"ptr {shape}"), (STRIDES, "ptr null"), (OFFSET, "i64 0")):
        w.store("%tensor", place, value)
    contiguous = w.emit("call i1 @has(ptr %object, ptr @name__c_contiguous, ptr @true)")
    with w.when(w.emit(f"xor i1 {contiguous}, true")):
        steps = w.emit(f"call i64 @numbers(ptr %object, ptr @name_strides, ptr {strides})")
        w.require(w.emit(f"icmp eq i64 {rank}, {steps}"))
        itemsize = w.emit(f"zext i32 {w.emit(f'lshr i32 {size}, 3')} to i64")
        with w.each(rank) as k:
            w.put(strides, k, f"i64 {w.emit(f'sdiv i64 {w.word(strides, k)}, {itemsize}')}")
        w.store("%tensor", STRIDES, f"ptr {strides}")
    return w.finished(f"i32 @cupy_reader({READING})", "i32 0", "i32 1")


def _cupy_stream(w: Text) -> str:
    stream = w.emit(f"call ptr @PyObject_CallNoArgs(ptr {w.word('%d', HELPER, 'ptr')})")
    with w.when(w.is_zero(stream, "ptr")):
        w.raw("  call void @PyErr_Clear()\n  ret i32 1")
        w.raw(f"{w.label()}:")  # unreachable; the next instruction needs a basic block
    known = w.emit(f"call i1 @number(ptr {stream}, ptr @name_ptr, ptr %target)")
    w.raw(f"  call void @Py_DecRef(ptr {stream})")
    w.require(known)
    return w.finished("i32 @cupy_stream(ptr %d, i64 %where, ptr %target)", "i32 0", "i32 1")


def _torch_reader(w: Text) -> str:
    """Generate the reader of PyTorch tensors, which rejects tensors that require gradients.

    The reader also rejects inputs with a pending negation (`Tensor.is_neg`).
    """
    w.require(w.emit("call i1 @has(ptr %object, ptr @name_requires_grad, ptr @false)"))
    given = w.variable("ptr", "%object")
    with w.when("%read"):
        asked = f"ptr @name_is_neg, ptr {given}, i64 1, ptr null"
        answer = w.emit(f"call ptr @PyObject_VectorcallMethod({asked})")
        w.require(w.emit(f"icmp ne ptr {answer}, null"), "error")
        w.raw(f"  call void @Py_DecRef(ptr {answer})")
        w.require(w.emit(f"icmp eq ptr {answer}, @false"))
    status = w.emit(f"call i32 {w.word('%d', READ, 'ptr')}(ptr %object, ptr %tensor)")
    w.require(w.is_zero(status), "error")
    w.raw("  ret i32 0\nerror:\n  call void @PyErr_Clear()\n  br label %no\nno:")
    return w.finished(f"i32 @torch_reader({READING})", "i32 1")


def _torch_stream(w: Text) -> str:
    """Generate the function that gets PyTorch's CUDA stream.

    The function fails during forward-mode automatic differentiation.
    """
    module = w.word("%d", HELPER, "ptr")
    w.require(w.emit(f"call i1 @has(ptr {module}, ptr @name__current_level, ptr @no_level)"))
    kind = w.emit("trunc i64 %where to i32")
    device = w.emit(f"trunc i64 {w.emit('lshr i64 %where, 32')} to i32")
    current = w.word("%d", CURRENT, "ptr")
    status = w.emit(f"call i32 {current}(i32 {kind}, i32 {device}, ptr %target)")
    w.require(w.is_zero(status), "error")
    w.raw("  ret i32 0\nerror:\n  call void @PyErr_Clear()\n  br label %no\nno:")
    return w.finished("i32 @torch_stream(ptr %d, i64 %where, ptr %target)", "i32 1")


FUNCTIONS = (
    _attribute,
    _has,
    _number,
    _numbers,
    _cupy_reader,
    _cupy_stream,
    _torch_reader,
    _torch_stream,
)
"""Python functions that generate the LLVM functions of this module, in order of definition."""
