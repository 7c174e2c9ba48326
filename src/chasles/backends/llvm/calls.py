"""LLVM IR of kernel calls from Python: read the arguments, run the kernel, return the results.

If the code does not handle a call, it returns NOT_TAKEN before it writes anything, and Python code
handles the call.
"""

from chasles.backends.llvm.arguments import (
    Array,
    Variable,
    batch_shape,
    equal_sizes,
    quaternions,
)
from chasles.backends.llvm.gather import context, kind_of, word
from chasles.backends.llvm.routine import Routine
from chasles.backends.objects import (
    BYTES,
    DATA,
    HEAD,
    MOST_INPUTS,
    MOST_OUTPUTS,
    MOST_RANK,
    NOT_TAKEN,
    PLAIN,
    TUPLE,
    UNBOUNDED,
    USUAL_RANK,
    WRITEABLE,
)

SMALL_WORKSPACE = 64 * 1024
"""Size (bytes) of the largest workspace that is allocated on the stack instead of the heap."""

GATHERED = 4096
"""Maximum number of input entries for which the inputs of one state are copied to the stack."""


def _targets(
    w: Routine,
    shape: tuple[str, str, str],
    inputs: tuple[str, str],
    outputs: tuple[str, str],
    no: str,
) -> None:
    """Emit checks of `out=`, an array or a tuple of arrays.

    The arrays must not overlap each other or the inputs. In a batch call with a single result,
    `out` may be the same array as an input.
    """
    lead, dims, count = shape
    made = word(w, "shown")
    one = w.compare("eq", made, 1)
    with w.when(w.opposite(one)):
        w.leave(w.opposite(w.same(kind_of(w, "%out"), context(w, "tuple_type"))), no)
        w.leave(w.compare("ne", w.field("%out", HEAD, "i64"), made), no)
    bytes_, taken = word(w, "bytes"), word(w, "inputs")
    batch = w.compare("ne", lead, 0)
    with w.each(made) as (k, _):
        place = w.variable("ptr", "%out")
        with w.when(w.opposite(one)):
            w.set(place, f"ptr {w.entry_of(w.at('%out', TUPLE), k, 'ptr')}")
        item, variable = w.get(place, "ptr"), Variable(w, w.plus(taken, k))
        w.raw(f"  ; array {item}")
        w.leave(w.opposite(w.same(kind_of(w, item), context(w, "array_type"))), no)
        array = Array(w, item)
        w.leave(w.opposite(array.has(w, PLAIN | WRITEABLE)), no)
        array.check(w, word(w, "number", "i32"), no)
        w.leave(w.compare("ne", array.rank, w.plus(lead, variable.rank)), no)
        equal_sizes(w, array.shape, dims, lead, no)
        equal_sizes(w, w.at(array.shape, lead, "i64"), variable.shape, variable.rank, no)
        row = w.times(variable.size, bytes_)
        end = w.at(array.data, w.times(row, count))
        with w.each(taken) as (n, further):
            start, stride = w.entry_of(inputs[0], n, "ptr"), w.entry_of(inputs[1], n, "i64")
            width = w.times(Variable(w, n).size, bytes_)
            across = w.times(w.minus(count, 1), stride)
            back = w.pick(w.compare("slt", across, 0), across, "0")
            on = w.plus(w.pick(w.compare("slt", across, 0), "0", across), width)
            first, final = w.at(start, back), w.at(start, on)
            apart = w.either(
                w.compare("ule", final, array.data, "ptr"), w.compare("ule", end, first, "ptr")
            )
            w.leave(apart, further)
            same = w.both(w.same(start, array.data), w.compare("eq", width, row))
            same = w.both(same, w.compare("eq", stride, row))
            w.leave(w.opposite(w.both(w.both(same, one), batch)), no)
        with w.each(k) as (n, further):
            start = w.entry_of(outputs[0], n, "ptr")
            width = w.times(w.times(Variable(w, w.plus(taken, n)).size, bytes_), count)
            final = w.at(start, width)
            apart = w.either(
                w.compare("ule", final, array.data, "ptr"), w.compare("ule", end, start, "ptr")
            )
            w.leave(w.opposite(apart), no)
        w.put(outputs[0], k, "ptr", array.data)
        w.put(outputs[1], k, "i64", row)


def _made(
    w: Routine, shape: tuple[str, str, str], outputs: tuple[str, str], made: str, heap: str
) -> None:
    """Emit code that creates the output arrays; on failure, it frees `heap` and returns null."""
    lead, dims, _ = shape
    room, taken, batch = w.room(2 * MOST_RANK, "i64"), word(w, "inputs"), lead != "0"
    with w.each(lead) as (k, _):
        w.put(room, k, "i64", w.entry_of(dims, k, "i64"))
    with w.each(word(w, "outputs")) as (k, _):
        variable = Variable(w, w.plus(taken, k))
        sizes = room if batch else variable.shape
        with w.each(variable.rank if batch else 0) as (n, _):
            w.put(sizes, w.plus(lead, n), "i64", w.entry_of(variable.shape, n, "i64"))
        array = _new(w, w.plus(lead, variable.rank), sizes)
        w.put(made, k, "ptr", array)
        with w.when(w.is_null(array)):
            with w.each(k) as (n, _):
                w.do(context(w, "decrement"), f"ptr {w.entry_of(made, n, 'ptr')}")
            w.do("@released", f"ptr {heap}")
            w.answer("ptr null")
        w.raw(f"  ; array {array}")
        w.put(outputs[0], k, "ptr", w.field(array, DATA, "ptr"))
        w.put(outputs[1], k, "i64", w.times(variable.size, word(w, "bytes")))


def _new(w: Routine, rank: str, sizes: str) -> str:
    """Emit a call that makes an array with the kernel's dtype; the call returns null on failure."""
    short = w.emit(f"trunc i64 {rank} to i32")
    operands = [f"ptr {context(w, 'array_type')}", f"i32 {short}", f"ptr {sizes}"]
    operands += [f"i32 {word(w, 'number', 'i32')}", "ptr null", "ptr null", "i32 0", "i32 0"]
    return w.called("ptr", context(w, "new_array"), *operands, "ptr null")


def _delivered(w: Routine, lead: str, made: str) -> str:
    """Emit code that makes the result of a call: an array or scalar, or a tuple of several."""
    count, first = word(w, "shown"), word(w, "inputs")
    with w.each(count) as (k, further):
        w.leave(w.compare("ne", w.plus(Variable(w, w.plus(first, k)).rank, lead), 0), further)
        bare = w.called("ptr", context(w, "unwrap"), f"ptr {w.entry_of(made, k, 'ptr')}")
        w.put(made, k, "ptr", bare)
    with w.when(w.compare("eq", count, 1)):
        w.answer(f"ptr {w.entry_of(made, '0', 'ptr')}")
    answer = w.called("ptr", context(w, "new_tuple"), f"i64 {count}")
    with w.each(count) as (k, further):
        item = w.entry_of(made, k, "ptr")
        with w.when(w.is_null(answer), go=further):
            w.do(context(w, "decrement"), f"ptr {item}")
        w.called("i32", context(w, "set_item"), f"ptr {answer}", f"i64 {k}", f"ptr {item}")
    return answer


def _guard(w: Routine, count: str, made: str, no: str) -> None:
    """Emit code that checks the last output of a kernel with closed loops.

    This output is the pair (squared closure error, singularity margin) of each state. The results
    are returned, or copied to `out`, only if all errors and margins are within limits.
    """
    outputs, shown, inputs = (word(w, name) for name in ("outputs", "shown", "inputs"))
    health = w.field(w.entry_of(made, w.minus(outputs, 1), "ptr"), DATA, "ptr")
    limits = [word(w, name, "double") for name in ("gap", "margin")]
    bad, good = w.variable("i1", "false"), w.label()
    with w.each(count) as (k, _):
        gap, margin = (w.entry_of(health, w.plus(w.times(k, 2), n), "double") for n in (0, 1))
        weak = w.emit(f"fcmp ugt double {gap}, {limits[0]}")
        near = w.emit(f"fcmp ule double {margin}, {limits[1]}")
        w.set(bad, f"i1 {w.either(w.get(bad, 'i1'), w.either(weak, near))}")
    given = w.opposite(w.is_null("%out"))
    fresh = w.opposite(w.either(given, w.get(bad, "i1")))
    with w.when(fresh, go=good), w.each(w.minus(outputs, shown)) as (k, _):
        hidden = w.entry_of(made, w.plus(shown, k), "ptr")
        w.do(context(w, "decrement"), f"ptr {hidden}")
    with w.each(outputs) as (k, _):
        item = w.entry_of(made, k, "ptr")
        taken = w.both(w.compare("slt", k, shown), w.opposite(w.get(bad, "i1")))
        with w.when(taken):
            place = w.variable("ptr", "%out")
            with w.when(w.compare("ne", shown, 1)):
                w.set(place, f"ptr {w.entry_of(w.at('%out', TUPLE), k, 'ptr')}")
            ends = [w.field(x, DATA, "ptr") for x in (item, w.get(place, "ptr"))]
            size = w.times(Variable(w, w.plus(inputs, k)).size, count)
            operands = f"ptr {ends[0]}", "i64 1", "i64 0", f"i64 {size}", "i64 8", f"ptr {ends[1]}"
            w.do("@copy0_12", *operands)
        w.do(context(w, "decrement"), f"ptr {item}")
    w.leave(w.get(bad, "i1"), no)
    w.start(good)


def single(w: Routine, no: str) -> None:
    """Emit code for calls with one state and plain arrays; other calls branch to `no`.

    A plain array has the kernel's shape and dtype and is C-contiguous. This code for the most
    common calls avoids the overhead of handling batches and other arguments. The code reads %way
    (the call descriptor), %items (the arguments) and %out, and returns from the function.
    """
    several = w.label()
    in_places, out_places = w.room(MOST_INPUTS, "ptr"), w.room(MOST_OUTPUTS, "ptr")
    in_steps, out_steps = w.room(MOST_INPUTS, "i64"), w.room(MOST_OUTPUTS, "i64")
    inputs, outputs, shape = (in_places, in_steps), (out_places, out_steps), ("0", "null", "1")
    taken, known = word(w, "inputs"), ("ptr %way", f"i32 {word(w, 'number', 'i32')}")
    with w.each(taken) as (k, _):
        item = w.entry_of("%items", k, "ptr")
        w.raw(f"  ; array {item}")  # annotation for `llvm.checked`
        found = w.called("ptr", "@plain", *known, f"i64 {k}", f"ptr {item}", f"i32 {PLAIN}")
        w.leave(w.is_null(found), no)
        w.put(in_places, k, "ptr", found)
        w.put(in_steps, k, "i64", "0")
    quaternions(w, inputs, "false", "1", no)
    with w.when(w.opposite(w.is_null("%out"))):
        w.leave(w.compare("ne", word(w, "shown"), 1), several)
        w.raw("  ; array %out")
        asked = f"i64 {taken}", "ptr %out", f"i32 {PLAIN | WRITEABLE}"
        start = w.called("ptr", "@plain", *known, *asked)
        w.leave(w.is_null(start), no)
        with w.each(taken) as (k, _):
            _apart(w, w.entry_of(in_places, k, "ptr"), start, Variable(w, k), no)
        w.put(out_places, "0", "ptr", start)
        _run_given(w, in_places, out_places)
        w.start(several)
        _targets(w, shape, inputs, outputs, no)
        _run_given(w, in_places, out_places)
    made = w.room(MOST_OUTPUTS, "ptr")
    _made(w, shape, outputs, made, "null")
    w.do(word(w, "one", "ptr"), f"ptr {in_places}", f"ptr {out_places}")
    w.answer(f"ptr {_delivered(w, '0', made)}")


def _apart(w: Routine, start: str, goal: str, variable: Variable, no: str) -> None:
    """Emit a branch to `no` if an input overlaps the first output.

    The arrays overlap if one of them starts within the other. An empty array that starts within the
    other array also counts as overlapping.
    """
    numbers = (w.emit(f"ptrtoint ptr {place} to i64") for place in (start, goal))
    distance = w.plus(w.minus(*numbers), variable.near)
    w.leave(w.compare("ult", distance, variable.span), no)


def _run_given(w: Routine, in_places: str, out_places: str) -> None:
    """Emit code that runs the kernel for one state and returns `out`."""
    w.do(word(w, "one", "ptr"), f"ptr {in_places}", f"ptr {out_places}")
    w.do(context(w, "increment"), "ptr %out")
    w.answer("ptr %out")


def usual(count: int) -> str:
    """Generate the entry point for one state and kernels with one output.

    The kernels have `count` inputs. This entry does what `entry` does, but without loops, which
    take a tenth of the call time if the kernel is small. The function `general` handles all other
    calls.
    """
    w = Routine(f"ptr @entry{count}(ptr %self, ptr %args, i64 %nargs, ptr %kwnames)")
    general, out, none = w.label(), w.variable("ptr", "null"), context(w, "none")
    w.leave(w.compare("ne", "%nargs", count), general)
    with w.when(w.opposite(w.is_null("%kwnames"))):
        w.leave(w.compare("ne", w.field("%kwnames", HEAD, "i64"), 1), general)
        name = w.field("%kwnames", TUPLE, "ptr")
        w.leave(w.opposite(w.same(name, context(w, "out_name"))), general)
        value = w.field("%args", 8 * count, "ptr")
        w.set(out, f"ptr {w.pick(w.same(value, none), 'null', value, 'ptr')}")
    w.raw(f"  %way = getelementptr i8, ptr {w.field('%self', TUPLE, 'ptr')}, i64 {BYTES}")
    w.raw(f"  %out = getelementptr i8, ptr {w.get(out, 'ptr')}, i64 0")
    places, place = w.room(count, "ptr"), w.room(1, "ptr")
    for k in range(count):
        array = _plain_array(w, w.field("%args", 8 * k, "ptr"), "1", PLAIN, general)
        w.leave(w.compare("ne", w.get(array.shape), Variable(w, str(k)).size), general)
        w.put(places, str(k), "ptr", array.data)
    with w.when(w.compare("ne", word(w, "nonzero"), 0)):
        turned = w.called("i1", "@turned", "ptr %way", f"ptr {places}")
        w.leave(w.opposite(turned), general)
    target = Variable(w, str(count))
    with w.when(w.opposite(w.is_null("%out"))):
        array = _plain_array(w, "%out", target.rank, PLAIN | WRITEABLE, general)
        for k in range(USUAL_RANK):
            with w.when(w.compare("sgt", target.rank, k)):
                sizes = (w.entry_of(shape, str(k), "i64") for shape in (array.shape, target.shape))
                w.leave(w.compare("ne", *sizes), general)
        for k in range(count):
            start = w.entry_of(places, str(k), "ptr")
            _apart(w, start, array.data, Variable(w, str(k)), general)
        w.put(place, "0", "ptr", array.data)
        _run_given(w, places, place)
    w.answer(f"ptr {w.called('ptr', '@fresh', 'ptr %way', f'ptr {places}')}")
    w.start(general)
    operands = "ptr %self", "ptr %args", "i64 %nargs", "ptr %kwnames"
    w.answer(f"ptr {w.called('ptr', '@general', *operands)}")
    return w.finished()


def helpers() -> list[str]:
    """Generate the functions `turned` (checks quaternions) and `fresh` (returns a new array)."""
    w = Routine("internal i1 @turned(ptr %way, ptr %places) noinline")
    no = w.label()
    quaternions(w, ("%places", "%places"), "false", "1", no)
    w.answer("i1 true")
    w.start(no)
    w.answer("i1 false")
    turned = w.finished()
    w = Routine("internal ptr @fresh(ptr %way, ptr %places) noinline")
    variable, place = Variable(w, word(w, "inputs")), w.room(1, "ptr")
    array = _new(w, variable.rank, variable.shape)
    with w.when(w.is_null(array)):
        w.answer("ptr null")
    w.raw(f"  ; array {array}")
    w.set(place, f"ptr {w.field(array, DATA, 'ptr')}")
    w.do(word(w, "one", "ptr"), "ptr %places", f"ptr {place}")
    with w.when(w.compare("eq", variable.rank, 0)):
        w.answer(f"ptr {w.called('ptr', context(w, 'unwrap'), f'ptr {array}')}")
    w.answer(f"ptr {array}")
    return [turned, w.finished()]


def _plain_array(w: Routine, item: str, rank: str, flags: int, no: str) -> Array:
    """Emit checks of an array's type, number of axes, flags and dtype; branch to `no` if one fails.

    The dtype is usually NumPy's own object, whose address is compared first. Other dtype objects,
    for example those created by unpickling, are compared by type number and byte order.
    """
    w.raw(f"  ; array {item}")
    w.leave(w.opposite(w.same(kind_of(w, item), context(w, "array_type"))), no)
    array = Array(w, item)
    w.leave(w.opposite(array.has(w, flags)), no)
    w.leave(w.compare("ne", array.rank, rank), no)
    with w.when(w.opposite(w.same(array.dtype, word(w, "dtype", "ptr")))):
        array.check(w, word(w, "number", "i32"), no)
    return array


def answered() -> str:
    """Generate a function that runs a kernel on the arguments of a call and returns the results.

    The function returns null with an exception set on failure, or NOT_TAKEN if Python code must
    handle the call.

    %times: maximum number of states in a batch, as a multiple of `most`. Python code handles larger
    batches, with several threads, or in parts between which Python handles interrupts.
    """
    w = Routine("internal ptr @answered(ptr %way, ptr %items, ptr %out, i64 %times)")
    no, ready, other = w.label(), w.label(), w.label()
    guarded = w.compare("ne", word(w, "shown"), word(w, "outputs"))
    w.leave(guarded, other)
    single(w, other)
    w.start(other)
    heap, space = w.variable("ptr", "null"), w.variable("ptr", "null")
    shape = lead, dims, count = batch_shape(w, no)
    batch = w.compare("ne", lead, 0)
    most = w.times("%times", word(w, "most"))
    refused = w.compare("ugt", w.minus(count, 1), w.minus(most, 1))
    w.leave(w.both(batch, refused), no)
    kinds = ((MOST_INPUTS, "ptr"), (MOST_INPUTS, "i64"), (MOST_OUTPUTS, "ptr"))
    in_places, in_steps, out_places = (w.room(*kind) for kind in kinds)
    out_steps, made = w.room(MOST_OUTPUTS, "i64"), w.room(MOST_OUTPUTS, "ptr")
    inputs, outputs = (in_places, in_steps), (out_places, out_steps)
    # Memory for inputs that must be copied.
    numbers = word(w, "numbers")
    few = w.both(w.opposite(batch), w.compare("ule", numbers, GATHERED))
    room = w.variable("ptr", "null")
    with w.when(few):
        stack = w.emit(f"alloca i64, i64 {numbers}")
        w.set(room, f"ptr {stack}")
    known = "ptr %way", f"i32 {word(w, 'number', 'i32')}"
    with w.each(word(w, "inputs")) as (k, further):
        item = w.entry_of("%items", k, "ptr")
        w.raw(f"  ; array {item}")
        with w.when(w.opposite(batch)):
            found = w.called("ptr", "@plain", *known, f"i64 {k}", f"ptr {item}", f"i32 {PLAIN}")
            with w.when(w.opposite(w.is_null(found)), go=further):
                w.put(in_places, k, "ptr", found)
                w.put(in_steps, k, "i64", "0")
        operands = [f"i64 {k}", f"ptr {item}", f"i64 {lead}"]
        operands += [f"ptr {dims}", f"i64 {count}", f"ptr {room}"]
        operands += [f"ptr {w.at(in_places, k, 'ptr')}", f"ptr {w.at(in_steps, k, 'i64')}"]
        w.leave(w.called("i1", "@prepared", "ptr %way", *operands), further)
        w.leave(w.opposite(w.is_null(w.get(heap, "ptr"))), no)  # `heap` was already allocated
        w.leave(w.opposite(batch), no)
        size = w.times(w.times(numbers, count), 8)
        w.leave(w.compare("ugt", size, UNBOUNDED), no)
        got = w.called("ptr", context(w, "allocate"), f"i64 {size}")
        w.leave(w.is_null(got), no)
        w.raw(f"  ; room {got} {size}")
        w.set(heap, f"ptr {got}")
        w.set(room, f"ptr {got}")
        w.leave(w.opposite(w.called("i1", "@prepared", "ptr %way", *operands)), no)
    quaternions(w, inputs, batch, count, no)
    needed = w.plus(word(w, "workspace"), 64)
    large = w.both(batch, w.compare("ugt", needed, SMALL_WORKSPACE))
    with w.when(large):
        got = w.called("ptr", context(w, "allocate"), f"i64 {needed}")
        w.leave(w.is_null(got), no)
        w.raw(f"  ; room {got} {needed}")
        w.set(space, f"ptr {got}")
    with w.when(w.opposite(w.is_null("%out"))):
        _targets(w, shape, inputs, outputs, no)
        w.leave(w.opposite(guarded), ready)
    _made(w, shape, outputs, made, w.get(heap, "ptr"))
    w.start(ready)
    tables = [f"ptr {place}" for place in (in_places, in_steps, out_places, out_steps)]
    done = w.label()
    with w.when(w.opposite(batch), go=done):
        w.do(word(w, "one", "ptr"), tables[0], tables[2])
    stack = w.emit(f"alloca i8, i64 {w.pick(large, '0', needed)}, align 64")
    got = w.get(space, "ptr")
    odd = w.emit(f"and i64 {w.emit(f'ptrtoint ptr {got} to i64')}, 63")
    workspace = w.pick(large, w.at(got, w.minus("64", odd)), stack, "ptr")
    state = w.called("ptr", context(w, "release"))
    w.do(word(w, "batch", "ptr"), f"i64 {count}", *tables, f"ptr {workspace}")
    w.do(context(w, "acquire"), f"ptr {state}")
    w.start(done)
    with w.when(guarded):
        _guard(w, count, made, no)
    for place in (heap, space):
        w.do("@released", f"ptr {w.get(place, 'ptr')}")
    with w.when(w.opposite(w.is_null("%out"))):
        w.do(context(w, "increment"), "ptr %out")
        w.answer("ptr %out")
    w.answer(f"ptr {_delivered(w, lead, made)}")
    w.start(no)
    for place in (heap, space):
        w.do("@released", f"ptr {w.get(place, 'ptr')}")
    w.answer(f"ptr {NOT_TAKEN}")
    return _released() + w.finished()


def _released() -> str:
    """Generate a function that frees memory unless its address is null."""
    w = Routine("internal void @released(ptr %memory)")
    with w.when(w.opposite(w.is_null("%memory"))):
        w.do(context(w, "give_back"), "ptr %memory")
    w.answer("void")
    return w.finished()
