"""Trace algorithms with symbolic inputs to create programs for one robot."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from chasles.algorithms.spatial.kinematics import (
    At,
    Axes,
    body_transforms,
    difference,
    integrate,
    point_in_body,
)
from chasles.algorithms.spatial.passive import loads
from chasles.algorithms.spatial.tendons import stretched
from chasles.expr import RULES, UNIFORM, Arena, Number, Program, Staged, Variable
from chasles.mathematics.derivatives import by_step
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.products import Product
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Force, Transform
from chasles.model import WORLD, Model
from chasles.model.build import connected
from chasles.model.limbs import Alike
from chasles.model.loads import Load, by_body
from chasles.model.model import Handles, LoadSlopes
from chasles.model.parameters import shape, substituted
from chasles.model.spaces import (
    FactorSpace,
    LoadsSpace,
    Space,
    SymmetricSpace,
    TreeSpace,
    TwistsSpace,
    VelocitySpace,
    WrenchesSpace,
)

_DIFFERENCES = "differences"
"""Name of a temporary program input for the parameters that differ between similar limbs."""

MANY = 60
"""Number of bodies above which operations keep their traced order. Backends can then find repeated
code and compile it as loops."""


class WrenchKey(NamedTuple):
    """Frame of an external wrench, and the meaning of its six entries.

    For the normal force of a contact, `at` is "contact" and the entries are the contact point and
    the force, both in world coordinates. If several wrenches act on one frame, `slot` numbers them
    from 1.
    """

    frame: str
    axes: Axes = "world"
    at: At | Literal["contact"] = "frame"
    slot: int = 0

    @property
    def argument(self) -> str:
        """Name of the input array for this wrench."""
        return f"f_ext[{self.frame!r}]" + f"[{self.slot}]" * (self.slot > 0)


@dataclass(frozen=True)
class Signature:
    """Inputs, outputs and options of an algorithm."""

    inputs: dict[str, Space]
    outputs: tuple[Space, ...]
    options: tuple[str, ...]
    handles: bool = False  # True if `frame` accepts several names

    @property
    def any_order(self) -> bool:
        """Return True if the option `order` sets the number of inputs qd, qdd, ..."""
        return "order" in self.options


@cache
def signature(algorithm: Callable[..., Any], order: int = 1) -> Signature:
    """Read the inputs, outputs and options of an algorithm from its annotations.

    An algorithm with `*rates` has an option `order`, the number of inputs qd, qdd, and so on.
    """
    hints = get_type_hints(algorithm, include_extras=True)
    result = hints.pop("return")
    parts = get_args(result) if get_origin(result) is tuple else (result,)
    keywords = inspect.signature(algorithm).parameters
    inputs: dict[str, Space] = {}
    options = [name for name, p in keywords.items() if p.kind is p.KEYWORD_ONLY]
    for name, hint in hints.items():
        space = _space(hint)
        if space is None:
            continue
        if keywords[name].kind is inspect.Parameter.VAR_POSITIONAL:
            options.append("order")
            inputs |= {rate_name(k): space for k in range(1, order + 1)}
        else:
            inputs[name] = space
    for k in range(1, len(inputs)):
        space = inputs.get(rate_name(k))
        if isinstance(space, VelocitySpace):
            inputs[rate_name(k)] = replace(space, order=k)
    outputs = tuple(space for part in parts if (space := _space(part)) is not None)
    if any(isinstance(space, SymmetricSpace | FactorSpace) for space in outputs):
        options.append("packed")
    assert len(outputs) == len(parts), f"{algorithm.__name__}: every result needs a space"
    ordered = tuple(replace(s, order=order) if isinstance(s, TwistsSpace) else s for s in outputs)
    return Signature(inputs, ordered, tuple(options), hints.get("frame") == Handles)


def rate_name(k: int) -> str:
    """Return the name of the k-th time derivative of q: "q" followed by k letters "d"."""
    return "q" + "d" * k


TIMELESS = (integrate, difference)
"""Algorithms that do not depend on time, even if the model does."""


def _space(hint: Any) -> Space | None:
    if get_origin(hint) is Annotated:
        for data in get_args(hint)[1:]:
            if isinstance(data, Space):
                return data
    return None


def trace(
    model: Model,
    algorithm: Callable[..., Any],
    *,
    record: Callable[[], Arena] | None = None,
    **given: Any,
) -> Program | Staged:
    """Return the straight-line program of an algorithm for one model.

    Inputs have the names of the algorithm's arguments. Each external wrench is a separate input,
    `f_ext['<frame>']`. The last inputs are `t`, if the mechanism depends on time, and one input for
    each named parameter.

    `prepare` changes the model before tracing. `record` creates the arena, which records the
    operations. `order` is the number of time derivatives of q for an algorithm that takes `*rates`.
    With `packed`, zero entries and duplicate entries of matrices are omitted. If all results are
    matrix products that need more multiplications than `staged`, they are kept as products
    (`Staged`). With `similar`, limbs of the same structure are traced to the same instructions
    (`Program.alike`), at the cost of a few additional instructions. Other options are passed to the
    algorithm. A frame may be specified by name.
    """
    with record() if record else _arena(model) as arena:
        found = _traced(arena, model, algorithm, **given)
    return found or trace(model, algorithm, record=record, **given | {"staged": None})


def _traced(
    arena: Arena,
    model: Model,
    algorithm: Callable[..., Any],
    *,
    wrenches: Iterable[WrenchKey] = (),
    parameters: Sequence[str] = (),
    prepare: Callable[[Model], Model] = lambda model: model,
    order: int = 1,
    staged: int | None = None,
    similar: bool = False,
    packed: bool = False,
    **options: Any,
) -> Program | Staged | None:
    """Trace an algorithm, and store its operations in an arena (see `trace`).

    Return None if the algorithm must be traced again without `staged`: the parameters of similar
    limbs (chains of bodies with the same structure) were replaced with symbols, but `similar` is
    not set and the result is not `Staged`.
    """
    sign = signature(algorithm, order)
    variables: list[Variable] = []
    coupled = parameters or model.timed or model.rotors or model.loaded
    fixed = (similar or staged is not None) and not (coupled or arena.ordered)
    alike = Alike.of(prepare(model)) if fixed else Alike(model, ())
    seats = alike.seats() if alike.kinds else {}

    def symbols(name: str, shape: tuple[int, ...]) -> list[Number]:
        variables.append(Variable(name, shape))
        known = seats.get(shape, {})
        return [arena.input(name, k, known.get(k)) for k in range(variables[-1].size)]

    flat: dict[str, list[Number]] = {}
    wrenches, entries = tuple(wrenches), []
    for name, space in sign.inputs.items():
        if isinstance(space, WrenchesSpace):
            entries = [symbols(key.argument, (6,)) for key in wrenches]
        else:
            flat[name] = symbols(name, space.shape(model))
    (t,) = symbols("t", ()) if model.timed and algorithm not in TIMELESS else (0.0,)
    symbolic = {name: symbols(name, shape(model.source, name)) for name in parameters}
    described = model
    if symbolic:
        described = connected(substituted(model.source, symbolic), mimic=model.mimics)
    given = alike.model if fixed else prepare(described.at(t))
    bearing = replace(described.at(t), lossless=given.lossless)
    values, here = split(sign, model.at(t), flat, bearing)
    given = replace(given, rotors=here.rotors, load_slopes=here.load_slopes)
    if model.loaded:
        given = given.bearing({i: body.joint.load for i, body in enumerate(here.bodies)})
    differences = alike.differences() if alike.kinds else []
    if differences:
        variables.append(Variable(_DIFFERENCES, (len(differences),)))
        given = alike.with_symbols(
            [arena.input(_DIFFERENCES, k, seat) for k, (seat, _) in enumerate(differences)]
        )
    if arena.ordered:
        given = replace(given, on_step=arena.cut)
    if wrenches:
        loads = external_loads(given, values["q"], wrenches, entries)
        single = isinstance(sign.inputs["f_ext"], LoadsSpace)
        values["f_ext"] = loads if single else by_body(given, loads)
    result = algorithm(given, *values.values(), **resolve(given, options))
    results = (result,) if len(sign.outputs) == 1 else result
    nonzero = tuple(
        (k, first)
        for k, space in enumerate(sign.inputs.values())
        for first in space.quaternions(model)
    )
    names = [f"result{k}" for k in range(len(results))] if len(results) > 1 else ["result"]
    outputs = [
        Variable(name, space.shape_of(model, value))
        for name, space, value in zip(names, sign.outputs, results, strict=True)
    ]
    if staged is not None and (chains := _chains(model, sign.outputs, results)):
        head, numbers = _factors(algorithm.__name__, variables, chains)
        if differences:
            head = head.given(_DIFFERENCES, [number for _, number in differences])
        whole = Staged(head.name, head.inputs, tuple(outputs), nonzero, head, numbers)
        if whole.products > staged:
            return whole
    if alike.kinds and not similar:
        return None
    joined = []
    for variable, space, value in zip(outputs, sign.outputs, results, strict=True):
        found = space.join(here, value)
        if packed and (kept := space.packed(model)):
            found = [found[row * variable.shape[1] + column] for row, column in kept]
            variable = Variable(variable.name, (len(kept),))
        joined.append((variable, found))
    traced = Program.from_outputs(algorithm.__name__, variables, joined)
    if differences:
        traced = traced.given(_DIFFERENCES, [number for _, number in differences])
    return replace(with_limbs(traced, model), nonzero=nonzero)


def split(
    sign: Signature, model: Model, flat: Mapping[str, Sequence[Number]], described: Model
) -> tuple[dict[str, Any], Model]:
    """Split flat arrays into the arguments of an algorithm.

    Also return the model with the tendon gear ratios and joint loads at q and qd. The ratios and
    loads are computed from `described`, the model before `prepare` changes it (see `trace`).
    """
    values: dict[str, Any] = {}
    model = replace(model, rotors=described.rotors)
    has_tendons = any(body.path for body in described.rotors)
    for name, entries in flat.items():
        values[name] = sign.inputs[name].split(model, entries)
        if has_tendons and name in ("q", "qd"):
            rotors = stretched(described, values["q"], values.get("qd")).rotors
            model = replace(model, rotors=rotors)
    if described.loaded and "q" in values:
        q, qd = values["q"], values.get("qd", model.at_rest())
        slopes = partial(load_slopes, described, flat["q"], flat.get("qd", [0.0] * model.nv))
        model = replace(model.bearing(loads(described, q, qd)), load_slopes=slopes)
    return values, model


def load_slopes(model: Model, q: Sequence[Number], qd: Sequence[Number]) -> LoadSlopes:
    """Return the derivatives of the joint loads with respect to q (tangent space) and qd."""

    def borne(step: Vector, push: Vector, q: Vector, qd: Vector) -> list[Number]:
        at = integrate(model.bare(), model.positions(q.entries), model.velocities(step.entries))
        found = model.efforts(loads(model, at, model.velocities((qd + push).entries, 1)))
        return [x for i in model.movers for x in found[i]]

    places, rest, n = model.velocity_slices, Vector.zero(model.nv), model.nv
    given = Vector(tuple(q)), Vector(tuple(qd))
    by_q = by_step(lambda step, *x: borne(step, rest, *x), n, *given)
    by_qd = by_step(lambda push, *x: borne(rest, push, *x), n, *given)
    dq, dqd = (
        {
            (i, j): block
            for i, rows in places.items()
            for j, columns in places.items()
            if _acts(block := _block(found, rows, columns))
        }
        for found in (by_q, by_qd)
    )
    return dq, dqd


def _acts(block: Matrix) -> bool:
    """Return True if some entry of a block is not the constant zero."""
    return any(type(x) is not float or x != 0.0 for row in block.rows for x in row)


def _block(columns: Sequence[Sequence[Number]], rows: slice, among: slice) -> Matrix:
    """Return a submatrix of a matrix that is given as a list of columns."""
    return Matrix(tuple(zip(*(tuple(column[rows]) for column in columns[among]), strict=True)))


def with_limbs(program: Program, model: Model) -> Program:
    """Return the program with the limb index of each input and output entry (-1: trunk)."""
    limb = {i: number for number, bodies in enumerate(model.limbs) for i in bodies}
    by_shape: dict[tuple[int, ...], tuple[int, ...]] = {
        (len(entries),): tuple(entries)
        for slices in (model.velocity_slices, model.position_slices)
        if (entries := [limb.get(i, -1) for i, s in slices.items() for _ in range(s.start, s.stop)])
    }
    variables = (*program.inputs, *program.outputs)
    return replace(program, limbs=tuple(by_shape.get(v.shape, ()) for v in variables))


def _chains(
    model: Model, spaces: Sequence[Space], results: Sequence[Any]
) -> list[tuple[Matrix, ...]]:
    """Return the factors of each result, or [] unless every result is a product of matrices."""
    found = [
        space.factors(model, value)
        for space, value in zip(spaces, results, strict=True)
        if isinstance(space, TreeSpace) and isinstance(value, Product)
    ]
    return found if len(found) == len(results) else []


def _factors(
    name: str, variables: Sequence[Variable], chains: Sequence[tuple[Matrix, ...]]
) -> tuple[Program, tuple[tuple[int, ...], ...]]:
    """Return a program that computes all factor matrices, and the factor indices of each result."""
    number = {A: k for k, A in enumerate(dict.fromkeys(A for chain in chains for A in chain))}
    outputs = [
        (Variable(f"factor{k}", A.shape), [x for row in A.rows for x in row])
        for A, k in number.items()
    ]
    program = Program.from_outputs(name, variables, outputs)
    return program, tuple(tuple(number[A] for A in chain) for chain in chains)


def _arena(model: Model) -> Arena:
    """Return an empty arena; for more than `MANY` bodies, operations keep their traced order."""
    many = len(model.bodies) > MANY
    return Arena(UNIFORM, ordered=True) if many else Arena(RULES)


def clock(model: Model) -> list[Variable]:
    """Return the time input if a model depends on time, else an empty list."""
    return [Variable("t", ())] if model.timed else []


def resolve(model: Model, options: dict[str, Any]) -> dict[str, Any]:
    """Return options with frame names replaced by frames, and joint names by indices."""
    found = dict(options)
    if isinstance(options.get("frame"), str):
        found["frame"] = model.frame(options["frame"])
    elif isinstance(options.get("frame"), tuple):
        found["frame"] = tuple(map(model.frame, options["frame"]))
    if "known" in options:
        found["known"] = frozenset(map(model.mover, options["known"]))
    return found


def _pressed(frame: str, body: int, X: Transform, point: Vector, force: Vector) -> Load:
    """Return a contact's normal force as a load. `point` and `force` are in world coordinates."""
    origin, f = X.E @ -X.r, X @ Force(point.cross(force), force)
    return Load(body, f, origin, False, False, frame, (point, force))


def external_loads(
    model: Model, q: dict[int, Vector], keys: tuple[WrenchKey, ...], flat: list[list[Number]]
) -> list[Load]:
    """Return the external forces in body coordinates, from user-defined wrenches."""
    X0 = body_transforms(model, q) if keys else {}
    loads = []
    for key, entries in zip(keys, flat, strict=True):
        frame = model.frame(key.frame)
        if frame.body == WORLD:
            continue
        X, wrench = X0[frame.body], Force.of(*entries)
        if key.at == "contact":
            loads.append(_pressed(key.frame, frame.body, X, wrench.moment, wrench.force))
            continue
        point = point_in_body(frame, X, key.at)
        moves, turns = key.at != "world", key.axes == "frame"
        if moves or turns:
            E = frame.placement.E.T if turns else X.E
            f = Transform(Rotation(), point).T @ Force(E @ wrench.moment, E @ wrench.force)
        else:
            f = X @ wrench
        loads.append(Load(frame.body, f, point, moves, turns, key.frame))
    return loads


def straight(made: Program | Staged) -> Program:
    """Return a program after asserting that it is not `Staged`."""
    assert isinstance(made, Program)
    return made
