/* Gradients of the same networks with a channel in every lane: for batches that do not fill the lanes with samples.
 *
 * An activation is [sample][row][column][channel]. A convolution broadcasts its inputs and reads its weights as
 * [tap][input][output]; a tile is one pixel of several samples, so that all of it meets the same taps and the border is
 * never computed. Linear layers keep PyTorch's weights [output][feature], a feature in every lane. Convolutions behind
 * the first need channels that fill whole vectors (compiled.py sees to it); features may end anywhere.
 */
#include "linear.h"

/* ---- convolution: out[b][pixel][o] = bias[o] + sum over taps and inputs of in[b][pixel + tap][i] w[tap][i][o] ---- */

typedef struct {
    int64_t inputs, outputs, height, width, out_height, out_width, kernel, padding, in_size, out_size;
} Shape;

static Shape shape(const Buffer *in, const Buffer *out, int64_t kernel, int64_t padding) {
    return (Shape){in->channels, out->channels, in->height, in->width, out->height, out->width, kernel, padding,
                   in->channels * in->height * in->width, out->channels * out->height * out->width};
}

/* Taps from..to of a filter that meet an input when it stands at `at`. */
INLINE void meeting(int64_t at, int64_t kernel, int64_t padding, int64_t length, int64_t *from, int64_t *to) {
    *from = padding > at ? padding - at : 0;
    *to = length + padding - at < kernel ? length + padding - at : kernel;
}

INLINE void conv_tile(const int P, const int C, const Shape *s, const REAL *in, int64_t y, int64_t x, const REAL *w,
                      const REAL *bias, REAL *out) {
    vec sum[SAMPLES][2];
    UNROLL for (int p = 0; p < P; p++)
        UNROLL for (int c = 0; c < C; c++) sum[p][c] = bias ? load(bias + c * LANES) : (vec){0};
    int64_t y0, y1, x0, x1;
    meeting(y, s->kernel, s->padding, s->height, &y0, &y1);
    meeting(x, s->kernel, s->padding, s->width, &x0, &x1);
    const int64_t run = (x1 - x0) * s->inputs, size = s->in_size, outputs = s->outputs;
    for (int64_t ky = y0; ky < y1; ky++) {
        const REAL *value = in + ((y + ky - s->padding) * s->width + x + x0 - s->padding) * s->inputs;
        const REAL *v = w + (ky * s->kernel + x0) * s->inputs * outputs;
        for (int64_t t = 0; t < run; t++, v += outputs) {
            const vec a = load(v), b = C > 1 ? load(v + LANES) : a;
            UNROLL for (int p = 0; p < P; p++) {
                const vec same = (vec){0} + value[p * size + t];
                sum[p][0] += a * same;
                if (C > 1) sum[p][1] += b * same;
            }
        }
    }
    UNROLL for (int p = 0; p < P; p++)
        UNROLL for (int c = 0; c < C; c++) store(out + p * s->out_size + c * LANES, sum[p][c]);
}

INLINE void conv_columns(const int C, const Shape *s, const REAL *in, const REAL *w, const REAL *bias, REAL *out,
                         int samples) {
    for (int64_t y = 0; y < s->out_height; y++)
        for (int64_t x = 0; x < s->out_width; x++) {
            REAL *o = out + (y * s->out_width + x) * s->outputs;
#define TILE(P) conv_tile(P, C, s, in + b * s->in_size, y, x, w, bias, o + b * s->out_size)
            EACH_BLOCK(samples, MOST(C), TILE)
#undef TILE
        }
}

/* w [k][k][inputs][outputs]; outputs fill whole vectors. */
static void conv(const Shape *s, const REAL *in, const REAL *w, const REAL *bias, REAL *out, int samples) {
    int64_t o = 0;
    for (; o + 2 * LANES <= s->outputs; o += 2 * LANES)
        conv_columns(2, s, in, w + o, bias ? bias + o : 0, out + o, samples);
    for (; o < s->outputs; o += LANES) conv_columns(1, s, in, w + o, bias ? bias + o : 0, out + o, samples);
}

/* [k][k][inputs][outputs] -> mirrored [k][k][outputs][inputs], for the way back. */
static void mirror(const REAL *w, const Shape *s, REAL *to) {
    int64_t taps = s->kernel * s->kernel, inputs = s->inputs, outputs = s->outputs;
    for (int64_t t = 0; t < taps; t++) {
        const REAL *from = w + (taps - 1 - t) * inputs * outputs;
        for (int64_t o = 0; o < outputs; o += 8)
            for (int64_t i = 0; i < inputs; i++)
                for (int64_t j = o; j < o + 8 && j < outputs; j++)
                    to[(t * outputs + j) * inputs + i] = from[i * outputs + j];
    }
}

/* ---- weight gradient: g[tap][i][o] = sum over samples and pixels of in[b][pixel + tap][i] d[b][pixel][o] ---- */

/* R consecutive inputs (of `run` for one tap, or for a row of taps) x C vectors of outputs. */
INLINE void weights_tile(const int R, const int C, const Shape *s, const REAL *in, const REAL *d, int64_t ky,
                         int64_t kx, int samples, REAL *g, Into into) {
    vec sum[SAMPLES][2];
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int c = 0; c < C; c++) sum[r][c] = (vec){0};
    const int64_t y0 = s->padding > ky ? s->padding - ky : 0, x0 = s->padding > kx ? s->padding - kx : 0;
    const int64_t yn = s->height + s->padding - ky, xn = s->width + s->padding - kx;
    const int64_t y1 = yn < s->out_height ? yn : s->out_height, x1 = xn < s->out_width ? xn : s->out_width;
    for (int b = 0; b < samples; b++)
        for (int64_t y = y0; y < y1; y++) {
            const REAL *a = in + b * s->in_size + ((y + ky - s->padding) * s->width + x0 + kx - s->padding) * s->inputs;
            const REAL *e = d + b * s->out_size + (y * s->out_width + x0) * s->outputs;
            for (int64_t x = x0; x < x1; x++, a += s->inputs, e += s->outputs) {
                const vec left = load(e), right = C > 1 ? load(e + LANES) : left;
                UNROLL for (int r = 0; r < R; r++) {
                    const vec value = (vec){0} + a[r];
                    sum[r][0] += left * value;
                    if (C > 1) sum[r][1] += right * value;
                }
            }
        }
    UNROLL for (int r = 0; r < R; r++)
        UNROLL for (int c = 0; c < C; c++) put(g + r * s->outputs + c * LANES, sum[r][c], into);
}

INLINE void weights_columns(const int C, const Shape *s, const REAL *in, const REAL *d, int samples, REAL *g,
                            Into into) {
    /* Without padding all pixels meet all taps, and a row of taps is one run of inputs. */
    const int64_t taps = s->padding ? s->kernel : 1, run = s->padding ? s->inputs : s->inputs * s->kernel;
    for (int64_t ky = 0; ky < s->kernel; ky++)
        for (int64_t kx = 0; kx < taps; kx++) {
            REAL *to = g + (ky * s->kernel + kx) * s->inputs * s->outputs;
#define TILE(R) weights_tile(R, C, s, in + b, d, ky, kx, samples, to + b * s->outputs, into)
            EACH_BLOCK(run, MOST(C), TILE)
#undef TILE
        }
}

static void conv_weights(const Shape *s, const REAL *in, const REAL *d, int samples, REAL *g, REAL *bias, Into into) {
    int64_t o = 0;
    for (; o + 2 * LANES <= s->outputs; o += 2 * LANES) weights_columns(2, s, in, d + o, samples, g + o, into);
    for (; o < s->outputs; o += LANES) weights_columns(1, s, in, d + o, samples, g + o, into);
    for (o = 0; o < s->outputs; o += LANES) {
        vec sum = {0};
        for (const REAL *e = d + o; e < d + samples * s->out_size; e += s->outputs) sum += load(e);
        put(bias + o, sum, into);
    }
}

/* ---- layers without parameters ---- */

INLINE vec larger(vec a, vec b) { return choose(b > a, b, a); }

/* Windows of two by two; the first of equal maxima gets the gradient, as in torch. */
static void pool(const Buffer *in, const Buffer *out, const REAL *x, REAL *z, int samples) {
    int64_t c = in->channels, row = in->width * c, size = in->height * row;
    for (int b = 0; b < samples; b++)
        for (int64_t y = 0; y < out->height; y++)
            for (int64_t w = 0; w < out->width; w++, z += c)
                for (int64_t i = 0; i < c; i += LANES) {
                    const REAL *a = x + b * size + 2 * y * row + 2 * w * c + i;
                    store(z + i, larger(larger(larger(load(a), load(a + c)), load(a + row)), load(a + row + c)));
                }
}

static void unpool(const Buffer *in, const Buffer *out, const REAL *x, REAL *dx, const REAL *dz, int samples) {
    int64_t c = in->channels, row = in->width * c, size = in->height * row;
    const vec zero = {0};
    for (int b = 0; b < samples; b++)
        for (int64_t y = 0; y < out->height; y++)
            for (int64_t w = 0; w < out->width; w++, dz += c)
                for (int64_t i = 0; i < c; i += LANES) {
                    int64_t at = b * size + 2 * y * row + 2 * w * c + i;
                    const int64_t places[4] = {at, at + c, at + row, at + row + c};
                    vec m = load(x + at), left = load(dz + i);
                    UNROLL for (int p = 1; p < 4; p++) m = larger(m, load(x + places[p]));
                    UNROLL for (int p = 0; p < 4; p++) {
                        bits here = load(x + places[p]) == m;
                        store(dx + places[p], choose(here, left, zero));
                        left = choose(here, zero, left);
                    }
                }
}

static void relu(REAL *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] = x[i] < 0 ? 0 : x[i]; /* NaN passes */
}

static void relu_back(const REAL *x, REAL *d, int64_t n) {
    for (int64_t i = 0; i < n; i++) d[i] = x[i] > 0 ? d[i] : 0;
}

/* Multiplies by a mask [samples][channels], or [samples][channels * pixels] if not `whole`. */
static void scale(const Buffer *s, REAL *x, const REAL *mask, int samples, int whole) {
    int64_t pixels = s->height * s->width, channels = s->channels;
    for (int b = 0; b < samples; b++, mask += whole ? channels : channels * pixels)
        for (int64_t p = 0; p < pixels; p++, x += channels)
            for (int64_t c = 0; c < channels; c++) x[c] *= whole ? mask[c] : mask[c * pixels + p];
}

/* [n][a][b] -> [n][b][a]: between pixels behind channels, as samples and features lie, and channels behind pixels. */
static void swap(const REAL *x, int64_t n, int64_t a, int64_t b, REAL *to) {
    for (; n > 0; n--, x += a * b, to += a * b)
        for (int64_t i = 0; i < a; i++)
            for (int64_t j = 0; j < b; j++) to[j * a + i] = x[i * b + j];
}

static void gather(const REAL *x, const int64_t *index, const Buffer *s, REAL *to, int samples) {
    int64_t pixels = s->height * s->width, n = s->channels * pixels;
    for (int b = 0; b < samples; b++, to += n)
        if (s->channels == 1 || pixels == 1)
            memcpy(to, x + index[b] * n, n * sizeof(REAL));
        else
            swap(x + index[b] * n, 1, s->channels, pixels, to);
}

/* ---- a network ---- */

static int64_t size(const Buffer *b) { return b->channels * b->height * b->width; }

/* Values and gradients of buffer n. */
static REAL *at(const Network *net, int64_t n) { return net->work + net->buffers[n].at * net->piece; }
static REAL *slope(const Network *net, int64_t n) {
    return net->work + net->buffers[n].gradient_at * net->piece;
}

/* Does a linear layer find the features in torch's order? Else it reads them, turned, from `rows`. */
static int flat(const Buffer *b) { return b->height * b->width == 1 || b->channels == 1; }
static REAL *features(const Network *net, const Layer *s) {
    return flat(net->buffers + s->in) ? at(net, s->in) : net->rows;
}

static void forward(const Network *net, REAL *const *parameters, REAL *const *masks, int64_t first, int samples) {
    for (const Layer *s = net->layers; s < net->layers + net->count; s++) {
        const Buffer *in = net->buffers + s->in, *out = net->buffers + s->out;
        REAL *x = at(net, s->in), *z = at(net, s->out);
        switch (s->kind) {
        case CONV: {
            Shape of = shape(in, out, s->kernel, s->padding);
            conv(&of, x, parameters[s->weight], parameters[s->bias], z, samples);
            break;
        }
        case POOL: pool(in, out, x, z, samples); break;
        case LINEAR:
            if (!flat(in)) swap(x, samples, in->height * in->width, in->channels, net->rows);
            linear(features(net, s), size(in), parameters[s->weight], parameters[s->bias], z, out->channels, samples);
            break;
        case RELU: relu(x, size(in) * samples); break;
        case SCALE_CHANNELS:
            if (masks) scale(in, x, masks[s->mask] + first * in->channels, samples, 1);
            break;
        case SCALE:
            if (masks) scale(in, x, masks[s->mask] + first * size(in), samples, 0);
            break;
        }
    }
}

static void backward(const Network *net, REAL *const *parameters, REAL *const *masks, REAL *const *gradients, Into into,
                     int64_t first, int samples) {
    for (const Layer *s = net->layers + net->count - 1; s >= net->layers; s--) {
        const Buffer *in = net->buffers + s->in, *out = net->buffers + s->out;
        REAL *x = at(net, s->in), *d = slope(net, s->in), *dz = slope(net, s->out);
        switch (s->kind) {
        case CONV: {
            Shape of = shape(in, out, s->kernel, s->padding);
            if (s->in) {
                Shape back = shape(out, in, s->kernel, s->kernel - 1 - s->padding);
                mirror(parameters[s->weight], &of, net->packed[s->packed_back]);
                conv(&back, dz, net->packed[s->packed_back], 0, d, samples);
            }
            conv_weights(&of, x, dz, samples, gradients[s->weight], gradients[s->bias], into);
            break;
        }
        case POOL: unpool(in, out, x, d, dz, samples); break;
        case LINEAR:
            if (s->in) {
                REAL *to = flat(in) ? d : net->rows + size(in) * net->piece;
                linear_back(dz, out->channels, parameters[s->weight], size(in), to, samples);
                if (!flat(in)) swap(to, samples, in->channels, in->height * in->width, d);
            }
            linear_weights(dz, out->channels, samples, features(net, s), size(in), gradients[s->weight],
                           gradients[s->bias], into);
            break;
        case RELU: relu_back(x, d, size(in) * samples); break;
        case SCALE_CHANNELS:
            if (masks) scale(in, d, masks[s->mask] + first * in->channels, samples, 1);
            break;
        case SCALE:
            if (masks) scale(in, d, masks[s->mask] + first * size(in), samples, 0);
            break;
        }
    }
}

/* Gradient of the mean cross-entropy with respect to the logits. */
static void cross_entropy(const REAL *z, REAL *d, int64_t classes, const int64_t *labels, const int64_t *index,
                          int samples, REAL share) {
    for (int b = 0; b < samples; b++, z += classes, d += classes) {
        REAL top = z[0], norm = 0;
        for (int64_t c = 1; c < classes; c++) top = z[c] > top ? z[c] : top;
        for (int64_t c = 0; c < classes; c++) norm += d[c] = exponential(z[c] - top);
        for (int64_t c = 0; c < classes; c++) d[c] = (d[c] / norm - (labels[index[b]] == c)) * share;
    }
}

/* Steps of a local run, as `local_steps` in convnet.c, but for filters: those lie as [k][k][inputs][outputs].
 *
 * A plain step in one piece moves the model as the gradients appear; else they are added up in g first. */
void channel_steps(const Network *net, const Descent *run, int64_t from, int64_t to, REAL *y, REAL *g,
                   REAL *const *parameters, REAL *const *gradients, const REAL *x, const int64_t *labels,
                   const int64_t *index, int64_t width, int64_t batch, REAL *const *masks, int64_t drops,
                    int64_t mask_step) {
    int64_t last = net->layers[net->count - 1].out;
    int plain = !run->correction && !run->mu && !run->velocity && !run->total && batch <= net->piece;
    REAL *here[MASKS];
    for (int64_t k = from; k < to; k++, index += width) {
        int samples = 0;
        while (samples < width && index[samples] >= 0) samples++;
        for (int64_t m = 0; m < drops; m++) here[m] = masks[m] + (k - from) * mask_step;
        for (int64_t first = 0; first < samples; first += net->piece) {
            int some = least(net->piece, samples - first);
            Into into = plain ? (Into){1, -rate_at(run, k)} : (Into){first > 0, 1};
            gather(x, index + first, net->buffers, at(net, 0), some);
            forward(net, parameters, drops ? here : 0, first, some);
            cross_entropy(at(net, last), slope(net, last), net->buffers[last].channels, labels, index + first, some,
                          (REAL)1 / samples);
            backward(net, parameters, drops ? here : 0, plain ? parameters : gradients, into, first, some);
        }
        if (!plain) descend(run, k, y, g);
    }
}
