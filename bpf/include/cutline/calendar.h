/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* A calendar of FIFOs: packets in the order of their due times, to the width of a slot, as `sieve/calendar.rs` of the crate `aqm`.
 *
 * The slots are a ring over the virtual time from the floor on. Two levels of bits say which slots have packets. A slot has the node of its first packet
 * alone: `previous` of that node is the last one, so the calendar is half as large as with both. Node numbers have 20 bits, of which the upper four are in
 * an array of their own, which is used once there are more than 2^16 nodes.
 *
 * A program that includes this file defines, before that, `struct cl_node` with the fields below, a type `cl_nodes` and
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
/* Most nodes. */
#define CL_NODES (1U << 20)

/* Fields of a node.
 *
 *     cl_u64 start;           virtual time at which its service may start, 2^-4 B
 *     cl_u32 span;            from there to the virtual time by which packets leave, 2^-4 B
 *     cl_u64 stamp;           its arrival and its hint (fixed.h)
 *     cl_u32 size;            bytes on the link
 *     cl_u32 place, id;       of the account that it is charged to
 *     cl_u32 next, previous;  nodes of its slot, or the next free node. `next` of the last one is CL_NIL; `previous` of the first one is the last one
 */

struct cl_calendar {
    cl_u16 heads[CL_CALENDAR];            /* lower 16 bits of the first node */
    cl_u64 upper_heads[CL_CALENDAR / 16]; /* its upper 4 bits; 0 while `fresh` is below 2^16 */
    cl_u64 bits[CL_CALENDAR / 64];
    cl_u64 words; /* the words of `bits` that are not 0 */
    cl_u64 base;  /* number of the first slot of the ring, counted from virtual time 0 */
    cl_u64 width; /* of a slot, 2^-4 B */
    cl_u64 v;     /* virtual time to which packets of new flows are brought nearer when they are sorted, 2^-4 B */
    cl_u64 part;  /* the part of their distance at which they are then, 2^-32; 0: all of it */
    cl_u32 free;  /* first node of the list of free ones */
    cl_u32 fresh; /* nodes from here on have never been used */
    cl_u32 instance; /* of the program that includes this file */
    cl_u32 reserved;
};

/* Returns the number of zero bits below the lowest one; the word is not 0. */
CL_SEPARATE cl_u32 cl_lowest(cl_u64 word)
{
    cl_u32 bit = 0;

    word &= -word;
    if (word >> 32) { bit += 32; word >>= 32; }
    if (word >> 16) { bit += 16; word >>= 16; }
    if (word >> 8) { bit += 8; word >>= 8; }
    if (word >> 4) { bit += 4; word >>= 4; }
    if (word >> 2) { bit += 2; word >>= 2; }
    return bit + (cl_u32)(word >> 1);
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
CL_INLINE cl_u32 cl_head(const struct cl_calendar *calendar, cl_u32 slot)
{
    cl_u32 shift = slot % 16 * 4, word = slot / 16, index;

    CL_OPAQUE(slot);
    index = calendar->heads[slot & (CL_CALENDAR - 1)];
    if (calendar->fresh >> 16) {
        CL_OPAQUE(word);
        index |= (cl_u32)(calendar->upper_heads[word & (CL_CALENDAR / 16 - 1)] >> shift & 15) << 16;
    }
    return index;
}

CL_INLINE void cl_set_head(struct cl_calendar *calendar, cl_u32 slot, cl_u32 index)
{
    cl_u32 shift = slot % 16 * 4, word = slot / 16;

    CL_OPAQUE(slot);
    calendar->heads[slot & (CL_CALENDAR - 1)] = index;
    if (calendar->fresh >> 16) {
        cl_u64 *upper;

        CL_OPAQUE(word);
        upper = &calendar->upper_heads[word & (CL_CALENDAR / 16 - 1)];
        *upper = (*upper & ~(15ULL << shift)) | (cl_u64)(index >> 16 & 15) << shift;
    }
}

/* Returns the last node of a slot; CL_NIL if there is no such slot. */
CL_INLINE cl_u32 cl_tail(const struct cl_calendar *calendar, cl_nodes nodes, cl_u32 slot)
{
    struct cl_node *head = slot < CL_CALENDAR ? cl_node(nodes, cl_head(calendar, slot)) : 0;

    return head ? head->previous : CL_NIL;
}

/* Returns the virtual time by which packets leave. */
CL_INLINE cl_u64 cl_due_time(const struct cl_node *node) { return node->start + node->span; }

/* Adds a node at the end of a slot. */
CL_INLINE void cl_append(struct cl_calendar *calendar, cl_nodes nodes, cl_u32 slot, struct cl_node *node, cl_u32 index)
{
    struct cl_node *head, *before;
    cl_u32 word = slot / 64 & 63, first;

    CL_OPAQUE(word);
    word &= 63;
    node->next = CL_NIL;
    if (!(calendar->bits[word] >> slot % 64 & 1)) {
        node->previous = index;
        cl_set_head(calendar, slot, index);
        calendar->bits[word] |= 1ULL << slot % 64;
        calendar->words |= 1ULL << word;
        return;
    }
    first = cl_head(calendar, slot);
    head = cl_node(nodes, first);
    if (!head)
        return;
    node->previous = head->previous;
    head->previous = index;
    before = node->previous == first ? head : cl_node(nodes, node->previous);
    if (before)
        before->next = index;
}

/* Returns the virtual time at which the service of the last packet may start; 0 if there is no packet. */
CL_NOINLINE cl_u64 cl_last_start(const struct cl_calendar *calendar, cl_nodes nodes)
{
    struct cl_node *last = cl_node(nodes, cl_tail(calendar, nodes, cl_last_slot(calendar)));

    return last ? last->start : 0;
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

/* Takes a node out of its slot, at its head or at its tail. */
CL_INLINE cl_u32 cl_unlink(struct cl_calendar *calendar, cl_nodes nodes, cl_u32 slot, int is_tail)
{
    struct cl_node *head, *node, *other;
    cl_u32 first, last;

    if (slot >= CL_CALENDAR)
        return CL_NIL;
    first = cl_head(calendar, slot);
    head = cl_node(nodes, first);
    if (!head)
        return CL_NIL;
    last = head->previous;
    if (last == first) {
        cl_clear(calendar, slot);
        return first;
    }
    if (!is_tail) {
        other = cl_node(nodes, head->next);
        if (!other)
            return CL_NIL;
        cl_set_head(calendar, slot, head->next);
        other->previous = last;
        return first;
    }
    node = cl_node(nodes, last);
    if (!node)
        return CL_NIL;
    head->previous = node->previous;
    other = cl_node(nodes, node->previous);
    if (other)
        other->next = CL_NIL;
    return last;
}

/* Returns a time at a part, 2^-32, of its distance to `v`, if it is after `v`. */
CL_NOINLINE cl_u64 cl_nearer(cl_u64 time, cl_u64 v, cl_u64 part)
{
    return time > v ? v + cl_mul_shift(time - v, part, 32) : time;
}

/* Sorts all packets into slots that cover at least `range` of virtual time from `floor` on. Before that, the packets of new flows are brought nearer to `v`
 * once, if there is a `part`. */
CL_NOINLINE int cl_resort(struct cl_calendar *calendar, cl_nodes nodes, cl_u64 floor, cl_u64 range)
{
    cl_u32 first = CL_NIL, slot, next;
    struct cl_node *node;
    cl_u64 end = range;

    while (CL_CAN_LOOP) {
        slot = cl_last_slot(calendar);
        node = cl_node(nodes, cl_tail(calendar, nodes, slot));
        if (!node)
            break;
        node->next = first;
        first = cl_head(calendar, slot);
        cl_clear(calendar, slot);
    }
    for (next = first; CL_CAN_LOOP; next = node->next) {
        node = cl_node(nodes, next);
        if (!node)
            break;
        if (node->stamp & CL_STAMP_NEW && calendar->part) {
            cl_u64 due = cl_nearer(cl_due_time(node), calendar->v, calendar->part);

            node->start = cl_nearer(node->start, calendar->v, calendar->part);
            node->span = due - node->start;
        }
        end = cl_max(end, cl_since(cl_due_time(node), floor) + cl_since(cl_due_time(node), floor) / 4);
    }
    calendar->part = 0;
    cl_set_range(calendar, end);
    calendar->base = floor / calendar->width;
    while (CL_CAN_LOOP) {
        cl_u64 number;
        cl_u32 index = first;

        node = cl_node(nodes, index);
        if (!node)
            break;
        first = node->next;
        number = cl_min(cl_max(cl_due_time(node) / calendar->width, calendar->base), calendar->base + CL_CALENDAR - 1);
        cl_append(calendar, nodes, number & (CL_CALENDAR - 1), node, index);
    }
    return 0;
}

/* Takes a free node; CL_NIL if there is none. */
CL_INLINE cl_u32 cl_take_node(struct cl_calendar *calendar, cl_nodes nodes)
{
    cl_u32 index = calendar->free;
    struct cl_node *node;

    if (index == CL_NIL)
        return cl_node(nodes, calendar->fresh) ? calendar->fresh++ : CL_NIL;
    node = cl_node(nodes, index);
    if (node)
        calendar->free = node->next;
    return index;
}

CL_INLINE void cl_give_node_back(struct cl_calendar *calendar, struct cl_node *node, cl_u32 index)
{
    node->next = calendar->free;
    calendar->free = index;
}

/* Adds a packet, whose node has its times. `floor` is a time below which no packet starts. */
CL_INLINE void cl_calendar_push(struct cl_calendar *calendar, cl_nodes nodes, cl_u64 floor, struct cl_node *node, cl_u32 index)
{
    cl_u64 first = floor / calendar->width, due = cl_due_time(node), number = due / calendar->width;

    calendar->base = calendar->words ? cl_max(first, calendar->base) : first;
    if (number >= calendar->base + CL_CALENDAR) {
        CL_RESORT(calendar, nodes, floor, 2 * cl_since(due, floor));
        number = cl_due_time(node) / calendar->width;
    }
    cl_append(calendar, nodes, cl_max(number, calendar->base) & (CL_CALENDAR - 1), node, index);
}

#endif
