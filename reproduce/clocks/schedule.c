/* The loops of systems/policies_arrivals.py and systems/policies_drawn.py, for large systems: the same sums of the same
   numbers in the same order, so that the schedules are equal to the bit (tests/test_blocks.py).

   A simulation is made by *_new, gives its next aggregations by *_run and is freed by *_free. A run stops behind an
   aggregation when the arrays are full, or, for good, before the first one later than the horizon. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t integer;

/* Where the next aggregations are written: `most` of them, with at most `room` updates of which one needs `n`. */
typedef struct {
    integer most, room, aggregations, updates, used;  /* used: rows or numbers of `draws` */
    double horizon;
    const integer *draws;
    double *time;
    integer *first, *client, *job, *version;
    double *start, *end, *arrival;
    integer *times;                                    /* how often the client was drawn; FAVANO: its steps */
} Out;

typedef struct { double time; integer kind, client, job, version; double start; } Event;
enum { COMPLETION, ARRIVAL, BROADCAST };

typedef struct { Event *events; integer size, capacity; } Heap;

static int before(const Event *a, const Event *b) {
    if (a->time != b->time) return a->time < b->time;
    if (a->kind != b->kind) return a->kind < b->kind;
    if (a->client != b->client) return a->client < b->client;
    return a->job < b->job;
}

static int push(Heap *heap, Event event) {
    if (heap->size == heap->capacity) {
        integer capacity = 2 * heap->capacity + 64;
        Event *events = realloc(heap->events, capacity * sizeof(Event));
        if (!events) return 0;
        heap->events = events, heap->capacity = capacity;
    }
    integer at = heap->size++;
    while (at && before(&event, &heap->events[(at - 1) / 2])) {
        heap->events[at] = heap->events[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->events[at] = event;
    return 1;
}

static Event pop(Heap *heap) {
    Event top = heap->events[0], last = heap->events[--heap->size];
    integer at = 0, child;
    while ((child = 2 * at + 1) < heap->size) {
        if (child + 1 < heap->size && before(&heap->events[child + 1], &heap->events[child])) child++;
        if (!before(&heap->events[child], &last)) break;
        heap->events[at] = heap->events[child];
        at = child;
    }
    heap->events[at] = last;
    return top;
}

/* The update of an arrival as the next one of the aggregation under way. */
static void hear(Out *out, const Event *e, double end) {
    integer at = out->updates++;
    out->client[at] = e->client, out->job[at] = e->job, out->version[at] = e->version;
    out->start[at] = e->start, out->end[at] = end, out->arrival[at] = e->time;
}

/* The aggregation of what was heard since the last one; 0: it is later than the horizon, and forgotten. */
static int aggregate(Out *out, double time) {
    if (time > out->horizon) {
        out->updates = out->first[out->aggregations];
        return 0;
    }
    out->time[out->aggregations++] = time;
    out->first[out->aggregations] = out->updates;
    return 1;
}

static int full(const Out *out, integer n) { return out->aggregations == out->most || out->updates + n > out->room; }

/* The next `count` numbers of 8 bytes behind a struct that was allocated with room for all of its arrays. */
static void *carve(char **at, integer count) {
    void *array = *at;
    *at += 8 * count;
    return array;
}

static int ascending(const void *a, const void *b) {
    integer x = *(const integer *)a, y = *(const integer *)b;
    return (x > y) - (x < y);
}

/* The clients among n draws, ascending, into `drawn`, and how often each was drawn into `times`; returns their number. */
static integer distinct(const integer *row, integer n, integer *times, integer *drawn) {
    integer count = 0;
    for (integer i = 0; i < n; i++)
        if (!times[row[i]]++) drawn[count++] = row[i];
    qsort(drawn, count, sizeof(integer), ascending);
    return count;
}

/* --- first arrivals: DeFedAvg-IID (push = 1), FedBuff and AsySG (push = 0) --------------------------------------- */

typedef struct {
    integer clients, n, push, block, keep, resting_count, waiting_count, free_count, version, newest, instant, over;
    double upload, fetch, spread, now;
    double *seconds;
    integer *started, *fetched, *resting, *waiting, *free;
    Heap heap;
} Arrivals;

void arrivals_free(Arrivals *s) {
    if (s) free(s->heap.events), free(s);
}

static int dispatch(Arrivals *s, integer client, double now, integer version) {
    double start = now + s->fetch, end = start + s->seconds[client], arrival = end + s->upload;
    integer job = s->started[client]++;
    s->fetched[client] = version;
    if (s->push && !s->block && !push(&s->heap, (Event){end, COMPLETION, client, job, version, start})) return 0;
    return push(&s->heap, (Event){arrival, ARRIVAL, client, job, version, start});
}

/* order: the clients, the first `concurrency` of which begin; all in the order of their numbers if there is no choice. */
Arrivals *arrivals_new(integer clients, integer n, integer pushing, integer block, integer keep, integer concurrency,
                       const integer *order, const double *seconds, double upload, double fetch, double spread) {
    Arrivals *s = calloc(1, sizeof(Arrivals) + 6 * 8 * clients);
    if (!s) return 0;
    char *at = (char *)(s + 1);
    s->clients = clients, s->n = n, s->push = pushing, s->block = block, s->keep = keep, s->newest = -1;
    s->upload = upload, s->fetch = fetch, s->spread = spread;
    s->seconds = carve(&at, clients), s->started = carve(&at, clients), s->fetched = carve(&at, clients);
    s->resting = carve(&at, clients), s->waiting = carve(&at, clients), s->free = carve(&at, clients);
    memcpy(s->seconds, seconds, clients * sizeof(double));
    for (integer i = 0; i < clients; i++) s->fetched[i] = -1, s->waiting[i] = i;
    int whole = 1;
    if (pushing) {
        s->waiting_count = clients;
        whole = push(&s->heap, (Event){spread, BROADCAST, 0, 0, 0, 0});
    } else {
        for (integer i = 0; i < concurrency && whole; i++) whole = dispatch(s, order[i], 0.0, 0);
        for (integer i = concurrency; i < clients; i++) s->resting[s->resting_count++] = order[i];
    }
    if (whole) return s;
    arrivals_free(s);
    return 0;
}

static int pull_run(Arrivals *s, Out *out) {
    while (!s->over) {
        Event e = pop(&s->heap);
        integer client = e.client;
        hear(out, &e, e.start + s->seconds[client]);
        int due = out->updates - out->first[out->aggregations] == s->n;
        if (due) {
            s->version++;
            if (!aggregate(out, e.time)) s->over = 1;
        }
        if (s->resting_count && !s->over) {
            integer place = out->draws[out->used++];
            if (place < s->resting_count) {
                integer chosen = s->resting[place];
                s->resting[place] = client;
                client = chosen;
            }
        }
        if (!dispatch(s, client, e.time, s->version)) return 0;
        if (due && full(out, s->n)) break;
    }
    return 1;
}

static int push_run(Arrivals *s, Out *out) {
    while (!s->over) {
        if (!s->instant) s->now = s->heap.events[0].time, s->free_count = 0, s->instant = 1;
        while (s->heap.size && s->heap.events[0].time == s->now) {
            Event e = pop(&s->heap);
            if (e.kind == ARRIVAL) {
                hear(out, &e, e.start + s->seconds[e.client]);
                if (s->block) s->free[s->free_count++] = e.client;
                if (out->updates - out->first[out->aggregations] < s->n) continue;
                s->version++;
                if (!push(&s->heap, (Event){s->now + s->spread, BROADCAST, s->version, 0, 0, 0})) return 0;
                if (!aggregate(out, s->now)) s->over = 1;
                if (s->over || full(out, s->n)) return 1;
            } else if (e.kind == COMPLETION) {
                s->free[s->free_count++] = e.client;
            } else {
                s->newest = e.client;
                memcpy(s->free + s->free_count, s->waiting, s->waiting_count * sizeof(integer));
                s->free_count += s->waiting_count, s->waiting_count = 0;
            }
        }
        s->instant = 0;
        for (integer i = 0; i < s->free_count; i++) {
            integer client = s->free[i];
            if (s->newest > s->fetched[client] || s->keep) {
                if (!dispatch(s, client, s->now, s->newest)) return 0;
            } else {
                s->waiting[s->waiting_count++] = client;
            }
        }
    }
    return 1;
}

/* 0: out of memory. */
int arrivals_run(Arrivals *s, Out *out) { return s->push ? push_run(s, out) : pull_run(s, out); }

/* --- send buffers: DeFedAvg-nIID ---------------------------------------------------------------------------------- */

typedef struct { integer full, job, version; double start, end; } Sent;

typedef struct {
    integer clients, n, hold, keep, skip, over, base, known, capacity;
    double upload, download;
    double *seconds, *free, *arrived;                  /* arrived[t - base]: when version t reached the clients */
    integer *fetched, *started, *drawn, *times;
    Sent *buffer;
} Buffers;

void buffers_free(Buffers *s) {
    if (s) free(s->arrived), free(s);
}

Buffers *buffers_new(integer clients, integer n, integer hold, integer keep, integer skip, const double *seconds,
                     double upload, double download) {
    Buffers *s = calloc(1, sizeof(Buffers) + 8 * (5 * clients + n) + clients * sizeof(Sent));
    if (!s) return 0;
    char *at = (char *)(s + 1);
    s->clients = clients, s->n = n, s->hold = hold, s->keep = keep, s->skip = skip;
    s->upload = upload, s->download = download, s->capacity = 1024;
    s->seconds = carve(&at, clients), s->free = carve(&at, clients), s->fetched = carve(&at, clients);
    s->started = carve(&at, clients), s->times = carve(&at, clients), s->drawn = carve(&at, n);
    s->buffer = (Sent *)at;
    if (!(s->arrived = malloc(s->capacity * sizeof(double)))) {
        buffers_free(s);
        return 0;
    }
    memcpy(s->seconds, seconds, clients * sizeof(double));
    for (integer i = 0; i < clients; i++) s->fetched[i] = -1, s->free[i] = download;
    s->arrived[0] = download, s->known = 1;
    return s;
}

/* The newest version that had arrived at `time`; not older than `from`, from which the search goes in doubling steps. */
static integer newest(const Buffers *s, double time, integer from) {
    integer low = from > s->base ? from : s->base, high = low + 1, step = 1;
    while (high < s->known && s->arrived[high - s->base] <= time) low = high, high += step, step *= 2;
    if (high > s->known) high = s->known;
    while (high - low > 1) {
        integer middle = low + (high - low) / 2;
        if (s->arrived[middle - s->base] <= time) low = middle; else high = middle;
    }
    return low;
}

/* Start and version of a client's next job; 0 if it depends on a broadcast that is not yet known. */
static int next(const Buffers *s, integer client, double *start, integer *version) {
    double free = s->free[client];
    integer fetched = s->fetched[client];
    *start = free, *version = newest(s, free, fetched);
    if (*version > fetched || s->keep) return 1;
    if (fetched + 1 == s->known) return 0;
    *start = s->arrived[fetched + 1 - s->base];
    *version = newest(s, *start, fetched + 1);
    return 1;
}

static void train(Buffers *s, integer client, double start, integer version) {
    double end = start + s->seconds[client];
    s->buffer[client] = (Sent){1, s->started[client]++, version, start, end};
    s->fetched[client] = version, s->free[client] = end;
}

static void advance(Buffers *s, integer client, double now) {
    double start;
    integer version;
    while (!(s->hold && s->buffer[client].full)) {
        if (!next(s, client, &start, &version) || start == now || start + s->seconds[client] > now) return;
        train(s, client, start, version);
    }
}

/* Room for another version: the ones that no client can start from any more are forgotten. */
static int make_room(Buffers *s) {
    if (s->known - s->base < s->capacity) return 1;
    double now = s->arrived[s->known - 1 - s->base], least = now;
    for (integer i = 0; i < s->clients; i++) {
        advance(s, i, now);
        if (!(s->hold && s->buffer[i].full) && s->free[i] < least) least = s->free[i];
    }
    integer from = newest(s, least, s->base);
    memmove(s->arrived, s->arrived + (from - s->base), (s->known - from) * sizeof(double));
    s->base = from;
    if (2 * (s->known - s->base) <= s->capacity) return 1;
    double *arrived = realloc(s->arrived, 2 * s->capacity * sizeof(double));
    if (!arrived) return 0;
    s->arrived = arrived, s->capacity *= 2;
    return 1;
}

/* 0: out of memory. */
int buffers_run(Buffers *s, Out *out) {
    while (!s->over && !full(out, s->n)) {
        double now = s->arrived[s->known - 1 - s->base], time = -INFINITY;
        integer count = distinct(out->draws + s->n * out->used++, s->n, s->times, s->drawn);
        for (integer i = 0; i < count; i++) {
            integer client = s->drawn[i], at = out->updates, version;
            double taken = now, start;
            integer times = s->times[client];
            s->times[client] = 0;
            advance(s, client, now);
            if (!s->buffer[client].full) {
                if (s->skip) continue;
                if (!next(s, client, &start, &version)) abort();  /* whoever is drawn has a model to train from */
                train(s, client, start, version);
                taken = s->free[client];
            }
            Sent sent = s->buffer[client];
            s->buffer[client].full = 0;
            if (s->hold) s->free[client] = taken;
            out->client[at] = client, out->job[at] = sent.job, out->version[at] = sent.version;
            out->start[at] = sent.start, out->end[at] = sent.end, out->arrival[at] = taken + s->upload;
            out->times[at] = times;
            if (out->arrival[at] > time) time = out->arrival[at];
            out->updates++;
        }
        if (out->updates == out->first[out->aggregations]) time = now + s->upload;
        if (!make_room(s)) return 0;
        s->arrived[s->known++ - s->base] = time + s->download;
        if (!aggregate(out, time)) s->over = 1;
    }
    return 1;
}

/* --- rounds: FedAvg, and FAVANO (contact > 0) --------------------------------------------------------------------- */

typedef struct {
    integer clients, n, steps, version, over;
    double upload, download, contact, pause, now;      /* seconds that the contacts of a round take, and between rounds */
    double *seconds, *begun;                           /* of a job (FAVANO: of a step); when the last contact was */
    integer *started, *held, *drawn, *times;
} Rounds;

void rounds_free(Rounds *s) {
    free(s);
}

Rounds *rounds_new(integer clients, integer n, integer steps, const double *seconds, double upload, double download,
                   double contact, double pause) {
    Rounds *s = calloc(1, sizeof(Rounds) + 8 * (5 * clients + n));
    if (!s) return 0;
    char *at = (char *)(s + 1);
    s->clients = clients, s->n = n, s->steps = steps, s->upload = upload, s->download = download;
    s->contact = contact, s->pause = pause, s->now = contact > 0 ? download : 0.0;
    s->seconds = carve(&at, clients), s->begun = carve(&at, clients), s->started = carve(&at, clients);
    s->held = carve(&at, clients), s->times = carve(&at, clients), s->drawn = carve(&at, n);
    memcpy(s->seconds, seconds, clients * sizeof(double));
    for (integer i = 0; i < clients; i++) s->begun[i] = download;
    return s;
}

/* Steps completed since the last contact; the small number keeps one that ends in the instant of the contact. */
static integer completed(const Rounds *s, integer client) {
    if (s->seconds[client] == 0) return s->steps;
    double steps = floor((s->now - s->begun[client]) / s->seconds[client] + 1e-9);
    return steps < s->steps ? (integer)steps : s->steps;
}

int rounds_run(Rounds *s, Out *out) {
    while (!s->over && !full(out, s->n)) {
        double time = s->contact > 0 ? s->now + s->contact : -INFINITY;
        integer count = distinct(out->draws + s->n * out->used++, s->n, s->times, s->drawn);
        for (integer i = 0; i < count; i++) {
            integer client = s->drawn[i], at = out->updates++;
            out->client[at] = client, out->job[at] = s->started[client]++;
            if (s->contact > 0) {
                integer steps = completed(s, client);
                out->version[at] = s->held[client], out->times[at] = steps, out->start[at] = s->begun[client];
                out->end[at] = out->start[at] + steps * s->seconds[client], out->arrival[at] = time;
                s->held[client] = s->version + 1, s->begun[client] = time;
            } else {
                out->version[at] = s->version, out->times[at] = s->times[client], out->start[at] = s->now + s->download;
                out->end[at] = out->start[at] + s->seconds[client], out->arrival[at] = out->end[at] + s->upload;
                if (out->arrival[at] > time) time = out->arrival[at];
            }
            s->times[client] = 0;
        }
        s->now = time + s->pause, s->version++;
        if (!aggregate(out, time)) s->over = 1;
    }
    return 1;
}
