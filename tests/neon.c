/* Runs one call of the compiled engine on arrays from a file: for processors that are not at hand (test_neon.py).
 *
 * The file holds arrays one after another, each behind the number of its bytes; the result goes to standard output.
 */
#include <stdio.h>
#include <stdlib.h>

#include "network.h"

void local_steps(const Network *, const Descent *, int64_t, int64_t, REAL *, REAL *, REAL *const *, REAL *const *,
                 const REAL *, const int64_t *, const int64_t *, int64_t, REAL *const *, int64_t, int64_t);
void channel_steps(const Network *, const Descent *, int64_t, int64_t, REAL *, REAL *, REAL *const *, REAL *const *,
                   const REAL *, const int64_t *, const int64_t *, int64_t, REAL *const *, int64_t, int64_t);

static FILE *file;

static void *next(int64_t *bytes) {
    int64_t here;
    if (fread(&here, 8, 1, file) != 1) exit(2);
    void *memory = aligned_alloc(64, (here + 127) / 64 * 64);
    if (fread(memory, 1, here, file) != (size_t)here) exit(3);
    if (bytes) *bytes = here;
    return memory;
}

int main(int argc, char **argv) {
    int64_t bytes, size;
    file = fopen(argv[1], "rb");
    const int64_t *numbers = next(0); /* channels in the lanes?, piece, batch, steps, drops, numbers of one step's masks */
    const double *rule = next(0);     /* rate, momentum, decay, mu */
    Layer *layers = next(&bytes);
    int64_t count = bytes / sizeof(Layer);
    Buffer *buffers = next(0);
    const int64_t *offsets = next(&bytes), *filters = next(0);
    int64_t parameters = bytes / 8;
    REAL *y = next(&bytes), *velocity = calloc(bytes, 1), *g = calloc(bytes, 1), *work, *rows;
    size = bytes / sizeof(REAL);
    REAL *anchor = next(0), *x = next(0);
    const int64_t *labels = next(0), *index = next(0), *mask_at = next(0);
    REAL *masks = next(0);
    work = next(0), rows = next(0);
    REAL *at[64], *slopes[64], *packed[64], *mask[MASKS];
    for (int i = 0; i < parameters; i++) at[i] = y + offsets[i], slopes[i] = g + offsets[i];
    for (int i = 0; i < 2 * count; i++) packed[i] = calloc(filters[0], sizeof(REAL));
    for (int i = 0; i < numbers[4]; i++) mask[i] = masks + mask_at[i];
    Network net = {layers, buffers, count, numbers[1], work, packed, rows};
    Descent run = {rule[0], rule[1], rule[2], rule[3], size, 1, 0, anchor, rule[1] ? velocity : 0, 0, 0};
    (numbers[0] ? channel_steps : local_steps)(&net, &run, 0, numbers[3], y, g, at, slopes, x, labels, index,
                                               numbers[2], mask, numbers[4], numbers[5]);
    fwrite(y, sizeof(REAL), size, stdout);
    return 0;
}
