"""LLVM IR of the entry function, which checks the GPU arrays of a call and launches a kernel.

`entry` has the signature of a METH_FASTCALL | METH_KEYWORDS function; all built-in functions of a
process share its code. The function's `__self__` is a tuple: the Python function that handles other
calls, the address of a descriptor (64-bit words), and two functions that create a result array in
rows or in columns. The entry handles exactly the calls for which a kernel was prepared. In these
calls, all arrays are contiguous, have the library's own array type and a common dtype, and are on
the current device. The shape of each array is the shape of its variable, preceded by the leading
shape (batch shape), if any. If the leading shape has one axis, arrays may also be stored in
columns, with the states contiguous for each entry. Arrays in `out=` must have the same type and
must not overlap other arrays. All other calls are handled in Python.
"""

from chasles.backends.cuda import driver as cuda_driver
from chasles.backends.cuda.arrays import (
    AXES,
    AXES_PLACE,
    BITS,
    COLUMNS,
    COUNT,
    DATA,
    FIRST,
    FUNCTIONS,
    INPUTS,
    KIND,
    OFFSET,
    OTHER,
    OUTPUTS,
    PLACE,
    READER,
    SHAPE,
    STREAM,
    STRIDES,
    TENSOR,
    TYPE,
    Text,
)
from chasles.backends.objects import HEAD, TUPLE

ARRAYS, RANK = 16, 4
"""Maximum number of arrays in a call, and maximum number of axes of an input or output."""

WORDS = 8 + 3 * ARRAYS
"""Number of 8-byte words in the last argument of a launch, which holds the kernel's parameters."""

VARIABLE, PLAN = 2 + RANK, 10
"""Numbers of 8-byte words that describe a variable (rank, size, shape) and a prepared launch
(`Plan.words`)."""

CALLED = {
    "PyObject_GetAttr": "ptr (ptr, ptr)",
    "PyObject_CallNoArgs": "ptr (ptr)",
    "PyObject_Vectorcall": "ptr (ptr, ptr, i64, ptr)",
    "PyObject_VectorcallMethod": "ptr (ptr, ptr, i64, ptr)",
    "PyLong_AsVoidPtr": "ptr (ptr)",
    "PyLong_AsLongLong": "i64 (ptr)",
    "PyLong_FromSsize_t": "ptr (i64)",
    "PyTuple_New": "ptr (i64)",
    "PyTuple_SetItem": "i32 (ptr, i64, ptr)",
    "PyErr_Occurred": "ptr ()",
    "PyErr_Clear": "void ()",
    "Py_IncRef": "void (ptr)",
    "Py_DecRef": "void (ptr)",
    "PyEval_SaveThread": "ptr ()",
    "PyEval_RestoreThread": "void (ptr)",
}
"""Functions of Python's C API that the code calls, and their LLVM types."""

NAMES = (
    *("out", "data", "ptr", "device_id", "dtype", "shape", "strides", "_c_contiguous"),
    *("requires_grad", "is_neg", "_current_level"),
)
OBJECTS = ("none", "false", "true", "no_level", "tuple_type", "double", "single")
"""Names of Python objects that the machine code compares with arguments and attributes."""


def source() -> str:
    """Generate the LLVM module that contains the entry function."""
    objects = [f"@{name} = external global i8" for name in (*OBJECTS, *map(spelled, NAMES))]
    called = {
        **CALLED,
        "launch": "i32 (ptr, i32, i32, i32, i32, i32, i32, i32, ptr, ptr, ptr)",
        "current_device": "i32 (ptr)",
    }
    declared = [f"declare {kind.replace(' (', f' @{name}(', 1)}" for name, kind in called.items()]
    return "\n".join([*objects, *declared, *(write(Text()) for write in (*FUNCTIONS, *OWN))])


def spelled(name: str) -> str:
    """Return the linker symbol that refers to an interned Python string."""
    return f"name_{name}"


# Checks ----------------------------------------------------------------------------------------


def _ahead(w: Text) -> str:
    """Generate a function that returns an array's number of leading axes.

    The function returns -1 if the array is unsupported.
    """
    kind = w.field("%object", HEAD - 8, "ptr")
    types = [w.emit(f"icmp eq ptr {kind}, {w.word('%d', k, 'ptr')}") for k in (TYPE, OTHER)]
    w.require(w.emit(f"or i1 {types[0]}, {types[1]}"))
    reader = w.word("%d", READER, "ptr")
    read = w.emit(f"icmp ult i64 %k, {w.word('%d', INPUTS)}")
    call = f"{reader}(ptr %d, ptr %object, ptr %tensor, i1 {read})"
    w.require(w.is_zero(w.emit(f"call i32 {call}")))
    rank = w.emit(f"sext i32 {w.field('%tensor', AXES_PLACE, 'i32')} to i64")
    variable = w.at("%d", w.offset("%k", VARIABLE, FIRST), "i64")
    lead = w.emit(f"sub i64 {rank}, {w.word(variable, 0)}")
    w.require(w.emit(f"icmp sge i64 {lead}, 0"))
    shape, strides = (w.field("%tensor", place, "ptr") for place in (SHAPE, STRIDES))
    compact, step = w.is_zero(strides, "ptr"), w.variable("i64", 1)
    single, states = w.emit(f"icmp eq i64 {lead}, 1"), w.variable("i64", 0)
    in_rows, in_columns = w.variable("i1", "true"), w.variable("i1", single)
    with w.when(single):
        w.set(states, f"i64 {w.word(shape, 0)}")
    with w.each(rank) as k:  # loop from the last axis to the first
        j = w.emit(f"sub i64 {w.emit(f'sub i64 {rank}, 1')}, {k}")
        size, next_one = w.word(shape, j), w.get(step)
        with w.when(w.emit(f"xor i1 {compact}, true")):
            alone, apart = w.emit(f"icmp eq i64 {size}, 1"), w.word(strides, j)
            outermost = w.is_zero(j, "i64")
            inner = w.emit(f"mul i64 {next_one}, {w.get(states)}")
            wanted = w.emit(f"select i1 {outermost}, i64 1, i64 {inner}")
            for flag, right in ((in_rows, next_one), (in_columns, wanted)):
                fits = w.emit(f"or i1 {alone}, {w.emit(f'icmp eq i64 {apart}, {right}')}")
                w.set(flag, f"i1 {w.both(w.get(flag, 'i1'), fits)}")
        with w.when(w.emit(f"icmp sge i64 {j}, {lead}")):
            place = w.emit(f"add i64 {w.emit(f'sub i64 {j}, {lead}')}, 2")
            w.require(w.emit(f"icmp eq i64 {size}, {w.word(variable, place)}"))
        w.set(step, f"i64 {w.emit(f'mul i64 {next_one}, {size}')}")
    rows = w.get(in_rows, "i1")
    w.require(w.emit(f"or i1 {rows}, {w.get(in_columns, 'i1')}"))
    w.store("%tensor", COLUMNS, f"i64 {w.emit(f'select i1 {rows}, i64 0, i64 1')}")
    head = "internal i64 @ahead(ptr %d, i64 %k, ptr %object, ptr %tensor)"
    return w.finished(head, f"i64 {lead}", "i64 -1")


def _alike(w: Text) -> str:
    """Generate a function that tests whether two arrays of `count` words are equal."""
    with w.each("%count") as k:
        w.require(w.emit(f"icmp eq i64 {w.word('%a', k)}, {w.word('%b', k)}"))
    return w.finished("internal i1 @alike(ptr %a, ptr %b, i64 %count)", "i1 true", "i1 false")


def _together(w: Text, tensor: str) -> str:
    """Emit a test that an array has the same dtype and device as the first array of the call."""
    pairs = [(w.field(t, KIND, "i32"), w.field(t, PLACE, "i64")) for t in ("%tensors", tensor)]
    (kind, place), (other_kind, other_place) = pairs
    kin = w.emit(f"icmp eq i32 {kind}, {other_kind}")
    return w.both(kin, w.emit(f"icmp eq i64 {place}, {other_place}"))


def _apart(w: Text) -> str:
    """Generate a function that stores an array's layout and checks for overlaps.

    The function returns false if the array overlaps an earlier array of the call.

    - %rows: number of states, or 0 for an array that all states share.
    - %own: false to skip the overlap check.
    """
    data, offset = (w.field("%tensor", place, "i64") for place in (DATA, OFFSET))
    start = w.emit(f"add i64 {data}, {offset}")
    size = w.word("%d", w.offset("%k", VARIABLE, FIRST + 1))
    several = w.emit("icmp ne i64 %rows, 0")
    some = w.emit(f"select i1 {several}, i64 %rows, i64 1")
    bits = w.field("%tensor", BITS, "i8")
    each = w.emit(f"zext i8 {w.emit(f'lshr i8 {bits}, 3')} to i64")
    length = w.emit(f"mul i64 {w.emit(f'mul i64 {some}, {size}')}, {each}")
    end = w.emit(f"add i64 {start}, {length}")
    w.put("%ends", "%k", f"i64 {end}")
    in_rows = w.is_zero(w.field("%tensor", COLUMNS, "i64"), "i64")
    own_row = w.emit(f"select i1 {in_rows}, i64 {size}, i64 1")
    row = w.emit(f"select i1 {several}, i64 {own_row}, i64 0")
    column = w.emit(f"select i1 {in_rows}, i64 1, i64 %rows")
    place = w.at("%words", w.offset("%k", 3, 8), "i64")
    for word, value in enumerate((start, row, column)):
        w.put(place, word, f"i64 {value}")
    with w.each(w.emit("select i1 %own, i64 %k, i64 0")) as j:
        before = w.emit(f"icmp ule i64 {end}, {w.word('%words', w.offset(j, 3, 8))}")
        after = w.emit(f"icmp ule i64 {w.word('%ends', j)}, {start}")
        w.require(w.emit(f"or i1 {before}, {after}"))
    arrays = "ptr %d, i64 %k, ptr %tensor, i64 %rows, ptr %words, ptr %ends, i1 %own"
    return w.finished(f"internal i1 @apart({arrays})", "i1 true", "i1 false")


def _made(w: Text) -> str:
    """Generate a function that returns a new array, or null if memory is exhausted."""
    asked = w.room(1 + AXES + RANK, "ptr")
    w.put(asked, 0, "ptr %like")
    variable = w.at("%d", w.offset("%k", VARIABLE, FIRST), "i64")
    rank, items = w.word(variable, 0), w.at(asked, 8)
    for count, sizes, first in (("%lead", "%leading", "0"), (rank, w.at(variable, 16), "%lead")):
        with w.each(count) as j:
            item = w.emit(f"call ptr @PyLong_FromSsize_t(i64 {w.word(sizes, j)})")
            w.put(items, w.emit(f"add i64 {j}, {first}"), f"ptr {item}")
    count = w.emit(f"add i64 %lead, {rank}")
    call = f"ptr %maker, ptr {asked}, i64 {w.emit(f'add i64 {count}, 1')}, ptr null"
    made = w.emit(f"call ptr @PyObject_Vectorcall({call})")
    w.drop(items, count)
    head = "internal ptr @made(ptr %d, i64 %k, ptr %maker, ptr %like, ptr %leading, i64 %lead)"
    return w.finished(head, f"ptr {made}")


# Entry function --------------------------------------------------------------------------------


def _entry(w: Text) -> str:
    w.reserved += [
        f"  %tensors = alloca [{ARRAYS * TENSOR} x i64], align 16",
        f"  %words = alloca [{WORDS} x i64], align 16",
        f"  %ends = alloca [{ARRAYS} x i64]",
        f"  %objects = alloca [{ARRAYS} x ptr]",
    ]
    address, *makers = (w.field("%self", TUPLE + 8 * k, "ptr") for k in (1, 2, 3))
    d = w.emit(f"call ptr @PyLong_AsVoidPtr(ptr {address})")
    w.raw(f"  %d = getelementptr i8, ptr {d}, i64 0")
    n, m = w.word("%d", INPUTS), w.word("%d", OUTPUTS)
    w.require(w.emit(f"icmp eq i64 %nargs, {n}"))
    given = _given(w, n)
    leading, lead, states, columns = _inputs(w, n)
    plan = _plan(w, w.emit(f"add i64 {n}, {m}"), states, columns)
    stream = _stream(w)
    new, in_rows = w.is_zero(given, "ptr"), w.is_zero(columns, "i64")
    maker = w.emit(f"select i1 {in_rows}, ptr {makers[0]}, ptr {makers[1]}")
    _results(w, (n, m), (leading, lead), given, new, maker)
    with w.each(m) as k:
        place = w.emit(f"add i64 {n}, {k}")
        tensor = w.at("%tensors", w.offset(place, TENSOR), "i64")
        item = w.word("%objects", k, "ptr")
        ahead = w.emit(f"call i64 @ahead(ptr %d, i64 {place}, ptr {item}, ptr {tensor})")
        w.require(w.emit(f"icmp eq i64 {ahead}, {lead}"), "refused")
        w.require(_together(w, tensor), "refused")
        fits = w.emit(f"icmp ule i64 {w.field(tensor, COLUMNS, 'i64')}, {columns}")
        w.require(fits, "refused")  # a kernel for row-major arrays cannot write other layouts
        sizes = f"ptr {w.field(tensor, SHAPE, 'ptr')}, ptr {leading}, i64 {lead}"
        w.require(w.emit(f"call i1 @alike({sizes})"), "refused")
        w.require(_placed(w, place, tensor, states, own=True), "refused")
    w.require(w.is_zero(_launched(w, plan, n, m, states, stream)), "refused")
    filled = w.label()
    with w.when(new, filled):
        with w.when(w.emit(f"icmp eq i64 {m}, 1"), "several"):
            w.raw(f"  ret ptr {w.word('%objects', 0, 'ptr')}\nseveral:")
        packed = w.emit(f"call ptr @PyTuple_New(i64 {m})")
        w.require(w.emit(f"icmp ne ptr {packed}, null"), "refused")
        with w.each(m) as k:
            item = w.word("%objects", k, "ptr")
            w.emit(f"call i32 @PyTuple_SetItem(ptr {packed}, i64 {k}, ptr {item})")
        w.raw(f"  ret ptr {packed}\n{filled}:")
    w.raw(f"  call void @Py_IncRef(ptr {given})\n  ret ptr {given}\nrefused:")
    with w.when(new, "no"):
        w.drop("%objects", m)
    w.raw("  br label %no\nno:")
    fallback = w.field("%self", TUPLE, "ptr")
    again = f"ptr {fallback}, ptr %args, i64 %nargs, ptr %kwnames"
    answer = w.emit(f"call ptr @PyObject_Vectorcall({again})")
    return w.finished("ptr @entry(ptr %self, ptr %args, i64 %nargs, ptr %kwnames)", f"ptr {answer}")


def _given(w: Text, n: str) -> str:
    """Emit code that gets the value of `out=`; the value is null if `out=` is not passed."""
    out = w.variable("ptr", "null")
    with w.when(w.emit("icmp ne ptr %kwnames, null")):
        w.require(w.emit(f"icmp eq i64 {w.field('%kwnames', HEAD, 'i64')}, 1"))
        w.require(w.emit(f"icmp eq ptr {w.field('%kwnames', TUPLE, 'ptr')}, @name_out"))
        value = w.word("%args", n, "ptr")
        none = w.emit(f"icmp eq ptr {value}, @none")
        w.set(out, f"ptr {w.emit(f'select i1 {none}, ptr null, ptr {value}')}")
    return w.get(out, "ptr")


def _inputs(w: Text, n: str) -> tuple[str, str, str, str]:
    """Emit code that reads and checks the inputs.

    The code returns the address and length of the leading shape, the number of states, and 1 if an
    array is stored in columns, else 0. An array without a leading shape is used for all states.
    """
    leading, columns = w.variable("ptr", "null"), w.variable("i64", 0)
    lead, states = (w.variable("i64", k) for k in (0, 1))
    with w.each(n) as k:
        tensor, item = w.at("%tensors", w.offset(k, TENSOR), "i64"), w.word("%args", k, "ptr")
        own = w.emit(f"call i64 @ahead(ptr %d, i64 {k}, ptr {item}, ptr {tensor})")
        w.require(w.emit(f"icmp sge i64 {own}, 0"))
        w.require(_together(w, tensor))
        sizes = w.field(tensor, SHAPE, "ptr")
        with w.when(w.emit(f"icmp ne i64 {own}, 0")):
            with w.when(w.is_zero(w.get(lead), "i64")):
                w.set(leading, f"ptr {sizes}")
                w.set(lead, f"i64 {own}")
                with w.each(own) as j:
                    product = w.emit(f"mul i64 {w.get(states)}, {w.word(sizes, j)}")
                    w.set(states, f"i64 {product}")
            w.require(w.emit(f"icmp eq i64 {own}, {w.get(lead)}"))
            pair = f"ptr {sizes}, ptr {w.get(leading, 'ptr')}, i64 {own}"
            w.require(w.emit(f"call i1 @alike({pair})"))
        w.put("%ends", k, f"i64 {own}")
        turned = w.emit(f"or i64 {w.get(columns)}, {w.field(tensor, COLUMNS, 'i64')}")
        w.set(columns, f"i64 {turned}")
    count = w.get(states)
    with w.each(n) as k:
        tensor = w.at("%tensors", w.offset(k, TENSOR), "i64")
        shared = w.is_zero(w.word("%ends", k), "i64")
        rows = w.emit(f"select i1 {shared}, i64 0, i64 {count}")
        _placed(w, k, tensor, rows, own=False)
    return w.get(leading, "ptr"), w.get(lead), count, w.get(columns)


def _placed(w: Text, k: str, tensor: str, rows: str, *, own: bool) -> str:
    operands = f"i64 {k}, ptr {tensor}, i64 {rows}, ptr %words, ptr %ends, i1 {str(own).lower()}"
    return w.emit(f"call i1 @apart(ptr %d, {operands})")


def _plan(w: Text, arrays: str, states: str, columns: str) -> str:
    """Emit code that finds the prepared launch for the dtype, device, state count and layout."""
    kind = w.emit(f"zext i32 {w.field('%tensors', KIND, 'i32')} to i64")
    where, chosen = w.field("%tensors", PLACE, "i64"), w.variable("ptr", "null")
    first = w.at("%d", w.offset(arrays, VARIABLE, FIRST), "i64")
    with w.each(w.word("%d", COUNT)) as k:
        plan = w.at(first, w.offset(k, PLAN), "i64")
        tests = (("eq", kind), ("eq", where), ("uge", states), ("ule", states), ("eq", columns))
        fits = [
            w.emit(f"icmp {test} i64 {value}, {w.word(plan, word)}")
            for word, (test, value) in enumerate(tests)
        ]
        with w.when(w.both(*fits)):
            w.set(chosen, f"ptr {plan}")
    plan = w.get(chosen, "ptr")
    w.require(w.emit(f"icmp ne ptr {plan}, null"))
    return plan


def _stream(w: Text) -> str:
    """Emit code that gets the library's stream and checks that the device is the current device."""
    device, stream, where = w.room(1, "i32"), w.room(1, "ptr"), w.field("%tensors", PLACE, "i64")
    w.require(w.is_zero(w.emit(f"call i32 @current_device(ptr {device})")))
    wanted = w.emit(f"trunc i64 {w.emit(f'lshr i64 {where}, 32')} to i32")
    w.require(w.emit(f"icmp eq i32 {w.get(device, 'i32')}, {wanted}"))
    ask = f"{w.word('%d', STREAM, 'ptr')}(ptr %d, i64 {where}, ptr {stream})"
    w.require(w.is_zero(w.emit(f"call i32 {ask}")))
    return w.get(stream, "ptr")


def _results(
    w: Text,
    counts: tuple[str, str],
    shape: tuple[str, str],
    given: str,
    new: str,
    maker: str,
) -> None:
    """Emit code that stores the result arrays, new or passed as `out=`, in %objects."""
    (n, m), (leading, lead), fill = counts, shape, w.label()
    ready, made = w.label(), w.variable("i64", 0)
    with w.when(new, fill):
        w.require(w.emit(f"icmp ule i64 {lead}, {AXES}"))
        with w.each(m) as k:  # scalar results are left to Python code
            variable = w.offset(w.emit(f"add i64 {n}, {k}"), VARIABLE, FIRST)
            axes = w.emit(f"or i64 {lead}, {w.word('%d', variable)}")
            w.require(w.emit(f"icmp ne i64 {axes}, 0"))
        like = w.word("%args", 0, "ptr")
        with w.each(m) as k:
            w.set(made, f"i64 {k}")
            place = w.emit(f"add i64 {n}, {k}")
            call = f"i64 {place}, ptr {maker}, ptr {like}, ptr {leading}, i64 {lead}"
            item = w.emit(f"call ptr @made(ptr %d, {call})")
            w.require(w.emit(f"icmp ne ptr {item}, null"), "lost")
            w.put("%objects", k, f"ptr {item}")
        w.raw(f"  br label %{ready}\nlost:")
        w.drop("%objects", w.get(made))
        w.raw(f"  ret ptr null\n{fill}:")
    w.put("%objects", 0, f"ptr {given}")
    with w.when(w.emit(f"icmp ne i64 {m}, 1")):
        w.require(w.emit(f"icmp eq ptr {w.field(given, HEAD - 8, 'ptr')}, @tuple_type"))
        w.require(w.emit(f"icmp eq i64 {w.field(given, HEAD, 'i64')}, {m}"))
        with w.each(m) as k:
            w.put("%objects", k, f"ptr {w.word(w.at(given, TUPLE), k, 'ptr')}")
    w.to(ready)


def _launched(w: Text, plan: str, n: str, m: str, states: str, stream: str) -> str:
    """Emit code that launches the kernel without holding the GIL; return the driver's status."""
    parameters, length = w.at("%words", 6, "i64"), w.at("%words", 5, "i64")
    head: list[int | str] = [cuda_driver.POINTER, parameters, cuda_driver.SIZE, length]
    for k, value in enumerate([*head, cuda_driver.END]):
        w.put("%words", k, f"ptr {value}" if isinstance(value, str) else f"i64 {value}")
    size = w.offset(w.emit(f"add i64 {n}, {m}"), 24, 16)
    for k, value in enumerate((size, states, "-1")):
        w.put("%words", 5 + k, f"i64 {value}")
    share, block, shared = (w.word(plan, k) for k in (6, 7, 8))
    up = w.emit(f"add i64 {states}, {w.emit(f'sub i64 {share}, 1')}")
    most, wanted = w.word(plan, 9), w.emit(f"udiv i64 {up}, {share}")
    blocks = w.emit(
        f"select i1 {w.emit(f'icmp ult i64 {wanted}, {most}')}, i64 {wanted}, i64 {most}"
    )
    blocks, block, shared = (
        w.emit(f"trunc i64 {value} to i32") for value in (blocks, block, shared)
    )
    kernel = w.word(plan, 5, "ptr")
    grid = f"i32 {blocks}, i32 1, i32 1, i32 {block}, i32 1, i32 1, i32 {shared}"
    thread = w.emit("call ptr @PyEval_SaveThread()")
    call = f"ptr {kernel}, {grid}, ptr {stream}, ptr null, ptr %words"
    status = w.emit(f"call i32 @launch({call})")
    w.raw(f"  call void @PyEval_RestoreThread(ptr {thread})")
    return status


OWN = (_ahead, _alike, _apart, _made, _entry)
"""Python functions that generate the LLVM functions of this module, in order of definition."""
