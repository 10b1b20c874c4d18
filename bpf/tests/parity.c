/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* Runs the arithmetic of the kernel's queues on the host, for the tests of crates/dev/bpf-parity. Reads commands, a line each, and answers each
 * with a line where it says so. All numbers are whole.
 *
 *     set NAME VALUE                  a field of the configuration
 *     drain BPS BYTES                 answers the time that bytes take, ns
 *     charge P Q Q'                   answers p', 2^-60, of delays in ns
 *     law NOW PACKETS BYTES           answers p, 2^-60, after the samples that are due
 *     tsq NOW                         begins with an empty queue of this configuration
 *     change NOW                      goes on with this configuration
 *     enqueue NOW LEVEL SIZE DICE     answers the verdict (0 pass, 1 early, 2 overflow), w, q and q' in ns, and p, 2^-60
 *     dequeue NOW                     answers the number of the packet among those that were stored, or -1
 */
#include "fields.h"

#include <stdio.h>

#include "../include/cutline/fixed.h"

struct cl_slot {
    cl_u64 weight, arrived, number, bytes_before;
    cl_u32 size, length, next, level;
};

struct slots {
    struct cl_slot *first;
    cl_u32 count;
};

typedef struct slots *cl_slots;
#define CL_CAN_LOOP 1

static struct cl_slot *cl_slot(cl_slots slots, cl_u32 index) { return index < slots->count ? slots->first + index : NULL; }

#include "../include/cutline/tsq.h"

static struct cutline_config config, used;
static struct cl_tsq tsq;
static struct slots slots;

static cl_u64 next(void)
{
    char *word = strtok(NULL, " \n");

    if (!word) {
        fprintf(stderr, "a number is missing\n");
        exit(1);
    }
    return strtoull(word, NULL, 0);
}

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
            cl_tsq_push(&tsq, &slots, now, &point, slot, index, size);
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
    tsq.service_ends = now + cl_drain(tsq.byte_time, slot->size);
    printf("%llu\n", (unsigned long long)slot->number);
    cl_tsq_give_back(&tsq, slot, index);
}

int main(void)
{
    char line[256];

    begin(&config);
    while (fgets(line, sizeof line, stdin)) {
        char *word = strtok(line, " \n");

        if (!word)
            continue;
        if (!strcmp(word, "set")) {
            char *name = strtok(NULL, " ");

            if (!name || set_field(&config, name, next())) {
                fprintf(stderr, "there is no field `%s`\n", name ? name : "");
                return 1;
            }
        } else if (!strcmp(word, "drain")) {
            cl_u64 bps = next();

            printf("%llu\n", (unsigned long long)cl_drain(cl_byte_time(bps), next()));
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
        } else {
            fprintf(stderr, "there is no command `%s`\n", word);
            return 1;
        }
    }
    return 0;
}
