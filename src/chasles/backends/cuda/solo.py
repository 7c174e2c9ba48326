"""Programs in which each warp processes 32 states by itself, with eight warps per multiprocessor.

The speed of a long straight-line program is limited by instruction fetches, which are shared by
warps at the same place in the program. Here, a multiprocessor has 256 states in flight. If two
warps shared the work for 32 states, as in `cuda.crew`, only 128 states would be in flight. The
eight warps form one block and are synchronized, so that they stay at the same place.

The program must be ordered so that few values are live: limbs are processed one after another.
Values that do not fit in registers are parked in the tile (the shared memory of a warp) or, if the
tile is full, in local memory.
"""

from collections.abc import Sequence

from chasles.backends.cuda.body import Plan
from chasles.backends.cuda.crew import Crew, limbwise
from chasles.backends.cuda.tiles import Place, Region


class Solo(Crew):
    """Kernel in which each warp processes its own tiles of 32 states.

    In the form "rows", blocks stay on a multiprocessor, and each warp processes tile after tile. A
    warp requests the rows of its next tile as soon as their memory region is free. An input is
    called late if its region also holds results. The rows of a late input can be requested only
    when the results of the previous tile have been written.
    """

    ahead, unrolled = 32, " 4"

    def _planned(self) -> Plan:
        return limbwise(self.program)

    def _until(self) -> dict[str, int]:
        run = [k for k in self.plan.order if k in self.division.team and k not in self.body.held]
        time, number = {k: t for t, k in enumerate(run)}, dict(self.inputs)
        found = {}
        for output, region in self.results.items():
            for index, result in enumerate(self.program.results[output]):
                array = self.regions.index(region) if region in self.regions else -1
                k = number.get((array, index))
                if k is not None and result in time:
                    found[self.body.held[k]] = time[result]
        return found

    @property
    def _arrays(self) -> tuple[list[Region], list[Region]]:
        """Input arrays in two lists: early inputs and late inputs.

        The memory region of a late input also holds results. The rows of a late input are requested
        only when the results of the previous tile have been written (see `Solo`).
        """
        arrays = [(k, v.size, self.regions[k]) for k, v in enumerate(self.program.inputs)]
        late = [array for array in arrays if array[2] in self.results.values()]
        return [array for array in arrays if array not in late], late

    def _waits(self) -> bool:
        """Return True if an angle depends on a late input, which is loaded last (see `Solo`)."""
        stack, (_, late) = list(self.plan.angles), self._arrays
        while stack:
            op, args, data = self.plan.code[stack.pop()]
            stack += args
            if op == "input" and data[0] in [k for k, _, _ in late]:
                return True
        return False

    def _place(self) -> list[str]:
        lines = super()._place()
        if self.form != "rows":
            return lines
        own = ("  if (first >= count)", "  const int rows")
        lines = [line for line in lines if not line.startswith(own)]
        return [line.replace("const long long first", "long long first") for line in lines]

    def _request(self, arrays: Sequence[Region], first: str, arrived: str) -> list[str]:
        """Generate CUDA statements that make one thread request the rows of a tile.

        `first` is the index of the tile's first state, as a C expression.
        """
        if not arrays:
            return []
        rows = f"count - ({first}) < LANES ? 0 : LANES"
        condition = f"  if (lane == 0 && {first} < count) {{"
        return [condition, *self._ask(arrays, first, rows, arrived), "  }"]

    def _receive(self, arrays: Sequence[Region], arrived: str = "arrived") -> list[str]:
        return super()._receive(arrays, arrived) if arrays else []

    def _bring(self) -> list[str]:
        if self.form != "rows":
            return super()._bring()
        early, late = self._arrays
        return [
            "  const long long stride = (long long)gridDim.x * (blockDim.x / LANES) * LANES;",
            "  unsigned phase = 0;",
            "  open(arrived, lane);",
            "  open(arrived + 1, lane);",
            *self._request(early, "first", "arrived"),
            "#pragma unroll 1",
            "  for (; first < count; first += stride, phase ^= 1) {",
            "  together();",
            "  const int rows = count - first < LANES ? (int)(count - first) : LANES;",
            *self._receive(early, "arrived, phase"),
            "  if (lane == 0) given();",
            "  __syncwarp();",
            *self._request(late, "first", "arrived + 1"),
            *(self._receive(late, "arrived + 1, phase") if self._waits() else ()),
        ]

    def _turn(self, turns: dict[int, tuple[Place, Place]]) -> None:
        super()._turn(turns)
        if self.form == "rows":
            self.body.lines.pop()  # remove the barrier: one warp computes all sines of its tile
            early, late = self._arrays
            if not self._waits():
                self.body.lines += self._receive(late, "arrived + 1, phase")
            self.body.say("if (lane == 0 && first + stride + LANES <= count) {")
            for k, size, _ in (*early, *late):
                announced = f"announce(in{k} + (first + stride) * {size}, {self._bytes(size)});"
                self.body.say(f"  if ({self._whole(k, 'LANES')}) {announced}")
            self.body.say("}")

    def _turn_rows(self, rows: Sequence[tuple[tuple[Place, ...], float]]) -> None:
        """Emit code for sines and cosines: straight-line code, or a loop if an angle is large."""
        self._list_turns(rows)
        f, say = self.number.function, self.body.say
        say("{")
        for n, ((place, *_), _) in enumerate(rows):
            say(f"const real a{n} = tile{place};")
        say("real largest = 0, s, c;")
        for n in range(len(rows)):
            say(f"largest = fmax{f}(largest, fabs{f}(a{n}));")
        say("if (!FAR(largest)) {")
        for n, ((_, sine, cosine), offset) in enumerate(rows):
            angle = f"a{n} + {self.number.spelled(offset)}" if offset else f"a{n}"
            say(f"turn({angle}, s, c); tile{sine} = s; tile{cosine} = c;")
        self.body.lines += [
            "  } else {",
            "#pragma unroll 1",
            f"  for (int i = 0; i < {len(rows)}; i++) {{",
            "    const int* const at = TURNS[i];",
            "    real angle = tile[at[0] + at[1] * lane];",
            "    if (FAR(angle)) angle = brought_near(angle);",
            "    turn(angle + OFFSETS[i], s, c);",
            "    tile[at[2] + at[3] * lane] = s;",
            "    tile[at[4] + at[5] * lane] = c;",
            *["  }"] * 3,
        ]

    def _give(self) -> list[str]:
        if self.form != "rows":
            return super()._give()
        early, _ = self._arrays
        more = self._request(early, "first + stride", "arrived")
        return [*self._send(), *more, "  __syncwarp();", "  }", "  if (lane == 0) given();"]
