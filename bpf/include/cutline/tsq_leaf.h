/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* TSQ below several hardware queues (shared.h): lanes of each leaf, one law, one drain time, one charge.
 *
 *     q     the backlog of all leaves, by which weights, the law and the limit go
 *     q'    exact in the leaf; of the bytes of other leaves in a lane, the part is behind w that would be, were they spread evenly over the weights from the
 *           least head to the last packet of that lane
 *
 * A leaf that finds the law taken judges by a copy. Samples of PI and PI2 are then taken by the next leaf; an arrival is missing in RED's average. */
#ifndef CUTLINE_TSQ_LEAF_H
#define CUTLINE_TSQ_LEAF_H

#include "shared.h"
#include "tsq.h"

struct cl_tsq_shared {
    struct cl_shared link;
    cl_u64 law_kind; /* 1 + number of the law; 0: there is none yet */
    struct {
        cl_u64 bytes; /* of all leaves, that wait in this lane */
        cl_u64 last;  /* weight of the last packet */
    } lanes[CL_LANES];
    struct cl_law law;
};

struct cl_tsq_leaf {
    struct cl_leaf leaf;
    cl_u64 bytes[CL_LANES]; /* that wait in each lane of this leaf */
};

CL_INLINE cl_u32 cl_lane_index(cl_u32 lane)
{
    lane &= CL_LANES - 1;
    CL_OPAQUE(lane);
    return lane & (CL_LANES - 1);
}

/* Takes over the law and the backlog of all leaves. */
CL_INLINE void cl_tsq_enter(struct cl_tsq *tsq, struct cl_tsq_shared *shared, struct cl_tsq_leaf *own, const struct cutline_config *config,
                            cl_u64 now)
{
    cl_try(&shared->link, &own->leaf, now);
    cl_look(&shared->link, &own->leaf);
    if (own->leaf.holds && shared->law_kind != 1 + (cl_u64)config->law) {
        cl_law_reset(&shared->law, config, now);
        shared->law_kind = 1 + (cl_u64)config->law;
    }
    if (shared->law_kind == 1 + (cl_u64)config->law)
        tsq->law = shared->law;
    tsq->backlog = own->leaf.seen;
    tsq->service_ends = CL_READ(shared->link.free_at);
}

/* Begins the departure of the next packet of a leaf. Returns the time at which it starts; 0 if the leaf has to ask again at `wake`. */
CL_INLINE cl_u64 cl_tsq_turn(struct cl_tsq *tsq, cl_slots slots, struct cl_tsq_shared *shared, struct cl_tsq_leaf *own,
                             const struct cutline_config *config, cl_u64 now, cl_u64 *slipped)
{
    struct cl_leaf *leaf = &own->leaf;
    struct cl_slot *slot;
    cl_u64 at, time;
    cl_u32 next;

    cl_show(&shared->link, leaf, leaf->head, 1);
    if (config->shape_bps && cl_is_busy(&shared->link, leaf, now))
        return 0;
    leaf->wake = now + CL_WAIT;
    next = cl_tsq_next(tsq);
    if (next >= CL_LANES)
        return 0;
    next = cl_lane_index(next);
    slot = cl_slot(slots, tsq->lanes[next].head);
    if (!slot)
        return 0;
    cl_show(&shared->link, leaf, tsq->lanes[next].head_weight, 1);
    time = cl_drain(tsq->byte_time, slot->size);
    if (!config->shape_bps)
        at = cl_pass(&shared->link, config, now, time);
    else if (cl_is_passed(&shared->link, leaf, now, CL_SLACK))
        return 0;
    else
        at = cl_claim(&shared->link, leaf, config, now, time, slipped);
    if (at)
        cl_tsq_enter(tsq, shared, own, config, now);
    return at;
}

/* Gives back the law, and counts the packet that has come to a lane or has left it. */
CL_INLINE void cl_tsq_leave(struct cl_tsq *tsq, struct cl_tsq_shared *shared, struct cl_tsq_leaf *own, cl_u32 lane)
{
    cl_u64 bytes = tsq->backlog.bytes - own->leaf.seen.bytes;
    cl_u32 next;

    if (cl_holds(&shared->link, &own->leaf))
        shared->law = tsq->law;
    cl_give(&shared->link, &own->leaf);
    if (bytes) {
        lane = cl_lane_index(lane);
        own->bytes[lane] += bytes;
        CL_ADD(shared->lanes[lane].bytes, bytes);
        if ((cl_s64)bytes > 0)
            CL_WRITE(shared->lanes[lane].last, tsq->lanes[lane].last);
    }
    cl_count_backlog(&shared->link, &own->leaf, &tsq->backlog);
    next = cl_tsq_next(tsq);
    cl_show(&shared->link, &own->leaf, next < CL_LANES ? tsq->lanes[cl_lane_index(next)].head_weight : CL_NO_HEAD, 0);
}

/* Returns the bytes of other leaves that weigh more than `w`. */
CL_INLINE cl_u64 cl_tsq_elsewhere(const struct cl_tsq_shared *shared, struct cl_tsq_leaf *own, cl_u64 w)
{
    cl_u64 behind = 0, least;

    cl_find_least(&shared->link, &own->leaf);
    least = own->leaf.least;
    for (cl_u32 i = 0; i < CL_LANES; i++) {
        cl_u64 bytes = cl_since(CL_READ(shared->lanes[i].bytes), own->bytes[i]), last = CL_READ(shared->lanes[i].last);

        if (!bytes || last <= w)
            continue;
        behind += w > least ? cl_mul_shift(bytes, cl_fraction(last - w, last - least), 60) : bytes;
    }
    return behind;
}

/* Forgets this leaf's packets, and the law where nothing waits. */
CL_INLINE void cl_tsq_forget(struct cl_tsq_shared *shared, struct cl_tsq_leaf *own)
{
    for (cl_u32 i = 0; i < CL_LANES; i++) {
        CL_ADD(shared->lanes[i].bytes, -own->bytes[i]);
        own->bytes[i] = 0;
    }
    cl_forget_leaf(&shared->link, &own->leaf);
    if (!CL_READ(shared->link.packets))
        shared->law_kind = 0;
}

#endif
