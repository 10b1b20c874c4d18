/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* One link below several hardware queues (`mq`), for the kernel and for the host.
 *
 * Each hardware queue has a leaf, with packets, order, accounts and statistics of its own, under the kernel's lock of that leaf. Leaves run at the
 * same time. They share the state of the link, without a lock that a leaf waits for:
 *
 *     free_at         time at which the link is free. A leaf takes the link for its packet by compare-and-swap, so no time is sold twice, and a leaf that
 *                     has packets alone uses all of it
 *     heads           the least of each leaf: the weight (TSQ) or the virtual due time (Sieve) of its next packet. A leaf lets another one go first whose
 *                     head is smaller by more than a slack. It waits for that leaf for CL_PATIENCE and then withdraws the other's head, so a
 *                     hardware queue that has stopped delays the link once
 *     packets, bytes  all that waits, by atomic additions
 *     taken_at        a lock of the law or of virtual time. A leaf that finds it taken works on a copy, and leaves the original as it is: what depends on
 *                     time is made up for by the next leaf. A lock that was taken long ago, by a leaf whose processor has stopped, counts as free
 *
 * The rate holds: the starts of packets are at least their times on the link apart, but for the `burst` by which a late schedule catches up. */
#ifndef CUTLINE_SHARED_H
#define CUTLINE_SHARED_H

#include "law.h"
#include "shaper.h"

/* A loop that is a few rounds long: another leaf has won in each. */
#define CL_TRIES 8
/* Time for which a leaf waits for another one whose head is smaller, ns, and the time between two looks. */
#define CL_PATIENCE 200000
#define CL_WAIT 25000
/* Time on the link by which a packet may be overtaken by packets of other leaves without a wait, ns. */
#define CL_SLACK 200000
/* Time after which a lock counts as free, ns. */
#define CL_LONGEST_HOLD 10000000
/* The head of a leaf without packets. */
#define CL_NO_HEAD 0

#define CL_READ(word) (*(const volatile cl_u64 *)&(word))
#define CL_WRITE(word, value) (*(volatile cl_u64 *)&(word) = (value))
#define CL_SWAP(word, from, to) __sync_val_compare_and_swap(&(word), (cl_u64)(from), (cl_u64)(to))
#define CL_ADD(word, number) ((void)__sync_fetch_and_add(&(word), (cl_u64)(number)))

struct cl_shared {
    cl_u64 free_at;  /* time at which the link is free, ns */
    cl_u64 packets;  /* packets that wait in all leaves */
    cl_u64 bytes;    /* their bytes on the link */
    cl_u64 taken_at; /* time at which the lock was taken, ns; 0: it is free */
    cl_u64 reach;    /* leaves from this number on have had no packets */
    cl_u64 reserved[3];
    cl_u64 heads[CUTLINE_QUEUES]; /* CL_NO_HEAD without packets */
};

/* Part of a leaf's own state. */
struct cl_leaf {
    cl_u32 queues;       /* hardware queues of the interface; 0: one queue for all, and nothing is shared */
    cl_u32 queue;        /* number of this leaf's */
    cl_u32 group;        /* instance of the first leaf, and number of the shared state */
    cl_u32 holds;        /* 1 while this leaf has the lock */
    cl_u64 taken_at;     /* time at which it has taken the lock */
    cl_u64 head;         /* its head, as published */
    cl_u64 passed_at;    /* `free_at` when another leaf was let go first */
    cl_u64 passed_since; /* time since which it is let go first, ns */
    cl_u64 wake;         /* time at which the leaf asks again, ns */
    cl_u64 missed;       /* calls that found the lock taken */
    cl_u64 least;        /* the least head of other leaves; CL_MAX_U64: they have no packets */
    cl_u64 looked_at;    /* number of the leaf to look at next */
    cl_u32 other;        /* the leaf that has the least head */
    cl_u32 reserved;
    struct cl_backlog own;  /* packets that wait in this leaf */
    struct cl_backlog seen; /* those of all leaves, when this one has looked last */
};

CL_INLINE cl_u32 cl_queue_index(cl_u32 queue)
{
    queue &= CUTLINE_QUEUES - 1;
    CL_OPAQUE(queue);
    return queue & (CUTLINE_QUEUES - 1);
}

/* Raises a word to a value, unless it is larger. */
CL_INLINE void cl_raise(cl_u64 *word, cl_u64 value)
{
    for (int i = 0; i < CL_TRIES; i++) {
        cl_u64 found = CL_READ(*word);

        if (found >= value || CL_SWAP(*word, found, value) == found)
            return;
    }
}

/* Takes the lock, unless another leaf has it. */
CL_INLINE void cl_try(struct cl_shared *shared, struct cl_leaf *leaf, cl_u64 now)
{
    cl_u64 taken = CL_READ(shared->taken_at);

    now = cl_max(now, 1);
    leaf->holds = 0;
    leaf->taken_at = now;
    if ((!taken || cl_since(now, taken) > CL_LONGEST_HOLD) && CL_SWAP(shared->taken_at, taken, now) == taken)
        leaf->holds = 1;
    else
        leaf->missed++;
}

/* Returns whether this leaf still has the lock, which it gives back after that. */
CL_INLINE int cl_holds(const struct cl_shared *shared, const struct cl_leaf *leaf)
{
    return leaf->holds && CL_READ(shared->taken_at) == leaf->taken_at;
}

CL_INLINE void cl_give(struct cl_shared *shared, struct cl_leaf *leaf)
{
    if (leaf->holds)
        (void)CL_SWAP(shared->taken_at, leaf->taken_at, 0);
    leaf->holds = 0;
}

/* Looks at the backlog of all leaves. */
CL_INLINE void cl_look(const struct cl_shared *shared, struct cl_leaf *leaf)
{
    leaf->seen.packets = CL_READ(shared->packets);
    leaf->seen.bytes = CL_READ(shared->bytes);
}

/* Counts the packets by which a backlog has grown or fallen since this leaf has looked. */
CL_INLINE void cl_count_backlog(struct cl_shared *shared, struct cl_leaf *leaf, const struct cl_backlog *backlog)
{
    cl_u64 packets = backlog->packets - leaf->seen.packets, bytes = backlog->bytes - leaf->seen.bytes;

    if (!packets && !bytes)
        return;
    leaf->own.packets += packets;
    leaf->own.bytes += bytes;
    leaf->seen = *backlog;
    CL_ADD(shared->packets, packets);
    CL_ADD(shared->bytes, bytes);
}

/* Shows the head of this leaf to the others. `is_sure` also shows it again if another leaf has withdrawn it. */
CL_INLINE void cl_show(struct cl_shared *shared, struct cl_leaf *leaf, cl_u64 head, int is_sure)
{
    cl_u32 at = cl_queue_index(leaf->queue);

    if (head == leaf->head && !(is_sure && CL_READ(shared->heads[at]) != head))
        return;
    leaf->head = head;
    CL_WRITE(shared->heads[at], head);
    if (CL_READ(shared->reach) <= at)
        cl_raise(&shared->reach, at + 1);
}

/* Finds the other leaf with the least head: `other` and `least`, which is CL_MAX_U64 if no other leaf has packets. The variables of the loop are in memory,
 * where the kernel's verifier does not follow each of their values. */
CL_SEPARATE int cl_find_least(const struct cl_shared *shared, struct cl_leaf *leaf)
{
    if (!shared || !leaf)
        return 0;
    CL_WRITE(leaf->least, CL_MAX_U64);
    CL_WRITE(leaf->looked_at, 0);
    while (CL_READ(leaf->looked_at) < CL_READ(shared->reach) && CL_CAN_LOOP) {
        cl_u32 at = cl_queue_index(CL_READ(leaf->looked_at));
        cl_u64 head = CL_READ(shared->heads[at]);

        CL_WRITE(leaf->looked_at, CL_READ(leaf->looked_at) + 1);
        if (head == CL_NO_HEAD || head >= CL_READ(leaf->least) || at == leaf->queue)
            continue;
        CL_WRITE(leaf->least, head);
        leaf->other = at;
    }
    return 0;
}

/* Returns whether the link is busy; then `wake` is the time to ask again. The leaf with the least head is the first to ask. */
CL_INLINE int cl_is_busy(const struct cl_shared *shared, struct cl_leaf *leaf, cl_u64 now)
{
    cl_u64 free = CL_READ(shared->free_at);

    if (free <= now)
        return 0;
    cl_find_least(shared, leaf);
    leaf->wake = leaf->least < leaf->head ? free + CL_WAIT : free;
    return 1;
}

/* Returns whether another leaf is served first, whose head is smaller by more than `slack`; then `wake` is the time to ask again. */
CL_INLINE int cl_is_passed(struct cl_shared *shared, struct cl_leaf *leaf, cl_u64 now, cl_u64 slack)
{
    cl_u64 free = CL_READ(shared->free_at);

    cl_find_least(shared, leaf);
    if (cl_since(leaf->head, leaf->least) <= slack)
        return 0;
    if (leaf->passed_at != free || now < leaf->passed_since) {
        leaf->passed_at = free;
        leaf->passed_since = now;
    }
    if (now - leaf->passed_since < CL_PATIENCE) {
        leaf->wake = now + CL_WAIT;
        return 1;
    }
    (void)CL_SWAP(shared->heads[cl_queue_index(leaf->other)], leaf->least, CL_NO_HEAD);
    return 0;
}

/* Takes the link for `time`, ns. Returns the time at which the packet starts, which is not after `now`; 0 if another leaf was faster: then `wake` is the
 * time to ask again. */
CL_INLINE cl_u64 cl_claim(struct cl_shared *shared, struct cl_leaf *leaf, const struct cutline_config *config, cl_u64 now, cl_u64 time,
                          cl_u64 *slipped)
{
    for (int i = 0; i < CL_TRIES; i++) {
        cl_u64 free = CL_READ(shared->free_at), start = cl_max(free, cl_since(now, config->burst));

        if (free > now)
            break;
        if (CL_SWAP(shared->free_at, free, start + time) == free) {
            *slipped += start - free;
            return cl_max(start, 1);
        }
    }
    leaf->wake = cl_max(CL_READ(shared->free_at), now + CL_WAIT);
    return 0;
}

/* Lets a packet pass that nothing shapes. Returns the time at which it starts on a link whose own backlog is bounded by `burst`. */
CL_INLINE cl_u64 cl_pass(struct cl_shared *shared, const struct cutline_config *config, cl_u64 now, cl_u64 time)
{
    cl_u64 start = now;

    for (int i = 0; i < CL_TRIES; i++) {
        cl_u64 free = CL_READ(shared->free_at);

        start = cl_min(cl_max(free, now), now + config->burst);
        if (CL_SWAP(shared->free_at, free, start + time) == free)
            break;
    }
    return start;
}

/* Notes that a packet comes to a leaf: the link is free from now on where nothing has waited. */
CL_INLINE void cl_begin_link(struct cl_shared *shared, const struct cl_leaf *leaf, cl_u64 now)
{
    if (!leaf->seen.packets)
        cl_raise(&shared->free_at, now);
}

/* Forgets this leaf's packets, which are freed. */
CL_INLINE void cl_forget_leaf(struct cl_shared *shared, struct cl_leaf *leaf)
{
    CL_ADD(shared->packets, -leaf->own.packets);
    CL_ADD(shared->bytes, -leaf->own.bytes);
    leaf->own.packets = leaf->own.bytes = 0;
    cl_show(shared, leaf, CL_NO_HEAD, 1);
}

#endif
