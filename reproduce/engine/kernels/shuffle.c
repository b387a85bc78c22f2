/* Permutations as numpy's Generator draws them: SeedSequence, PCG64, and Fisher and Yates from the last place down. */
#include <stdint.h>

typedef unsigned __int128 wide;
typedef uint32_t draw __attribute__((may_alias));
typedef struct {
    wide state, step;
    uint64_t drawn[8];
} Stream;

static uint64_t next(Stream *s) {
    s->state = s->state * (((wide)0x2360ed051fc65da4 << 64) + 0x4385df649fccf645) + s->step;
    const uint64_t mixed = (uint64_t)(s->state >> 64) ^ (uint64_t)s->state;
    const int turn = s->state >> 122;
    return mixed >> turn | mixed << (-turn & 63);
}

/* A word, hashed by a constant that moves on with every call. */
static uint32_t hashed(uint32_t word, uint32_t *constant, uint32_t factor) {
    word ^= *constant;
    word *= *constant *= factor;
    return word ^ word >> 16;
}

static void mix(uint32_t *pool, uint32_t word, uint32_t *constant) {
    const uint32_t r = 0xca01f9dd * *pool - 0x4973f715 * hashed(word, constant, 0x931e8875);
    *pool = r ^ r >> 16;
}

/* The stream of SeedSequence(words [count]) and PCG64. */
static void seed(Stream *s, const uint32_t *words, int64_t count) {
    uint32_t pool[4], constant = 0x43b0d7e5, after = 0x8b51f9dd;
    for (int i = 0; i < 4; i++) pool[i] = hashed(i < count ? words[i] : 0, &constant, 0x931e8875);
    for (int from = 0; from < 4; from++)
        for (int to = 0; to < 4; to++)
            if (from != to) mix(pool + to, pool[from], &constant);
    for (int64_t from = 4; from < count; from++)
        for (int to = 0; to < 4; to++) mix(pool + to, words[from], &constant);
    uint64_t start[4] = {0};
    for (int i = 0; i < 8; i++) start[i / 2] |= (uint64_t)hashed(pool[i % 4], &after, 0x58f38ded) << 32 * (i % 2);
    s->step = ((wide)start[2] << 64 | start[3]) << 1 | 1;
    s->state = s->step + ((wide)start[0] << 64 | start[1]);
    next(s);
}

/* out [count][n] <- permutations of `values` [n] from the stream of `words`; place [n] is scratch.
 *
 * A number of the stream is two draws. A draw, cut to the bits of i, names the place that i is swapped with, unless it
 * is larger. Its outcome cannot be foreseen, so there is no jump: a place that is rejected is written over. */
static void stream_of(const uint32_t *words, int64_t length, const int64_t *values, int64_t n, int64_t count,
                      int32_t *place, int64_t *out) {
    Stream stream;
    seed(&stream, words, length);
    const draw *end = (draw *)(stream.drawn + 8), *draws = end;
    for (; count > 0; count--, out += n) {
        for (uint32_t i = n - 1; i > 0;) {
            const uint32_t below = 1u << (31 - __builtin_clz(i)), mask = 2 * below - 1;
            while (i >= below) {
                if (draws == end) {
                    for (int d = 0; d < 8; d++) stream.drawn[d] = next(&stream);
                    draws = (draw *)stream.drawn;
                }
                const uint32_t drawn = *draws++ & mask;
                place[i] = drawn;
                i += (i < drawn) - 1;
            }
        }
        for (int64_t i = 0; i < n; i++) out[i] = values[i];
        for (int64_t i = n - 1; i > 0; i--) {
            const int64_t here = out[place[i]];
            out[place[i]] = out[i];
            out[i] = here;
        }
    }
}

/* The same for every stream s: of its row of words [streams][length], its values, their number n[s], and its count. */
void permutations(const uint32_t *words, int64_t length, int64_t streams, const int64_t *const *values,
                  const int64_t *n, const int64_t *count, int32_t *place, int64_t *const *out) {
    for (int64_t s = 0; s < streams; s++)
        stream_of(words + s * length, length, values[s], n[s], count[s], place, out[s]);
}
