/* What the compiled parts share: vectors, and the step of a local run.
 *
 * REAL is float or double, BITS the integer of its size; library.py builds everything once for each, with SINGLE for
 * the first.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define WIDTH 64 /* bytes of a vector: one AVX-512 register, two or four on smaller machines */
#define LANES ((int)(WIDTH / sizeof(REAL)))
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

typedef REAL vec __attribute__((vector_size(WIDTH), aligned(WIDTH)));
typedef BITS bits __attribute__((vector_size(WIDTH)));
typedef REAL loose __attribute__((vector_size(WIDTH), aligned(sizeof(REAL)), may_alias));

/* Per lane: a where the comparison holds, b elsewhere. */
INLINE vec choose(bits holds, vec a, vec b) { return (vec)((holds & (bits)a) | (~holds & (bits)b)); }

/* Sum over the lanes, by halves. */
INLINE REAL total(vec v) {
#ifdef SINGLE
    v += __builtin_shuffle(v, (bits){8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7});
    v += __builtin_shuffle(v, (bits){4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11});
    v += __builtin_shuffle(v, (bits){2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13});
#else
    v += __builtin_shuffle(v, (bits){4, 5, 6, 7, 0, 1, 2, 3});
    v += __builtin_shuffle(v, (bits){2, 3, 0, 1, 6, 7, 4, 5});
#endif
    return v[0] + v[1];
}

/* e^x per lane; NaN stays NaN. Single precision: degree six on half a binade around 0, an error of one unit. */
INLINE vec exponentials(vec x) {
#ifdef SINGLE
    const REAL top = 88.3762626647949f, low = -87.3365478515625f, round = 12582912.0f; /* 1.5 * 2^23 */
    x = choose(x > top, (vec){0} + top, x);
    x = choose(x < low, (vec){0} + low, x);
    vec n = (x * 1.44269504088896341f + round) - round;
    vec r = x - n * 0.693359375f - n * -2.12194440e-4f;
    vec p = r * (r * (r * (r * (r * (r * 1.3930436e-3f + 8.3628513e-3f) + 4.1666508e-2f) + 1.6666475e-1f) + 0.5f) + 1.0f) + 1.0f;
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
} Run;

/* y <- y - rate (1 - decay)^k v,  v = momentum v + g + correction + mu (y - anchor);  k counts from 0. */
INLINE void descend(const Run *run, int64_t k, REAL *restrict y, const REAL *restrict g) {
    REAL rate = run->decay ? run->rate * pow(1 - run->decay, (double)k) : run->rate, mu = run->mu, momentum = run->momentum;
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
