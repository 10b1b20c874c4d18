/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* Sieve (docs/internals/sieve.md), with flows as the key and without marks, for the kernel and for the host.
 *
 *     V      = start of the packet in service; f = dV/dt over tau is the fair share
 *     F      = max(F, min(V - f tau, what waits)): the floor, below which no packet starts
 *     start  = max(F, finish of the flow),  finish = start + size;  the least finish is served next
 *     w      = (start - V) / f
 *     p'     = (w - t - g) / (2 rtt),  t = max(hint / 16 * rtt / 3, size / f);  dropped with p'^2
 *     g      = rtt for two rtt after a drop, else 0
 *
 * Nothing is divided unless a packet is above its target: all of p' is compared in bytes, f (t + g) and 2 rtt f.
 *
 * Virtual time has 4 fractional bits of a byte. At 100 Gbit/s, the fastest link, 2^60 of them last for two years. The share has 16 fractional bits
 * of B/s. Errors: p is wrong by less than 2^-32 from given V, f and start. f itself is wrong by less than 1e-6 of itself and 2^-12 B/s: its decay over
 * a time has 40 fractional bits, and is e^-x to the third order, as in the crate `aqm`. The order is right to the width of a slot (calendar.h).
 * Finishes and starts are stored in 48 bits, counted from an epoch (accounts.h): the other calculations have all 64. */
#ifndef CUTLINE_SIEVE_H
#define CUTLINE_SIEVE_H

#include "calendar.h"
#include "law.h"
#include "shaper.h"

#ifndef CL_SORT
#define CL_SORT(sieve, nodes, table) cl_sieve_sort(sieve, nodes, table)
#endif
#define CL_SHARE_BITS 16
/* A second has 32 fractional bits, and the exponent of a decay 40. */
#define CL_EXPONENT_BITS 40
/* The least factor between the rates of a link that alternates. */
#define CL_ALTERNATION 4
/* The least that is kept: four large packets, 2^-4 B. */
#define CL_KEPT (4ULL * 1500 << CL_BYTE_BITS)
/* The floor is at least so far after the epoch when the epoch moves, and so far after it then, 2^-4 B. No packet that waits starts so far below the floor. */
#define CL_EPOCH_AGE (1ULL << 46)
#define CL_EPOCH_LEAD (1ULL << 32)

struct cl_sieve {
    cl_u64 v;            /* V, 2^-4 B */
    cl_u64 largest;      /* the largest V */
    cl_u64 floor;        /* F */
    cl_u64 elsewhere;    /* least due time of packets in other leaves of the link; CL_MAX_U64: there are none */
    cl_u64 newcomers[2]; /* virtual times at which the next packet of a new flow may start */
    cl_u64 share;        /* f, 2^-16 B/s */
    cl_u64 link;         /* C, 2^-16 B/s */
    cl_u64 byte_time;    /* of the link, 2^-32 ns */
    cl_u64 now;          /* time of the last call, ns */
    cl_u64 reached;      /* time at which V was reached last, ns */
    cl_u64 fell_until, alternates_until; /* times until which a rise of C ends a pause, and until which C counts as alternating, ns */
    cl_u64 follows;      /* f was not scaled with C when C was set last */
    cl_u64 sorted_low, sorted_high; /* shares for which the calendar's slots are right */
    cl_u64 sorted_weight; /* weight of new flows when the packets were sorted last, 2^-32 */
    cl_u64 rtt, tau;      /* 2^-32 s */
    cl_u64 per_tau;       /* 2^-63 per ns */
    cl_u64 per_tau_s;     /* 2^-32 per s */
    cl_u64 least_fast;    /* least f that is taken over tau, 2^-16 B/s */
    struct cl_backlog backlog;
    struct cl_accounts accounts;
    struct cl_calendar calendar;
};

/* The state of an arriving packet. */
struct cl_arrival {
    cl_u64 start;  /* virtual time */
    cl_u64 own;    /* virtual time at which it would start if its flow were not new */
    cl_u64 p;      /* 2^-60 */
    struct cl_account *cell; /* its account; NULL if there is none */
    cl_u32 place;  /* of its account */
    cl_u32 size;   /* bytes on the link */
    cl_u32 is_new;
    cl_u32 class;  /* of new flows */
    cl_u32 is_warned;
    cl_u32 is_last; /* it does not fit, and would be the last, or it is one too many for its account */
    cl_u32 waits;   /* behind packets of its own flow */
};

/* Returns a time in 2^-32 s. */
CL_INLINE cl_u64 cl_seconds(cl_u64 ns) { return cl_mul_shift(ns, 1237940039285380275ULL, 58); }

/* Returns the bytes of a rate, 2^-16 B/s, in a time, 2^-32 s: 2^-4 B. */
CL_INLINE cl_u64 cl_bytes_in(cl_u64 rate, cl_u64 seconds)
{
    const cl_u32 shift = CL_SHARE_BITS + 32 - CL_BYTE_BITS;

    /* Most times are below a second. */
    return seconds >> 32 ? cl_mul_shift(rate, seconds, shift) : cl_mul_shift_small(rate, seconds, shift);
}

/* Returns the unused share that is kept, 2^-4 B: no more than the link sends in tau. */
CL_INLINE cl_u64 cl_kept(const struct cl_sieve *sieve)
{
    return cl_max(cl_bytes_in(cl_min(sieve->share, sieve->link), sieve->tau), CL_KEPT);
}

/* Returns a * b / 2^shift. `b` is 1 / tau, of at most 40 bits since tau is at least 10^7 ns. Most numbers of ns or bytes between two packets have 24 bits. */
CL_INLINE cl_u64 cl_per_tau(cl_u64 a, cl_u64 b, cl_u32 shift) { return a >> 24 ? cl_mul_shift(a, b, shift) : a * b >> shift; }

/* Returns whether f is taken over the time of four packets, because that is longer than tau. */
CL_INLINE int cl_is_slow(const struct cl_sieve *sieve) { return sieve->share < sieve->least_fast; }

/* Returns a time, ns, as a part of that over which f is taken, 2^-40; at most 32. */
CL_INLINE cl_u64 cl_exponent(const struct cl_sieve *sieve, cl_u64 ns)
{
    cl_u64 x;

    if (cl_is_slow(sieve))
        x = cl_mul_shift(sieve->share, cl_seconds(ns), CL_SHARE_BITS + 32 - CL_EXPONENT_BITS) / (CL_KEPT >> CL_BYTE_BITS);
    else
        x = cl_per_tau(ns, sieve->per_tau, 63 - CL_EXPONENT_BITS);
    return cl_min(x, 32ULL << CL_EXPONENT_BITS);
}

/* Returns the weight of a byte of a new flow, 2^-32: an eighth of the link is the share of all of them. */
CL_INLINE cl_u64 cl_weight(const struct cl_sieve *sieve) { return cl_fraction(8 * sieve->share, sieve->link) >> 28; }

/* Returns whether the floor is so far after the epoch that the epoch has to move. */
CL_INLINE int cl_is_far(const struct cl_sieve *sieve) { return cl_since_by_branch(sieve->floor, sieve->accounts.epoch) >= CL_EPOCH_AGE; }

/* Moves the epoch of the accounts to a little below the floor. That of the packets follows when they are sorted. */
CL_NOINLINE void cl_move_epoch(struct cl_sieve *sieve, cl_table table)
{
    cl_u64 epoch = sieve->floor - CL_EPOCH_LEAD, step = epoch - sieve->accounts.epoch;

    for (cl_u32 i = 0; i < sieve->accounts.sets && CL_CAN_LOOP; i++) {
        struct cl_set *set = cl_set(table, i);

        if (!set)
            break;
        for (cl_u32 way = 0; way < CL_WAYS; way++) {
            struct cl_account *cell = &set->cells[way];
            cl_u64 after = cl_since_by_branch((cl_u64)cell->upper_finish << 32 | cell->finish, step);

            cell->finish = after;
            cell->upper_finish = after >> 32;
        }
    }
    sieve->accounts.epoch = sieve->calendar.next_epoch = epoch;
}

/* Sorts the packets into slots that suit f. */
CL_NOINLINE int cl_sieve_sort(struct cl_sieve *sieve, cl_nodes nodes, cl_table table)
{
    cl_u64 range = 2 * (cl_kept(sieve) + 4 * cl_bytes_in(sieve->share, sieve->rtt)), weight = cl_weight(sieve), part;

    if (cl_is_far(sieve))
        cl_move_epoch(sieve, table);
    if (weight < sieve->sorted_weight) {
        /* New flows have an eighth of the link together, also those that waited when a share was more than that. */
        part = cl_fraction(weight, sieve->sorted_weight) >> 28;
        for (cl_u32 i = 0; i < sieve->accounts.sets && CL_CAN_LOOP; i++) {
            struct cl_set *set = cl_set(table, i);

            if (!set)
                break;
            for (cl_u32 way = 0; way < CL_WAYS; way++) {
                struct cl_account *cell = &set->cells[way];

                if (!cell->lag)
                    continue;
                cl_set_finish(&sieve->accounts, cell, cl_nearer(cl_finish(&sieve->accounts, cell), sieve->v, part));
                cell->lag = ((cl_u64)cell->lag * part + 0xffffffff) >> 32;
            }
        }
        for (cl_u32 i = 0; i < 2; i++)
            sieve->newcomers[i] = cl_nearer(sieve->newcomers[i], sieve->v, part);
        sieve->calendar.v = sieve->v;
        sieve->calendar.part = cl_max(part, 1);
    }
    CL_RESORT(&sieve->calendar, nodes, sieve->floor, range);
    sieve->sorted_weight = weight;
    sieve->sorted_low = sieve->share / 2;
    sieve->sorted_high = sieve->share * 2;
    return 0;
}

/* Lets time pass. On an idle link a flow could have had all of it. */
CL_INLINE void cl_catch_up(struct cl_sieve *sieve, cl_nodes nodes, cl_table table, cl_u64 now)
{
    cl_u64 elapsed = cl_since_by_branch(now, sieve->now), one = 1ULL << CL_EXPONENT_BITS, x, half_square, growth, decay, before = sieve->share;

    if (!elapsed)
        return;
    sieve->now = now;
    x = cl_exponent(sieve, elapsed);
    half_square = x >> 32 ? cl_mul_shift(x, x, CL_EXPONENT_BITS + 1) : x * x >> (CL_EXPONENT_BITS + 1);
    growth = one + x + half_square;
    if (x >> 32)
        decay = cl_mul_shift(before, x < one / 4 ? one - x + half_square : (1ULL << 60) / (growth >> 20), CL_EXPONENT_BITS);
    else
        decay = cl_lessened(before, x - half_square, CL_EXPONENT_BITS);
    if (sieve->backlog.packets) {
        /* The least share is a millionth of the link. A share of 2^-19 of the link is above that without a division. */
        sieve->share = decay >= sieve->link >> 19 ? decay : cl_max(decay, cl_max(sieve->link / 1000000, 1));
    } else {
        /* While C alternates, f may be above it. */
        sieve->share = before > sieve->link ? cl_max(decay, sieve->link) : cl_min(cl_mul_shift(before, growth, CL_EXPONENT_BITS), sieve->link);
        sieve->v = cl_max(sieve->v, sieve->largest) + cl_bytes_in((before + sieve->share) / 2, cl_seconds(elapsed));
        sieve->largest = sieve->v;
        sieve->reached = now;
    }
    if (sieve->share < sieve->sorted_low || sieve->share > sieve->sorted_high)
        CL_SORT(sieve, nodes, table);
}

/* Sets what follows from the configuration, but for the rate. */
CL_INLINE void cl_sieve_set(struct cl_sieve *sieve, const struct cutline_config *config)
{
    sieve->rtt = cl_seconds(config->sieve.rtt);
    sieve->tau = cl_seconds(config->sieve.tau);
    sieve->per_tau = (1ULL << 63) / config->sieve.tau;
    sieve->per_tau_s = (1000000000ULL << 32) / config->sieve.tau;
    sieve->least_fast = ((CL_KEPT << (CL_SHARE_BITS + 32 - CL_BYTE_BITS)) + sieve->tau - 1) / sieve->tau;
    sieve->accounts.grown_up = cl_min(config->sieve.newcomer_age >> (CL_TICK_BITS + CL_AGE_BITS), CL_BIRTH / 2);
    sieve->byte_time = cl_byte_time(cl_rate(config));
}

/* Forgets everything. The calendar's nodes are empty. */
CL_INLINE void cl_sieve_reset(struct cl_sieve *sieve, cl_nodes nodes, cl_table table, const struct cutline_config *config, cl_u64 now)
{
    struct cl_accounts *accounts = &sieve->accounts;

    cl_sieve_set(sieve, config);
    for (accounts->sets = 0; CL_CAN_LOOP; accounts->sets++) {
        struct cl_set *set = cl_set(table, accounts->sets);

        if (!set)
            break;
        for (cl_u32 word = 0; word < 2 * CL_FILTER_WORDS; word++)
            set->words[word] = 0;
    }
    /* The last ones are filters. */
    accounts->filters = accounts->sets * CL_FILTER_SETS / CL_FILTER_PARTS;
    accounts->sets = cl_min(accounts->sets - accounts->filters, CL_PLACES / CL_WAYS);
    accounts->epoch = sieve->calendar.epoch = sieve->calendar.next_epoch = sieve->calendar.part = 0;
    accounts->visitors.set[0] = accounts->visitors.set[1] = 0;
    accounts->salt_until = accounts->changing_until = accounts->shared_until = 0;
    for (cl_u32 i = 0; i < CL_CALENDAR / 64 && CL_CAN_LOOP; i++)
        sieve->calendar.bits[i & 63] = 0;
    sieve->calendar.words = 0;
    sieve->calendar.free = CL_NO_NODE;
    sieve->calendar.fresh = 0;
    sieve->backlog.packets = sieve->backlog.bytes = 0;
    sieve->link = cl_rate(config) << (CL_SHARE_BITS - 3);
    sieve->share = sieve->link;
    sieve->v = sieve->largest = cl_kept(sieve);
    sieve->floor = sieve->newcomers[0] = sieve->newcomers[1] = 0;
    sieve->elsewhere = CL_MAX_U64;
    sieve->sorted_weight = 1ULL << 32;
    sieve->now = sieve->reached = now;
    sieve->fell_until = sieve->alternates_until = sieve->follows = 0;
    CL_SORT(sieve, nodes, table);
}

/* Sets C, and f with it. Where C has fallen and risen again within tau, less than 2 tau ago, its value of a moment says little about f, which follows
 * the packets that leave. */
CL_INLINE void cl_sieve_scale(struct cl_sieve *sieve, cl_u64 link)
{
    if (!sieve->follows)
        sieve->share = cl_mul_shift(link, cl_fraction(sieve->share, sieve->link), 60);
    sieve->link = link;
    sieve->share = cl_max(sieve->share, cl_max(link / 1000000, 1));
}

/* Goes on with another configuration. */
CL_INLINE void cl_sieve_change(struct cl_sieve *sieve, cl_nodes nodes, cl_table table, struct cutline_config *config,
                               const struct cutline_config *to, cl_u64 now)
{
    cl_u64 link = cl_rate(to) << (CL_SHARE_BITS - 3);

    cl_catch_up(sieve, nodes, table, now);
    *config = *to;
    cl_sieve_set(sieve, config);
    sieve->follows = now < sieve->alternates_until;
    if (link <= sieve->link / CL_ALTERNATION)
        sieve->fell_until = now + config->sieve.tau;
    else if (link / CL_ALTERNATION >= sieve->link && now < sieve->fell_until)
        sieve->alternates_until = now + 2 * config->sieve.tau;
    cl_sieve_scale(sieve, link);
    CL_SORT(sieve, nodes, table);
}

/* Returns whether another packet of this size fits. */
CL_INLINE int cl_fits(const struct cutline_config *config, cl_u64 packets, cl_u64 bytes)
{
    return packets <= config->limit_packets && (!config->limit_bytes || bytes <= config->limit_bytes);
}

/* Finds what there is to know of a packet that arrives now. */
CL_INLINE void cl_sieve_arrive(struct cl_sieve *sieve, cl_nodes nodes, cl_table table, const struct cutline_config *config, cl_u64 now,
                               cl_u32 level, cl_u32 size, cl_u32 id, struct cl_arrival *arrival)
{
    cl_u64 oldest, behind, target, free, slope, p_prime, finish;
    struct cl_account *cell;
    struct cl_found found;

    size = cl_min(size, CL_MOST_SIZE);
    cl_catch_up(sieve, nodes, table, now);
    oldest = cl_since_by_branch(sieve->v, cl_kept(sieve));
    oldest = cl_min(oldest, sieve->elsewhere);
    if (oldest > sieve->floor && sieve->calendar.words)
        oldest = cl_min(oldest, cl_first_time(&sieve->calendar));
    sieve->floor = cl_max(sieve->floor, oldest);
    if (cl_is_far(sieve))
        CL_SORT(sieve, nodes, table);
    cell = cl_find(&sieve->accounts, table, now, id, sieve->floor, &found);
    arrival->cell = cell;
    arrival->place = found.place;
    arrival->size = size;
    arrival->is_new = found.is_new;
    arrival->class = 0;
    arrival->start = arrival->own = sieve->floor;
    arrival->p = arrival->is_warned = arrival->is_last = arrival->waits = 0;
    if (!cell)
        return;
    /* By a cell that is shared, a packet is charged to the flow of the cell. */
    finish = cl_finish(&sieve->accounts, cell);
    arrival->own = cl_since_by_branch(finish, (cl_u64)cell->lag << CL_LAG_BITS);
    if (!cell->waiting) {
        finish = arrival->own;
        cl_set_finish(&sieve->accounts, cell, finish);
        cell->lag = 0;
    }
    arrival->start = cl_max(finish, sieve->floor);
    arrival->own = cl_max(arrival->own, sieve->floor);
    if (found.is_new) {
        if (arrival->own > sieve->floor)
            cell->state |= CL_BEHIND;
        arrival->class = !!(cell->state & CL_BEHIND);
        arrival->start = cl_max(arrival->start, arrival->class ? sieve->newcomers[1] : sieve->newcomers[0]);
    }
    behind = cl_since_by_branch(arrival->start, sieve->v);
    arrival->waits = behind > 0;
    /* The ticks wrap after 69 s: a warning of long ago would seem to lie ahead. */
    arrival->is_warned = (cl_u16)(cell->warned_until - (cl_u16)cl_ticks(now) - 1) <= cl_ticks(2 * config->sieve.rtt);
    if (!cl_fits(config, sieve->backlog.packets + 1, sieve->backlog.bytes + size))
        arrival->is_last = arrival->start >= cl_last_start(&sieve->calendar, nodes);
    if (cell->waiting == CL_MOST_WAITING)
        arrival->is_last = 1;
    if (!behind)
        return;
    target = cl_max(cl_bytes_in(sieve->share, sieve->rtt * level / (3 * CUTLINE_HINTS)), (cl_u64)size << CL_BYTE_BITS);
    free = target + (arrival->is_warned ? cl_bytes_in(sieve->share, sieve->rtt) : 0);
    if (behind <= free)
        return;
    slope = cl_max(cl_bytes_in(sieve->share, 2 * sieve->rtt), 1);
    p_prime = cl_fraction(behind - free, slope);
    arrival->p = cl_mul_shift(p_prime, p_prime, 60);
}

/* Returns the verdict on a packet with these dice, 2^-60, which are below 1. */
CL_INLINE int cl_sieve_verdict(const struct cl_arrival *arrival, cl_u64 dice)
{
    if (arrival->is_last)
        return 2;
    return dice < arrival->p;
}

/* Notes that a packet is dropped early, of which its flow learns within a round trip. */
CL_INLINE void cl_sieve_warn(const struct cutline_config *config, cl_u64 now, const struct cl_arrival *arrival)
{
    if (arrival->cell && !arrival->is_warned)
        arrival->cell->warned_until = cl_ticks(now + 2 * config->sieve.rtt);
}

/* Adds a packet that has come now with a hint of this level, in a node that was taken for it. */
CL_INLINE void cl_sieve_push(struct cl_sieve *sieve, cl_nodes nodes, cl_u64 now, cl_u32 level, const struct cl_arrival *arrival, struct cl_node *node,
                             cl_u32 index)
{
    cl_u64 charge = (cl_u64)arrival->size << CL_BYTE_BITS, lag = (arrival->start - arrival->own + (1ULL << CL_LAG_BITS) - 1) >> CL_LAG_BITS;
    struct cl_account *cell = arrival->cell;

    cl_set_times(node, arrival->start, CL_WHOLE, sieve->calendar.epoch);
    node->origin = cl_origin(now, level, lag > 0, arrival->place);
    node->links = (cl_u64)arrival->size << CL_SIZE_SHIFT;
    if (cell) {
        cl_set_finish(&sieve->accounts, cell, arrival->start + charge);
        cell->lag = cl_min(lag, 0xffff);
        if (cell->waiting < CL_MOST_WAITING)
            cell->waiting++;
    }
    if (arrival->is_new) {
        cl_u64 next = arrival->start + cl_mul_shift(charge, cl_weight(sieve), 32);

        if (arrival->class)
            sieve->newcomers[1] = next;
        else
            sieve->newcomers[0] = next;
    }
    sieve->backlog.packets++;
    sieve->backlog.bytes += arrival->size;
    cl_calendar_push(&sieve->calendar, nodes, sieve->floor, node, index);
}

/* Takes the packet with the largest due time out of a queue that is too full. Returns its node, and the node's number in `index`; NULL if the queue is not. */
CL_INLINE struct cl_node *cl_sieve_push_out(struct cl_sieve *sieve, cl_nodes nodes, cl_table table, const struct cutline_config *config, cl_u32 *index)
{
    struct cl_account *cell;
    struct cl_node *node;

    if (cl_fits(config, sieve->backlog.packets, sieve->backlog.bytes))
        return 0;
    node = cl_unlink(&sieve->calendar, nodes, cl_last_slot(&sieve->calendar), 1, index);
    if (!node)
        return 0;
    sieve->backlog.packets--;
    sieve->backlog.bytes -= cl_node_size(node);
    cell = cl_left(table, cl_node_place(node));
    if (cell)
        cl_set_finish(&sieve->accounts, cell, cl_since_by_branch(cl_finish(&sieve->accounts, cell), cl_span(node)));
    return node;
}

/* Takes the packet that is next, which goes to the link at `now`. Returns its node, and the node's number in `index`; NULL if no packet waits. */
CL_INLINE struct cl_node *cl_sieve_pop(struct cl_sieve *sieve, cl_nodes nodes, cl_table table, const struct cutline_config *config, cl_u64 now,
                                       cl_u32 *index)
{
    struct cl_node *node;
    cl_u64 start;

    cl_catch_up(sieve, nodes, table, now);
    node = cl_unlink(&sieve->calendar, nodes, cl_first_slot(&sieve->calendar), 0, index);
    if (!node)
        return 0;
    sieve->backlog.packets--;
    sieve->backlog.bytes -= cl_node_size(node);
    cl_left(table, cl_node_place(node));
    start = cl_start(&sieve->calendar, node);
    if (start > sieve->v) {
        sieve->v = start;
        sieve->reached = now;
        if (sieve->v > sieve->largest) {
            cl_u64 above = sieve->v - sieve->largest;

            sieve->largest = sieve->v;
            if (cl_is_slow(sieve))
                sieve->share += cl_mul_shift(sieve->share, above, CL_BYTE_BITS) / (CL_KEPT >> CL_BYTE_BITS);
            else
                sieve->share += cl_per_tau(above, sieve->per_tau_s, 32 + CL_BYTE_BITS - CL_SHARE_BITS);
        }
    } else if (cl_since_by_branch(now, sieve->reached) > config->sieve.rtt) {
        /* Buckets that are served for long are those of the flows. */
        cl_u64 x = cl_exponent(sieve, cl_drain(sieve->byte_time, cl_node_size(node)));

        sieve->v -= cl_mul_shift(sieve->v - start, cl_fraction(x, (1ULL << CL_EXPONENT_BITS) + x), 60);
        sieve->largest = sieve->v;
    }
    return node;
}

/* Returns the fair share, bit/s. */
CL_INLINE cl_u64 cl_sieve_share(const struct cl_sieve *sieve) { return sieve->share >> (CL_SHARE_BITS - 3); }

/* Returns whether the configuration is in range. */
CL_INLINE int cl_sieve_is_valid(const struct cutline_config *config)
{
    const struct cutline_sieve *sieve = &config->sieve;

    return config->limit_packets < CL_NO_NODE && cl_rate(config) <= 100000000000ULL && sieve->rtt >= 1000000 && sieve->rtt <= 10000000000ULL && sieve->tau >= 10000000 &&
           sieve->tau <= 100000000000ULL && sieve->newcomer_age <= 30000000000ULL;
}

#endif
