"""The statements of a kernel: the program in CUDA C, written in the order of its plan."""

from collections.abc import Callable
from dataclasses import dataclass, field

from chasles.backends import c_body
from chasles.backends.cuda_plan import WAITING, Plan

WINDOW = 50
"""Instructions for which a number read from shared memory is kept before it is read again."""

STRETCH = 200
"""Instructions between cuts. The compiler may start work early, and keep its results in registers,
only within a stretch: a branch that is never taken ends it."""

SPELLING = c_body.SPELLING | {
    "fma": "fma{f}({0}, {1}, {2})",
    "fms": "fma{f}({0}, {1}, -{2})",
    "fnma": "fma{f}(-{0}, {1}, {2})",
}
"""Operations as in C, products fused where the program says so and nowhere else."""


@dataclass
class Body:
    """Writes statements. `held` says where values that wait in memory are read, if anywhere."""

    plan: Plan
    number: c_body.Number
    store: Callable[[int, int, str], str]
    held: dict[int, str] = field(default_factory=dict)
    constants: list[float] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    _named: dict[int, str] = field(default_factory=dict)
    _near: dict[int, str] = field(default_factory=dict)
    _read: dict[int, tuple[str, int]] = field(default_factory=dict)
    _time: int = 0

    def name(self, k: int, text: str, *, fixed: bool = True) -> None:
        """Give a value a name of its own."""
        self._named[k] = f"t{k}"
        self.say(f"{'const ' if fixed else ''}real t{k} = {text};")

    def say(self, line: str) -> None:
        self.lines.append("  " + line)

    def use(self, k: int) -> str:
        """A value in an expression: a name, a constant, or read from memory if long unused."""
        instruction = self.plan.code[k]
        if instruction.op == "const":
            return self._constant(instruction.data)
        if k in self._named:
            return self._named[k]
        text, since = self._read.get(k, ("", -WINDOW - 1))
        if self._time - since > WINDOW:
            text, since = f"m{len(self.lines)}", self._time
            self.say(f"const real {text} = {self.held[k]};")
            self._read[k] = text, since
        return text

    def bring_near(self, places: list[str]) -> None:
        """Take whole turns off the angles in some places, if any of them is far away."""
        f = self.number.function
        largest = f"fabs{f}({places[0]})"
        for place in places[1:]:
            largest = f"fmax{f}({largest}, fabs{f}({place}))"
        self.say(f"if (FAR({largest})) {{")
        for place in places:
            self.say(f"  {place} = brought_near({place});")
        self.say("}")

    def turn_near(self) -> None:
        """Angles that are inputs, less whole turns, all of them checked together.

        Those that are needed for more than to turn keep their value; a copy is brought near.
        """
        inputs = [a for a in self.plan.angles if self.plan.code[a].op == "input"]
        for angle in inputs:
            if not self.plan.is_near(angle):
                self._near[angle] = f"near{angle}"
                self.say(f"real near{angle} = {self.use(angle)};")
        places = [f"t{k}" for k in self.plan.turning_inputs] + list(self._near.values())
        if places:
            self.bring_near(places)

    def forget(self) -> None:
        """Read again what was read from memory so far."""
        self._read.clear()

    def prepare(self, k: int) -> None:
        """All that a value needs, and itself."""
        needed, stack = set(), [k]
        while stack:
            a = stack.pop()
            needed.add(a)
            stack.extend(a for a in self.plan.code[a].args if a not in needed)
        for a in self.plan.order:
            if a in needed:
                self._compute(a)

    def _compute(self, k: int) -> None:
        """The statement of an instruction, if it needs one."""
        op, args, _ = self.plan.code[k]
        if op in ("sin", "cos"):
            if k not in self.held and k not in self._named:
                self._turn(args[0])
        elif op not in ("const", "input") and k not in self._named:
            number, operands = self.number, [self.use(a) for a in args]
            words = {"f": number.function, "one": number.spelled(1.0), "zero": number.spelled(0.0)}
            self.name(k, SPELLING[op].format(*operands, **words))

    def _turn(self, angle: int) -> None:
        """Sine and cosine together, into names."""
        self.turn(angle, f"s{angle}", f"c{angle}", declare=True)
        for k in self.plan.users[angle]:
            op = self.plan.code[k].op
            if op in ("sin", "cos"):
                self._named[k] = f"{op[0]}{angle}"

    def turn(self, angle: int, sine: str, cosine: str, *, declare: bool) -> None:
        """Sine and cosine of an angle, far or near."""
        text = self._near.get(angle) or self.use(angle)
        if angle not in self._near and not self.plan.is_near(angle):
            self.say(f"const real a{angle} = FAR({text}) ? brought_near({text}) : {text};")
            text = f"a{angle}"
        if declare:
            self.say(f"real {sine}, {cosine};")
        self.say(f"turn({text}, {sine}, {cosine});")

    def run(self, *, cuts: bool) -> None:
        """All of the program, cut into stretches or whole."""
        done = 0
        for k in self.plan.order:
            self._time += 1
            self._compute(k)
            for output, index in self.plan.places.get(k, ()):
                self.say(self.store(output, index, self.use(k)))
            done += self.plan.code[k].op not in WAITING
            if cuts and done >= STRETCH:
                self.say(f"if (never == {len(self.lines)}) return;")
                done = 0

    def _constant(self, value: float) -> str:
        """Constants of 64 bits cost two instructions each unless they wait in memory."""
        if self.number.bytes == 4 or value in (0.0, 1.0, -1.0, 2.0, 0.5):
            return self.number.spelled(value)
        if -value in self.constants:
            return f"(-C[{self.constants.index(-value)}])"
        if value not in self.constants:
            self.constants.append(value)
        return f"C[{self.constants.index(value)}]"
