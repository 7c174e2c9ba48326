"""Stanford arm of Legnani II, section 4: the printed matrices, symbolically and numerically.

The paper prints C1 S1 as the first nonzero entry of L23(0). The correct entry is C1 S2, as the
derivative of M03 shows.
"""

import ast
import math
import re

import numpy as np
import pytest
from homogeneous_random import rates
from support import close

import chasles
from chasles import homogeneous as hm
from chasles.expr import RULES, Arena, Program, Variable
from chasles.mathematics.homogeneous import Position
from chasles.mathematics.linear import Vector

ARM = chasles.robots.stanford_arm()
KINDS = ("revolute", "revolute", "prismatic", "revolute", "revolute", "revolute")
ALPHA = (-math.pi / 2, math.pi / 2, 0.0, -math.pi / 2, math.pi / 2, 0.0)
D2, D4 = 0.15367, 0.2

PRINTED = {
    "M01": "C1 0 -S1 0 | S1 0 C1 0 | 0 -1 0 0 | 0 0 0 1",
    "M12": "C2 0 S2 0 | S2 0 -C2 0 | 0 1 0 d2 | 0 0 0 1",
    "M23": "1 0 0 0 | 0 1 0 0 | 0 0 1 d3 | 0 0 0 1",
    "M34": "C4 0 -S4 0 | S4 0 C4 0 | 0 -1 0 d4 | 0 0 0 1",
    "M45": "C5 0 S5 0 | S5 0 -C5 0 | 0 1 0 0 | 0 0 0 1",
    "M56": "C6 -S6 0 0 | S6 C6 0 0 | 0 0 1 0 | 0 0 0 1",
    "L12(0)": "0 0 C1 0 | 0 0 S1 0 | -C1 -S1 0 0 | 0 0 0 0",
    "L23(0)": "0 0 0 C1*S2 | 0 0 0 S1*S2 | 0 0 0 C2 | 0 0 0 0",
}
"""Matrices as printed in the paper, except that L23(0) is corrected."""

H12 = (
    "-C1*C1*v2*v2 -C1*S1*v2*v2 C1*a2 0 | -C1*S1*v2*v2 -S1*S1*v2*v2 S1*a2 0 | "
    "-C1*a2 -S1*a2 -C1*C1*v2*v2-S1*S1*v2*v2 0 | 0 0 0 0"
)
"""H12(0) = L12(0) a2 + L12(0)^2 v2^2. The paper simplifies -C1*C1 - S1*S1 to -1."""


def cells(text):
    return text.replace("|", " ").split()


# Programs as text ------------------------------------------------------------------------------


def expressions(program):
    """Return the outputs of a program as text, without temporaries: `t1 * t3` becomes C1*S2."""
    lines = str(program).splitlines()[1:]
    known = {}
    for line in lines[:-1]:
        name, text = line.strip().split(" = ")
        known[name] = f"({re.sub(r't[0-9]+', lambda m: known[m.group()], text)})"
    returned = lines[-1].split(" = ")[1].split(", ")
    texts = [known.get(entry, entry) for entry in returned]
    return ["".join(_sum(ast.parse(_letters(t), mode="eval").body)) for t in texts]


def _letters(text):
    text = re.sub(r"(sin|cos)\(x\[(\d)\]\)", lambda m: f"{m[1][0].upper()}{int(m[2]) + 1}", text)
    names = {6: "d2", 7: "d4", 8: "v2", 9: "a2", 2: "d3"}
    return re.sub(r"x\[(\d)\]", lambda m: names[int(m[1])], text)


def _sum(node, sign="+"):
    """Return the sorted terms of an expression with their signs. The first has no plus sign."""
    terms = sorted(_terms(node, sign), key=lambda t: t[1:])
    first = terms[0].removeprefix("+")
    return [first, *terms[1:]]


def _terms(node, sign):
    flip = {"+": "-", "-": "+"}[sign]
    match node:
        case ast.BinOp(left=a, op=ast.Add(), right=b):
            return _terms(a, sign) + _terms(b, sign)
        case ast.BinOp(left=a, op=ast.Sub(), right=b):
            return _terms(a, sign) + _terms(b, flip)
        case ast.UnaryOp(op=ast.USub(), operand=a):
            return _terms(a, flip)
        case ast.BinOp(op=ast.Mult()):
            negative, factors = _factors(node)
            return [(flip if negative else sign) + "*".join(sorted(factors))]
        case ast.Constant(value=value):
            return [f"{sign if value else '+'}{value:g}"]
        case ast.Name(id=name):
            return [sign + name]
    raise AssertionError(ast.dump(node))


def _factors(node):
    match node:
        case ast.BinOp(left=a, op=ast.Mult(), right=b):
            (m, p), (n, q) = _factors(a), _factors(b)
            return m != n, p + q
        case ast.UnaryOp(op=ast.USub(), operand=a):
            negative, factors = _factors(a)
            return not negative, factors
        case ast.Name(id=name):
            return False, [name]
    raise AssertionError(ast.dump(node))


def symbols():
    """Return symbols for q1 to q6, d2, d4, v2 (velocity of a joint) and a2 (acceleration)."""
    arena = Arena(RULES)
    return [arena.input("x", k) for k in range(10)]


def program(X):
    entries = [e for row in X.matrix().rows for e in row]
    return Program.from_outputs("f", [Variable("x", (10,))], [(Variable("X", (4, 4)), entries)])


def written(X):
    return expressions(program(X))


# Symbols ---------------------------------------------------------------------------------------


def relative(x):
    """Return M01 to M56 from `chasles.homogeneous`, with symbols for d2 and d4 as well."""
    d = (0.0, x[6], 0.0, x[7], 0.0, 0.0)
    return [
        hm.position_from_extended_dh(0.0, d[i], 0.0, 0.0, ALPHA[i], kind=KINDS[i], q=x[i])
        for i in range(6)
    ]


@pytest.mark.parametrize("i", range(6))
def test_printed_positions(i):
    assert written(relative(symbols())[i]) == cells(PRINTED[f"M{i}{i + 1}"])


@pytest.mark.parametrize("i", range(6))
def test_positions_of_the_model(i):
    """The built-in arm gives the printed matrices, as joint transforms between its D-H frames.

    The arm's d2 is a constant. Its d4 is zero, because q3 is measured along the whole length.
    """
    x = symbols()
    far = [Position.of(ARM.model.frame(f"dh{k}").placement) for k in range(1, 7)]
    near = Position.identity() if i == 0 else far[i - 1]
    joint = ARM.model.bodies[i].joint
    M = near.inverse() @ Position.of(joint.transform(Vector.of(x[i]))) @ far[i]
    expected = PRINTED[f"M{i}{i + 1}"].replace("d2", f"{D2:g}").replace("d4", "0")
    assert written(M) == cells(expected)


def test_the_traced_program_of_the_arm():
    """`chasles.compile` traces exactly this program for the first frame."""
    traced = chasles.compile(ARM, "forward_kinematics", frame="dh1").program
    assert str(traced) == (
        "program forward_kinematics(q[6])\n"
        "  t1 = cos(q[0])\n"
        "  t3 = sin(q[0])\n"
        "  t4 = -t3\n"
        "  return result[4, 4] = t1, 0.0, t4, 0.0, t3, 0.0, t1, 0.0, 0.0, -1.0, 0.0, 0.0, "
        "0.0, 0.0, 0.0, 1.0\n"
    )


def test_printed_screws_and_acceleration():
    x = symbols()
    M = relative(x)
    L12 = hm.change_reference(hm.joint_screw("revolute"), M[0])
    assert written(L12) == cells(PRINTED["L12(0)"])
    H = hm.change_reference(hm.joint_acceleration("revolute", x[8], x[9]), M[0])
    assert written(H) == cells(H12)
    L23 = hm.change_reference(hm.joint_screw("prismatic"), M[0] @ M[1])
    assert written(L23) == cells(PRINTED["L23(0)"])
    H23 = hm.change_reference(hm.joint_acceleration("prismatic", x[8], x[9]), M[0] @ M[1])
    assert written(H23)[3:12:4] == ["C1*S2*a2", "S1*S2*a2", "C2*a2"]


# Numbers ---------------------------------------------------------------------------------------


def dense(text, q, qd=0.0, qdd=0.0):
    """Evaluate a printed matrix in floating point."""
    values = {"d2": D2, "d3": q[2], "d4": D4, "v2": qd, "a2": qdd}
    values |= {f"C{k + 1}": math.cos(q[k]) for k in range(6)}
    values |= {f"S{k + 1}": math.sin(q[k]) for k in range(6)}
    return np.array([eval(cell, {}, values) for cell in cells(text)], dtype=float).reshape(4, 4)


@pytest.fixture(params=range(3))
def q(request):
    return ARM.random(seed=request.param)


def test_positions_of_all_links(q):
    """M0i of the compiled arm, whose q3 includes d4, is the product of the printed matrices."""
    boom = q - np.array([0, 0, D4, 0, 0, 0])
    M = np.eye(4)
    for i in range(6):
        M = M @ dense(PRINTED[f"M{i}{i + 1}"], boom)
        far = M if i != 2 else M @ hm.position_from_dh(0, D4, 0, 0).matrix().rows
        close(ARM.forward_kinematics(q, frame=f"dh{i + 1}"), far, 1e-14)


def test_screws_and_acceleration(q):
    """Printed screws and accelerations agree with derivatives of the compiled arm's positions."""

    def pose(frame, joint):
        unit = np.eye(6)[joint]
        return lambda t: ARM.forward_kinematics(q + unit * t, frame=frame)

    for name, frame, joint in (("L12(0)", "dh2", 1), ("L23(0)", "dh3", 2)):
        M = pose(frame, joint)
        L = rates(M)[0] @ np.linalg.inv(M(0.0))
        close(dense(PRINTED[name], q), L, 1e-9)
    qd, qdd = 0.7, -1.3
    M = pose("dh2", 1)
    H = rates(lambda t: M(qd * t + qdd * t * t / 2))[1] @ np.linalg.inv(M(0.0))
    close(dense(H12, q, qd, qdd), H, 1e-8)


def test_the_misprint(q):
    """The boom slides along its own axis, which contradicts the printed entry C1 S1."""
    boom = ARM.forward_kinematics(q, frame="dh2")[:3, 2]
    c1, s1 = math.cos(q[0]), math.sin(q[0])
    close(dense(PRINTED["L23(0)"], q)[:3, 3], boom, 1e-14)
    assert abs(c1 * s1 - boom[0]) > 1e-3
