/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* TSQ's order and TSQ's charge (the TSQ paper, section 3 and figure 6), for the kernel and for the host.
 *
 *     td = q / C                                 drain time (figure 6)
 *     w  = d td / 2^n + ta                       weight; the queue is kept in its order (eq. 2)
 *     p' = min(1, ((l + q) / (l + q'))^2 p)      drop probability (eq. 5)
 *
 * Weights and delays are whole ns and those of the crate `aqm`, to the ns. With r = (l + q) / (l + q'), p' is wrong by less than
 * 2^-21 p' + 2^-60 (1 + r) while l + q is below 2^40 ns (18 minutes): r has 23 fractional bits, is at least 1, and is used twice. The kernel's dice
 * have 32 bits, so a packet is hit with a probability that is wrong by 2^-32 more.
 *
 * The queue is a lane for each hint, a list of slots. The head with the least weight is next, and among equals the one that came first. The
 * bytes ahead of a weight are all but those behind it. In a lane, these are found by a cursor for each pair of lanes, which moves only towards
 * the tail: a packet is passed by each of 15 cursors once at most.
 *
 * A program that includes this file defines, before that, `struct cl_slot` with the fields below, a type `cl_slots` and
 *
 *     struct cl_slot *cl_slot(cl_slots slots, cl_u32 index)      a slot, or NULL
 *     CL_CAN_LOOP                                                true, for ever or until the kernel has had enough
 *
 * It may define CL_ELSEWHERE: the bytes that weigh more than `w` in other leaves of the link (tsq_leaf.h), and CL_Q_PRIME, which calls `cl_tsq_q_prime`
 * another way.
 */
#ifndef CUTLINE_TSQ_H
#define CUTLINE_TSQ_H

#include "law.h"
#include "shaper.h"

#ifndef CL_ELSEWHERE
#define CL_ELSEWHERE(tsq, w) 0
#endif
#ifndef CL_Q_PRIME
#define CL_Q_PRIME(tsq, slots, point) cl_tsq_q_prime(tsq, slots, point)
#endif
#define CL_LANES CUTLINE_HINTS
/* No slot, and the weight of no packet. */
#define CL_NIL 0xffffffffU
#define CL_NEVER CL_MAX_U64

/* Fields of a slot. */
#define CL_SLOT_FIELDS                                                                     \
    cl_u64 weight;       /* w, ns */                                                       \
    cl_u64 number;       /* packets that came before it */                                 \
    cl_u64 bytes_before; /* bytes that entered its lane before it */                       \
    cl_u64 stamp;        /* its arrival and its hint (fixed.h) */                          \
    cl_u32 size;         /* bytes on the link */                                           \
    cl_u32 next;         /* slot of the next packet of the lane, or of the next free slot */

/* A packet of a lane. Its position is the number of packets that entered the lane before it: if that packet still waits, it is in the slot. */
struct cl_cursor {
    cl_u64 position;
    cl_u32 slot;
    cl_u32 reserved;
};

struct cl_lane {
    cl_u64 head_weight; /* CL_NEVER if the lane is empty */
    cl_u64 head_number;
    cl_u64 last;    /* weight of the last packet; 0 if the lane is empty */
    cl_u64 entered; /* bytes that ever entered */
    cl_u64 moved_for; /* weight for which the cursors of packets that join this lane were moved */
    cl_u64 head_position, next_position; /* from 1 on */
    cl_u32 head, tail; /* slots */
};

struct cl_tsq {
    struct cl_lane lanes[CL_LANES];
    struct cl_cursor cursors[CL_LANES][CL_LANES]; /* by the lane that is joined, and the lane that is searched */
    struct cl_backlog backlog;
    struct cl_law law;
    cl_u64 byte_time;    /* of the laws' rate, 2^-32 ns */
    cl_u64 next_number;  /* of the next packet */
    cl_u64 service_ends; /* time at which the packets on the link have left, ns */
    cl_u32 free;         /* the first slot of the list of free ones */
    cl_u32 fresh;        /* slots from here on have never been used */
    cl_u32 instance;     /* of the program that includes this file */
    cl_u32 is_leaf;      /* 1 if other leaves have packets of the same link */
};

/* Place at which a packet would be inserted. It holds until the next push or pop. */
struct cl_point {
    cl_u64 q;          /* the backlog and the rest of the packet in service, ns */
    cl_u64 weight;     /* w, ns */
    cl_u64 in_service; /* the rest of the packet in service, ns */
    cl_u32 lane;
    cl_u32 is_largest; /* of the largest hint, which overtakes no packet */
};

enum cl_verdict { CL_PASS, CL_EARLY, CL_OVERFLOW };

/* Empties lanes whose slots are empty. */
CL_INLINE void cl_tsq_reset(struct cl_tsq *tsq, const struct cutline_config *config, cl_u64 now)
{
    for (cl_u32 i = 0; i < CL_LANES; i++) {
        struct cl_lane *lane = &tsq->lanes[i];

        lane->head_weight = CL_NEVER;
        lane->last = 0;
        lane->moved_for = 0;
        lane->head = lane->tail = CL_NIL;
        lane->next_position = cl_max(lane->next_position, 1);
        lane->head_position = lane->next_position;
    }
    tsq->backlog.packets = tsq->backlog.bytes = 0;
    tsq->service_ends = now;
    tsq->free = CL_NIL;
    tsq->fresh = 0;
    cl_law_reset(&tsq->law, config, now);
}

/* Returns the place of a packet of this level that arrives now. */
CL_INLINE void cl_tsq_point(const struct cl_tsq *tsq, const struct cutline_config *config, cl_u64 now, cl_u32 level, struct cl_point *point)
{
    cl_u32 lanes = 1U << (config->tsq.bits & 7), lane = level - 1;
    cl_u64 td;

    if (lane >= lanes)
        lane = lanes - 1;
    lane &= CL_LANES - 1;
    CL_OPAQUE(lane);
    lane &= CL_LANES - 1;
    point->lane = lane;
    point->is_largest = lane + 1 >= lanes;
    point->in_service = cl_since(tsq->service_ends, now);
    point->q = cl_drain(tsq->byte_time, tsq->backlog.bytes) + point->in_service;
    /* TSQ eq. 2. */
    td = cl_min(point->q, 1ULL << 54);
    point->weight = cl_max(now + (((cl_u64)lane + 1) * td >> (config->tsq.bits & 7)), tsq->lanes[lane].last);
}

/* Returns (l + q) / (l + q'), 2^-23, rounded down. q is at least q'. */
CL_INLINE cl_u64 cl_ratio(cl_u64 l, cl_u64 q, cl_u64 q_prime)
{
    const cl_u64 longest = (1ULL << 40) - 1;

    return (cl_min(l + q, longest) << CUTLINE_RATIO_BITS) / cl_max(cl_min(l + q_prime, longest), 1);
}

/* Returns p' (TSQ eq. 5). It never falls as q' does. */
CL_INLINE cl_u64 cl_charge(const struct cutline_tsq *config, cl_u64 p, cl_u64 q, cl_u64 q_prime)
{
    cl_u64 ratio = cl_ratio(config->l, q, q_prime), once;

    if (config->ratio_root && ratio > config->ratio_root)
        ratio = config->ratio_root;
    once = cl_mul_shift(p, ratio, CUTLINE_RATIO_BITS);
    if (once >= CUTLINE_ONE)
        return CUTLINE_ONE;
    return cl_min(cl_mul_shift(once, ratio, CUTLINE_RATIO_BITS), CUTLINE_ONE);
}

/* Returns the bytes of a lane that weigh more than `w`, of which there is one packet at least, and moves the cursor there. */
CL_INLINE cl_u64 cl_bytes_behind(const struct cl_lane *lane, cl_slots slots, cl_u64 w, struct cl_cursor *cursor)
{
    struct cl_cursor at = *cursor;
    struct cl_slot *slot;
    cl_u64 before = lane->entered;

    if (at.position < lane->head_position) {
        at.slot = lane->head;
        at.position = lane->head_position;
    }
    while (CL_CAN_LOOP) {
        slot = cl_slot(slots, at.slot);
        if (!slot)
            break;
        before = slot->bytes_before;
        if (slot->weight > w)
            break;
        at.slot = slot->next;
        at.position++;
    }
    *cursor = at;
    return lane->entered - before;
}

/* Returns q' of a packet: what would leave before it, ns. */
CL_NOINLINE cl_u64 cl_tsq_q_prime(struct cl_tsq *tsq, cl_slots slots, const struct cl_point *point)
{
    cl_u32 own = point->lane & (CL_LANES - 1);
    cl_u64 behind = 0, w = point->weight;
    struct cl_lane *joined;

    CL_OPAQUE(own);
    own &= CL_LANES - 1;
    joined = &tsq->lanes[own];
    if (w < joined->moved_for) {
        /* The cursors may be too far: a rate has changed. */
        for (cl_u32 i = 0; i < CL_LANES; i++)
            tsq->cursors[own][i].position = 0;
    }
    joined->moved_for = w;
    for (cl_u32 i = 0; i < CL_LANES; i++)
        if (tsq->lanes[i].last > w)
            behind += cl_bytes_behind(&tsq->lanes[i], slots, w, &tsq->cursors[own][i]);
    behind += CL_ELSEWHERE(tsq, w);
    return cl_drain(tsq->byte_time, cl_since(tsq->backlog.bytes, behind)) + point->in_service;
}

/* Returns whether a packet is hit, whose dice, 2^-60, are below 1; `p` is that of a packet at the tail. */
CL_INLINE int cl_tsq_hits(struct cl_tsq *tsq, cl_slots slots, const struct cutline_config *config, cl_u64 p, const struct cl_point *point,
                          cl_u64 dice)
{
    if (!p)
        return 0;
    if (point->is_largest)
        return dice < p;
    /* Most packets would pass even with nothing ahead of them, and need no q'. */
    if (dice >= cl_charge(&config->tsq, p, point->q, point->in_service))
        return 0;
    return dice < cl_charge(&config->tsq, p, point->q, CL_Q_PRIME(tsq, slots, point));
}

/* Takes a free slot; CL_NIL if there is none. */
CL_INLINE cl_u32 cl_tsq_take(struct cl_tsq *tsq, cl_slots slots)
{
    cl_u32 index = tsq->free;
    struct cl_slot *slot;

    if (index == CL_NIL)
        return cl_slot(slots, tsq->fresh) ? tsq->fresh++ : CL_NIL;
    slot = cl_slot(slots, index);
    if (slot)
        tsq->free = slot->next;
    return index;
}

/* Gives a slot back that is in no lane. */
CL_INLINE void cl_tsq_give_back(struct cl_tsq *tsq, struct cl_slot *slot, cl_u32 index)
{
    slot->next = tsq->free;
    tsq->free = index;
}

/* Adds a packet at the end of its lane, in a slot that was taken for it. */
CL_INLINE void cl_tsq_push(struct cl_tsq *tsq, cl_slots slots, cl_u64 stamp, const struct cl_point *point, struct cl_slot *slot, cl_u32 index,
                           cl_u32 size)
{
    cl_u32 which = point->lane & (CL_LANES - 1);
    struct cl_lane *lane;
    struct cl_slot *before;

    CL_OPAQUE(which);
    which &= CL_LANES - 1;
    lane = &tsq->lanes[which];
    slot->weight = point->weight;
    slot->stamp = stamp;
    slot->number = tsq->next_number++;
    slot->bytes_before = lane->entered;
    slot->size = size;
    lane->next_position++;
    slot->next = CL_NIL;
    if (lane->head_weight == CL_NEVER) {
        lane->head = index;
        lane->head_weight = slot->weight;
        lane->head_number = slot->number;
    } else {
        before = cl_slot(slots, lane->tail);
        if (before)
            before->next = index;
    }
    lane->tail = index;
    lane->last = slot->weight;
    lane->entered += size;
    tsq->backlog.packets++;
    tsq->backlog.bytes += size;
}

/* Returns the lane of the packet that is next; CL_LANES if no packet waits. */
CL_SEPARATE cl_u32 cl_tsq_next(const struct cl_tsq *tsq)
{
    cl_u64 least = CL_NEVER, number = CL_NEVER;
    cl_u32 next = CL_LANES;

    if (!tsq)
        return CL_LANES;
    for (cl_u32 i = 0; i < CL_LANES; i++) {
        const struct cl_lane *lane = &tsq->lanes[i];

        if (lane->head_weight < least || (lane->head_weight == least && lane->head_number < number && least != CL_NEVER)) {
            least = lane->head_weight;
            number = lane->head_number;
            next = i;
        }
    }
    return next;
}

/* Takes the head of a lane, which goes to the link, and returns its slot; CL_NIL if the lane is empty. The slot is the caller's until it
 * is given back. */
CL_INLINE cl_u32 cl_tsq_pop(struct cl_tsq *tsq, cl_slots slots, cl_u32 which)
{
    struct cl_slot *slot, *head;
    struct cl_lane *lane;
    cl_u32 index;

    if (which >= CL_LANES)
        return CL_NIL;
    CL_OPAQUE(which);
    which &= CL_LANES - 1;
    lane = &tsq->lanes[which];
    index = lane->head;
    slot = cl_slot(slots, index);
    if (!slot)
        return CL_NIL;
    lane->head = slot->next;
    lane->head_position++;
    head = cl_slot(slots, lane->head);
    if (head) {
        lane->head_weight = head->weight;
        lane->head_number = head->number;
    } else {
        lane->head_weight = CL_NEVER;
        lane->last = 0;
    }
    tsq->backlog.packets--;
    tsq->backlog.bytes -= slot->size;
    return index;
}

/* Notes that a packet of this size, which was taken, goes to the link at `at`. */
CL_INLINE void cl_tsq_serve(struct cl_tsq *tsq, const struct cutline_config *config, cl_u64 at, cl_u32 size)
{
    cl_u64 time = cl_drain(tsq->byte_time, size);

    tsq->service_ends = at + time;
    cl_law_departed(&tsq->law, config, at, time, &tsq->backlog);
}

/* Decides on a packet that arrives now, with these dice, 2^-60. */
CL_INLINE enum cl_verdict cl_tsq_judge(struct cl_tsq *tsq, cl_slots slots, const struct cutline_config *config, cl_u64 now, cl_u32 level,
                                       cl_u32 size, cl_u64 dice, struct cl_point *point)
{
    cl_u64 p;

    cl_law_advance(&tsq->law, config, tsq->byte_time, now, &tsq->backlog);
    cl_tsq_point(tsq, config, now, level, point);
    p = cl_law_arrive(&tsq->law, config, tsq->byte_time, now, level, size, &tsq->backlog);
    if (tsq->backlog.packets >= config->limit_packets)
        return CL_OVERFLOW;
    if (config->limit_bytes && tsq->backlog.bytes + size > config->limit_bytes)
        return CL_OVERFLOW;
    if (!cl_tsq_hits(tsq, slots, config, p, point, dice))
        return CL_PASS;
    cl_law_hit(&tsq->law, config);
    return CL_EARLY;
}

/* Goes on with another configuration. What waits stays, and so do its weights. */
CL_INLINE void cl_tsq_change(struct cl_tsq *tsq, struct cutline_config *config, const struct cutline_config *to, cl_u64 now)
{
    cl_u32 law = config->law;

    cl_law_advance(&tsq->law, config, tsq->byte_time, now, &tsq->backlog);
    *config = *to;
    tsq->byte_time = cl_byte_time(cl_rate(config));
    if (law != config->law)
        cl_law_reset(&tsq->law, config, now);
}

/* Returns whether the configuration of TSQ and its law is in range. */
CL_INLINE int cl_tsq_is_valid(const struct cutline_config *config)
{
    const struct cutline_tsq *tsq = &config->tsq;

    return tsq->l >= 1000000 && tsq->l <= 1000000000 && tsq->bits >= 1 && tsq->bits <= 4 &&
           (!tsq->ratio_root || tsq->ratio_root >= 1ULL << CUTLINE_RATIO_BITS) && cl_law_is_valid(config);
}

#endif
