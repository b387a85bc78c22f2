/* Local runs of softmax regression: clients, seeds and sweep points one after another in one call.
 *
 * Slots that walk through the same batches (the same client under other algorithms or sweep points) take each step
 * together: its samples are fetched from memory once and stay in the first cache. Every slot is computed by itself all
 * the same, so its bits depend on nothing else. Rows (samples and weights) are padded to whole vectors.
 */
#include "vectors.h"
#include <stdlib.h>

/* The samples of a step, as all its slots see them: rows x[j] [width], labels y[j]. */
typedef struct {
    const REAL **x;
    const int64_t *y;
    const REAL *share; /* y[j] / count, what two classes subtract */
    int count;
    int64_t width, padded; /* numbers per row; samples up to whole vectors */
} Batch;

INLINE void rows_tile(const int R, const REAL *v, const REAL *const *x, int64_t width, REAL *z) {
    vec sum[R];
    UNROLL for (int r = 0; r < R; r++) sum[r] = (vec){0};
    for (int64_t f = 0; f < width; f += LANES) {
        vec here = *(const loose *)(v + f);
        UNROLL for (int r = 0; r < R; r++) sum[r] += here * *(const loose *)(x[r] + f);
    }
    const vec all = totals(R, sum);
    memcpy(z, &all, R * sizeof(REAL));
}

/* z[j] = v . x[j]. */
static void products(const REAL *v, const Batch *s, REAL *z) {
    int j = 0;
#define TILES(R)                                                                                                       \
    for (; R <= LANES && j + R <= s->count; j += R) rows_tile(R, v, s->x + j, s->width, z + j);
    TILES(8) TILES(4) TILES(2) TILES(1)
#undef TILES
}

INLINE void columns_tile(const int C, const REAL *z, const Batch *s, int64_t from, REAL *g) {
    vec sum[C];
    UNROLL for (int c = 0; c < C; c++) sum[c] = (vec){0};
    for (int j = 0; j < s->count; j++)
        UNROLL for (int c = 0; c < C; c++) sum[c] += z[j] * *(const loose *)(s->x[j] + from + c * LANES);
    UNROLL for (int c = 0; c < C; c++) *(loose *)(g + from + c * LANES) = sum[c];
}

/* g = sum of z[j] x[j]. */
static void combination(const REAL *z, const Batch *s, REAL *g) {
    int64_t f = 0;
    for (; f + 8 * LANES <= s->width; f += 8 * LANES) columns_tile(8, z, s, f, g);
    for (; f < s->width; f += LANES) columns_tile(1, z, s, f, g);
}

/* Gradient g [classes][width] of the mean loss of model w; z [classes][padded] is scratch. */
static void slope(const REAL *w, const Batch *s, int64_t classes, REAL *z, REAL *g) {
    int64_t width = s->width, next = s->padded / LANES;
    const REAL count = s->count;
    if (classes == 2) { /* the two logits enter through their difference only */
        for (int64_t f = 0; f < width; f++) g[f] = w[f] - w[width + f];
        products(g, s, z);
        for (vec *here = (vec *)z; here < (vec *)z + next; here++) *here = 1 / ((1 + exponentials(*here)) * count);
        for (int j = 0; j < s->count; j++) z[j] -= s->share[j];
        combination(z, s, g + width);
        for (int64_t f = 0; f < width; f++) g[f] = -g[width + f];
        return;
    }
    for (int64_t c = 0; c < classes; c++) products(w + c * width, s, z + c * s->padded);
    for (vec *here = (vec *)z; here < (vec *)z + next; here++) {
        vec top = *here, norm = {0};
        for (int64_t c = 1; c < classes; c++) top = choose(here[c * next] > top, here[c * next], top);
        for (int64_t c = 0; c < classes; c++) norm += here[c * next] = exponentials(here[c * next] - top);
        for (int64_t c = 0; c < classes; c++) here[c * next] /= norm * count;
    }
    for (int j = 0; j < s->count; j++) z[s->y[j] * s->padded + j] -= 1 / count;
    for (int64_t c = 0; c < classes; c++) combination(z + c * s->padded, s, g + c * width);
}

/* The samples that index [batch] names, -1 behind the last. */
static void take(Batch *s, const REAL *x, const int64_t *labels, const int64_t *index, int64_t batch, int64_t *y,
                 REAL *share) {
    for (s->count = 0; s->count < batch && index[s->count] >= 0; s->count++) {
        s->x[s->count] = x + index[s->count] * s->width;
        y[s->count] = labels[index[s->count]];
    }
    for (int j = 0; j < s->count; j++) share[j] = (REAL)y[j] / s->count;
}

/* For every slot a: out[a] <- the end point of its local run from out[a].
 *
 * x [n][width] with a column of ones for the bias and zeros up to whole vectors; plans[a] [steps][sizes[a]], -1 behind a
 * short batch; slots with the same plan stand together and take equally many steps. out [slots][classes][width].
 * Returns 0 if there is no memory for the scratch. */
int softmax_runs(const REAL *x, int64_t width, const int64_t *labels, const int64_t *const *plans,
                 const int64_t *sizes, const int64_t *steps, int64_t slots, int64_t classes, REAL *out,
                 const Descent *runs) {
    int64_t batch = 1;
    for (int64_t a = 0; a < slots; a++) batch = sizes[a] > batch ? sizes[a] : batch;
    const int64_t padded = (batch + LANES - 1) / LANES * LANES;
    REAL *g = aligned_alloc(WIDTH, (classes * (width + padded) + padded) * sizeof(REAL)); /* [classes][width] */
    REAL *z = g + classes * width, *share = z + classes * padded; /* [classes][padded], [padded] */
    const REAL **rows = malloc(batch * (sizeof *rows + sizeof(int64_t)));
    if (!g || !rows) {
        free(rows);
        free(g);
        return 0;
    }
    int64_t *y = (int64_t *)(rows + batch);
    Batch samples = {rows, y, share, 0, width, padded};
    memset(z, 0, classes * padded * sizeof(REAL));
    for (int64_t begin = 0, end; begin < slots; begin = end) {
        for (end = begin + 1; end < slots && plans[end] == plans[begin];) end++;
        for (int64_t k = 0; k < steps[begin]; k++) {
            take(&samples, x, labels, plans[begin] + k * sizes[begin], sizes[begin], y, share);
            for (int64_t a = begin; a < end; a++) {
                REAL *w = out + a * classes * width;
                slope(w, &samples, classes, z, g);
                descend(runs + a, k, w, g);
            }
        }
    }
    free(rows);
    free(g);
    return 1;
}
