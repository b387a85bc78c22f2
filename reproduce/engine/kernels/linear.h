/* Linear layers with a feature in every lane, and the tiles' common ground: for channels.c.
 *
 * Weights are PyTorch's [output][feature]; activations and their gradients are [sample][feature].
 */
#include "network.h"

#define SAMPLES 12 /* most samples (or rows of a gradient) of a tile */
#define MOST(C) (SUMS / (C) < SAMPLES ? SUMS / (C) : SAMPLES) /* of them, beside C vectors */

/* Calls `tile(P)` for all samples, in blocks of nearly equal size P that are at most `most`. */
#define EACH_BLOCK(samples, most, tile)                                                                                \
    for (int blocks = ((samples) + (most) - 1) / (most), block = 0; block < blocks; block++) {                         \
        const int b = (samples) * block / blocks;                                                                      \
        switch ((samples) * (block + 1) / blocks - b) {                                                                \
        case 1: tile(1); break;                                                                                        \
        case 2: tile(2); break;                                                                                        \
        case 3: tile(3); break;                                                                                        \
        case 4: tile(4); break;                                                                                        \
        case 5: tile(5); break;                                                                                        \
        case 6: tile(6); break;                                                                                        \
        case 7: if ((most) >= 7) tile(7); break;                                                                       \
        case 8: if ((most) >= 8) tile(8); break;                                                                       \
        case 9: if ((most) >= 9) tile(9); break;                                                                       \
        case 10: if ((most) >= 10) tile(10); break;                                                                    \
        case 11: if ((most) >= 11) tile(11); break;                                                                    \
        case 12: if ((most) >= 12) tile(12); break;                                                                    \
        }                                                                                                              \
    }

/* Where a tile's gradient goes: to = keep to + scale gradient. */
typedef struct {
    int add;
    REAL scale;
} Into;

INLINE void put(REAL *to, vec sum, Into into) {
    store(to, into.add ? load(to) + sum * into.scale : sum * into.scale);
}

INLINE void dots_tile(const int P, const int R, const REAL *x, int64_t features, const REAL *w, const REAL *bias,
                      REAL *out, int64_t outputs) {
    vec sum[SAMPLES][2];
    UNROLL for (int p = 0; p < P; p++) UNROLL for (int r = 0; r < R; r++) sum[p][r] = (vec){0};
    int64_t f = 0;
    for (; f + LANES <= features; f += LANES) {
        const vec one = load(w + f), two = R > 1 ? load(w + features + f) : one;
        UNROLL for (int r = 0; r < R; r++) __builtin_prefetch(w + (R + r) * features + f); /* the next rows */
        UNROLL for (int p = 0; p < P; p++) {
            const vec a = load(x + p * features + f);
            sum[p][0] += a * one;
            if (R > 1) sum[p][1] += a * two;
        }
    }
    if (f < features) {
        int64_t last = features - LANES;
        UNROLL for (int p = 0; p < P; p++) {
            vec a = from_lane(load(x + p * features + last), f - last);
            UNROLL for (int r = 0; r < R; r++) sum[p][r] += a * load(w + r * features + last);
        }
    }
    UNROLL for (int p = 0; p < P; p++)
        UNROLL for (int r = 0; r < R; r++) out[p * outputs + r] = bias[r] + total(sum[p][r]);
}

/* out[b][o] = bias[o] + w[o] . x[b]; at least LANES features. */
static void linear(const REAL *x, int64_t features, const REAL *w, const REAL *bias, REAL *out, int64_t outputs,
                   int samples) {
    int64_t o = 0;
#define R 2
#define TILE(P) dots_tile(P, R, x + b * features, features, w + o * features, bias + o, out + b * outputs + o, outputs)
    for (; o + R <= outputs; o += R) EACH_BLOCK(samples, MOST(R), TILE)
#undef R
#define R 1
    for (; o < outputs; o++) EACH_BLOCK(samples, MOST(2), TILE)
#undef TILE
#undef R
}

#define ROWS 16 /* outputs that are taken back together, while their gradients are in registers */

INLINE void back_tile(const int P, const int C, const REAL *d, int64_t outputs, int rows, const REAL *w,
                      int64_t features, int skip, REAL *to, int first) {
    vec sum[SAMPLES][2];
    UNROLL for (int p = 0; p < P; p++)
        UNROLL for (int c = 0; c < C; c++) sum[p][c] = first ? (vec){0} : load(to + p * features + c * LANES);
    for (int r = 0; r < rows; r++) {
        vec left = load(w + r * features), right = C > 1 ? load(w + r * features + LANES) : left;
        if (C == 1 && skip) left = from_lane(left, skip);
        UNROLL for (int p = 0; p < P; p++) {
            const vec value = (vec){0} + d[p * outputs + r];
            sum[p][0] += left * value;
            if (C > 1) sum[p][1] += right * value;
        }
    }
    UNROLL for (int p = 0; p < P; p++)
        UNROLL for (int c = 0; c < C; c++) {
            REAL *here = to + p * features + c * LANES;
            store(here, skip && first ? choose(from(skip), sum[p][c], load(here)) : sum[p][c]);
        }
}

/* to[b][f] = sum over outputs of d[b][o] w[o][f]; at least LANES features. */
static void linear_back(const REAL *d, int64_t outputs, const REAL *w, int64_t features, REAL *to, int samples) {
    for (int64_t o = 0; o < outputs; o += ROWS) {
        int rows = least(ROWS, outputs - o);
        int64_t f = 0;
        int skip = 0;
#define TILE(P)                                                                                                        \
    back_tile(P, C, d + b * outputs + o, outputs, rows, w + o * features + f, features, skip, to + b * features + f, !o)
#define C 2
        for (; f + C * LANES <= features; f += C * LANES) EACH_BLOCK(samples, MOST(C), TILE)
#undef C
#define C 1
        for (; f + LANES <= features; f += LANES) EACH_BLOCK(samples, MOST(2), TILE)
        if (f < features) {
            skip = LANES - (features - f), f = features - LANES;
            EACH_BLOCK(samples, MOST(2), TILE)
        }
#undef C
#undef TILE
    }
}

INLINE void outer_tile(const int R, const int C, const REAL *d, int64_t outputs, int samples, const REAL *x,
                       int64_t features, int skip, REAL *g, Into into) {
    vec sum[SUMS][4];
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int c = 0; c < C; c++) sum[r][c] = (vec){0};
    for (int b = 0; b < samples; b++) {
        vec here[4];
        UNROLL for (int c = 0; c < C; c++) here[c] = load(x + b * features + c * LANES);
        if (C == 1 && skip) here[0] = from_lane(here[0], skip);
        UNROLL for (int r = 0; r < R; r++) UNROLL for (int c = 0; c < C; c++) sum[r][c] += here[c] * d[b * outputs + r];
    }
    UNROLL for (int r = 0; r < R; r++)
        UNROLL for (int c = 0; c < C; c++) {
            REAL *to = g + r * features + c * LANES;
            if (skip && !into.add) /* the lanes below have their gradient already */
                store(to, choose(from(skip), sum[r][c] * into.scale, load(to)));
            else
                put(to, sum[r][c], into);
        }
}

/* g[o][f] = sum over samples of d[b][o] x[b][f]; at least LANES features. */
static void linear_weights(const REAL *d, int64_t outputs, int samples, const REAL *x, int64_t features, REAL *g,
                           REAL *bias, Into into) {
#define ROWS_AT_ONCE (SUMS / 4)
    int64_t blocks = (outputs + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE;
    for (int64_t n = 0; n < blocks; n++) {
        int64_t o = outputs * n / blocks, count = outputs * (n + 1) / blocks - o, f = 0;
        int skip = 0;
#define TILE(R) outer_tile(R, C, d + o, outputs, samples, x + f, features, skip, g + o * features + f, into)
#define TILES                                                                                                          \
    switch (count) {                                                                                                   \
    case 1: TILE(1); break;                                                                                            \
    case 2: TILE(2); break;                                                                                            \
    case 3: TILE(3); break;                                                                                            \
    case 4: if (ROWS_AT_ONCE >= 4) TILE(4); break;                                                                     \
    case 5: if (ROWS_AT_ONCE >= 5) TILE(5); break;                                                                     \
    case 6: if (ROWS_AT_ONCE >= 6) TILE(6); break;                                                                     \
    }
#define C 4
        for (; f + C * LANES <= features; f += C * LANES) TILES
#undef C
#define C 1
        for (; f + LANES <= features; f += LANES) TILES
        if (f < features) {
            skip = LANES - (features - f), f = features - LANES;
            TILES
        }
#undef C
#undef TILE
#undef TILES
#undef ROWS_AT_ONCE
    }
    for (int64_t o = 0; o < outputs; o++) {
        REAL sum = 0;
        for (int b = 0; b < samples; b++) sum += d[b * outputs + o];
        bias[o] = (into.add ? bias[o] : 0) + into.scale * sum;
    }
}
