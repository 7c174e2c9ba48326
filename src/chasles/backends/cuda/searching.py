"""Inverse-kinematics kernels: each thread repeats a solver step to solve one problem.

The step is a program that maps a configuration, a solver state and goals to the next configuration
and solver state, as in `llvm.search`. In the form "search", a thread works on one problem. When the
problem is solved or all attempts have failed, the thread takes the next problem, so that no thread
waits for its neighbors. In the form "tries", for hard problems, the threads of a warp work on the
same problem, each from a different start (initial configuration). The first solution in the order
of the starts is used. The result for a problem depends neither on its index nor on the form.
"""

from chasles.backends.cuda.forms import Form, Threads
from chasles.backends.cuda.tiles import WARP, column
from chasles.expr import Program

GROUPS = 8
"""Number of groups into which the initial configurations are divided. In each group, a search
starts from the configuration nearest to the goals."""

FARTHEST, ORTHOGONAL = 1e100, 1e-5
"""Limits for valid goals. Entries have a magnitude of at most `FARTHEST`, and rotation matrices are
orthogonal up to the tolerance `ORTHOGONAL`."""

BLOCK = 128
"""Number of threads per block in search kernels."""


class Searching(Threads):
    """Kernel that runs searches, with goals in shared memory and everything else in registers.

    The first input and output of the step are configurations; the second are solver states. The
    first entry of a solver state is the status of a search (0: running, 1: solved, 2: abandoned);
    the second is the distance from the goals. The search for each problem starts from several
    initial configurations. The first two inputs of the kernel are the initial configuration for the
    first attempt at each problem, and an initial solver state for each attempt. `next` counts the
    problems that threads have taken. `left` holds the number of hard problems, followed by their
    indices. A kernel of the form "search" adds the problems that it does not solve to this list,
    and a kernel of the form "tries" then works on them.
    """

    more = (
        "long long tries",
        "long long ranked",
        "long long rank_row",
        "long long others",
        "const unsigned char* __restrict__ ranks",
        "const real* __restrict__ starts",
        "int* __restrict__ steps",
        "unsigned long long* next",
        "unsigned long long* left",
    )
    strides = ("row",)

    def __init__(self, program: Program, dtype: str, form: Form) -> None:
        super().__init__(program, dtype, form)
        sizes = [variable.size for variable in program.inputs]
        assert sizes[:2] == [v.size for v in program.outputs]
        starts = [sum(sizes[2:k]) for k in range(len(sizes))]
        self.shared = WARP * sum(sizes[2:]) * self.number.bytes
        for (array, index), k in self.inputs:
            if array >= 2:
                self.body.held[k] = str(column(starts[array] + index))
        head = _TRIES if form == "tries" else _SEARCH
        words = {"STORE": self._each("out{k}[problem * row_out{k} + {i}] = next{k}_{i};")}
        words |= {"GOALS": self._goals(starts), "BEGIN": self._begun()}
        for word, text in words.items():
            head = head.replace(word, text)
        declared = self._each("  real next{k}_{i} = {k};")
        self.before = [*_PLACE.format(self.shared).splitlines(), declared, *head.splitlines()]
        if form == "tries":
            self.before.append(self._each("  real after{k}_{i};"))
        for (array, index), k in self.inputs:
            if array < 2:
                self.body.name(k, f"next{array}_{index}", fixed=k not in self.plan.turning_inputs)
        self.body.turn_near()
        moved = self._each("next{k}_{i} = after{k}_{i};")
        self.after = [f"  if (runs) {{ {moved} taken++; }}" if form == "tries" else "  taken++;"]
        self.after.append("  }")

    def _deliver(self, output: int, index: int, value: str) -> str:
        name = "after" if self.form == "tries" else "next"
        return f"{name}{output}_{index} = {value};"

    def _each(self, text: str) -> str:
        """Repeat a line of code for each entry of the configuration and of the solver state."""
        outputs = enumerate(self.program.outputs)
        return " ".join(text.format(k=k, i=i) for k, v in outputs for i in range(v.size))

    def _goals(self, starts: list[int]) -> str:
        """Generate code that copies a problem's goals to shared memory."""
        lines = [
            f"for (int i = 0; i < {v.size}; i++) "
            f"tile[({starts[k]} + i) * LANES + lane] = in{k}[problem * row_in{k} + i];"
            for k, v in enumerate(self.program.inputs)
            if k >= 2
        ]
        return "\n          ".join(lines)

    def _begun(self) -> str:
        """Generate code that begins one attempt of the search.

        The first attempt begins at the caller's configuration and the last one at the best
        configuration found so far. All others begin at stored configurations.
        """
        point, memory = (v.size for v in self.program.outputs)
        return f"""const real* from = in0 + problem * row_in0;
        const long long number = attempt - 1;
        if (attempt > 0 && attempt == tries) from = out0 + problem * row_out0;
        else if (attempt > ranked) from = starts + {point} * (others + number - ranked);
        else if (attempt > 0) from = starts + {point} * ranks[problem * rank_row + number];
        {" ".join(f"next0_{i} = from[{i}];" for i in range(point))}
        const real* own = in1 + attempt * row_in1;
        {" ".join(f"next1_{i} = own[{i}];" for i in range(memory))}"""


_PLACE = """  extern __shared__ __align__(128) unsigned char memory[];
  const int lane = threadIdx.x % LANES;
  real* const tile = (real*)(memory + threadIdx.x / LANES * {});
  volatile real* const kept = tile;
  long long problem = -1;
  int attempt = 0, taken = 0;
  real least = INFINITY;"""

_SEARCH = """  for (;;) {
    if (problem < count && next1_0 != 0) {
      const bool won = next1_0 == 1;
      if (problem >= 0 && (won || next1_1 < least)) {
        least = next1_1;
        STORE
      }
      if (won || attempt >= tries) {
        if (problem >= 0) {
          steps[problem] += taken;
          if (!won) left[1 + atomicAdd(left, 1ULL)] = problem;
        }
        do problem = (long long)atomicAdd(next, 1ULL);  /* skip invalid goals (NaN) */
        while (problem < count && in2[problem * row_in2] != in2[problem * row_in2]);
        if (problem < count) {
          GOALS
        }
        attempt = taken = 0;
        least = INFINITY;
      } else {
        attempt++;
      }
      if (problem < count) {
        BEGIN
      }
    }
    if (!__any_sync(0xffffffffu, problem < count)) return;"""

_TRIES = """  count = (long long)*left;
  long long round = 0;  /* the warp's first try; the very last try is a separate round */
  for (;;) {
    if (__all_sync(0xffffffffu, next1_0 != 0)) {
      const unsigned solved = __ballot_sync(0xffffffffu, next1_0 == 1);
      real lowest = next1_1;
      for (int far = LANES / 2; far > 0; far /= 2) {
        const real other = __shfl_xor_sync(0xffffffffu, lowest, far);
        lowest = other < lowest ? other : lowest;
      }
      unsigned chosen = solved ? solved : __ballot_sync(0xffffffffu, next1_1 == lowest);
      int winner = 0;  /* the first solved try, or else the first of the nearest ones */
      for (; chosen && !(chosen & 1); chosen >>= 1) winner++;
      if (problem >= 0) {
        if (lane == winner && (solved || lowest < least)) {
          STORE
        }
        if (!solved || lane <= winner) atomicAdd(steps + problem, taken);
      }
      least = lowest < least ? lowest : least;
      __syncwarp();
      const bool over = problem < 0 || solved || round >= tries;
      round = round + LANES < tries ? round + LANES : tries;
      if (over) {
        unsigned long long number = lane == 0 ? atomicAdd(next, 1ULL) : 0;
        number = __shfl_sync(0xffffffffu, number, 0);
        if ((long long)number >= count) return;
        problem = (long long)left[1 + number];
        {
          GOALS
        }
        round = 0;
        least = INFINITY;
      }
      taken = 0;
      attempt = (int)round + lane;
      if (round < tries ? attempt < tries : lane == 0) {
        BEGIN
      } else {
        next1_0 = 2;
        next1_1 = INFINITY;
      }
    }
    const bool runs = next1_0 == 0;"""


def around(size: int, rotations: tuple[int, ...]) -> str:
    """Return the source of the kernels that run before, between and after the searches.

    "rank" finds, for each problem, the start (initial configuration) of each group that is nearest
    to the goals, and sorts these starts by distance. The kernel also converts goals to float32,
    sets invalid goals to NaN, and initializes the configurations of all problems to NaN.

    - table: as in `llvm.ranking`.
    - begins: initial configuration for the first attempt at each problem, if not null.
    - rotations: offsets, in the goals, of the nine entries of each rotation matrix.

    "narrow" converts configurations from float32 to float64 and clamps them to limits. "look"
    determines which problems are solved, and which limits are active.
    """
    checks = "\n".join(f"  good = good && turns(goals + {k});" for k in rotations)
    return f"""
__device__ __forceinline__ bool turns(const double* R) {{
  const double a = R[0], b = R[1], c = R[2], d = R[3], e = R[4], f = R[5];
  double off = fabs(a * a + b * b + c * c - 1);
  off = fmax(off, fabs(d * d + e * e + f * f - 1));
  off = fmax(off, fabs(a * d + b * e + c * f));
  off = fmax(off, fabs(b * f - c * e - R[6]));
  off = fmax(off, fabs(c * d - a * f - R[7]));
  off = fmax(off, fabs(a * e - b * d - R[8]));
  return off <= {ORTHOGONAL};
}}
extern "C" __global__ void __launch_bounds__({BLOCK}) rank(
    long long count, double* goals, const float* __restrict__ table, long long tiles,
    float* single, unsigned char* ranks, const float* __restrict__ starts, float* begins,
    long long n, double* points, long long m, double* ends) {{
  const long long problem = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (problem >= count) return;
  goals += problem * {size};
  float goal[{size}], near[{GROUPS}];
  int which[{GROUPS}];
  bool good = true;
#pragma unroll
  for (int k = 0; k < {size}; k++) {{
    good = good && fabs(goals[k]) <= {FARTHEST!r};
    goal[k] = (float)goals[k];
  }}
{checks}
  if (!good) goals[0] = goal[0] = nanf("");
#pragma unroll
  for (int k = 0; k < {size}; k++) single[problem * {size} + k] = goal[k];
#pragma unroll
  for (int g = 0; g < {GROUPS}; g++) {{
    near[g] = 3e38f;
    which[g] = 0;
  }}
  for (int t = 0; t < tiles; t++) {{
#pragma unroll
    for (int g = 0; g < {GROUPS}; g++) {{
      const float* row = table + t * {(size + 1) * GROUPS} + g;
      float sum = row[{size * GROUPS}];
#pragma unroll
      for (int k = 0; k < {size}; k++) sum = fmaf(row[k * {GROUPS}], goal[k], sum);
      if (sum < near[g]) {{
        near[g] = sum;
        which[g] = t;
      }}
    }}
  }}
#pragma unroll
  for (int g = 0; g < {GROUPS}; g++) {{
    int place = 0;
#pragma unroll
    for (int h = 0; h < {GROUPS}; h++)
      place += near[h] < near[g] || (near[h] == near[g] && h < g);
    const int start = which[g] * {GROUPS} + g;
    ranks[problem * {GROUPS} + place] = (unsigned char)start;
    if (begins && place == 0)
      for (int k = 0; k < n; k++) begins[problem * n + k] = starts[start * n + k];
  }}
  for (int k = 0; k < n; k++) points[problem * n + k] = nan("");
  for (int k = 0; k < m; k++) ends[problem * m + k] = __hiloint2double(0x7ff00000, 0);
}}
extern "C" __global__ void __launch_bounds__({BLOCK}) narrow(
    long long count, long long n, const double* lower, const double* upper, const float* near,
    double* points) {{
  const long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (k < count) points[k] = fmin(fmax((double)near[k], lower[k % n]), upper[k % n]);
}}
extern "C" __global__ void __launch_bounds__({BLOCK}) look(
    long long count, long long n, const double* lower, const double* upper, const double* points,
    long long m, const double* ends, signed char* sides, bool* solved) {{
  const long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (k >= count) return;
  sides[k] = (points[k] >= upper[k % n]) - (points[k] <= lower[k % n]);
  if (k % n == 0) solved[k / n] = ends[k / n * m] == 1;
}}
"""
