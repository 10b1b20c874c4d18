/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* A calendar of FIFOs: packets in the order of their due times, to the width of a slot, as `sieve/calendar.rs` of the crate `aqm`.
 *
 * The slots are a ring over the virtual time from the floor on. Two levels of bits say which slots have packets. A slot has the node of its first packet
 * alone: the node before that one is the last one, so the calendar is half as large as with both. Node numbers have 20 bits. The calendar has the lower
 * twelve of a slot's first node. The upper eight are in the node with the slot's number, and are used once there are 2^12 nodes.
 *
 * A program that includes this file defines, before that, `struct cl_node` with the words below, a type `cl_nodes` and
 *
 *     struct cl_node *cl_node(cl_nodes nodes, cl_u32 index)      a node, or NULL
 *
 * It may define CL_RESORT, CL_SORT (sieve.h) and CL_MOVE_IN (accounts.h), which call `cl_resort`, `cl_sieve_sort` and `cl_move_in` another way.
 */
#ifndef CUTLINE_CALENDAR_H
#define CUTLINE_CALENDAR_H

#include "accounts.h"

#ifndef CL_RESORT
#define CL_RESORT(calendar, nodes, floor, range) cl_resort(calendar, nodes, floor, range)
#endif
#define CL_CALENDAR 4096
#define CL_NIL 0xffffffffU
/* Bits of a node's number, and the number of no node, which all nodes are below. */
#define CL_NODE_BITS 20
#define CL_NO_NODE ((1U << CL_NODE_BITS) - 1)
/* Bits of it that the calendar has. */
#define CL_HEAD_BITS 12

/* Words of a node, of which each is a cl_u64. The first bits named are the upper ones.
 *
 *     times   48 bits: virtual time at which its service may start, from the epoch on, 2^-4 B
 *              8 bits: part of its size by which virtual time is later when it leaves, 2^-8; CL_WHOLE: all of it
 *              8 bits: upper bits of the first node of the slot that has this node's number
 *     origin  39 bits: its arrival, 2^7 ns
 *              4 bits: level of its hint - 1
 *              1 bit:  its times follow from what all new flows have sent
 *             20 bits: place of the account that it is charged to
 *     links   22 bits: bytes on the link
 *              2 bits: not used
 *             20 bits: node before it in its slot; of the first one, the last one
 *             20 bits: node behind it in its slot, or the next free node
 *
 * Bounds: the epoch is that of accounts.h. A part is rounded down, and is at most 254/256 unless it is all, so each time that the times of a packet of a new
 * flow are brought nearer, it leaves by less than 2^-7 of its size earlier, and never after a later packet of its flow. Arrivals wrap after 19 hours: a
 * wait of more than nine of them counts as none. A packet counts as at most 2^22 - 1 B, more than the 2^19 B of the largest packet that the kernel
 * segments, with their headers. */
#define CL_TIME_SHIFT 16
#define CL_PART_SHIFT 8
#define CL_WHOLE 0xff
#define CL_UPPER_HEAD 0xff
#define CL_ARRIVAL_SHIFT 25
#define CL_ARRIVAL_BITS 7
#define CL_LEVEL_SHIFT 21
#define CL_NODE_NEW (1ULL << 20)
#define CL_SIZE_SHIFT 42
#define CL_MOST_SIZE ((1U << 22) - 1)
/* Fractional bits of a byte in virtual time. */
#define CL_BYTE_BITS 4

struct cl_calendar {
    cl_u8 heads[CL_CALENDAR];            /* lower 8 bits of the first node */
    cl_u8 middle_heads[CL_CALENDAR / 2]; /* the next 4 bits, of two slots each */
    cl_u64 bits[CL_CALENDAR / 64];
    cl_u64 words; /* the words of `bits` that are not 0 */
    cl_u64 base;  /* number of the first slot of the ring, counted from virtual time 0 */
    cl_u64 width; /* of a slot, 2^-4 B */
    cl_u64 v;     /* virtual time to which packets of new flows are brought nearer when they are sorted, 2^-4 B */
    cl_u64 part;  /* the part of their distance at which they are then, 2^-32; 0: all of it */
    cl_u64 epoch; /* virtual time from which the times of nodes are counted, 2^-4 B */
    cl_u64 next_epoch; /* the epoch after the next time that packets are sorted */
    cl_u32 free;  /* first node of the list of free ones; CL_NO_NODE: there is none */
    cl_u32 fresh; /* nodes from here on have never been used */
    cl_u32 instance; /* of the program that includes this file */
    cl_u32 reserved;
};

CL_INLINE cl_u32 cl_next(const struct cl_node *node) { return node->links & CL_NO_NODE; }

CL_INLINE void cl_set_next(struct cl_node *node, cl_u32 next)
{
    node->links = (node->links & ~(cl_u64)CL_NO_NODE) | (next & CL_NO_NODE);
}

CL_INLINE cl_u32 cl_previous(const struct cl_node *node) { return node->links >> CL_NODE_BITS & CL_NO_NODE; }

CL_INLINE void cl_set_previous(struct cl_node *node, cl_u32 previous)
{
    node->links = (node->links & ~((cl_u64)CL_NO_NODE << CL_NODE_BITS)) | (cl_u64)(previous & CL_NO_NODE) << CL_NODE_BITS;
}

/* Returns a packet's bytes on the link. */
CL_INLINE cl_u32 cl_node_size(const struct cl_node *node) { return node->links >> CL_SIZE_SHIFT; }

CL_INLINE cl_u32 cl_node_place(const struct cl_node *node) { return node->origin & (CL_PLACES - 1); }

/* Returns the arrival of a packet with a hint of this level, and the place of its account, in a word. */
CL_INLINE cl_u64 cl_origin(cl_u64 now, cl_u32 level, int is_new, cl_u32 place)
{
    return now >> CL_ARRIVAL_BITS << CL_ARRIVAL_SHIFT | (cl_u64)((level - 1) & 15) << CL_LEVEL_SHIFT | (is_new ? CL_NODE_NEW : 0) |
           (place & (CL_PLACES - 1));
}

CL_INLINE cl_u32 cl_node_level(const struct cl_node *node) { return (node->origin >> CL_LEVEL_SHIFT & 15) + 1; }

/* Returns the time from the arrival of a packet to `at`, ns, to 128 ns: 0 if `at` is before it, or after it by more than nine hours. */
CL_INLINE cl_u64 cl_node_waited(const struct cl_node *node, cl_u64 at)
{
    cl_u32 shift = CL_ARRIVAL_SHIFT - CL_ARRIVAL_BITS;
    cl_s64 wait = (cl_s64)((at << shift) - (node->origin & ~0ULL << CL_ARRIVAL_SHIFT));

    return wait > 0 ? (cl_u64)wait >> shift : 0;
}

/* Returns the virtual time at which the service of a packet may start. */
CL_INLINE cl_u64 cl_start(const struct cl_calendar *calendar, const struct cl_node *node)
{
    return calendar->epoch + (node->times >> CL_TIME_SHIFT);
}

/* Returns the virtual time from there to that by which the packet leaves. */
CL_INLINE cl_u64 cl_span(const struct cl_node *node)
{
    cl_u64 charge = (cl_u64)cl_node_size(node) << CL_BYTE_BITS, part = node->times >> CL_PART_SHIFT & CL_WHOLE;

    return part == CL_WHOLE ? charge : charge * part >> 8;
}

/* Returns the virtual time by which a packet leaves. */
CL_INLINE cl_u64 cl_due_time(const struct cl_calendar *calendar, const struct cl_node *node) { return cl_start(calendar, node) + cl_span(node); }

/* Sets the times of a packet, counted from an epoch. */
CL_INLINE void cl_set_times(struct cl_node *node, cl_u64 start, cl_u64 part, cl_u64 epoch)
{
    node->times = cl_after(start, epoch) << CL_TIME_SHIFT | part << CL_PART_SHIFT | (node->times & CL_UPPER_HEAD);
}

CL_INLINE cl_u64 cl_word(const struct cl_calendar *calendar, cl_u32 word)
{
    CL_OPAQUE(word);
    return calendar->bits[word & 63];
}

/* Returns the first slot with a packet, from `base` on around the ring; CL_NIL if there is none. */
CL_INLINE cl_u32 cl_first_slot(const struct cl_calendar *calendar)
{
    cl_u32 base = calendar->base & (CL_CALENDAR - 1), word = base / 64;
    cl_u64 here = cl_word(calendar, word) & ~0ULL << base % 64, behind;

    if (!calendar->words)
        return CL_NIL;
    if (here)
        return word * 64 + cl_lowest(here);
    behind = calendar->words & (~0ULL << word) & ~(1ULL << word);
    word = cl_lowest(behind ? behind : calendar->words);
    return word * 64 + cl_lowest(cl_word(calendar, word));
}

/* Returns the last slot with a packet, from the end of the ring backwards; CL_NIL if there is none. */
CL_INLINE cl_u32 cl_last_slot(const struct cl_calendar *calendar)
{
    cl_u32 base = calendar->base & (CL_CALENDAR - 1), word = base / 64;
    cl_u64 here = cl_word(calendar, word) & ~(~0ULL << base % 64), before;

    if (!calendar->words)
        return CL_NIL;
    if (here)
        return word * 64 + cl_highest(here);
    before = calendar->words & ~(~0ULL << word);
    word = cl_highest(before ? before : calendar->words);
    return word * 64 + cl_highest(cl_word(calendar, word));
}

/* Returns the virtual time from which on the first packet's slot lies, 2^-4 B. There is a packet. */
CL_INLINE cl_u64 cl_first_time(const struct cl_calendar *calendar)
{
    cl_u32 slot = cl_first_slot(calendar);

    return (calendar->base + ((slot - calendar->base) & (CL_CALENDAR - 1))) * calendar->width;
}

/* Sets the width for a range of virtual time, 2^-4 B: the ring covers it. */
CL_INLINE void cl_set_range(struct cl_calendar *calendar, cl_u64 range)
{
    calendar->width = cl_max((range + CL_CALENDAR - 1) / CL_CALENDAR, 1 << 4);
}

/* Returns the first node of a slot that has packets. */
CL_INLINE cl_u32 cl_head(const struct cl_calendar *calendar, cl_nodes nodes, cl_u32 slot)
{
    cl_u32 shift = slot % 2 * 4, byte = slot / 2, lower = slot, index;

    CL_OPAQUE(lower);
    CL_OPAQUE(byte);
    index = calendar->heads[lower & (CL_CALENDAR - 1)] | (calendar->middle_heads[byte & (CL_CALENDAR / 2 - 1)] >> shift & 15U) << 8;
    if (calendar->fresh >> CL_HEAD_BITS) {
        struct cl_node *upper = cl_node(nodes, slot);

        if (upper)
            index |= (cl_u32)(upper->times & CL_UPPER_HEAD) << CL_HEAD_BITS;
    }
    return index;
}

CL_INLINE void cl_set_head(struct cl_calendar *calendar, cl_nodes nodes, cl_u32 slot, cl_u32 index)
{
    cl_u32 shift = slot % 2 * 4, byte = slot / 2, lower = slot;
    cl_u8 *middle;

    CL_OPAQUE(lower);
    CL_OPAQUE(byte);
    calendar->heads[lower & (CL_CALENDAR - 1)] = index;
    middle = &calendar->middle_heads[byte & (CL_CALENDAR / 2 - 1)];
    *middle = (*middle & ~(15U << shift)) | (index >> 8 & 15) << shift;
    if (calendar->fresh >> CL_HEAD_BITS) {
        struct cl_node *upper = cl_node(nodes, slot);

        if (upper)
            upper->times = (upper->times & ~(cl_u64)CL_UPPER_HEAD) | index >> CL_HEAD_BITS;
    }
}

/* Returns the last node of a slot; CL_NIL if there is no such slot. */
CL_INLINE cl_u32 cl_tail(const struct cl_calendar *calendar, cl_nodes nodes, cl_u32 slot)
{
    struct cl_node *head = slot < CL_CALENDAR ? cl_node(nodes, cl_head(calendar, nodes, slot)) : 0;

    return head ? cl_previous(head) : CL_NIL;
}

/* Adds a node at the end of a slot. */
CL_INLINE void cl_append(struct cl_calendar *calendar, cl_nodes nodes, cl_u32 slot, struct cl_node *node, cl_u32 index)
{
    struct cl_node *head, *before;
    cl_u32 word = slot / 64 & 63, first, last;

    CL_OPAQUE(word);
    word &= 63;
    cl_set_next(node, CL_NO_NODE);
    if (!(calendar->bits[word] >> slot % 64 & 1)) {
        cl_set_previous(node, index);
        cl_set_head(calendar, nodes, slot, index);
        calendar->bits[word] |= 1ULL << slot % 64;
        calendar->words |= 1ULL << word;
        return;
    }
    first = cl_head(calendar, nodes, slot);
    head = cl_node(nodes, first);
    if (!head)
        return;
    last = cl_previous(head);
    cl_set_previous(node, last);
    cl_set_previous(head, index);
    before = last == first ? head : cl_node(nodes, last);
    if (before)
        cl_set_next(before, index);
}

/* Returns the virtual time at which the service of the last packet may start; 0 if there is no packet. */
CL_NOINLINE cl_u64 cl_last_start(const struct cl_calendar *calendar, cl_nodes nodes)
{
    struct cl_node *last = cl_node(nodes, cl_tail(calendar, nodes, cl_last_slot(calendar)));

    return last ? cl_start(calendar, last) : 0;
}

/* Notes that a slot is empty. */
CL_INLINE void cl_clear(struct cl_calendar *calendar, cl_u32 slot)
{
    cl_u32 word = slot / 64 & 63;

    CL_OPAQUE(word);
    word &= 63;
    calendar->bits[word] &= ~(1ULL << slot % 64);
    if (!calendar->bits[word])
        calendar->words &= ~(1ULL << word);
}

/* Takes a node out of its slot, at its head or at its tail. Returns it, and its number in `index`; NULL if there is none. */
CL_INLINE struct cl_node *cl_unlink(struct cl_calendar *calendar, cl_nodes nodes, cl_u32 slot, int is_tail, cl_u32 *index)
{
    struct cl_node *head, *node, *other;
    cl_u32 first, last, next;

    if (slot >= CL_CALENDAR)
        return 0;
    first = cl_head(calendar, nodes, slot);
    head = cl_node(nodes, first);
    if (!head)
        return 0;
    *index = first;
    last = cl_previous(head);
    if (last == first) {
        cl_clear(calendar, slot);
        return head;
    }
    if (!is_tail) {
        next = cl_next(head);
        other = cl_node(nodes, next);
        if (!other)
            return 0;
        cl_set_head(calendar, nodes, slot, next);
        cl_set_previous(other, last);
        return head;
    }
    *index = last;
    node = cl_node(nodes, last);
    if (!node)
        return 0;
    next = cl_previous(node);
    cl_set_previous(head, next);
    other = cl_node(nodes, next);
    if (other)
        cl_set_next(other, CL_NO_NODE);
    return node;
}

/* Returns a time at a part, 2^-32, of its distance to `v`, if it is after `v`. */
CL_NOINLINE cl_u64 cl_nearer(cl_u64 time, cl_u64 v, cl_u64 part)
{
    return time > v ? v + cl_mul_shift(time - v, part, 32) : time;
}

/* Moves a packet to the next epoch. Before that, one of a new flow is brought nearer to `v`, if there is a `part`. */
CL_INLINE void cl_move_node(const struct cl_calendar *calendar, struct cl_node *node)
{
    cl_u64 start = cl_start(calendar, node), whole = node->times >> CL_PART_SHIFT & CL_WHOLE;

    if (node->origin & CL_NODE_NEW && calendar->part) {
        cl_u64 charge = (cl_u64)cl_node_size(node) << CL_BYTE_BITS, span = cl_span(node), reached = cl_min(cl_since_by_branch(calendar->v, start), span);

        /* The part that is not after `v` stays. */
        span = reached + ((span - reached) * calendar->part >> 32);
        whole = span >= charge ? CL_WHOLE : cl_min((span << 8) / charge, CL_WHOLE - 1);
        start = cl_nearer(start, calendar->v, calendar->part);
    }
    cl_set_times(node, start, whole, calendar->next_epoch);
}

/* Sorts all packets into slots that cover at least `range` of virtual time from `floor` on. Before that, the packets of new flows are brought nearer to `v`
 * once, if there is a `part`, and all times are counted from the next epoch. */
CL_NOINLINE int cl_resort(struct cl_calendar *calendar, cl_nodes nodes, cl_u64 floor, cl_u64 range)
{
    cl_u32 first = CL_NO_NODE, slot, next;
    struct cl_node *node;
    cl_u64 end = range;

    while (CL_CAN_LOOP) {
        slot = cl_last_slot(calendar);
        node = cl_node(nodes, cl_tail(calendar, nodes, slot));
        if (!node)
            break;
        cl_set_next(node, first);
        first = cl_head(calendar, nodes, slot);
        cl_clear(calendar, slot);
    }
    if (calendar->part || calendar->next_epoch != calendar->epoch) {
        for (next = first; CL_CAN_LOOP; next = cl_next(node)) {
            node = cl_node(nodes, next);
            if (!node)
                break;
            cl_move_node(calendar, node);
        }
        calendar->part = 0;
        calendar->epoch = calendar->next_epoch;
    }
    for (next = first; CL_CAN_LOOP; next = cl_next(node)) {
        cl_u64 due;

        node = cl_node(nodes, next);
        if (!node)
            break;
        due = cl_since_by_branch(cl_due_time(calendar, node), floor);
        end = cl_max(end, due + due / 4);
    }
    cl_set_range(calendar, end);
    calendar->base = floor / calendar->width;
    while (CL_CAN_LOOP) {
        cl_u64 number;
        cl_u32 index = first;

        node = cl_node(nodes, index);
        if (!node)
            break;
        first = cl_next(node);
        number = cl_min(cl_max(cl_due_time(calendar, node) / calendar->width, calendar->base), calendar->base + CL_CALENDAR - 1);
        cl_append(calendar, nodes, number & (CL_CALENDAR - 1), node, index);
    }
    return 0;
}

/* Takes a free node. Returns it, and its number in `index`; NULL if there is none. */
CL_INLINE struct cl_node *cl_take_node(struct cl_calendar *calendar, cl_nodes nodes, cl_u32 *index)
{
    struct cl_node *node;

    if (calendar->free != CL_NO_NODE) {
        *index = calendar->free;
        node = cl_node(nodes, *index);
        if (node)
            calendar->free = cl_next(node);
        return node;
    }
    *index = calendar->fresh;
    node = cl_node(nodes, *index);
    if (node) {
        /* Its upper bits of a slot are those of a queue that was emptied. */
        node->times = 0;
        calendar->fresh++;
    }
    return node;
}

CL_INLINE void cl_give_node_back(struct cl_calendar *calendar, struct cl_node *node, cl_u32 index)
{
    cl_set_next(node, calendar->free);
    calendar->free = index;
}

/* Adds a packet, whose node has its times. `floor` is a time below which no packet starts. */
CL_INLINE void cl_calendar_push(struct cl_calendar *calendar, cl_nodes nodes, cl_u64 floor, struct cl_node *node, cl_u32 index)
{
    cl_u64 due = cl_due_time(calendar, node), number = due / calendar->width;

    if (!calendar->words || floor >= (calendar->base + 1) * calendar->width)
        calendar->base = floor / calendar->width;
    if (number >= calendar->base + CL_CALENDAR) {
        CL_RESORT(calendar, nodes, floor, 2 * cl_since_by_branch(due, floor));
        number = due / calendar->width;
    }
    cl_append(calendar, nodes, cl_max(number, calendar->base) & (CL_CALENDAR - 1), node, index);
}

#endif
