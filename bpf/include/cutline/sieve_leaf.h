/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* Sieve below several hardware queues (shared.h): accounts and calendar of each leaf, one virtual time, one fair share.
 *
 * Flows of all leaves have one V, f and price, and new flows of all leaves an eighth of the link together, so a flow has the same share in
 * whichever leaf it is. An account is that of a leaf: a flow whose packets come to two of them has two.
 *
 * A leaf that finds virtual time taken goes on by a copy. It is caught up with by the next leaf, and a start above V is noted by the next packet. */
#ifndef CUTLINE_SIEVE_LEAF_H
#define CUTLINE_SIEVE_LEAF_H

#include "shared.h"
#include "sieve.h"

/* Fields are those of `struct cl_sieve`. */
struct cl_sieve_shared {
    struct cl_shared link;
    cl_u64 rate; /* `link` there; 0: no leaf has begun */
    cl_u64 v, largest, share, now, reached;
    cl_u64 newcomers[2];
    cl_u64 sorted_weight; /* weight of new flows for which `newcomers` is right, 2^-32; 0: 1 */
};

struct cl_sieve_leaf {
    struct cl_leaf leaf;
    cl_u64 newcomers[2]; /* as this leaf has read them */
    cl_u64 time;         /* time on the link for which it was taken, ns */
};

/* Returns the node of the next packet; CL_NIL if no packet waits. */
CL_INLINE cl_u32 cl_sieve_head(const struct cl_calendar *calendar, cl_nodes nodes)
{
    cl_u32 slot = cl_first_slot(calendar);

    return slot < CL_CALENDAR ? cl_head(calendar, nodes, slot) : CL_NIL;
}

/* Reads the virtual times at which new flows may start. After a sort for a smaller weight they are brought nearer to V, once for all leaves. */
CL_INLINE void cl_share_newcomers(struct cl_sieve *sieve, struct cl_sieve_shared *shared, struct cl_sieve_leaf *own, int is_sorted)
{
    if (is_sorted && own->leaf.holds) {
        cl_u64 before = CL_READ(shared->sorted_weight), part;

        if (!before)
            before = 1ULL << 32;
        if (sieve->sorted_weight < before) {
            part = cl_fraction(sieve->sorted_weight, before) >> 28;
            for (cl_u32 i = 0; i < 2; i++)
                CL_WRITE(shared->newcomers[i], cl_nearer(CL_READ(shared->newcomers[i]), sieve->v, part));
        }
        CL_WRITE(shared->sorted_weight, sieve->sorted_weight);
    }
    for (cl_u32 i = 0; i < 2; i++)
        sieve->newcomers[i] = own->newcomers[i] = CL_READ(shared->newcomers[i]);
}

/* Takes over virtual time and the backlog of all leaves, and lets time pass. */
CL_INLINE void cl_sieve_enter(struct cl_sieve *sieve, cl_nodes nodes, cl_table table, struct cl_sieve_shared *shared, struct cl_sieve_leaf *own,
                              const struct cutline_config *config, cl_u64 now)
{
    cl_u64 rate = cl_rate(config) << (CL_SHARE_BITS - 3), weight = sieve->sorted_weight;

    cl_try(&shared->link, &own->leaf, now);
    cl_look(&shared->link, &own->leaf);
    sieve->backlog = own->leaf.seen;
    if (CL_READ(shared->rate)) {
        sieve->link = CL_READ(shared->rate);
        sieve->v = CL_READ(shared->v);
        sieve->largest = CL_READ(shared->largest);
        sieve->share = CL_READ(shared->share);
        sieve->now = CL_READ(shared->now);
        sieve->reached = CL_READ(shared->reached);
    }
    if (sieve->link != rate)
        cl_sieve_scale(sieve, rate);
    cl_catch_up(sieve, nodes, table, now);
    cl_share_newcomers(sieve, shared, own, sieve->sorted_weight != weight);
}

/* Begins the departure of the next packet of a leaf. Returns the time at which it starts; 0 if the leaf has to ask again at `wake`. */
CL_INLINE cl_u64 cl_sieve_turn(struct cl_sieve *sieve, cl_nodes nodes, cl_table table, struct cl_sieve_shared *shared, struct cl_sieve_leaf *own,
                               const struct cutline_config *config, cl_u64 now, cl_u64 *slipped)
{
    struct cl_leaf *leaf = &own->leaf;
    struct cl_node *node;
    cl_u64 at = now;

    cl_show(&shared->link, leaf, leaf->head, 1);
    if (config->shape_bps && cl_is_busy(&shared->link, leaf, now))
        return 0;
    leaf->wake = now + CL_WAIT;
    node = cl_node(nodes, cl_sieve_head(&sieve->calendar, nodes));
    if (!node)
        return 0;
    cl_show(&shared->link, leaf, cl_max(cl_due_time(&sieve->calendar, node), 1), 1);
    own->time = cl_drain(sieve->byte_time, cl_node_size(node));
    if (config->shape_bps) {
        if (cl_is_passed(&shared->link, leaf, now, cl_bytes_in(sieve->share, cl_seconds(CL_SLACK))))
            return 0;
        at = cl_claim(&shared->link, leaf, config, now, own->time, slipped);
    }
    if (at)
        cl_sieve_enter(sieve, nodes, table, shared, own, config, now);
    return at;
}

/* Corrects the time for which a leaf has taken the link, where virtual time has put another packet first meanwhile, which takes `time`. */
CL_INLINE void cl_sieve_correct(struct cl_sieve_shared *shared, const struct cl_sieve_leaf *own, const struct cutline_config *config, cl_u64 time)
{
    if (config->shape_bps && time != own->time)
        CL_ADD(shared->link.free_at, time - own->time);
}

/* Looks at the packets of other leaves, which hold the floor, and chooses the backlog that the limit is compared with. A leaf with at most its part of the limit is not full, however much waits in others, which push
 * out the packets above the limit when their next packets come. A leaf with one free node is full. */
CL_INLINE void cl_sieve_room(struct cl_sieve *sieve, cl_nodes nodes, struct cl_sieve_shared *shared, struct cl_sieve_leaf *own,
                             const struct cutline_config *config)
{
    cl_u64 parts = cl_max(CL_READ(shared->link.reach), 1);
    const struct cl_calendar *calendar = &sieve->calendar;
    struct cl_node *free = cl_node(nodes, calendar->free);
    int is_last;

    if (own->leaf.own.packets * parts <= config->limit_packets && (!config->limit_bytes || own->leaf.own.bytes * parts <= config->limit_bytes))
        sieve->backlog = own->leaf.own;
    if (free)
        is_last = cl_next(free) == CL_NO_NODE && !cl_node(nodes, calendar->fresh);
    else
        is_last = !cl_node(nodes, calendar->fresh + 1);
    if (is_last)
        sieve->backlog.packets = cl_max(sieve->backlog.packets, config->limit_packets);
    own->leaf.seen = sieve->backlog;
    cl_find_least(&shared->link, &own->leaf);
    sieve->elsewhere = own->leaf.least;
}

/* Gives back virtual time, and counts the packets that have come and left. */
CL_INLINE void cl_sieve_leave(struct cl_sieve *sieve, cl_nodes nodes, struct cl_sieve_shared *shared, struct cl_sieve_leaf *own)
{
    struct cl_node *head;

    if (cl_holds(&shared->link, &own->leaf)) {
        CL_WRITE(shared->v, sieve->v);
        CL_WRITE(shared->largest, sieve->largest);
        CL_WRITE(shared->share, sieve->share);
        CL_WRITE(shared->now, sieve->now);
        CL_WRITE(shared->reached, sieve->reached);
        CL_WRITE(shared->rate, sieve->link);
    }
    cl_give(&shared->link, &own->leaf);
    for (cl_u32 i = 0; i < 2; i++)
        if (sieve->newcomers[i] > own->newcomers[i])
            cl_raise(&shared->newcomers[i], sieve->newcomers[i]);
    cl_count_backlog(&shared->link, &own->leaf, &sieve->backlog);
    head = cl_node(nodes, cl_sieve_head(&sieve->calendar, nodes));
    cl_show(&shared->link, &own->leaf, head ? cl_max(cl_due_time(&sieve->calendar, head), 1) : CL_NO_HEAD, 0);
}

#endif
