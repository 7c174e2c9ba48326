"""LLVM IR of the entry function, which Python calls to run the kernel that matches a call.

`entry` has the signature of a METH_FASTCALL | METH_KEYWORDS function. All fast entries (built-in
functions around kernels) of a process share this code, or one of its forms without loops
(`llvm.calls.usual`). Fast entries differ in their `__self__`, an `llvm.kernel.Owner`, which begins
with a call descriptor and a list of further descriptors, registered after earlier calls. A call
descriptor is a tuple whose first item is a bytes object with the words listed in `objects.WAY`; its
other items keep alive the objects that these words point to. The words specify options and their
values, the address of a kernel, and the kernel's inputs and outputs.

The entry handles only calls that it can check completely. These calls have the keywords of a
descriptor, and arrays, lists, tuples and numbers with the kernel's shapes, for one state or one
batch. An argument may be shared by all states. The keywords `out=` (in C order) and `threads=1` are
also allowed. A string as the last positional argument is the option `frame`. Arrays that are not
C-contiguous or have a different dtype are copied first. For all other calls, the entry calls its
`__self__`, so that Python code handles them. The entry calls other code only through the pointers
in @context, which is filled when the code is loaded, so the code contains no process-specific
address.
"""

from chasles.backends.llvm.arguments import plain, prepared
from chasles.backends.llvm.calls import answered, helpers, single, usual
from chasles.backends.llvm.gather import context, copied, kind_of, number, sequence, word
from chasles.backends.llvm.routine import Routine
from chasles.backends.llvm.source import WORTH_THREADS
from chasles.backends.llvm.threads import PATIENCE
from chasles.backends.objects import (
    BYTES,
    DESCR,
    HEAD,
    LIST,
    LOAD,
    MOST_INPUTS,
    MOST_OPTIONS,
    MOST_WRENCHES,
    NOT_TAKEN,
    ORDER,
    SINGLE_NUMBER,
    TUPLE,
    TYPE,
    USUAL,
)


def module() -> str:
    """Generate the LLVM module of the built-in functions that read arguments and call kernels."""
    parts = ["@context = external global ptr\n", number(), sequence(), *copied()]
    parts += [
        _same_number(),
        _same(),
        _loads(),
        _fits(),
        plain(),
        prepared(),
        answered(),
        _general(),
        _entry(),
        *helpers(),
        *(usual(k + 1) for k in range(USUAL)),
        _called(),
    ]
    return "\n".join(parts)


# Option values ---------------------------------------------------------------------------------


def _same_number() -> str:
    """Generate a function that tests whether two objects are identical or bitwise equal floats."""
    w = Routine("internal i1 @same_number(ptr %a, ptr %b)")
    with w.when(w.same("%a", "%b")):
        w.answer("i1 true")
    floats = [w.same(kind_of(w, a), context(w, "float_type")) for a in ("%a", "%b")]
    with w.when(w.opposite(w.both(*floats))):
        w.answer("i1 false")
    w.answer(f"i1 {w.compare('eq', *(w.field(a, HEAD, 'i64') for a in ('%a', '%b')))}")
    return w.finished()


def _same() -> str:
    """Generate a function that tests two option values (strings, tuples of floats) for equality.

    Identical values are equal. The function never calls methods of user-defined types: types must
    match exactly, and tuples are not compared recursively.
    """
    w = Routine("internal i1 @same(ptr %a, ptr %b)")
    with w.when(w.called("i1", "@same_number", "ptr %a", "ptr %b")):
        w.answer("i1 true")
    kind = kind_of(w, "%a")
    with w.when(w.opposite(w.same(kind, kind_of(w, "%b")))):
        w.answer("i1 false")
    with w.when(w.same(kind, context(w, "text_type"))):
        order = w.called("i32", context(w, "compare"), "ptr %a", "ptr %b")
        w.answer(f"i1 {w.compare('eq', order, 0, 'i32')}")
    sizes = [w.field(a, HEAD, "i64") for a in ("%a", "%b")]
    tuples = w.both(w.same(kind, context(w, "tuple_type")), w.compare("eq", *sizes))
    with w.when(w.opposite(tuples)):
        w.answer("i1 false")
    items = [w.at(a, TUPLE) for a in ("%a", "%b")]
    with w.each(sizes[0]) as (k, _):
        pair = (f"ptr {w.entry_of(a, k, 'ptr')}" for a in items)
        with w.when(w.opposite(w.called("i1", "@same_number", *pair))):
            w.answer("i1 false")
    w.answer("i1 true")
    return w.finished()


def _loads() -> str:
    """Generate a function that tests whether `f_ext` matches the call descriptor %way.

    `f_ext` must have the keys listed in the descriptor, in the same order. Each value is an array,
    or an object of the type in the descriptor, which contains the array. The arrays are stored in
    %found.
    """
    w = Routine("internal i1 @loads(ptr %way, ptr %given, ptr %found)")
    count = word(w, "wrenches")
    right = w.same(kind_of(w, "%given"), context(w, "dict_type"))
    with w.when(w.opposite(right)):
        w.answer("i1 false")
    size = w.called("i64", context(w, "dict_size"), "ptr %given")
    with w.when(w.compare("ne", size, count)):
        w.answer("i1 false")
    place, key, value = w.variable("i64", "0"), w.variable("ptr", "null"), w.variable("ptr", "null")
    records, following = word(w, "loads", "ptr"), context(w, "dict_next")
    with w.each(count) as (k, _):
        operands = ("ptr %given", f"ptr {place}", f"ptr {key}", f"ptr {value}")
        left = w.called("i32", following, *operands)
        with w.when(w.compare("eq", left, 0, "i32")):
            w.answer("i1 false")
        record = w.at(records, w.times(k, 8 * len(LOAD)))
        wanted = {
            name: w.field(record, 8 * n, "i64" if name.endswith("place") else "ptr")
            for n, name in enumerate(LOAD)
        }
        known = w.called("i1", "@same", f"ptr {w.get(key, 'ptr')}", f"ptr {wanted['key']}")
        with w.when(w.opposite(known)):
            w.answer("i1 false")
        given = w.get(value, "ptr")
        with w.when(w.opposite(w.is_null(wanted["type"]))):
            with w.when(w.opposite(w.same(kind_of(w, given), wanted["type"]))):
                w.answer("i1 false")
            for name in ("axes", "at"):
                part = w.get(w.at(given, wanted[f"{name}_place"]), "ptr")
                with w.when(w.is_null(part)):
                    w.answer("i1 false")
                with w.when(
                    w.opposite(w.called("i1", "@same", f"ptr {part}", f"ptr {wanted[name]}"))
                ):
                    w.answer("i1 false")
            w.set(value, f"ptr {w.get(w.at(given, wanted['value_place']), 'ptr')}")
        inner = w.get(value, "ptr")
        with w.when(w.is_null(inner)):
            w.answer("i1 false")
        w.put("%found", k, "ptr", inner)
    w.answer("i1 true")
    return w.finished()


def _fits() -> str:
    """Generate a function that tests whether a call matches the call descriptor %way.

    The function returns the kernel's inputs, or null if the call does not match.
    """
    w = Routine(
        "internal ptr @fits(ptr %way, ptr %args, i64 %nargs, ptr %names, ptr %values, i64 %options,"
        " ptr %given, ptr %found, ptr %items)"
    )
    bare = w.compare("slt", word(w, "wrenches"), 0)
    right = w.compare("eq", word(w, "options"), "%options")
    right = w.both(right, w.compare("eq", word(w, "arguments"), "%nargs"))
    right = w.both(right, w.compare("eq", bare, w.is_null("%given"), "i1"))
    with w.when(w.opposite(right)):
        w.answer("ptr null")
    named = word(w, "named", "ptr")
    with w.each("%options") as (k, _):
        both = w.times(k, 2)
        name, value = (w.entry_of(named, n, "ptr") for n in (both, w.plus(both, 1)))
        with w.when(w.opposite(w.same(name, w.entry_of("%names", k, "ptr")))):
            w.answer("ptr null")
        given = w.entry_of("%values", k, "ptr")
        with w.when(w.opposite(w.called("i1", "@same", f"ptr {given}", f"ptr {value}"))):
            w.answer("ptr null")
    with w.when(w.opposite(bare)):
        held = w.called("i1", "@loads", "ptr %way", "ptr %given", "ptr %found")
        with w.when(w.opposite(held)):
            w.answer("ptr null")
    sources, fixed, count = word(w, "sources", "ptr"), word(w, "fixed", "ptr"), word(w, "inputs")
    taken, ordered = w.variable("ptr", "%args"), w.label()
    w.leave(w.is_null(sources), ordered)  # if null, use the caller's order of arguments
    w.set(taken, "ptr %items")
    with w.each(count) as (k, _):
        source = w.entry_of(sources, k, "i64")
        kind, index = w.emit(f"and i64 {source}, 3"), w.emit(f"lshr i64 {source}, 2")
        place = w.pick(w.compare("eq", kind, 1), "%found", "%args", "ptr")
        place = w.pick(w.compare("eq", kind, 2), fixed, place, "ptr")
        w.put("%items", k, "ptr", w.entry_of(place, index, "ptr"))
    w.start(ordered)
    items, wanted = w.get(taken, "ptr"), word(w, "single")
    with w.when(w.compare("eq", wanted, 2)):
        w.answer(f"ptr {items}")
    end, singles = w.label(), w.variable("i64", "0")
    with w.each(count) as (k, _):
        item = w.entry_of(items, k, "ptr")
        w.set(singles, "i64 0")
        w.leave(w.opposite(w.same(kind_of(w, item), context(w, "array_type"))), end)
        descr = w.field(item, DESCR, "ptr")
        w.leave(w.compare("ne", w.field(descr, TYPE, "i32"), SINGLE_NUMBER, "i32"), end)
        w.leave(w.compare("ne", w.field(descr, ORDER, "i8"), ord("="), "i8"), end)
        w.set(singles, "i64 1")
    w.start(end)
    right = w.compare("eq", w.get(singles), wanted)
    w.answer(f"ptr {w.pick(right, items, 'null', 'ptr')}")
    return w.finished()


# Entry function --------------------------------------------------------------------------------


def _entry() -> str:
    """Generate `entry`, the C function that Python calls.

    `entry` handles calls for one state that match the first call descriptor, with or without
    `out=`. The function `general` handles all other calls.
    """
    w = Routine("ptr @entry(ptr %self, ptr %args, i64 %nargs, ptr %kwnames)")
    general, out, none = w.label(), w.variable("ptr", "null"), context(w, "none")
    with w.when(w.opposite(w.is_null("%kwnames"))):
        w.leave(w.compare("ne", w.field("%kwnames", HEAD, "i64"), 1), general)
        name = w.field("%kwnames", TUPLE, "ptr")
        w.leave(w.opposite(w.same(name, context(w, "out_name"))), general)
        value = w.entry_of("%args", "%nargs", "ptr")
        w.set(out, f"ptr {w.pick(w.same(value, none), 'null', value, 'ptr')}")
    first = w.field("%self", TUPLE, "ptr")
    w.leave(w.same(first, none), general)
    words = w.at(first, BYTES)
    w.leave(w.compare("ne", word(w, "bare", base=words), "%nargs"), general)
    for name, value in (("way", words), ("items", "%args"), ("out", w.get(out, "ptr"))):
        w.raw(f"  %{name} = getelementptr i8, ptr {value}, i64 0")
    single(w, general)
    w.start(general)
    operands = "ptr %self", "ptr %args", "i64 %nargs", "ptr %kwnames"
    w.answer(f"ptr {w.called('ptr', '@general', *operands)}")
    return w.finished()


def _general() -> str:
    """Generate a function that calls the kernel suited to the arguments, or else the fallback."""
    w = Routine("internal ptr @general(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) noinline")
    slow, found = w.label(), w.label()
    out, given = w.variable("ptr", "null"), w.variable("ptr", "null")
    times, options = w.variable("i64", "1"), w.variable("i64", "0")
    names, values = w.room(MOST_OPTIONS, "ptr"), w.room(MOST_OPTIONS, "ptr")
    items, wrenches = w.room(MOST_INPUTS, "ptr"), w.room(MOST_WRENCHES, "ptr")
    arrays = w.variable("i64", "%nargs")
    with w.when(w.compare("sgt", "%nargs", 0)):
        last = w.entry_of("%args", w.minus("%nargs", 1), "ptr")
        with w.when(w.same(kind_of(w, last), context(w, "text_type"))):
            w.put(names, "0", "ptr", context(w, "frame_name"))
            w.put(values, "0", "ptr", last)
            w.set(options, "i64 1")
            w.set(arrays, f"i64 {w.minus('%nargs', 1)}")
    with w.when(w.opposite(w.is_null("%kwnames"))):
        _keywords(w, slow, (out, given, times, options), (names, values))
    way, held, given_items = (w.variable("ptr", "null") for _ in range(3))
    ask = [f"i64 {w.get(options)}", f"ptr {w.get(given, 'ptr')}"]
    call = ["ptr %args", f"i64 {w.get(arrays)}", f"ptr {names}", f"ptr {values}", *ask]

    def attempt(words: str, holder: str) -> None:
        """Emit code that selects a call descriptor if it matches the call.

        holder: address of the descriptor's tuple, or null.
        """
        room = f"ptr {wrenches}", f"ptr {items}"
        fits = w.called("ptr", "@fits", f"ptr {words}", *call, *room)
        with w.when(w.opposite(w.is_null(fits)), go=found):
            w.set(way, f"ptr {words}")
            w.set(held, f"ptr {holder}")
            w.set(given_items, f"ptr {fits}")

    first = w.field("%self", TUPLE, "ptr")
    with w.when(w.opposite(w.same(first, context(w, "none")))):
        attempt(w.at(first, BYTES), "null")  # no holder, because %self keeps the descriptor alive
    more = w.field("%self", TUPLE + 8, "ptr")
    with w.each(w.field(more, HEAD, "i64")) as (k, _):
        candidate = w.entry_of(w.field(more, LIST, "ptr"), k, "ptr")
        attempt(w.at(w.field(candidate, TUPLE, "ptr"), BYTES), candidate)
    w.start(slow)
    operands = "ptr %self", "ptr %args", "i64 %nargs", "ptr %kwnames"
    w.answer(f"ptr {w.called('ptr', context(w, 'vectorcall'), *operands)}")
    w.start(found)
    words, taken = w.get(way, "ptr"), w.get(held, "ptr")
    learned = w.opposite(w.is_null(taken))
    with w.when(learned):
        w.do(context(w, "increment"), f"ptr {taken}")
    count = word(w, "wrenches", base=words)
    with w.each(count) as (k, _):
        w.do(context(w, "increment"), f"ptr {w.entry_of(wrenches, k, 'ptr')}")
    facts = [f"ptr {words}", f"ptr {w.get(given_items, 'ptr')}"]
    facts += [f"ptr {w.get(out, 'ptr')}", f"i64 {w.get(times)}"]
    answer = w.called("ptr", "@answered", *facts)
    with w.each(count) as (k, _):
        w.do(context(w, "decrement"), f"ptr {w.entry_of(wrenches, k, 'ptr')}")
    with w.when(learned):
        w.do(context(w, "decrement"), f"ptr {taken}")
    w.leave(w.same(answer, NOT_TAKEN), slow)
    w.answer(f"ptr {answer}")
    return w.finished()


def _keywords(
    w: Routine, slow: str, places: tuple[str, str, str, str], lists: tuple[str, str]
) -> None:
    """Emit code that stores the keyword arguments: `out`, `threads`, `f_ext` and options."""
    out, given, times, options = places
    none = context(w, "none")
    with w.each(w.field("%kwnames", HEAD, "i64")) as (k, further):
        name = w.entry_of(w.at("%kwnames", TUPLE), k, "ptr")
        value = w.entry_of("%args", w.plus("%nargs", k), "ptr")
        empty = w.same(value, none)
        with w.when(w.same(name, context(w, "out_name")), go=further):
            w.set(out, f"ptr {w.pick(empty, 'null', value, 'ptr')}")
        loaded = w.same(name, context(w, "f_ext_name"))
        with w.when(w.both(loaded, w.opposite(empty)), go=further):
            w.set(given, f"ptr {value}")
        with w.when(w.same(name, context(w, "threads_name")), go=further):
            one = w.same(value, context(w, "unit"))
            w.leave(w.opposite(w.either(empty, one)), slow)
            w.set(times, f"i64 {w.pick(one, str(PATIENCE // WORTH_THREADS), '1')}")
        count = w.get(options)
        w.leave(w.compare("eq", count, MOST_OPTIONS), slow)
        for place, item in zip(lists, (name, value), strict=True):
            w.put(place, count, "ptr", item)
        w.set(options, f"i64 {w.plus(count, 1)}")


def _called() -> str:
    """Generate the function `tp_call` of a class whose first field is a fast entry.

    If there is no entry, or if the first argument is not an array, list or tuple, the function
    calls Python's own `tp_call`.
    """
    w = Routine("ptr @called(ptr %self, ptr %args, ptr %named)")
    usual = w.label()
    entry = w.field("%self", HEAD, "ptr")
    w.leave(w.is_null(entry), usual)
    count, items = w.field("%args", HEAD, "i64"), w.at("%args", TUPLE)
    w.leave(w.compare("eq", count, 0), usual)
    kind, ours = kind_of(w, w.get(items, "ptr")), "false"
    for name in ("array_type", "list_type", "tuple_type"):
        ours = w.either(ours, w.same(kind, context(w, name)))
    w.leave(w.opposite(ours), usual)
    w.do(context(w, "increment"), f"ptr {entry}")
    answer, done = w.variable("ptr", "null"), w.label()
    with w.when(w.is_null("%named"), go=done):
        operands = [f"ptr {entry}", f"ptr {items}", f"i64 {count}", "ptr null"]
        w.set(answer, f"ptr {w.called('ptr', context(w, 'vectorcall'), *operands)}")
    operands = [f"ptr {entry}", "ptr %args", "ptr %named"]
    w.set(answer, f"ptr {w.called('ptr', context(w, 'call'), *operands)}")
    w.start(done)
    w.do(context(w, "decrement"), f"ptr {entry}")
    w.answer(f"ptr {w.get(answer, 'ptr')}")
    w.start(usual)
    given = "ptr %self", "ptr %args", "ptr %named"
    w.answer(f"ptr {w.called('ptr', context(w, 'usual_call'), *given)}")
    return w.finished()
