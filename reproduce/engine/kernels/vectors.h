/* What the compiled parts share: vectors, and the step of a local run.
 *
 * REAL is float or double, BITS the integer of its size; library.py builds everything once for each, with SINGLE for
 * the first.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

/* Bytes of a vector, and how many of them the processor holds at once. */
#if defined(__AVX512F__)
#define WIDTH 64
#define REGISTERS 32
#elif defined(__AVX2__) && defined(__FMA__)
#define WIDTH 32
#define REGISTERS 16
#elif defined(__aarch64__)
#define WIDTH 16
#define REGISTERS 32
#else
#define WIDTH 16
#define REGISTERS 16
#endif
#define SUMS (REGISTERS * 3 / 4) /* sums that a tile keeps in registers; the rest is for operands */
#define LANES ((int)(WIDTH / sizeof(REAL)))
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

typedef REAL vec __attribute__((vector_size(WIDTH), aligned(WIDTH)));
typedef BITS bits __attribute__((vector_size(WIDTH)));
typedef REAL loose __attribute__((vector_size(WIDTH), aligned(sizeof(REAL)), may_alias));

/* Per lane: a where the comparison holds, b elsewhere. */
INLINE vec choose(bits holds, vec a, vec b) { return (vec)((holds & (bits)a) | (~holds & (bits)b)); }

INLINE int least(int a, int b) { return a < b ? a : b; }
INLINE vec load(const REAL *p) { return *(const loose *)p; }
INLINE void store(REAL *p, vec v) { *(loose *)p = v; }

/* The lanes from `skip` on: a row of numbers ends with a vector that skips what the one before it has seen. */
INLINE bits from(int skip) {
    bits lane;
    for (int i = 0; i < LANES; i++) lane[i] = i;
    return lane >= skip;
}
INLINE vec from_lane(vec v, int skip) { return choose(from(skip), v, (vec){0}); }
/* The vector at p with zeros behind the first n lanes. */
INLINE vec load_first(const REAL *p, int n) { return (vec)((bits)load(p) & ~from(n)); }

/* Sum over the lanes, by halves. */
INLINE REAL total(vec v) {
#if WIDTH == 64
    typedef REAL half __attribute__((vector_size(32)));
    union { vec whole; half part[2]; } all = {v};
    half a = all.part[0] + all.part[1];
#elif WIDTH == 32
    typedef vec half;
    half a = v;
#endif
    typedef REAL quarter __attribute__((vector_size(16)));
#if WIDTH > 16
    union { half whole; quarter part[2]; } halves = {a};
    quarter q = halves.part[0] + halves.part[1];
#else
    quarter q = v;
#endif
#ifdef SINGLE
    return (q[0] + q[2]) + (q[1] + q[3]);
#else
    return q[0] + q[1];
#endif
}

/* The numbers `of(i, w)` of all lanes i, and with them: every other block of w lanes of a and then of b. */
#ifdef SINGLE
#define COUNT (WIDTH / 4)
#else
#define COUNT (WIDTH / 8)
#endif
#if COUNT == 2
#define EACH_LANE(of, w) of(0, w), of(1, w)
#elif COUNT == 4
#define EACH_LANE(of, w) of(0, w), of(1, w), of(2, w), of(3, w)
#elif COUNT == 8
#define EACH_LANE(of, w) of(0, w), of(1, w), of(2, w), of(3, w), of(4, w), of(5, w), of(6, w), of(7, w)
#else
#define EACH_LANE(of, w)                                                                                               \
    of(0, w), of(1, w), of(2, w), of(3, w), of(4, w), of(5, w), of(6, w), of(7, w), of(8, w), of(9, w), of(10, w),     \
        of(11, w), of(12, w), of(13, w), of(14, w), of(15, w)
#endif
#define EVEN(i, w) ((i) / (w)*2 * (w) + (i) % (w))
#define ODD(i, w) (EVEN(i, w) + (w))
#ifdef __clang__
#define BLOCKS(a, b, of, w) __builtin_shufflevector(a, b, EACH_LANE(of, w))
#else
#define BLOCKS(a, b, of, w) __builtin_shuffle(a, b, (bits){EACH_LANE(of, w)})
#endif

INLINE vec folded(vec a, vec b, const int w) {
    switch (w) {
#define CASE(w)                                                                                                        \
    case w: return BLOCKS(a, b, EVEN, w) + BLOCKS(a, b, ODD, w);
#if COUNT > 8
        CASE(8)
#endif
#if COUNT > 4
        CASE(4)
#endif
#if COUNT > 2
        CASE(2)
#endif
    default: CASE(1)
#undef CASE
    }
}

/* Row r, lane l <-> row l, lane r: rows 2i and 2i + 1 give their even and odd lanes to two new ones, over and over. */
INLINE void transposed(vec *v) {
    UNROLL for (int left = LANES; left > 1; left /= 2) {
        vec next[LANES];
        UNROLL for (int i = 0; i < LANES / 2; i++) {
            next[i] = BLOCKS(v[2 * i], v[2 * i + 1], EVEN, 1);
            next[i + LANES / 2] = BLOCKS(v[2 * i], v[2 * i + 1], ODD, 1);
        }
        UNROLL for (int i = 0; i < LANES; i++) v[i] = next[i];
    }
}

/* total(v[0]), total(v[1]), .. in the first R lanes, to the bit; R is a power of two up to LANES. v is used up. */
INLINE vec totals(const int R, vec *v) {
    int left = R;
    UNROLL for (int w = COUNT / 2; w > 0; w /= 2, left = left > 1 ? left / 2 : 1)
        UNROLL for (int r = 0; r < (left + 1) / 2; r++) v[r] = folded(v[2 * r], v[left > 1 ? 2 * r + 1 : 0], w);
    return v[0];
}

/* e^x per lane; NaN stays NaN. Single precision: degree six on half a binade around 0, an error of one unit. */
INLINE vec exponentials(vec x) {
#ifdef SINGLE
    const REAL top = 88.3762626647949f, low = -87.3365478515625f, round = 12582912.0f; /* 1.5 * 2^23 */
    x = choose(x > top, (vec){0} + top, x);
    x = choose(x < low, (vec){0} + low, x);
    vec n = (x * 1.44269504088896341f + round) - round;
    vec r = x - n * 0.693359375f - n * -2.12194440e-4f;
    vec p = r * (r * (r * (r * 1.3930436e-3f + 8.3628513e-3f) + 4.1666508e-2f) + 1.6666475e-1f) + 0.5f;
    p = r * (r * p + 1.0f) + 1.0f;
    return p * (vec)((__builtin_convertvector(n, bits) + 127) << 23);
#else
    for (int i = 0; i < LANES; i++) x[i] = exp(x[i]);
    return x;
#endif
}

/* What `Rule` says, for one client; vectors of `size` numbers, null where absent. */
typedef struct {
    double rate, momentum, decay, mu;
    int64_t size, first_count;
    const REAL *correction, *anchor;
    REAL *velocity, *total, *first;
} Descent;

INLINE REAL rate_at(const Descent *run, int64_t k) {
    return run->decay ? run->rate * pow(1 - run->decay, (double)k) : run->rate;
}

/* y <- y - rate (1 - decay)^k v,  v = momentum v + g + correction + mu (y - anchor);  k counts from 0. */
INLINE void descend(const Descent *run, int64_t k, REAL *restrict y, const REAL *restrict g) {
    REAL rate = rate_at(run, k), mu = run->mu, momentum = run->momentum;
    for (int64_t i = 0; run->total && i < run->size; i++) run->total[i] += g[i];
    for (int64_t i = 0; run->first && k + 1 == run->first_count && i < run->size; i++)
        run->first[i] = run->total[i] / (k + 1);
    if (!run->correction && !mu && !run->velocity) {
        for (int64_t i = 0; i < run->size; i++) y[i] -= rate * g[i];
        return;
    }
    for (int64_t i = 0; i < run->size; i++) {
        REAL d = g[i] + (run->correction ? run->correction[i] : 0);
        if (mu) d += mu * (y[i] - run->anchor[i]);
        if (run->velocity) d = run->velocity[i] = momentum * run->velocity[i] + d;
        y[i] -= rate * d;
    }
}
