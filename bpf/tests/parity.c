/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* Runs the arithmetic of the kernel's queues on the host, for the tests of crates/dev/bpf-parity. Reads commands, a line each, and answers each
 * with a line where it says so. All numbers are whole.
 *
 *     set NAME VALUE                  a field of the configuration
 *     drain BPS BYTES                 answers the time that bytes take, ns
 *     segments LENGTH HEADERS MOST    answers the segments of a packet with so many bytes of headers, by the most payload of each
 *     waited NOW LEVEL AT             answers the time from NOW to AT by the stamp of a packet with a hint of this level, and the level, of TSQ and of Sieve
 *     charge P Q Q'                   answers p', 2^-60, of delays in ns
 *     law NOW PACKETS BYTES           answers p, 2^-60, after the samples that are due
 *     tsq NOW                         begins with an empty queue of this configuration
 *     change NOW                      goes on with this configuration
 *     enqueue NOW LEVEL SIZE DICE     answers the verdict (0 pass, 1 early, 2 overflow), w, q and q' in ns, and p, 2^-60
 *     dequeue NOW                     answers the number of the packet among those that were stored, or -1
 *     sieve NOW SETS SALT             begins with an empty queue of this configuration, in which SALT is the first salt to draw
 *     sieve-change NOW                goes on with this configuration
 *     sieve-enqueue NOW LEVEL SIZE FLOW DICE VERDICT SALT
 *                                     acts by this verdict (0 pass, 1 early, 2 overflow), and answers its own, p, 2^-60, the fair share, bit/s, whether
 *                                     the packet waits, and the numbers of stored packets that were pushed out
 *     sieve-dequeue NOW               as dequeue, with the width of a slot, B, and the virtual time at which the packet is due, B
 */
#include <stdio.h>

#include "../include/cutline/fixed.h"

static cl_u64 salt;

static cl_u64 cl_random(void) { return salt; }

#include "host.h"

static struct cutline_config config, used;
static struct cl_tsq tsq;
static struct slots slots;

static void begin_tsq(cl_u64 now)
{
    memset(&tsq, 0, sizeof tsq);
    used = config;
    slots.count = used.limit_packets;
    free(slots.first);
    slots.first = calloc(slots.count, sizeof *slots.first);
    tsq.byte_time = cl_byte_time(cl_rate(&used));
    cl_tsq_reset(&tsq, &used, now);
}

static void enqueue(cl_u64 now, cl_u32 level, cl_u32 size, cl_u64 dice)
{
    struct cl_point point;
    enum cl_verdict verdict = cl_tsq_judge(&tsq, &slots, &used, now, level, size, dice, &point);
    cl_u64 q_prime = point.is_largest ? point.q : cl_tsq_q_prime(&tsq, &slots, &point);

    if (verdict == CL_PASS) {
        cl_u32 index = cl_tsq_take(&tsq, &slots);
        struct cl_slot *slot = cl_slot(&slots, index);

        if (slot)
            cl_tsq_push(&tsq, &slots, cl_stamp(now, level), &point, slot, index, size);
        else
            verdict = CL_OVERFLOW;
    }
    printf("%d %llu %llu %llu %llu\n", verdict, (unsigned long long)point.weight, (unsigned long long)point.q, (unsigned long long)q_prime,
           (unsigned long long)cl_law_p(&tsq.law, &used));
}

static void dequeue(cl_u64 now)
{
    cl_u32 index;
    struct cl_slot *slot;

    cl_law_advance(&tsq.law, &used, tsq.byte_time, now, &tsq.backlog);
    index = cl_tsq_pop(&tsq, &slots, cl_tsq_next(&tsq));
    slot = cl_slot(&slots, index);
    if (!slot) {
        printf("-1\n");
        return;
    }
    cl_tsq_serve(&tsq, &used, now, slot->size);
    printf("%llu\n", (unsigned long long)slot->number);
    cl_tsq_give_back(&tsq, slot, index);
}

static struct cl_sieve sieve;
static struct nodes nodes;
static struct table table;
static cl_u32 stored;

static void begin_sieve(cl_u64 now, cl_u32 sets)
{
    memset(&sieve, 0, sizeof sieve);
    used = config;
    stored = 0;
    nodes.count = used.limit_packets + 1;
    free(nodes.first);
    nodes.first = calloc(nodes.count, sizeof *nodes.first);
    table.count = sets;
    free(table.first);
    table.first = calloc(sets, sizeof *table.first);
    cl_sieve_reset(&sieve, &nodes, &table, &used, now);
}

static void sieve_enqueue(cl_u64 now, cl_u32 level, cl_u32 size, cl_u32 flow, cl_u64 dice, int verdict)
{
    struct cl_arrival arrival;

    cl_sieve_arrive(&sieve, &nodes, &table, &used, now, level, size, flow, &arrival);
    printf("%d %llu %llu %u", cl_sieve_verdict(&arrival, dice), (unsigned long long)arrival.p, (unsigned long long)cl_sieve_share(&sieve), arrival.waits);
    if (verdict == 1)
        cl_sieve_warn(&used, now, &arrival);
    if (verdict == 0) {
        cl_u32 index = CL_NIL;
        struct cl_node *node = cl_take_node(&sieve.calendar, &nodes, &index);

        if (!node) {
            fprintf(stderr, "there is no node\n");
            exit(1);
        }
        node->label = stored++;
        cl_sieve_push(&sieve, &nodes, now, level, &arrival, node, index);
        while ((node = cl_sieve_push_out(&sieve, &nodes, &table, &used, &index))) {
            printf(" %u", node->label);
            cl_give_node_back(&sieve.calendar, node, index);
        }
    }
    printf("\n");
}

static void sieve_dequeue(cl_u64 now)
{
    cl_u32 index = CL_NIL;
    struct cl_node *node = cl_sieve_pop(&sieve, &nodes, &table, &used, now, &index);

    if (!node) {
        printf("-1 0 0\n");
        return;
    }
    printf("%u %llu %llu\n", node->label, (unsigned long long)sieve.calendar.width >> CL_BYTE_BITS,
           (unsigned long long)cl_due_time(&sieve.calendar, node) >> CL_BYTE_BITS);
    cl_give_node_back(&sieve.calendar, node, index);
}

int main(void)
{
    const char *word;

    begin(&config);
    while ((word = next_command(&config))) {
        if (!strcmp(word, "drain")) {
            cl_u64 bps = next();

            printf("%llu\n", (unsigned long long)cl_drain(cl_byte_time(bps), next()));
        } else if (!strcmp(word, "segments")) {
            cl_u32 length = next(), headers = next();

            printf("%u\n", cl_segments_of(length, headers, next()));
        } else if (!strcmp(word, "waited")) {
            cl_u64 now = next(), level = next(), at = next(), stamp = cl_stamp(now, level);
            struct cl_node node = { .origin = cl_origin(now, level, 0, CL_PLACES - 1) };

            printf("%llu %u %llu %u\n", (unsigned long long)cl_waited(stamp, at), cl_stamp_level(stamp),
                   (unsigned long long)cl_node_waited(&node, at), cl_node_level(&node));
        } else if (!strcmp(word, "charge")) {
            cl_u64 p = next(), q = next();

            printf("%llu\n", (unsigned long long)cl_charge(&config.tsq, p, q, next()));
        } else if (!strcmp(word, "law")) {
            struct cl_backlog backlog;
            cl_u64 now = next();

            backlog.packets = next();
            backlog.bytes = next();
            cl_law_advance(&tsq.law, &used, tsq.byte_time, now, &backlog);
            printf("%llu\n", (unsigned long long)cl_law_p(&tsq.law, &used));
        } else if (!strcmp(word, "tsq")) {
            begin_tsq(next());
        } else if (!strcmp(word, "change")) {
            cl_tsq_change(&tsq, &used, &config, next());
        } else if (!strcmp(word, "enqueue")) {
            cl_u64 now = next();
            cl_u32 level = next(), size = next();

            enqueue(now, level, size, next());
        } else if (!strcmp(word, "dequeue")) {
            dequeue(next());
        } else if (!strcmp(word, "sieve")) {
            cl_u64 now = next();
            cl_u32 sets = next();

            salt = next();
            begin_sieve(now, sets);
        } else if (!strcmp(word, "sieve-change")) {
            cl_sieve_change(&sieve, &nodes, &table, &used, &config, next());
        } else if (!strcmp(word, "sieve-enqueue")) {
            cl_u64 now = next();
            cl_u32 level = next(), size = next(), flow = next();
            cl_u64 dice = next();
            int verdict = next();

            salt = next();
            sieve_enqueue(now, level, size, flow, dice, verdict);
        } else if (!strcmp(word, "sieve-dequeue")) {
            sieve_dequeue(next());
        } else {
            fprintf(stderr, "there is no command `%s`\n", word);
            return 1;
        }
    }
    return 0;
}
