/* A traced network, as compiled.py writes it down; both layouts of activations read the same lists. */
#include "vectors.h"

#define MASKS 16 /* most dropout layers of a network */

enum kind { CONV, POOL, LINEAR, RELU, SCALE_CHANNELS, SCALE };

/* An activation and its gradient: borders and offsets into the workspace, in numbers per sample. */
typedef struct {
    int64_t channels, height, width, border, gradient_border, at, gradient_at;
} Buffer;

/* A layer from buffer `in` to buffer `out` (the same for RELU and SCALE*, which work in place). */
typedef struct {
    int64_t kind, in, out, kernel, padding, weight, bias, mask, packed, packed_back;
} Layer;

/* A traced network with one thread's memory. */
typedef struct {
    const Layer *layers;
    const Buffer *buffers;
    int64_t count, piece; /* layers; samples that go through them together */
    REAL *work;           /* activations and gradients */
    REAL *const *packed;  /* filters in the order of the convolutions */
    REAL *rows;           /* the features of a piece, sample by sample */
} Network;

INLINE REAL exponential(REAL x) { return sizeof(REAL) == 4 ? expf(x) : exp(x); }
