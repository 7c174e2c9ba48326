"""Sine and cosine in C without a branch, so that compilers put states or angles into vectors.

The same reduction and polynomials as the machine code of `llvm_math` has: multiples of pi/2 in
parts whose products with the number of turns are exact, contracted to fused products or not. The
quadrant stays a number, so that nothing but additions and multiplications is left. Angles beyond a
limit, and what is no angle, are the C library's.
"""

from chasles.backends.c_body import Number
from chasles.backends.llvm_math import ELEMENTS

HALF_PI = {
    "float64": ELEMENTS["float64"].half_pi_split,
    "float32": (1.5703125, 4.837512969970703e-4, 7.549533620476723e-8, 2.5633440682570896e-12),
}
"""pi/2 in parts; all but the last have so few bits that products with the turns are exact."""

LIMIT = {"float64": 1e6, "float32": 2e3}
"""Angles (rad) up to which errors stay below 2 ulp, whether products are contracted or not."""


def sine_and_cosine(number: Number, *, exact: bool) -> str:
    """The definition of `sine_and_cosine`, which says whether an angle is beyond the limit.

    exact: also that of `exact_sines_and_cosines`, which looks for such angles in an array.
    """
    element = ELEMENTS[number.dtype]
    first, second, *between, last = map(number.spelled, HALF_PI[number.dtype])
    words = {
        "T": number.name,
        "f": number.function,
        "shift": number.spelled(element.shift),
        "turns": number.spelled(0.6366197723675814),
        "quarter": number.spelled(0.25),
        "four": number.spelled(4.0),
        "first": first,
        "second": second,
        "about": f"(about - (turns * {between[0]}))" if between else "about",
        "last": last,
        "sine": horner(number, "bent", "z", element.sine),
        "cosine": horner(number, "c", "z", (1.0, -0.5, *element.cosine)),
        "one": number.spelled(1.0),
        "two": number.spelled(2.0),
        "limit": number.spelled(LIMIT[number.dtype]),
    }
    return "\n".join([_BOUNDED.format(**words), *[_EXACT.format(**words)] * exact])


def horner(number: Number, name: str, x: str, coefficients: tuple[float, ...]) -> str:
    """Statements that give a variable the value of a polynomial at x.

    coefficients: from the constant term up.
    """
    *others, last = map(number.spelled, coefficients)
    lines = [f"    {number.name} {name} = {last};"]
    lines += [f"    {name} = ({name} * {x}) + {c};" for c in reversed(others)]
    return "\n".join(lines)


_BOUNDED = """\
/* Sine and cosine of x (rad), within 2 ulp up to {limit}. Returns 1 if x is beyond, or no angle. */
static inline int sine_and_cosine({T} x, {T} *sine, {T} *cosine)
{{
    const {T} shift = {shift}; /* adding it rounds to an integer */
    const {T} turns = ((x * {turns}) + shift) - shift; /* right angles */
    const {T} quadrant = turns - ({four} * (((turns * {quarter}) + shift) - shift)); /* -2 to 2 */
    const {T} near = x - (turns * {first});
    const {T} second = turns * {second};
    const {T} about = near - second;
    const {T} lost = (near - about) - second;
    const {T} r = {about} - ((turns * {last}) - lost);
    const {T} z = r * r;
{sine}
{cosine}
    const {T} s = ((z * r) * bent) + r;
    const {T} even = {one} - fabs{f}(quadrant);
    const {T} odd = quadrant * ({two} - fabs{f}(quadrant));
    *sine = (even * s) + (odd * c);
    *cosine = (even * c) - (odd * s);
    return (fabs{f}(x) <= {limit}) ? 0 : 1;
}}
"""

_EXACT = """\
/* Angles beyond the limit, by the C library. */
static void exact_sines_and_cosines(size_t count, const {T} *x, {T} *sine, {T} *cosine)
{{
    for (size_t k = 0U; k < count; ++k) {{
        if (!(fabs{f}(x[k]) <= {limit})) {{
            sine[k] = sin{f}(x[k]);
            cosine[k] = cos{f}(x[k]);
        }}
    }}
}}
"""
