/* Gradients of small convolutional networks, one model at a time, on the processor's vector units.
 *
 * A lane of a vector is a sample: an activation is [channel][row][column][B], B the samples of a piece. Vectors cover
 * a row of width * B numbers as a whole, so that batches of any size fill them, and a filter tap is a shift by B
 * numbers. Weights are scalars that are broadcast: filters may have any number of channels. Sums stay in registers:
 * CHANNELS x PIXELS in a convolution, CHANNELS x taps in its weight gradient.
 *
 * The last vector of a row overlaps the one before (`within`) and computes the same bits again. B is at least LANES, so
 * that every row has whole vectors. Where numbers are summed, sample b has the lane b % LANES at every pixel: the last
 * bits of a sum do not depend on B. There a row's last vector reads what is behind the row; B zeros, behind the last.
 *
 * Buffers have the border of zeros that the convolution reading them needs: activations the padding of the next layer,
 * gradients k - 1 - padding for the way back, which is again a convolution. Borders are zeroed once, by the caller.
 */
#include "network.h"

/* Where the vector of a row of n numbers begins that is to cover those from i on. */
INLINE long within(long i, long n) { return i + LANES <= n ? i : n - LANES; }

/* An image as the kernels see it: its first inner element, numbers per row and per channel. */
typedef struct {
    REAL *at;
    long row, plane;
} View;

static View view(REAL *work, int64_t at, const Buffer *b, int64_t border, int B) {
    long row = (b->width + 2 * border) * B, plane = row * (b->height + 2 * border);
    return (View){work + at * B + border * (row + B), row, plane};
}
static View values(REAL *work, const Buffer *b, int B) { return view(work, b->at, b, b->border, B); }
static View slopes(REAL *work, const Buffer *b, int B) { return view(work, b->gradient_at, b, b->gradient_border, B); }

/* ---- convolution: out[c][x] = bias[c] + sum over inputs and taps of in[i][x + tap] w[i][tap][c] ---- */

/* The taps from..to of a filter of k in one direction that meet more than the border of zeros. */
typedef struct {
    int from, to;
} Range;

/* Outputs first..last of a row (or column) over `length` inputs with `padding`. */
INLINE Range meeting(long first, long last, int k, int padding, long length) {
    long from = padding - last, to = length + padding - first;
    return (Range){from > 0 ? from : 0, to < k ? to : k};
}

/* A convolution as its tiles see it. */
typedef struct {
    const REAL *in; /* the row's first element, border included */
    long plane, row, out_plane;
    int inputs, k, B, padding, width;
    Range rows;
    const REAL *w, *bias;
} Conv;

INLINE void conv_tile(const int C, const int P, const Conv *s, long at, REAL *out) {
    vec sum[12][4];
    UNROLL for (int c = 0; c < C; c++)
        UNROLL for (int p = 0; p < P; p++) sum[c][p] = (vec){0} + (s->bias ? s->bias[c] : 0);
    const Range taps = meeting(at / s->B, (at + P * LANES - 1) / s->B, s->k, s->padding, s->width), rows = s->rows;
    const long B = s->B, run = taps.to - taps.from, height = rows.to - rows.from;
    const long row = s->row - run * B, plane = s->plane - height * s->row; /* from the end of one to the next */
    const long w_row = (s->k - run) * C, w_plane = (s->k - height) * s->k * C;
    const REAL *x = s->in + at + rows.from * s->row + taps.from * B;
    const REAL *w = s->w + (rows.from * s->k + taps.from) * C;
    for (int i = 0; i < s->inputs; i++, x += plane, w += w_plane)
        for (long ky = 0; ky < height; ky++, x += row, w += w_row)
            for (long kx = 0; kx < run; kx++, x += B, w += C) {
                vec here[4];
                UNROLL for (int p = 0; p < P; p++) here[p] = load(x + p * LANES);
                UNROLL for (int c = 0; c < C; c++) UNROLL for (int p = 0; p < P; p++) sum[c][p] += here[p] * w[c];
            }
    UNROLL for (int c = 0; c < C; c++)
        UNROLL for (int p = 0; p < P; p++) store(out + at + c * s->out_plane + p * LANES, sum[c][p]);
}

/* A row of n numbers, in tiles of P vectors or, where those would mostly overlap, of one. */
INLINE void conv_row(const int C, const int P, const Conv *s, REAL *out, long n) {
    long t = 0;
    for (; t + P * LANES <= n; t += P * LANES) conv_tile(C, P, s, t, out);
    if (t > 0 && n - t > P * LANES / 2)
        conv_tile(C, P, s, n - P * LANES, out);
    else
        for (; t < n; t += LANES) conv_tile(C, 1, s, within(t, n), out);
}

#define MOST_CHANNELS (SUMS / 2) /* of a tile of two vectors */

/* Channels that are computed together, in blocks of nearly equal size: block b begins at `block_start(outputs, b)`. */
static int block_count(int outputs) { return (outputs + MOST_CHANNELS - 1) / MOST_CHANNELS; }
static int block_start(int outputs, int b) { return outputs * b / block_count(outputs); }

/* `in` is the view including its border of `padding`, [height][width] what is inside; w as `pack` leaves it. */
static void conv(View in, int inputs, int k, int B, const REAL *w, const REAL *bias, View out, int outputs,
                 const Buffer *source, int padding, const Buffer *target) {
    for (int b = 0; b < block_count(outputs); b++) {
        int from = block_start(outputs, b), count = block_start(outputs, b + 1) - from;
        for (int y = 0; y < target->height; y++) {
            const Conv s = {in.at + y * in.row, in.plane, in.row, out.plane, inputs, k, B, padding, source->width,
                            meeting(y, y, k, padding, source->height), w + (long)from * inputs * k * k,
                            bias ? bias + from : 0};
            REAL *o = out.at + from * out.plane + y * out.row;
            switch (count) {
#define CASE(C)                                                                                                        \
    case C:                                                                                                            \
        if (C <= MOST_CHANNELS) conv_row(C, SUMS / C < 4 ? SUMS / C : 4, &s, o, (long)target->width * B);              \
        break;
                CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)
#undef CASE
            }
        }
    }
}

/* Filters [outputs][inputs][k][k] -> [inputs][k][k][a block of outputs], block after block; or, for the way `back`,
 * mirrored and with inputs and outputs exchanged. */
static void pack(const REAL *w, int outputs, int inputs, int k, int back, REAL *to) {
    int taps = k * k, targets = back ? inputs : outputs, sources = back ? outputs : inputs;
    for (int b = 0; b < block_count(targets); b++)
        for (int s = 0; s < sources; s++)
            for (int t = 0; t < taps; t++)
                for (int c = block_start(targets, b); c < block_start(targets, b + 1); c++)
                    *to++ = back ? w[(s * inputs + c) * taps + taps - 1 - t] : w[(c * inputs + s) * taps + t];
}

/* ---- weight gradient of a convolution: g[c][i][ky][kx] += sum over pixels of d[c][x] in[i][x + tap] ---- */

/* What a tile of a weight gradient reads: d of its channels, the input under its first tap. */
typedef struct {
    const REAL *d, *x;
    long d_plane, d_row, x_row;
    int height, width, B;
} Taps;

/* Adds a vector of samples of one pixel: C channels, K neighbouring taps. */
INLINE void taps_vector(const int C, const int K, const REAL *d, long d_plane, int samples, const vec *seen,
                        vec sum[8][5]) {
    UNROLL for (int c = 0; c < C; c++) {
        const vec slope = load_first(d + c * d_plane, samples);
        UNROLL for (int t = 0; t < K; t++) sum[c][t] += slope * seen[t];
    }
}

/* A sample has the same lane at every pixel and adds them in their order, whatever B is. What neighbouring taps read
 * stays in registers, if a pixel has one or two vectors (V; 0: any number). */
INLINE void taps_tile(const int C, const int K, const int V, const Taps *s, REAL *g, long g_plane) {
    vec sum[8][5], seen[2][5];
    const int B = s->B;
    UNROLL for (int c = 0; c < C; c++) UNROLL for (int t = 0; t < K; t++) sum[c][t] = (vec){0};
    for (int y = 0; y < s->height; y++) {
        const REAL *slope = s->d + y * s->d_row, *in = s->x + y * s->x_row;
        UNROLL for (int v = 0; v < V; v++)
            UNROLL for (int t = 1; t < K; t++) seen[v][t] = load(in + (t - 1) * B + v * LANES);
        for (int p = 0; p < s->width; p++, slope += B, in += B) {
            UNROLL for (int v = 0; v < V; v++) {
                UNROLL for (int t = 1; t < K; t++) seen[v][t - 1] = seen[v][t];
                seen[v][K - 1] = load(in + (K - 1) * B + v * LANES);
                taps_vector(C, K, slope + v * LANES, s->d_plane, v < V - 1 ? LANES : B - v * LANES, seen[v], sum);
            }
            for (int b = 0; !V && b < B; b += LANES) {
                UNROLL for (int t = 0; t < K; t++) seen[0][t] = load(in + t * B + b);
                taps_vector(C, K, slope + b, s->d_plane, B - b, seen[0], sum);
            }
        }
    }
    UNROLL for (int c = 0; c < C; c++) UNROLL for (int t = 0; t < K; t++) g[c * g_plane + t] += total(sum[c][t]);
}

/* Channels of a tile: with their sums, registers are full of what is read once (V = 0) or kept of V vectors. */
#define ROOM(K, V) (((V) ? REGISTERS - 3 - (V) * (K) : SUMS + 1) / (K))
#define MOST_TAPS(K, V) (ROOM(K, V) < 1 ? 1 : ROOM(K, V) < 8 ? ROOM(K, V) : 8)
#define KEPT (REGISTERS > 16 ? 2 : 0) /* most vectors that are kept */

static void taps(int C, int K, int V, const Taps *s, REAL *g, long g_plane) {
    switch ((C * 8 + K) * 4 + V) {
#define CASE(c, t, v)                                                                                                  \
    case (c * 8 + t) * 4 + v:                                                                                          \
        if (v <= KEPT && c <= MOST_TAPS(t, v)) taps_tile(c, t, v, s, g, g_plane);                                      \
        break;
#define CASES(c, t) CASE(c, t, 0) CASE(c, t, 1) CASE(c, t, 2)
#define ALL(t) CASES(1, t) CASES(2, t) CASES(3, t) CASES(4, t) CASES(5, t) CASES(6, t) CASES(7, t) CASES(8, t)
        ALL(1) ALL(2) ALL(3) ALL(4) ALL(5)
#undef ALL
#undef CASES
#undef CASE
    }
}

static void conv_weights(View in, int inputs, View d, int outputs, int k, int height, int width, int B, REAL *g,
                         REAL *bias) {
    const int V = B <= KEPT * LANES ? (B + LANES - 1) / LANES : 0;
    for (int kx = 0; kx < k; kx += 5) {
        int K = k - kx < 5 ? k - kx : 5, most = MOST_TAPS(K, V), blocks = (outputs + most - 1) / most;
        for (int b = 0; b < blocks; b++) {
            int from = outputs * b / blocks, count = outputs * (b + 1) / blocks - from;
            Taps s = {d.at + from * d.plane, 0, d.plane, d.row, in.row, height, width, B};
            for (int i = 0; i < inputs; i++)
                for (int ky = 0; ky < k; ky++) {
                    s.x = in.at + i * in.plane + ky * in.row + kx * B;
                    taps(count, K, V, &s, g + ((from * inputs + i) * k + ky) * k + kx, (long)inputs * k * k);
                }
        }
    }
    for (int c = 0; c < outputs; c += 4) { /* four sums that do not wait for each other */
        const int count = least(outputs - c, 4);
        vec sum[4] = {0};
        for (int y = 0; y < height; y++)
            for (const REAL *p = d.at + c * d.plane + y * d.row, *end = p + (long)width * B; p < end; p += B)
                for (int b = 0; b < B; b += LANES)
                    UNROLL for (int i = 0; i < 4; i++)
                        sum[i] += load_first(p + b + least(i, count - 1) * d.plane, B - b);
        for (int i = 0; i < count; i++) bias[c + i] += total(sum[i]);
    }
}

/* ---- linear layers ---- */

/* N vectors of samples, LANES apart but for the last. */
INLINE void matrix_tile(const int R, const int N, const REAL *w, long by_row, long by_term, int terms, const REAL *x,
                        const REAL *bias, REAL *out, int B, long last) {
    vec sum[SUMS][4];
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int v = 0; v < N; v++) sum[r][v] = (vec){0} + (bias ? bias[r] : 0);
    for (int t = 0; t < terms; t++, x += B, w += by_term) {
        vec here[4];
        UNROLL for (int v = 0; v < N; v++) here[v] = load(x + (v < N - 1 ? v * LANES : last));
        UNROLL for (int r = 0; r < R; r++) UNROLL for (int v = 0; v < N; v++) sum[r][v] += here[v] * w[r * by_row];
    }
    UNROLL for (int r = 0; r < R; r++)
        UNROLL for (int v = 0; v < N; v++) store(out + r * B + (v < N - 1 ? v * LANES : last), sum[r][v]);
}

INLINE void matrix_columns(const int N, const REAL *w, long by_row, long by_term, int rows, int terms, const REAL *x,
                           const REAL *bias, REAL *out, int B, long last) {
    const int R = SUMS / N < 12 ? SUMS / N : 12;
    int r = 0;
#define TILES(R)                                                                                                       \
    for (; r + R <= rows; r += R)                                                                                      \
        matrix_tile(R, N, w + r * by_row, by_row, by_term, terms, x, bias ? bias + r : 0, out + (long)r * B, B, last);
    TILES(R) TILES(3) TILES(1)
#undef TILES
}

/* out[r] = bias[r] + sum over t of w[r * by_row + t * by_term] x[t]; both directions of a linear layer. */
static void matrix(const REAL *w, long by_row, long by_term, int rows, int terms, const REAL *x, const REAL *bias,
                   REAL *out, int B) {
    for (long b = 0; b < B; b += 4 * LANES) {
        long last = within(B - b < 4 * LANES ? (B - b - 1) / LANES * LANES : 3 * LANES, B - b);
        switch (B - b < 4 * LANES ? (B - b + LANES - 1) / LANES : 4) {
#define CASE(N)                                                                                                        \
    case N: matrix_columns(N, w, by_row, by_term, rows, terms, x + b, bias, out + b, B, last); break;
            CASE(1) CASE(2) CASE(3) CASE(4)
#undef CASE
        }
    }
}

INLINE void outer_tile(const int R, const int C, const REAL *d, long d_row, int samples, const REAL *xt, long width,
                       REAL *g, long inputs, int valid) {
    vec sum[6][4];
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int c = 0; c < C; c++) sum[r][c] = (vec){0};
    for (int b = 0; b < samples; b++) {
        vec x[4];
        UNROLL for (int c = 0; c < C; c++) x[c] = load(xt + b * width + c * LANES);
        UNROLL for (int r = 0; r < R; r++) UNROLL for (int c = 0; c < C; c++) sum[r][c] += x[c] * d[r * d_row + b];
    }
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int c = 0; c < C; c++) {
        REAL *to = g + r * inputs + c * LANES;
        if (valid >= (c + 1) * LANES)
            store(to, load(to) + sum[r][c]);
        else
            for (int i = 0; i < LANES && c * LANES + i < valid; i++) to[i] += sum[r][c][i];
    }
}

/* g[r][i] += sum over samples of d[r][b] xt[b][i]: here a lane is a feature, so that nothing is summed over lanes. */
static void linear_weights(const REAL *d, long d_row, int rows, int samples, const REAL *xt, int inputs, REAL *g) {
    long width = (inputs + LANES - 1) / LANES * LANES;
    for (int i = 0; i < inputs; i += 4 * LANES) {
        int r = 0, valid = inputs - i, vectors = (valid + LANES - 1) / LANES;
        for (; r + SUMS / 4 <= rows && vectors >= 4; r += SUMS / 4)
            outer_tile(SUMS / 4, 4, d + r * d_row, d_row, samples, xt + i, width, g + (long)r * inputs + i, inputs,
                       valid);
        for (; r < rows; r++)
            for (int c = 0; c < 4 && c < vectors; c++)
                outer_tile(1, 1, d + r * d_row, d_row, samples, xt + i + c * LANES, width,
                           g + (long)r * inputs + i + c * LANES, inputs, valid - c * LANES);
    }
}

/* ---- layers without parameters, in place or to a smaller buffer ---- */

INLINE vec larger(vec a, vec b) { return choose(b > a, b, a); }

/* Windows of two by two. */
static void pool(View in, View out, int channels, int height, int width, int B) {
    for (int c = 0; c < channels; c++)
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++)
                for (long i = 0; i < B; i += LANES) {
                    const REAL *a = in.at + c * in.plane + 2 * y * in.row + 2 * x * B + within(i, B), *b = a + in.row;
                    vec m = larger(larger(larger(load(a), load(a + B)), load(b)), load(b + B));
                    store(out.at + c * out.plane + y * out.row + x * B + within(i, B), m);
                }
}

/* The gradients of a window whose first pixel is at a and d, for samples first[0].. and, if N = 2, first[1].. */
INLINE void unpool_vectors(const int N, const REAL *a, long row, REAL *d, long d_row, const REAL *dout, int B,
                           const long *first) {
    const long from[4] = {0, B, row, row + B}, to[4] = {0, B, d_row, d_row + B};
    const vec zero = {0};
    vec value[2][4];
    UNROLL for (int n = 0; n < N; n++) UNROLL for (int p = 0; p < 4; p++) value[n][p] = load(a + from[p] + first[n]);
    UNROLL for (int n = 0; n < N; n++) {
        const vec *v = value[n], m = larger(larger(larger(v[0], v[1]), v[2]), v[3]);
        vec left = load(dout + first[n]);
        UNROLL for (int p = 0; p < 4; p++) {
            const bits here = v[p] == m;
            store(d + to[p] + first[n], choose(here, left, zero));
            left = choose(here, zero, left);
        }
    }
}

/* The first of equal maxima gets the gradient, as in torch. The maximum is taken again: dropout works in place.
 *
 * The gradient may take the place of the values: vectors that overlap are read before one is written. */
static void unpool(View in, View din, View dout, int channels, int height, int width, int B) {
    for (int c = 0; c < channels; c++)
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++) {
                const REAL *a = in.at + c * in.plane + 2 * y * in.row + 2 * x * B;
                REAL *d = din.at + c * din.plane + 2 * y * din.row + 2 * x * B;
                const REAL *slope = dout.at + c * dout.plane + y * dout.row + x * B;
                for (int i = 0, n; i < B; i += n * LANES) {
                    const long first[2] = {i, within(i + LANES, B)};
                    n = first[1] > i && first[1] < i + LANES ? 2 : 1;
                    if (n == 2)
                        unpool_vectors(2, a, in.row, d, din.row, slope, B, first);
                    else
                        unpool_vectors(1, a, in.row, d, din.row, slope, B, first);
                }
            }
}

/* NaN passes, so that a diverged model is seen to have diverged. */
static void relu(View a, const Buffer *s, int B) {
    const vec zero = {0};
    const long n = s->width * B;
    for (int c = 0; c < s->channels; c++)
        for (int y = 0; y < s->height; y++)
            for (long i = 0; i < n; i += LANES) {
                REAL *p = a.at + c * a.plane + y * a.row + within(i, n);
                store(p, choose(load(p) < zero, zero, load(p)));
            }
}

static void relu_back(View a, View d, const Buffer *s, int B) {
    const vec zero = {0};
    const long n = s->width * B;
    for (int c = 0; c < s->channels; c++)
        for (int y = 0; y < s->height; y++)
            for (long i = 0; i < n; i += LANES) {
                REAL *q = d.at + c * d.plane + y * d.row + within(i, n);
                store(q, choose(load(a.at + c * a.plane + y * a.row + within(i, n)) > zero, load(q), zero));
            }
}

/* Multiplies by a mask [samples][channels], or [samples][channels * height * width] if not `whole`. */
static void scale(View a, const Buffer *s, int B, const REAL *mask, int samples, int whole) {
    const long pixels = s->height * s->width, n = whole ? s->channels : s->channels * pixels;
    REAL factors[B];
    memset(factors, 0, sizeof factors);
    for (int c = 0; c < s->channels; c++)
        for (int y = 0; y < s->height; y++)
            for (int x = 0; x < s->width; x++) {
                REAL *p = a.at + c * a.plane + y * a.row + (long)x * B;
                const REAL *m = mask + (whole ? c : c * pixels + y * s->width + x);
                if (!whole || !(x || y))
                    for (int b = 0; b < samples; b++) factors[b] = m[b * n];
                for (int b = 0; b < B; b++) p[b] *= factors[b];
            }
}

/* Samples x[index[b]][..] side by side in a buffer; those behind the last sample are zero. */
static void gather(const REAL *x, const int64_t *index, View a, const Buffer *s, int B, int samples) {
    const long n = s->channels * s->height * s->width;
    const int some = s->width < LANES ? s->width : LANES;
    for (int c = 0; c < s->channels; c++)
        for (int y = 0; y < s->height; y++, x += s->width)
            for (int w = 0; w < s->width; w += LANES)
                for (int b = 0; b < B; b += LANES) {
                    const long pixel = some < LANES ? 0 : within(w, s->width), first = within(b, B);
                    REAL *to = a.at + c * a.plane + y * a.row + pixel * B + first;
                    vec v[LANES] = {0};
                    for (int r = 0; r < LANES && first + r < samples; r++) {
                        const REAL *from = x + index[first + r] * n + pixel;
                        __builtin_prefetch(from + 64); /* samples lie anywhere */
                        if (some == LANES) v[r] = load(from);
                        else memcpy(v + r, from, some * sizeof(REAL));
                    }
                    transposed(v);
                    for (int r = 0; r < some; r++) store(to + r * B, v[r]);
                }
}

/* Features of all samples without border: [i][B] -> [b][i], rows padded with zeros to whole vectors. */
static void transpose(const REAL *x, int features, int B, REAL *to) {
    const long width = (features + LANES - 1) / LANES * LANES;
    for (int i = 0; i < features; i += LANES)
        for (int b = 0; b < B; b += LANES) {
            vec v[LANES];
            for (int r = 0; r < LANES; r++)
                v[r] = i + r < features ? load(x + (long)(i + r) * B + within(b, B)) : (vec){0};
            transposed(v);
            for (int r = 0; r < LANES; r++) store(to + (within(b, B) + r) * width + i, v[r]);
        }
}

/* ---- a network ---- */

static void forward(const Layer *layers, int count, const Buffer *buffers, REAL *work, int B, REAL *const *parameters,
                    REAL *const *packed, REAL *const *masks, long first, int samples) {
    for (int l = 0; l < count; l++) {
        const Layer *s = layers + l;
        const Buffer *in = buffers + s->in, *out = buffers + s->out;
        View a = values(work, in, B), z = values(work, out, B);
        long size = in->channels * in->height * in->width;
        switch (s->kind) {
        case CONV:
            a.at -= s->padding * (a.row + B);
            conv(a, in->channels, s->kernel, B, packed[s->packed], parameters[s->bias], z, out->channels, in,
                 s->padding, out);
            break;
        case POOL: pool(a, z, out->channels, out->height, out->width, B); break;
        case LINEAR:
            matrix(parameters[s->weight], size, 1, out->channels, size, a.at, parameters[s->bias], z.at, B);
            break;
        case RELU: relu(a, in, B); break;
        case SCALE_CHANNELS:
            if (masks) scale(a, in, B, masks[s->mask] + first * in->channels, samples, 1);
            break;
        case SCALE:
            if (masks) scale(a, in, B, masks[s->mask] + first * size, samples, 0);
            break;
        }
    }
}

static void backward(const Layer *layers, int count, const Buffer *buffers, REAL *work, int B, REAL *const *parameters,
                     REAL *const *packed, REAL *const *masks, REAL *const *gradients, REAL *rows, long first,
                     int samples) {
    for (int l = count - 1; l >= 0; l--) {
        const Layer *s = layers + l;
        const Buffer *in = buffers + s->in, *out = buffers + s->out;
        View a = values(work, in, B), d = slopes(work, in, B), dz = slopes(work, out, B);
        long size = in->channels * in->height * in->width;
        switch (s->kind) {
        case CONV:
            a.at -= s->padding * (a.row + B);
            conv_weights(a, in->channels, dz, out->channels, s->kernel, out->height, out->width, B,
                         gradients[s->weight], gradients[s->bias]);
            if (s->in) {
                int padding = s->kernel - 1 - s->padding;
                dz.at -= padding * (dz.row + B);
                conv(dz, out->channels, s->kernel, B, packed[s->packed_back], 0, d, in->channels, out, padding, in);
            }
            break;
        case POOL: unpool(a, d, dz, out->channels, out->height, out->width, B); break;
        case LINEAR:
            transpose(a.at, size, B, rows);
            linear_weights(dz.at, B, out->channels, samples, rows, size, gradients[s->weight]);
            for (int r = 0; r < out->channels; r++)
                for (int b = 0; b < B; b += LANES)
                    gradients[s->bias][r] += total(load_first(dz.at + (long)r * B + b, B - b));
            if (s->in) matrix(parameters[s->weight], 1, size, size, out->channels, dz.at, 0, d.at, B);
            break;
        case RELU: relu_back(a, d, in, B); break;
        case SCALE_CHANNELS:
            if (masks) scale(d, in, B, masks[s->mask] + first * in->channels, samples, 1);
            break;
        case SCALE:
            if (masks) scale(d, in, B, masks[s->mask] + first * size, samples, 0);
            break;
        }
    }
}

/* Gradient of the mean cross-entropy with respect to the logits of the samples; zero behind the last one. */
static void cross_entropy(const REAL *z, REAL *d, int classes, long n, const int64_t *labels, const int64_t *index,
                          int samples, REAL share) {
    for (long i = 0; i < classes * n; i++) d[i] = 0;
    for (int b = 0; b < samples; b++) {
        REAL top = z[b], norm = 0;
        for (int c = 1; c < classes; c++) top = z[c * n + b] > top ? z[c * n + b] : top;
        for (int c = 0; c < classes; c++) norm += d[c * n + b] = exponential(z[c * n + b] - top);
        for (int c = 0; c < classes; c++) d[c * n + b] = (d[c * n + b] / norm - (labels[index[b]] == c)) * share;
    }
}

static void pack_all(const Layer *layers, int count, const Buffer *buffers, REAL *const *parameters,
                     REAL *const *packed, int back) {
    for (const Layer *s = layers; s < layers + count; s++)
        if (s->kind == CONV)
            for (int way = 0; way <= (back && s->in); way++)
                pack(parameters[s->weight], buffers[s->out].channels, buffers[s->in].channels, s->kernel, way,
                     packed[way ? s->packed_back : s->packed]);
}

/* The gradient of the mean loss of `samples` samples x[index[.]] is added to `gradients`, piece by piece. */
static void add_gradient(const Network *net, REAL *const *parameters, REAL *const *masks, REAL *const *gradients,
                         const REAL *x, const int64_t *labels, const int64_t *index, int samples) {
    const Buffer *in = net->buffers, *out = in + net->layers[net->count - 1].out;
    int B = net->piece;
    pack_all(net->layers, net->count, in, parameters, net->packed, 1);
    for (int first = 0; first < samples; first += B) {
        int here = samples - first < B ? samples - first : B;
        for (int b = 0; b < here; b++) __builtin_prefetch(labels + index[first + b]); /* so do labels */
        gather(x, index + first, values(net->work, in, B), in, B, here);
        forward(net->layers, net->count, in, net->work, B, parameters, net->packed, masks, first, here);
        cross_entropy(values(net->work, out, B).at, slopes(net->work, out, B).at, out->channels, B, labels,
                      index + first, here, (REAL)1 / samples);
        backward(net->layers, net->count, in, net->work, B, parameters, net->packed, masks, gradients, net->rows,
                 first, here);
    }
}

/* Steps `from` up to `to` of a local run: y[size] is the flat model, parameters and gradients point into y and g.
 *
 * index [to - from][width] names the samples of each step, -1 behind a short batch; `batch`, the size of a full one, is
 * of `channel_steps` alone; masks [layers with dropout] point to the factors of step `from`, `mask_step` numbers apart
 * for consecutive steps. */
void local_steps(const Network *net, const Descent *run, int64_t from, int64_t to, REAL *y, REAL *g,
                 REAL *const *parameters, REAL *const *gradients, const REAL *x, const int64_t *labels,
                 const int64_t *index, int64_t width, int64_t batch, REAL *const *masks, int64_t drops,
                 int64_t mask_step) {
    REAL *here[MASKS];
    for (int64_t k = from; k < to; k++, index += width) {
        int samples = 0;
        while (samples < width && index[samples] >= 0) samples++;
        for (int64_t m = 0; m < drops; m++) here[m] = masks[m] + (k - from) * mask_step;
        memset(g, 0, run->size * sizeof(REAL));
        add_gradient(net, parameters, drops ? here : 0, gradients, x, labels, index, samples);
        descend(run, k, y, g);
    }
}

/* out [samples][classes]: the logits of samples x[index[.]], without dropout. */
void logits(const Network *net, REAL *const *parameters, const REAL *x, const int64_t *index, int64_t samples,
            REAL *out) {
    const Buffer *in = net->buffers, *last = in + net->layers[net->count - 1].out;
    int B = net->piece;
    pack_all(net->layers, net->count, in, parameters, net->packed, 0);
    for (int64_t first = 0; first < samples; first += B) {
        int here = samples - first < B ? samples - first : B;
        gather(x, index + first, values(net->work, in, B), in, B, here);
        forward(net->layers, net->count, in, net->work, B, parameters, net->packed, 0, first, here);
        const REAL *z = values(net->work, last, B).at;
        for (int b = 0; b < here; b++)
            for (int c = 0; c < last->channels; c++) out[(first + b) * last->channels + c] = z[(long)c * B + b];
    }
}
