/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* Runs leaves of one link (include/cutline/shared.h) on the host, for the tests of crates/dev/bpf-parity. Reads commands, a line each, and answers each
 * with a line. All numbers are whole; times are ns.
 *
 *     set NAME VALUE                      a field of the configuration
 *     limit PACKETS                       the limit of all leaves together
 *     half BPS                            the rate from the middle of each `run` on; 0: as before
 *     claims THREADS PACKETS TIME         threads take the link for so many packets each, on a clock that they move on together. Answers the number of
 *                                         packets that start before the one before them has left, the time that was taken, and the time that has passed
 *     threads KIND THREADS BPS MS         a leaf for each thread, in which packets come and leave, as above. KIND is 0 for TSQ and 1 for Sieve. Answers the
 *                                         bytes that were sent, the time, the packets and bytes that count as waiting when none waits, the arrivals and
 *                                         departures, and how many of them have found the law or virtual time taken
 *     group LEAF FLOWS LEVEL WINDOW PAUSE adds flows for the next `run`: each has WINDOW packets of 1000 B in the queue. Where PAUSE is not 0, a packet comes
 *                                         that time after the one before it has left
 *     run KIND BPS MS LATE STALLED FROM   runs the flows for so long; a leaf asks at most LATE after its time. The leaf STALLED does not ask from FROM to
 *                                         the middle of the rest; -1: none does so. Answers for each group the bytes sent, and the mean and the longest wait;
 *                                         then the idle time, the longest time by which a packet has overtaken the least head of another leaf, the sum of
 *                                         the errors of the bytes elsewhere, and the sum of the backlog at the same packets
 *     change KIND BPS BPS LEAVES          answers the shared rate (TSQ: of the second leaf, Sieve: 2^-13 bit/s) after all leaves have another rate, twice
 */
#include <pthread.h>
#include <stdio.h>

#include "../include/cutline/fixed.h"

static cl_u64 cl_random(void) { return 7; }

struct cl_tsq;
static cl_u64 elsewhere(const struct cl_tsq *tsq, cl_u64 w);
#define CL_ELSEWHERE(tsq, w) elsewhere(tsq, w)

#include "host.h"

#include "../include/cutline/sieve_leaf.h"
#include "../include/cutline/tsq_leaf.h"

enum { LEAVES = 8, SETS = 175, SIZE = 1000, GROUPS = 8, MOST = 20000, TSQ = 0 };

/* A leaf of either kind. The groups of packets are in `label` of their slots and nodes. */
struct leaf {
    struct cutline_config config;
    struct cl_tsq tsq;
    struct cl_tsq_leaf tsq_leaf;
    struct slots slots;
    struct cl_sieve sieve;
    struct cl_sieve_leaf sieve_leaf;
    struct nodes nodes;
    struct table table;
    cl_u64 slipped, asks, waiting;
};

static struct cutline_config config;
static struct cl_tsq_shared tsq_shared;
static struct cl_sieve_shared sieve_shared;
static struct leaf leaves[LEAVES];
static int kind;
static cl_u32 limit = MOST / 2; /* packets of all leaves together */
static cl_u64 rate_at_half;     /* bit/s; 0: as before */

static cl_u64 elsewhere(const struct cl_tsq *tsq, cl_u64 w)
{
    return tsq->is_leaf ? cl_tsq_elsewhere(&tsq_shared, &leaves[tsq->instance].tsq_leaf, w) : 0;
}

static struct cl_leaf *common(struct leaf *leaf) { return kind == TSQ ? &leaf->tsq_leaf.leaf : &leaf->sieve_leaf.leaf; }
static struct cl_shared *link_of_all(void) { return kind == TSQ ? &tsq_shared.link : &sieve_shared.link; }

static void begin_leaves(cl_u32 count, cl_u64 now)
{
    memset(&tsq_shared, 0, sizeof tsq_shared);
    memset(&sieve_shared, 0, sizeof sieve_shared);
    link_of_all()->free_at = now;
    for (cl_u32 i = 0; i < count; i++) {
        struct leaf *leaf = leaves + i;

        free(leaf->slots.first);
        free(leaf->nodes.first);
        free(leaf->table.first);
        memset(leaf, 0, sizeof *leaf);
        leaf->config = config;
        leaf->slots = (struct slots){ calloc(MOST, sizeof *leaf->slots.first), MOST };
        leaf->nodes = (struct nodes){ calloc(MOST, sizeof *leaf->nodes.first), MOST };
        leaf->table = (struct table){ calloc(SETS, sizeof *leaf->table.first), SETS };
        common(leaf)->queues = count;
        common(leaf)->queue = i;
        leaf->tsq.instance = i;
        leaf->tsq.is_leaf = 1;
        leaf->tsq.byte_time = cl_byte_time(cl_rate(&config));
        cl_tsq_reset(&leaf->tsq, &config, now);
        cl_sieve_reset(&leaf->sieve, &leaf->nodes, &leaf->table, &config, now);
    }
}

/* Takes over a configuration, as a leaf does with a packet that comes or leaves. */
static void configure(struct leaf *leaf, cl_u64 now)
{
    if (leaf->config.generation == config.generation)
        return;
    if (kind == TSQ)
        cl_tsq_change(&leaf->tsq, &leaf->config, &config, now);
    else
        cl_sieve_change(&leaf->sieve, &leaf->nodes, &leaf->table, &leaf->config, &config, now);
}

static void enter(struct leaf *leaf, cl_u64 now)
{
    configure(leaf, now);
    if (kind == TSQ) {
        cl_tsq_enter(&leaf->tsq, &tsq_shared, &leaf->tsq_leaf, &leaf->config, now);
        cl_begin_link(&tsq_shared.link, &leaf->tsq_leaf.leaf, now);
    } else {
        cl_sieve_enter(&leaf->sieve, &leaf->nodes, &leaf->table, &sieve_shared, &leaf->sieve_leaf, &leaf->config, now);
        cl_begin_link(&sieve_shared.link, &leaf->sieve_leaf.leaf, now);
        cl_sieve_room(&leaf->sieve, &leaf->nodes, &sieve_shared, &leaf->sieve_leaf, &leaf->config);
    }
}

static void leave(struct leaf *leaf, cl_u32 lane)
{
    if (kind == TSQ)
        cl_tsq_leave(&leaf->tsq, &tsq_shared, &leaf->tsq_leaf, lane);
    else
        cl_sieve_leave(&leaf->sieve, &leaf->nodes, &sieve_shared, &leaf->sieve_leaf);
}

/* The sums over all packets of which q' was estimated. */
static cl_u64 errors, backlogs;

/* Compares the bytes elsewhere with those that really are. */
static void compare(const struct leaf *leaf, cl_u64 w)
{
    cl_u64 found = elsewhere(&leaf->tsq, w), real = 0;

    for (struct leaf *other = leaves; other < leaves + common((struct leaf *)leaf)->queues; other++)
        for (cl_u32 lane = 0; other != leaf && lane < CL_LANES; lane++)
            for (cl_u32 i = other->tsq.lanes[lane].head_weight == CL_NEVER ? CL_NIL : other->tsq.lanes[lane].head; i != CL_NIL;
                 i = other->slots.first[i].next)
                real += other->slots.first[i].weight > w ? other->slots.first[i].size : 0;
    errors += found > real ? found - real : real - found;
    backlogs += leaf->tsq.backlog.bytes;
}

/* A packet comes. Early drops are left out, so that the departures show the order alone. Returns whether it waits. */
static int arrive(struct leaf *leaf, cl_u64 now, cl_u32 level, cl_u32 flow, cl_u32 group)
{
    int waits = 0;

    enter(leaf, now);
    if (kind == TSQ) {
        struct cl_point point;
        enum cl_verdict verdict = cl_tsq_judge(&leaf->tsq, &leaf->slots, &leaf->config, now, level, SIZE, CUTLINE_ONE - 1, &point);
        cl_u32 index = verdict == CL_OVERFLOW ? CL_NIL : cl_tsq_take(&leaf->tsq, &leaf->slots);
        struct cl_slot *slot = cl_slot(&leaf->slots, index);

        if (slot) {
            if (group < GROUPS)
                compare(leaf, point.weight);
            cl_tsq_push(&leaf->tsq, &leaf->slots, cl_stamp(now, level), &point, slot, index, SIZE);
            slot->label = group << 16 | flow;
            waits = 1;
        }
        leave(leaf, point.lane);
    } else {
        struct cl_arrival arrival;
        struct cl_node *node;
        cl_u32 index = CL_NIL;

        cl_sieve_arrive(&leaf->sieve, &leaf->nodes, &leaf->table, &leaf->config, now, level, SIZE, cl_mix(flow + 1), &arrival);
        node = arrival.is_last ? NULL : cl_take_node(&leaf->sieve.calendar, &leaf->nodes, &index);
        if (node) {
            cl_sieve_push(&leaf->sieve, &leaf->nodes, now, level, &arrival, node, index);
            node->label = group << 16 | flow;
            waits = 1;
            while ((node = cl_sieve_push_out(&leaf->sieve, &leaf->nodes, &leaf->table, &leaf->config, &index))) {
                cl_give_node_back(&leaf->sieve.calendar, node, index);
                leaf->waiting--;
            }
        }
        leave(leaf, 0);
    }
    leaf->waiting += waits;
    return waits;
}

struct departed { cl_u64 at, wait, key, others; cl_u32 label; };

/* A leaf takes its next packet. Returns whether there was one. */
static int depart(struct leaf *leaf, cl_u64 now, struct departed *departed)
{
    configure(leaf, now);
    if (kind == TSQ) {
        cl_u32 lane, index;
        struct cl_slot *slot;

        departed->at = cl_tsq_turn(&leaf->tsq, &leaf->slots, &tsq_shared, &leaf->tsq_leaf, &leaf->config, now, &leaf->slipped);
        if (!departed->at)
            return 0;
        cl_law_advance(&leaf->tsq.law, &leaf->config, leaf->tsq.byte_time, now, &leaf->tsq.backlog);
        lane = cl_tsq_next(&leaf->tsq);
        index = cl_tsq_pop(&leaf->tsq, &leaf->slots, lane);
        slot = cl_slot(&leaf->slots, index);
        cl_tsq_serve(&leaf->tsq, &leaf->config, departed->at, slot->size);
        *departed = (struct departed){ departed->at, cl_waited(slot->stamp, departed->at), slot->weight, leaf->tsq_leaf.leaf.least, slot->label };
        cl_tsq_give_back(&leaf->tsq, slot, index);
        leave(leaf, lane);
    } else {
        struct cl_node *node;
        cl_u32 index = CL_NIL;

        departed->at = cl_sieve_turn(&leaf->sieve, &leaf->nodes, &leaf->table, &sieve_shared, &leaf->sieve_leaf, &leaf->config, now, &leaf->slipped);
        if (!departed->at)
            return 0;
        node = cl_sieve_pop(&leaf->sieve, &leaf->nodes, &leaf->table, &leaf->config, now, &index);
        cl_sieve_correct(&sieve_shared, &leaf->sieve_leaf, &leaf->config, cl_drain(leaf->sieve.byte_time, cl_node_size(node)));
        *departed = (struct departed){ departed->at, cl_node_waited(node, departed->at), cl_due_time(&leaf->sieve.calendar, node), leaf->sieve_leaf.leaf.least, node->label };
        cl_give_node_back(&leaf->sieve.calendar, node, index);
        leave(leaf, 0);
    }
    leaf->waiting--;
    return 1;
}

/* Threads. */

static cl_u64 now_of_all;
static cl_u64 packets_each, time_each, ends_at;
static struct claim { cl_u64 start, end; } *claims;

static cl_u64 tick(cl_u64 ns) { return __sync_add_and_fetch(&now_of_all, ns); }

static void *claim_all(void *argument)
{
    cl_u64 number = (cl_u64)(struct leaf *)argument - (cl_u64)leaves;
    struct claim *mine = claims + number / sizeof *leaves * packets_each;
    struct leaf *leaf = argument;

    for (cl_u64 i = 0; i < packets_each;) {
        cl_u64 start = cl_claim(&tsq_shared.link, &leaf->tsq_leaf.leaf, &config, tick(50), time_each, &leaf->slipped);

        if (start)
            mine[i++] = (struct claim){ start, start + time_each };
    }
    return NULL;
}

static int by_start(const void *one, const void *other)
{
    cl_u64 a = ((const struct claim *)one)->start, b = ((const struct claim *)other)->start;

    return a < b ? -1 : a > b;
}

static void together(cl_u32 threads, void *(*of_thread)(void *))
{
    pthread_t ids[LEAVES];

    for (cl_u32 i = 0; i < threads; i++)
        if (pthread_create(ids + i, NULL, of_thread, leaves + i))
            exit(1);
    for (cl_u32 i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
}

static void run_claims(cl_u32 threads)
{
    const cl_u64 begin = 1000000000, count = threads * packets_each;
    cl_u64 overlaps = 0;

    kind = TSQ;
    config.shape_bps = 1000000000;
    begin_leaves(threads, begin);
    now_of_all = begin;
    claims = calloc(count, sizeof *claims);
    together(threads, claim_all);
    qsort(claims, count, sizeof *claims, by_start);
    for (cl_u64 i = 1; i < count; i++)
        overlaps += claims[i].start < claims[i - 1].end;
    printf("%llu %llu %llu\n", (unsigned long long)overlaps, (unsigned long long)(count * time_each),
           (unsigned long long)(claims[count - 1].end - begin));
    free(claims);
}

static cl_u64 sent_by_all, calls_of_all, missed_by_all;

static void *traffic(void *argument)
{
    struct leaf *leaf = argument;
    struct departed departed;
    cl_u64 now = tick(1), round = 0, calls = 0;

    while (now < ends_at) {
        if (leaf->waiting < 100) {
            arrive(leaf, now, 1 + round % 16, round % 7, GROUPS);
            calls++;
        }
        round++;
        now = tick(200);
        if (leaf->waiting && depart(leaf, now, &departed)) {
            __sync_fetch_and_add(&sent_by_all, SIZE);
            calls++;
        }
        now = tick(200);
    }
    __sync_fetch_and_add(&calls_of_all, calls);
    __sync_fetch_and_add(&missed_by_all, common(leaf)->missed);
    return NULL;
}

static void *drain(void *argument)
{
    struct leaf *leaf = argument;
    struct departed departed;

    while (leaf->waiting)
        depart(leaf, tick(1000), &departed);
    return NULL;
}

static void run_threads(cl_u32 threads, cl_u64 bps, cl_u64 ms)
{
    const cl_u64 begin = 1000000000;
    cl_u64 time;

    config.shape_bps = bps;
    config.limit_packets = limit;
    begin_leaves(threads, begin);
    now_of_all = begin;
    ends_at = begin + ms * 1000000;
    sent_by_all = calls_of_all = missed_by_all = 0;
    together(threads, traffic);
    time = now_of_all - begin;
    printf("%llu %llu", (unsigned long long)sent_by_all, (unsigned long long)time);
    together(threads, drain);
    printf(" %llu %llu %llu %llu\n", (unsigned long long)link_of_all()->packets, (unsigned long long)link_of_all()->bytes,
           (unsigned long long)calls_of_all, (unsigned long long)missed_by_all);
}

/* Flows on one clock. */

static struct group {
    cl_u32 leaf, flows, level, window;
    cl_u64 pause, bytes, packets, waited, longest;
} groups[GROUPS];
static cl_u32 group_count;

/* Packets that come later. */
static struct later { cl_u64 at; cl_u32 label; } laters[MOST];
static cl_u32 later_count;

static void come(struct leaf *leaf, cl_u64 now, cl_u32 label)
{
    struct group *group = groups + (label >> 16);

    if (arrive(leaf, now, group->level, label & 0xffff, label >> 16))
        leaf->asks = cl_min(leaf->asks, now);
}

static void run_flows(cl_u64 bps, cl_u64 ms, cl_u64 late, cl_s64 stalled, cl_u64 from)
{
    const cl_u64 begin = 1000000000, end = begin + ms * 1000000, half = from + (ms * 1000000 - from) / 2;
    cl_u64 now = begin, idle = 0, busy_until = begin, overtaken = 0, seed = 5;
    cl_u32 count = 0;

    config.shape_bps = bps;
    config.limit_packets = limit;
    for (cl_u32 i = 0; i < group_count; i++)
        count = cl_max(count, groups[i].leaf + 1);
    begin_leaves(count, begin);
    later_count = 0;
    errors = backlogs = 0;
    for (cl_u32 i = 0; i < count; i++)
        leaves[i].asks = CL_MAX_U64;
    for (cl_u32 i = 0; i < group_count; i++)
        for (cl_u32 flow = 0; flow < groups[i].flows; flow++)
            for (cl_u32 packet = 0; packet < groups[i].window; packet++)
                come(leaves + groups[i].leaf, begin, i << 16 | (i * 100 + flow));
    while (now < end) {
        struct leaf *leaf = NULL;
        struct departed departed;
        cl_u64 earliest = end;
        cl_u32 first = CL_NIL;

        for (cl_u32 i = 0; i < later_count; i++)
            if (laters[i].at <= earliest) {
                earliest = laters[i].at;
                first = i;
            }
        for (cl_u32 i = 0; i < count; i++) {
            int is_stalled = (cl_s64)i == stalled && now >= begin + from && now < begin + half;
            cl_u64 asks = is_stalled ? cl_max(leaves[i].asks, begin + half) : leaves[i].asks;

            if (leaves[i].waiting && asks < earliest) {
                earliest = asks;
                leaf = leaves + i;
            }
        }
        now = cl_max(now, earliest);
        if (now >= end)
            break;
        if (rate_at_half && config.shape_bps != rate_at_half && now >= begin + ms * 500000) {
            config.shape_bps = rate_at_half;
            config.generation++;
        }
        if (!leaf) {
            struct later comes;

            if (first == CL_NIL)
                break;
            comes = laters[first];
            laters[first] = laters[--later_count];
            come(leaves + groups[comes.label >> 16].leaf, now, comes.label);
            continue;
        }
        leaf->asks = CL_MAX_U64;
        if (depart(leaf, now, &departed)) {
            struct group *group = groups + (departed.label >> 16);
            cl_u64 wait = departed.wait, left = departed.at + cl_drain(leaf->tsq.byte_time, SIZE);

            idle += cl_since(departed.at, busy_until);
            busy_until = left;
            if (now > begin + 100000000)
                overtaken = cl_max(overtaken, cl_since(departed.key, departed.others));
            group->bytes += SIZE;
            group->packets++;
            group->waited += wait;
            group->longest = cl_max(group->longest, wait);
            leaf->asks = now;
            if (group->pause && later_count < MOST)
                laters[later_count++] = (struct later){ left + group->pause, departed.label };
            else
                come(leaf, now, departed.label);
        } else {
            seed = cl_mix(seed);
            leaf->asks = cl_max(common(leaf)->wake, now) + (late ? seed % late : 0);
        }
    }
    for (cl_u32 i = 0; i < group_count; i++)
        printf("%llu %llu %llu ", (unsigned long long)groups[i].bytes, (unsigned long long)(groups[i].waited / cl_max(groups[i].packets, 1)),
               (unsigned long long)groups[i].longest);
    printf("%llu %llu %llu %llu\n", (unsigned long long)idle, (unsigned long long)overtaken, (unsigned long long)errors,
           (unsigned long long)backlogs);
    group_count = 0;
    memset(groups, 0, sizeof groups);
}

static void run_change(cl_u64 before, cl_u64 after, cl_u32 count)
{
    cl_u64 now = 1000000000;

    config.shape_bps = before;
    config.limit_packets = limit;
    begin_leaves(count, now);
    for (cl_u32 i = 0; i < count; i++)
        arrive(leaves + i, now += 1000, 16, i, GROUPS);
    config.shape_bps = after;
    config.generation++;
    for (cl_u32 round = 0; round < 2; round++) {
        for (cl_u32 i = 0; i < count; i++)
            arrive(leaves + i, now += 1000, 16, i, GROUPS);
        printf("%llu%s", (unsigned long long)(kind == TSQ ? cl_rate(&leaves[1].config) : sieve_shared.rate >> (CL_SHARE_BITS - 3)), round ? "\n" : " ");
    }
}

int main(void)
{
    const char *word;

    begin(&config);
    while ((word = next_command(&config))) {
        if (!strcmp(word, "limit")) {
            limit = next();
        } else if (!strcmp(word, "half")) {
            rate_at_half = next();
        } else if (!strcmp(word, "claims")) {
            cl_u32 threads = cl_min(next(), LEAVES);

            packets_each = next();
            time_each = next();
            run_claims(threads);
        } else if (!strcmp(word, "threads")) {
            cl_u32 threads;
            cl_u64 bps;

            kind = next();
            threads = cl_min(next(), LEAVES);
            bps = next();
            run_threads(threads, bps, next());
        } else if (!strcmp(word, "group") && group_count < GROUPS) {
            struct group *group = groups + group_count++;

            group->leaf = cl_min(next(), LEAVES - 1);
            group->flows = next();
            group->level = next();
            group->window = next();
            group->pause = next();
        } else if (!strcmp(word, "run")) {
            cl_u64 bps, ms, late, stalled;

            kind = next();
            bps = next();
            ms = next();
            late = next();
            stalled = next();
            run_flows(bps, ms, late, stalled, next());
        } else if (!strcmp(word, "change")) {
            cl_u64 before, after;

            kind = next();
            before = next();
            after = next();
            run_change(before, after, cl_min(next(), LEAVES));
        } else {
            fprintf(stderr, "there is no command `%s`\n", word);
            return 1;
        }
    }
    return 0;
}
