/* Permutations as numpy's Generator draws them: Fisher and Yates from the last place down, its places by rejection. */
#include <stdint.h>

/* out [count][n] <- permutations of `values` [n]; place [n] is scratch.
 *
 * draws: the 32-bit numbers of the stream in their order. Returns 0 if they do not suffice. A draw, cut to the bits of
 * i, names the place that i is swapped with, unless it is larger. Its outcome cannot be foreseen, so there is no jump:
 * a place that is rejected is written over. */
int permutations(const uint32_t *draws, int64_t available, const int64_t *values, int64_t n, int64_t count,
                 int32_t *place, int64_t *out) {
    const uint32_t *end = draws + available;
    for (; count > 0; count--, out += n) {
        for (int64_t i = n - 1; i > 0;) {
            const int64_t below = (int64_t)1 << (63 - __builtin_clzll(i)), mask = 2 * below - 1;
            while (i >= below) {
                if (draws == end) return 0;
                const int64_t drawn = *draws++ & mask;
                place[i] = drawn;
                i -= drawn <= i;
            }
        }
        for (int64_t i = 0; i < n; i++) out[i] = values[i];
        for (int64_t i = n - 1; i > 0; i--) {
            const int64_t here = out[place[i]];
            out[place[i]] = out[i];
            out[i] = here;
        }
    }
    return 1;
}
