"""Definitions shared by all CUDA kernels: floating-point type, sine and cosine, copying of rows.

Sine and cosine are computed as in the vector code (`llvm.math`).
"""

import math

from chasles.backends.c.body import NUMBERS
from chasles.backends.cuda.body import NEAR
from chasles.backends.llvm.math import ELEMENTS


def prelude(dtype: str) -> str:
    """Return CUDA definitions of the floating-point type `real` and its sine and cosine."""
    e = ELEMENTS[dtype]
    number = NUMBERS[e.name]
    f = number.function
    constants: list[float] = []

    def named(value: float) -> str:
        """Return the C expression for a constant, which is read from a table if it has 64 bits."""
        if e.bits == 32 or value in (1.0, -0.5):
            return number.spelled(value)
        if value not in constants:
            constants.append(value)
        return f"TURN[{constants.index(value)}]"

    def horner(coefficients: tuple[float, ...]) -> str:
        text = named(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            text = f"fma{f}({text}, z, {named(c)})"
        return text

    reduced = [f"r = fma{f}(-turns, {named(part)}, r);" for part in e.half_pi_fused]
    shift, quarter = named(e.shift), named(2.0 / math.pi)
    sine, cosine = horner(e.sine), horner((1.0, -0.5, *e.cosine))
    table = ", ".join(number.spelled(c) for c in constants)
    return f"""typedef {e.name} real;
{f"__constant__ real TURN[] = {{{table}}};" if constants else ""}
{_BITS[dtype]}

/* Removes full turns from an angle of any size. */
__device__ __noinline__ real brought_near(real angle) {{
  real s, c;
  sincos{f}(angle, &s, &c);
  return atan2{f}(s, c);
}}

/* Sine and cosine of an angle within the limit. */
__device__ __forceinline__ void turn(real angle, real& s, real& c) {{
  const real shifted = fma{f}(angle, {quarter}, {shift});
  const real turns = shifted - {shift};
  real r = angle;
  {" ".join(reduced)}
  const real z = r * r;
  const real sine = fma{f}(z * r, {sine}, r);
  const real cosine = {cosine};
  const int quadrant = low_bits(shifted);
  s = flipped(quadrant & 1 ? cosine : sine, quadrant);
  c = flipped(quadrant & 1 ? sine : cosine, quadrant + 1);
}}

#ifndef INFINITY
#define INFINITY infinite()
#define NAN (infinite() * 0)
#endif
#define FAR(angle) (fabs{f}(angle) > {number.spelled(e.limit_fused / NEAR)})
"""


_BITS = {
    "float32": """__device__ __forceinline__ real infinite() { return __int_as_float(0x7f800000); }
__device__ __forceinline__ int low_bits(real x) { return __float_as_int(x); }
__device__ __forceinline__ real inverse(real x) {
#ifdef __CUDA_ARCH__
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(x) : "f"(x));  /* accurate to the last bit */
  return x;
#else
  return 1.0f / x;
#endif
}
__device__ __forceinline__ real flipped(real x, int quadrant) {
  return __int_as_float(__float_as_int(x) ^ ((unsigned)quadrant << 30 & 0x80000000u));
}""",
    "float64": """__device__ __forceinline__ real infinite() {
  return __hiloint2double(0x7ff00000, 0);
}
__device__ __forceinline__ int low_bits(real x) { return __double2loint(x); }
__device__ __forceinline__ real inverse(real x) {
#ifdef __CUDA_ARCH__
  real near;  /* 20 bits, refined by Newton's method; zero and infinity stay */
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(near) : "d"(x));
  const real once = fma(near, fma(-x, near, 1.0), near);
  const real twice = fma(once, fma(-x, once, 1.0), once);
  return fabsf(__int_as_float(__double2hiint(near))) > 0 ? twice : near;
#else
  return 1.0 / x;
#endif
}
__device__ __forceinline__ real flipped(real x, int quadrant) {
  const int high = __double2hiint(x) ^ ((unsigned)quadrant << 30 & 0x80000000u);
  return __hiloint2double(high, __double2loint(x));
}""",
}

MOVES = """
#ifndef together
#define together() __syncthreads()
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
/* The copy engine moves contiguous rows: one thread requests them, all threads wait. */
__device__ __forceinline__ unsigned in_shared(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ bool in_bulk(const void* p, int rows) {
  return rows == LANES && (size_t)p % 16 == 0;
}
__device__ __forceinline__ void open(unsigned long long* arrived, int lane) {
  if (lane == 0)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(in_shared(arrived)) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __syncwarp();
}
__device__ __forceinline__ void expect(unsigned long long* arrived, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               ::"r"(in_shared(arrived)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void ask(void* to, const void* from, unsigned bytes,
                                    unsigned long long* arrived) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
      ::"r"(in_shared(to)), "l"(from), "r"(bytes), "r"(in_shared(arrived)) : "memory");
}
__device__ __forceinline__ void await(unsigned long long* arrived, unsigned phase = 0) {
  unsigned done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(in_shared(arrived)), "r"(phase) : "memory");
}
__device__ __forceinline__ void before_bulk() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void give(void* to, const void* from, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
               ::"l"(to), "r"(in_shared(from)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void announce(const void* from, unsigned bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
__device__ __forceinline__ void given() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
#else
/* Without a copy engine, each thread moves its share. */
__device__ __forceinline__ bool in_bulk(const void*, int) { return false; }
__device__ __forceinline__ void open(unsigned long long*, int) {}
__device__ __forceinline__ void expect(unsigned long long*, unsigned) {}
__device__ __forceinline__ void ask(void*, const void*, unsigned, unsigned long long*) {}
__device__ __forceinline__ void await(unsigned long long*, unsigned = 0) {}
__device__ __forceinline__ void before_bulk() {}
__device__ __forceinline__ void give(void*, const void*, unsigned) {}
__device__ __forceinline__ void announce(const void*, unsigned) {}
__device__ __forceinline__ void commit() {}
__device__ __forceinline__ void given() {}
#endif

/* Copies one number from global to shared memory without waiting for it. */
__device__ __forceinline__ void fetch(real* to, const real* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
               ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "n"(sizeof(real))
               : "memory");
#else
  *to = *from;
#endif
}
__device__ __forceinline__ void fetched() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}
"""
"""CUDA functions that move rows between global and shared memory. LANES, the number of states in a
tile, is the number of threads in a warp, or 1 when a kernel is tested on a CPU."""
