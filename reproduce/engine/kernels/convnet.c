/* Gradients of small convolutional networks, one model at a time, on the processor's vector units.
 *
 * A lane of a vector is a sample: an activation is [channel][row][column][V] vectors, V vectors holding the V * LANES
 * samples of a piece. Weights are scalars that are broadcast, so that convolutions of any width and filter fill the
 * vectors as long as the batch does, and a filter tap is a shift by V vectors within a row. Sums stay in registers:
 * CHANNELS x PIXELS accumulators in a convolution, CHANNELS x taps in its weight gradient.
 *
 * Buffers have the border of zeros that the convolution reading them needs: activations the padding of the next layer,
 * gradients k - 1 - padding for the way back, which is again a convolution. Borders are zeroed once, by the caller.
 */
#include "network.h"

/* An image as the kernels see it: its first inner element, vectors per row and per channel. */
typedef struct {
    vec *at;
    long row, plane;
} View;

static View view(vec *work, int64_t at, const Buffer *b, int64_t border, int V) {
    long row = (b->width + 2 * border) * V, plane = row * (b->height + 2 * border);
    return (View){work + at * V + border * (row + V), row, plane};
}
static View values(vec *work, const Buffer *b, int V) { return view(work, b->at, b, b->border, V); }
static View slopes(vec *work, const Buffer *b, int V) { return view(work, b->gradient_at, b, b->gradient_border, V); }

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
    const vec *in; /* the row's first element, border included */
    long plane, row, out_plane;
    int inputs, k, V, outputs, padding, width;
    Range rows;
    const REAL *w, *bias;
} Conv;

INLINE void conv_tile(const int C, const int P, const Conv *s, long at, vec *out) {
    vec sum[12][4];
    UNROLL for (int c = 0; c < C; c++)
        UNROLL for (int p = 0; p < P; p++) sum[c][p] = (vec){0} + (s->bias ? s->bias[c] : 0);
    const Range taps = meeting(at / s->V, (at + P - 1) / s->V, s->k, s->padding, s->width), rows = s->rows;
    const long V = s->V, outputs = s->outputs, run = taps.to - taps.from, height = rows.to - rows.from;
    const long row = s->row - run * V, plane = s->plane - height * s->row; /* from the end of one to the next */
    const long w_row = (s->k - run) * outputs, w_plane = (s->k - height) * s->k * outputs;
    const vec *x = s->in + at + rows.from * s->row + taps.from * V;
    const REAL *w = s->w + (rows.from * s->k + taps.from) * outputs;
    for (int i = 0; i < s->inputs; i++, x += plane, w += w_plane)
        for (long ky = 0; ky < height; ky++, x += row, w += w_row)
            for (long kx = 0; kx < run; kx++, x += V, w += outputs) {
                vec here[4];
                UNROLL for (int p = 0; p < P; p++) here[p] = x[p];
                UNROLL for (int c = 0; c < C; c++) UNROLL for (int p = 0; p < P; p++) sum[c][p] += here[p] * w[c];
            }
    UNROLL for (int c = 0; c < C; c++) UNROLL for (int p = 0; p < P; p++) out[c * s->out_plane + p] = sum[c][p];
}

INLINE void conv_row(const int C, const int P, const Conv *s, vec *out, long n) {
    long t = 0;
    for (; t + P <= n; t += P) conv_tile(C, P, s, t, out + t);
    for (; t < n; t++) conv_tile(C, 1, s, t, out + t);
}

#define MOST_CHANNELS (SUMS / 2) /* of a tile of two pixels */

/* `in` is the view including its border of `padding`, [height][width] what is inside; w [inputs][k][k][outputs]. */
static void conv(View in, int inputs, int k, int V, const REAL *w, const REAL *bias, View out, int outputs,
                 const Buffer *source, int padding, const Buffer *target) {
    int blocks = (outputs + MOST_CHANNELS - 1) / MOST_CHANNELS;
    for (int b = 0; b < blocks; b++) {
        int from = outputs * b / blocks, count = outputs * (b + 1) / blocks - from;
        for (int y = 0; y < target->height; y++) {
            const Conv s = {in.at + y * in.row, in.plane, in.row, out.plane, inputs, k, V, outputs, padding,
                            source->width, meeting(y, y, k, padding, source->height), w + from, bias ? bias + from : 0};
            vec *o = out.at + from * out.plane + y * out.row;
            switch (count) {
#define CASE(C)                                                                                                        \
    case C:                                                                                                            \
        if (C <= MOST_CHANNELS) conv_row(C, SUMS / C < 4 ? SUMS / C : 4, &s, o, (long)target->width * V);              \
        break;
                CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)
#undef CASE
            }
        }
    }
}

/* [outputs][inputs][k][k] -> [inputs][k][k][outputs], or mirrored [outputs][k][k][inputs] for the way back. */
static void pack(const REAL *w, int outputs, int inputs, int k, REAL *to, REAL *back) {
    int taps = k * k;
    for (int o = 0; o < outputs; o++)
        for (int i = 0; i < inputs; i++)
            for (int t = 0; t < taps; t++) {
                REAL value = w[(o * inputs + i) * taps + t];
                to[(i * taps + t) * outputs + o] = value;
                if (back) back[(o * taps + taps - 1 - t) * inputs + i] = value;
            }
}

/* ---- weight gradient of a convolution: g[c][i][ky][kx] += sum over pixels of d[c][x] in[i][x + tap] ---- */

INLINE void taps_tile(const int C, const int K, const vec *d, long d_plane, long d_row, const vec *x, long x_row,
                      int height, long n, int V, REAL *g, long g_plane) {
    vec sum[8][5];
    UNROLL for (int c = 0; c < C; c++) UNROLL for (int t = 0; t < K; t++) sum[c][t] = (vec){0};
    for (int y = 0; y < height; y++)
        for (long p = 0; p < n; p++) {
            vec shifted[5];
            UNROLL for (int t = 0; t < K; t++) shifted[t] = x[y * x_row + p + t * V];
            UNROLL for (int c = 0; c < C; c++) {
                vec slope = d[c * d_plane + y * d_row + p];
                UNROLL for (int t = 0; t < K; t++) sum[c][t] += slope * shifted[t];
            }
        }
    UNROLL for (int c = 0; c < C; c++) UNROLL for (int t = 0; t < K; t++) g[c * g_plane + t] += total(sum[c][t]);
}

#define MOST_TAPS(K) (SUMS / (K) < 1 ? 1 : (SUMS + 1) / (K) < 8 ? (SUMS + 1) / (K) : 8) /* 5 x 5 fits 32 registers */

static void taps(int C, int K, const vec *d, View dv, const vec *x, View in, int height, long n, int V, REAL *g,
                 long g_plane) {
    switch (C * 8 + K) {
#define CASE(c, t)                                                                                                     \
    case c * 8 + t:                                                                                                    \
        if (c <= MOST_TAPS(t)) taps_tile(c, t, d, dv.plane, dv.row, x, in.row, height, n, V, g, g_plane);              \
        break;
#define CASES(t) CASE(1, t) CASE(2, t) CASE(3, t) CASE(4, t) CASE(5, t) CASE(6, t) CASE(7, t) CASE(8, t)
        CASES(1) CASES(2) CASES(3) CASES(4) CASES(5)
#undef CASES
#undef CASE
    }
}

static void conv_weights(View in, int inputs, View d, int outputs, int k, int height, int width, int V, REAL *g,
                         REAL *bias) {
    for (int kx = 0; kx < k; kx += 5) {
        int K = k - kx < 5 ? k - kx : 5, most = MOST_TAPS(K), blocks = (outputs + most - 1) / most;
        for (int b = 0; b < blocks; b++) {
            int from = outputs * b / blocks, count = outputs * (b + 1) / blocks - from;
            const vec *slope = d.at + from * d.plane;
            for (int i = 0; i < inputs; i++)
                for (int ky = 0; ky < k; ky++)
                    taps(count, K, slope, d, in.at + i * in.plane + ky * in.row + kx * V, in, height, (long)width * V,
                         V, g + ((from * inputs + i) * k + ky) * k + kx, (long)inputs * k * k);
        }
    }
    for (int c = 0; c < outputs; c++) {
        vec sum = {0};
        for (int y = 0; y < height; y++)
            for (long p = 0; p < (long)width * V; p++) sum += d.at[c * d.plane + y * d.row + p];
        bias[c] += total(sum);
    }
}

/* ---- linear layers ---- */

INLINE void matrix_tile(const int R, const int N, const REAL *w, long by_row, long by_term, int terms, const vec *x,
                        const REAL *bias, vec *out, int V) {
    vec sum[SUMS][4];
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int v = 0; v < N; v++) sum[r][v] = (vec){0} + (bias ? bias[r] : 0);
    for (int t = 0; t < terms; t++, x += V, w += by_term) {
        vec here[4];
        UNROLL for (int v = 0; v < N; v++) here[v] = x[v];
        UNROLL for (int r = 0; r < R; r++) UNROLL for (int v = 0; v < N; v++) sum[r][v] += here[v] * w[r * by_row];
    }
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int v = 0; v < N; v++) out[r * V + v] = sum[r][v];
}

INLINE void matrix_columns(const int N, const REAL *w, long by_row, long by_term, int rows, int terms, const vec *x,
                           const REAL *bias, vec *out, int V) {
    const int R = SUMS / N < 12 ? SUMS / N : 12;
    int r = 0;
    for (; r + R <= rows; r += R)
        matrix_tile(R, N, w + r * by_row, by_row, by_term, terms, x, bias ? bias + r : 0, out + (long)r * V, V);
    for (; r + 3 <= rows; r += 3)
        matrix_tile(3, N, w + r * by_row, by_row, by_term, terms, x, bias ? bias + r : 0, out + (long)r * V, V);
    for (; r < rows; r++)
        matrix_tile(1, N, w + r * by_row, by_row, by_term, terms, x, bias ? bias + r : 0, out + (long)r * V, V);
}

/* out[r] = bias[r] + sum over t of w[r * by_row + t * by_term] x[t]; both directions of a linear layer. */
static void matrix(const REAL *w, long by_row, long by_term, int rows, int terms, const vec *x, const REAL *bias,
                   vec *out, int V) {
    int v = 0;
    for (; v + 4 <= V; v += 4) matrix_columns(4, w, by_row, by_term, rows, terms, x + v, bias, out + v, V);
    switch (V - v) {
    case 3: matrix_columns(3, w, by_row, by_term, rows, terms, x + v, bias, out + v, V); break;
    case 2: matrix_columns(2, w, by_row, by_term, rows, terms, x + v, bias, out + v, V); break;
    case 1: matrix_columns(1, w, by_row, by_term, rows, terms, x + v, bias, out + v, V); break;
    }
}

INLINE void outer_tile(const int R, const int C, const REAL *d, long d_row, int samples, const REAL *xt, long width,
                       REAL *g, long inputs, int valid) {
    loose sum[6][4];
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int c = 0; c < C; c++) sum[r][c] = (loose){0};
    for (int b = 0; b < samples; b++) {
        loose x[4];
        UNROLL for (int c = 0; c < C; c++) x[c] = *(const loose *)(xt + b * width + c * LANES);
        UNROLL for (int r = 0; r < R; r++) UNROLL for (int c = 0; c < C; c++) sum[r][c] += x[c] * d[r * d_row + b];
    }
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int c = 0; c < C; c++) {
        if (valid >= (c + 1) * LANES) {
            loose *to = (loose *)(g + r * inputs + c * LANES);
            *to += sum[r][c];
        } else
            for (int i = 0; i < LANES && c * LANES + i < valid; i++) g[r * inputs + c * LANES + i] += sum[r][c][i];
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

INLINE vec largest(const vec *a, const vec *b, int V) {
    vec m = choose(a[V] > a[0], a[V], a[0]);
    m = choose(b[0] > m, b[0], m);
    return choose(b[V] > m, b[V], m);
}

static void pool(View in, View out, int channels, int height, int width, int V) {
    for (int c = 0; c < channels; c++)
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++)
                for (int v = 0; v < V; v++) {
                    const vec *a = in.at + c * in.plane + 2 * y * in.row + 2 * x * V + v, *b = a + in.row;
                    out.at[c * out.plane + y * out.row + x * V + v] = largest(a, b, V);
                }
}

/* The first of equal maxima gets the gradient, as in torch. The maximum is taken again: dropout works in place. */
static void unpool(View in, View din, View dout, int channels, int height, int width, int V) {
    const vec zero = {0};
    for (int c = 0; c < channels; c++)
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++)
                for (int v = 0; v < V; v++) {
                    const vec *a = in.at + c * in.plane + 2 * y * in.row + 2 * x * V + v, *b = a + in.row;
                    vec *da = din.at + c * din.plane + 2 * y * din.row + 2 * x * V + v, *db = da + din.row;
                    vec m = largest(a, b, V), left = dout.at[c * dout.plane + y * dout.row + x * V + v];
                    da[0] = choose(a[0] == m, left, zero);
                    left = choose(a[0] == m, zero, left);
                    da[V] = choose(a[V] == m, left, zero);
                    left = choose(a[V] == m, zero, left);
                    db[0] = choose(b[0] == m, left, zero);
                    left = choose(b[0] == m, zero, left);
                    db[V] = choose(b[V] == m, left, zero);
                }
}

/* NaN passes, so that a diverged model is seen to have diverged. */
static void relu(View a, const Buffer *s, int V) {
    const vec zero = {0};
    for (int c = 0; c < s->channels; c++)
        for (int y = 0; y < s->height; y++) {
            vec *p = a.at + c * a.plane + y * a.row;
            for (long i = 0; i < s->width * V; i++) p[i] = choose(p[i] < zero, zero, p[i]);
        }
}

static void relu_back(View a, View d, const Buffer *s, int V) {
    const vec zero = {0};
    for (int c = 0; c < s->channels; c++)
        for (int y = 0; y < s->height; y++) {
            vec *p = a.at + c * a.plane + y * a.row, *q = d.at + c * d.plane + y * d.row;
            for (long i = 0; i < s->width * V; i++) q[i] = choose(p[i] > zero, q[i], zero);
        }
}

/* Multiplies by a mask [samples][channels], or [samples][channels * height * width] if not `whole`. */
static void scale(View a, const Buffer *s, int V, const REAL *mask, int samples, int whole) {
    const long pixels = s->height * s->width, n = whole ? s->channels : s->channels * pixels;
    vec factors[V];
    REAL *lane = (REAL *)factors;
    memset(factors, 0, sizeof factors);
    for (int c = 0; c < s->channels; c++)
        for (int y = 0; y < s->height; y++)
            for (int x = 0; x < s->width; x++) {
                vec *p = a.at + c * a.plane + y * a.row + (long)x * V;
                const REAL *m = mask + (whole ? c : c * pixels + y * s->width + x);
                if (!whole || !(x || y))
                    for (int b = 0; b < samples; b++) lane[b] = m[b * n];
                for (int v = 0; v < V; v++) p[v] *= factors[v];
            }
}

/* Samples x[index[b]][n] -> lanes of a buffer; the lanes behind the last sample are zero. */
static void gather(const REAL *x, const int64_t *index, View a, const Buffer *s, int V, int samples) {
    long n = s->channels * s->height * s->width;
    for (int c = 0; c < s->channels; c++)
        for (int y = 0; y < s->height; y++)
            for (int w = 0; w < s->width; w++, x++) {
                REAL *p = (REAL *)(a.at + c * a.plane + y * a.row + (long)w * V);
                for (int b = 0; b < samples; b++) p[b] = x[index[b] * n];
                for (int b = samples; b < V * LANES; b++) p[b] = 0;
            }
}

/* Features of all samples without border: [i][V] vectors -> [b][i], rows padded with zeros to whole vectors. */
static void transpose(const vec *x, int features, int V, int samples, REAL *to) {
    long width = (features + LANES - 1) / LANES * LANES;
    for (int b = 0; b < samples; b++) {
        const REAL *from = (const REAL *)x + b;
        for (int i = 0; i < features; i++) to[b * width + i] = from[(long)i * V * LANES];
        for (int i = features; i < width; i++) to[b * width + i] = 0;
    }
}

/* ---- a network ---- */

static void forward(const Layer *layers, int count, const Buffer *buffers, vec *work, int V, REAL *const *parameters,
                    REAL *const *packed, REAL *const *masks, long first, int samples) {
    for (int l = 0; l < count; l++) {
        const Layer *s = layers + l;
        const Buffer *in = buffers + s->in, *out = buffers + s->out;
        View a = values(work, in, V), z = values(work, out, V);
        long size = in->channels * in->height * in->width;
        switch (s->kind) {
        case CONV:
            a.at -= s->padding * (a.row + V);
            conv(a, in->channels, s->kernel, V, packed[s->packed], parameters[s->bias], z, out->channels, in,
                 s->padding, out);
            break;
        case POOL: pool(a, z, out->channels, out->height, out->width, V); break;
        case LINEAR:
            matrix(parameters[s->weight], size, 1, out->channels, size, a.at, parameters[s->bias], z.at, V);
            break;
        case RELU: relu(a, in, V); break;
        case SCALE_CHANNELS:
            if (masks) scale(a, in, V, masks[s->mask] + first * in->channels, samples, 1);
            break;
        case SCALE:
            if (masks) scale(a, in, V, masks[s->mask] + first * size, samples, 0);
            break;
        }
    }
}

static void backward(const Layer *layers, int count, const Buffer *buffers, vec *work, int V, REAL *const *parameters,
                     REAL *const *packed, REAL *const *masks, REAL *const *gradients, REAL *rows, long first,
                     int samples) {
    for (int l = count - 1; l >= 0; l--) {
        const Layer *s = layers + l;
        const Buffer *in = buffers + s->in, *out = buffers + s->out;
        View a = values(work, in, V), d = slopes(work, in, V), dz = slopes(work, out, V);
        long size = in->channels * in->height * in->width;
        switch (s->kind) {
        case CONV:
            a.at -= s->padding * (a.row + V);
            conv_weights(a, in->channels, dz, out->channels, s->kernel, out->height, out->width, V,
                         gradients[s->weight], gradients[s->bias]);
            if (s->in) {
                int padding = s->kernel - 1 - s->padding;
                dz.at -= padding * (dz.row + V);
                conv(dz, out->channels, s->kernel, V, packed[s->packed_back], 0, d, in->channels, out, padding, in);
            }
            break;
        case POOL: unpool(a, d, dz, out->channels, out->height, out->width, V); break;
        case LINEAR:
            transpose(a.at, size, V, samples, rows);
            linear_weights((REAL *)dz.at, (long)V * LANES, out->channels, samples, rows, size, gradients[s->weight]);
            for (int r = 0; r < out->channels; r++)
                for (int v = 0; v < V; v++) gradients[s->bias][r] += total(dz.at[r * V + v]);
            if (s->in) matrix(parameters[s->weight], 1, size, size, out->channels, dz.at, 0, d.at, V);
            break;
        case RELU: relu_back(a, d, in, V); break;
        case SCALE_CHANNELS:
            if (masks) scale(d, in, V, masks[s->mask] + first * in->channels, samples, 1);
            break;
        case SCALE:
            if (masks) scale(d, in, V, masks[s->mask] + first * size, samples, 0);
            break;
        }
    }
}

/* Gradient of the mean cross-entropy with respect to the logits, in the lanes of the samples; zero in the others. */
static void cross_entropy(const vec *logits, vec *slope, int classes, int V, const int64_t *labels,
                          const int64_t *index, int samples, REAL share) {
    const REAL *z = (const REAL *)logits;
    REAL *d = (REAL *)slope;
    long n = (long)V * LANES;
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
            pack(parameters[s->weight], buffers[s->out].channels, buffers[s->in].channels, s->kernel,
                 packed[s->packed], back && s->in ? packed[s->packed_back] : 0);
}

/* The gradient of the mean loss of `samples` samples x[index[.]] is added to `gradients`, piece by piece. */
static void add_gradient(const Network *net, REAL *const *parameters, REAL *const *masks, REAL *const *gradients,
                         const REAL *x, const int64_t *labels, const int64_t *index, int samples) {
    const Buffer *in = net->buffers, *out = in + net->layers[net->count - 1].out;
    int V = net->piece / LANES, piece = net->piece;
    pack_all(net->layers, net->count, in, parameters, net->packed, 1);
    for (int first = 0; first < samples; first += piece) {
        int here = samples - first < piece ? samples - first : piece;
        gather(x, index + first, values(net->work, in, V), in, V, here);
        forward(net->layers, net->count, in, net->work, V, parameters, net->packed, masks, first, here);
        cross_entropy(values(net->work, out, V).at, slopes(net->work, out, V).at, out->channels, V, labels,
                      index + first, here, (REAL)1 / samples);
        backward(net->layers, net->count, in, net->work, V, parameters, net->packed, masks, gradients, net->rows,
                 first, here);
    }
}

/* Steps `from` up to `to` of a local run: y[size] is the flat model, parameters and gradients point into y and g.
 *
 * index [to - from][batch] names the samples of each step, -1 behind a short batch; masks [layers with dropout] point
 * to the factors of step `from`, `mask_step` numbers apart for consecutive steps. */
void local_steps(const Network *net, const Descent *run, int64_t from, int64_t to, REAL *y, REAL *g,
                 REAL *const *parameters, REAL *const *gradients, const REAL *x, const int64_t *labels,
                 const int64_t *index, int64_t batch, REAL *const *masks, int64_t drops, int64_t mask_step) {
    REAL *here[MASKS];
    for (int64_t k = from; k < to; k++, index += batch) {
        int samples = 0;
        while (samples < batch && index[samples] >= 0) samples++;
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
    int V = net->piece / LANES, piece = net->piece;
    pack_all(net->layers, net->count, in, parameters, net->packed, 0);
    for (int64_t first = 0; first < samples; first += piece) {
        int here = samples - first < piece ? samples - first : piece;
        gather(x, index + first, values(net->work, in, V), in, V, here);
        forward(net->layers, net->count, in, net->work, V, parameters, net->packed, 0, first, here);
        const REAL *z = (const REAL *)values(net->work, last, V).at;
        for (int b = 0; b < here; b++)
            for (int c = 0; c < last->channels; c++) out[(first + b) * last->channels + c] = z[(long)c * piece + b];
    }
}
