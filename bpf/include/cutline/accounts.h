/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* Accounts of flows, in memory of fixed size: the table of `sieve/accounts.rs` of the crate `aqm`, without hosts, and with one set for each flow
 * where that table has two.
 *
 * An account is a finish: the virtual time at which the next packet of a flow may start. A salted hash of the flow chooses a set of eight cells. A flow
 * that is not in its set takes a cell that is unused, or else that of the flow without waiting packets that owes least, and inherits its debt. If
 * packets of all eight wait, the flow shares one of them. A flow that takes a cell is new for a while, unless it has been here in the last seconds,
 * which two Bloom filters say. The salt is drawn again every minute; for four seconds after that, flows are looked for by the old one too.
 *
 * Three in twenty sets of the table, the last ones, hold the words of the filters in the place of cells: an eighth of the memory of a table of that crate.
 *
 * A finish has 48 bits, counted from an epoch. That is 2^44 B. The epoch moves up to the floor, below which no packet starts, before the floor is 2^42 B
 * after it (cl_sieve_sort in sieve.h), so a finish is right to 2^-4 B, unless packets that wait hold the floor while virtual time goes on by 1.3 * 10^13 B:
 * 17 minutes at 100 Gbit/s, in which a hardware queue stands still. A finish below the epoch is at the epoch.
 *
 * An account has the last 16 bits of the time of its last packet, in units of 2^22 ns. A flow that comes back after a multiple of 275 s counts as one
 * that has not been away; 64 s after its last packet it has another set, so that is of little consequence. At most 65,535 packets of an account wait.
 *
 * A program that includes this file defines, before that, a type `cl_table`, `cl_u64 cl_random(void)` with 53 random bits, and
 *
 *     struct cl_set *cl_set(cl_table table, cl_u32 index)        a set, or NULL
 *     CL_CAN_LOOP                                                true, for ever or until the kernel has had enough
 *
 * It may define CL_MOVE_IN and CL_VISIT, which call `cl_move_in` and `cl_visit` another way.
 */
#ifndef CUTLINE_ACCOUNTS_H
#define CUTLINE_ACCOUNTS_H

#include "fixed.h"

#ifndef CL_MOVE_IN
#define CL_MOVE_IN(accounts, table, now, id, floor) cl_move_in(accounts, table, now, id, floor)
#endif
#ifndef CL_VISIT
#define CL_VISIT(accounts, table, now, hash) cl_visit(accounts, table, now, hash)
#endif
#define CL_WAYS 8
/* Bits of a flow's state; the others are its birth, in units of 2^24 ns. */
#define CL_USED 0x8000
#define CL_NEW 0x4000
#define CL_BEHIND 0x1000
#define CL_BIRTH (CL_BEHIND - 1)
/* A tick is 2^20 ns, the unit of a flow's age 2^4 ticks, and that of the time of its last packet 2^2 ticks. */
#define CL_TICK_BITS 20
#define CL_AGE_BITS 4
#define CL_AT_BITS 2
/* Unit of the lag of new flows: 1024 B in virtual time. */
#define CL_LAG_BITS 14
#define CL_SALT_AGE 60000000000ULL
/* After so long a silence a flow is forgotten, ns. */
#define CL_SILENCE 4000000000ULL
/* Time for which visitors are written into one filter, ns. */
#define CL_GENERATION 2000000000ULL
/* Words of a filter in a set. */
#define CL_FILTER_WORDS 10
/* Sets of filters among this many sets of a table. */
#define CL_FILTER_SETS 3
#define CL_FILTER_PARTS 20
#define CL_MOST_WAITING 0xffff
/* Most cells of a table. */
#define CL_PLACES (1U << 20)
/* The largest virtual time after the epoch, 2^-4 B. */
#define CL_MOST_TIME ((1ULL << 48) - 1)

struct cl_account {
    cl_u32 finish;       /* lower 32 bits of the virtual time after the epoch, 2^-4 B */
    cl_u16 upper_finish; /* its upper 16 bits */
    cl_u16 at;           /* time of its last packet, 2^22 ns */
    cl_u32 id;           /* of the flow */
    cl_u16 lag;          /* part of the finish that is not the flow's own but that of all new flows, 1024 B */
    cl_u16 warned_until; /* ticks */
    cl_u16 waiting;      /* its packets that wait */
    cl_u16 state;
};

/* Accounts of flows, or words of both filters. */
struct cl_set {
    union {
        struct cl_account cells[CL_WAYS];
        cl_u64 words[2 * CL_FILTER_WORDS];
    };
};

struct cl_visitors {
    cl_u64 until;  /* time until which the generation is written, ns */
    cl_u64 set[2]; /* bits that are set */
    cl_u32 written;
    cl_u32 reserved;
};

struct cl_accounts {
    struct cl_visitors visitors;
    cl_u64 salt, salt_before;
    cl_u64 salt_until;     /* time at which it is drawn again, ns; 0: there is none */
    cl_u64 changing_until; /* until when flows are looked for by the salt before, ns */
    cl_u64 shared_until;   /* until when there may be packets of flows that shared an account, ns */
    cl_u64 epoch;          /* virtual time from which finishes are counted, 2^-4 B */
    cl_u32 sets;           /* of flows */
    cl_u32 filters;        /* sets behind them, with words of filters */
    cl_u32 grown_up;       /* age from which a flow is no newcomer, 2^24 ns */
    cl_u32 instance;       /* of the program that includes this file */
};

/* The cell of a packet's flow. */
struct cl_found {
    cl_u32 place; /* set * 8 + cell */
    cl_u32 is_new;
};

CL_INLINE cl_u64 cl_mix(cl_u64 z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

CL_INLINE cl_u32 cl_ticks(cl_u64 now) { return now >> CL_TICK_BITS; }

CL_INLINE cl_u16 cl_at_time(cl_u32 tick) { return tick >> CL_AT_BITS; }

/* Returns whether a flow has been silent for so long that it is forgotten. */
CL_INLINE int cl_is_silent(const struct cl_account *cell, cl_u32 tick)
{
    return (cl_u16)(cl_at_time(tick) - cell->at) > CL_SILENCE >> (CL_TICK_BITS + CL_AT_BITS);
}

/* Returns a virtual time as the time after an epoch. */
CL_INLINE cl_u64 cl_after(cl_u64 time, cl_u64 epoch) { return cl_min(cl_since_by_branch(time, epoch), CL_MOST_TIME); }

/* Returns the virtual time at which the next packet of a flow may start. */
CL_INLINE cl_u64 cl_finish(const struct cl_accounts *accounts, const struct cl_account *cell)
{
    return accounts->epoch + ((cl_u64)cell->upper_finish << 32 | cell->finish);
}

CL_INLINE void cl_set_finish(const struct cl_accounts *accounts, struct cl_account *cell, cl_u64 finish)
{
    cl_u64 after = cl_after(finish, accounts->epoch);

    cell->finish = after;
    cell->upper_finish = after >> 32;
}

CL_INLINE cl_u16 cl_birth(cl_u32 tick) { return tick >> CL_AGE_BITS & CL_BIRTH; }

CL_INLINE struct cl_account *cl_at(cl_table table, cl_u32 place)
{
    struct cl_set *set = cl_set(table, place / CL_WAYS);
    cl_u32 way = place % CL_WAYS;

    if (!set)
        return 0;
    CL_OPAQUE(way);
    return &set->cells[way & (CL_WAYS - 1)];
}

/* Remembers a flow by its hash, and returns whether it was remembered. A filter with more than a quarter of its bits set is not believed. */
CL_INLINE int cl_visit(struct cl_accounts *accounts, cl_table table, cl_u64 now, cl_u64 hash)
{
    struct cl_visitors *visitors = &accounts->visitors;
    cl_u64 bits = (cl_u64)accounts->filters * CL_FILTER_WORDS * 64;
    cl_u32 is_in[2], written;

    if (now >= visitors->until) {
        int late = now - visitors->until >= CL_GENERATION;
        cl_u64 kept[2];

        visitors->written ^= 1;
        written = visitors->written & 1;
        kept[0] = late || !written ? 0 : ~0ULL;
        kept[1] = late || written ? 0 : ~0ULL;
        for (cl_u32 i = 0; i < accounts->filters && CL_CAN_LOOP; i++) {
            struct cl_set *set = cl_set(table, accounts->sets + i);

            if (!set)
                break;
            for (cl_u32 word = 0; word < CL_FILTER_WORDS; word++) {
                set->words[word] &= kept[0];
                set->words[CL_FILTER_WORDS + word] &= kept[1];
            }
        }
        if (late)
            visitors->set[0] = visitors->set[1] = 0;
        if (written)
            visitors->set[1] = 0;
        else
            visitors->set[0] = 0;
        visitors->until = now + CL_GENERATION;
    }
    hash = cl_mix(hash);
    written = visitors->written & 1;
    is_in[0] = visitors->set[0] * 4 <= bits;
    is_in[1] = visitors->set[1] * 4 <= bits;
    for (cl_u32 probe = 0; probe < 4; probe++) {
        cl_u64 half = probe % 2 ? hash & 0xffffffff : hash >> 32, at = half * bits >> 32, bit = 1ULL << (at % 64), found[2];
        cl_u32 place = at / 64 / CL_FILTER_WORDS, word = at / 64 % CL_FILTER_WORDS;
        struct cl_set *set = cl_set(table, accounts->sets + place);

        CL_OPAQUE(word);
        if (!set || word >= CL_FILTER_WORDS)
            return 0;
        found[0] = set->words[word] & bit;
        found[1] = set->words[CL_FILTER_WORDS + word] & bit;
        is_in[0] &= !!found[0];
        is_in[1] &= !!found[1];
        if (written) {
            visitors->set[1] += !found[1];
            set->words[CL_FILTER_WORDS + word] |= bit;
        } else {
            visitors->set[0] += !found[0];
            set->words[word] |= bit;
        }
        if (probe % 2)
            hash = cl_mix(hash);
    }
    return is_in[0] || is_in[1];
}

/* Returns the number of a flow's set. */
CL_INLINE cl_u32 cl_set_of(const struct cl_accounts *accounts, cl_u32 id, cl_u64 salt)
{
    return (cl_mix(id ^ salt) >> 32) * accounts->sets >> 32;
}

/* Returns the cell of a flow in a set; CL_WAYS if it has none. */
CL_SEPARATE cl_u32 cl_way_of(const struct cl_set *set, cl_u32 id)
{
    if (!set)
        return CL_WAYS;
    for (cl_u32 way = 0; way < CL_WAYS; way++)
        if (set->cells[way].id == id && set->cells[way].state & CL_USED)
            return way;
    return CL_WAYS;
}

/* Finds a cell for a flow that is not in its set, and returns its place. */
CL_NOINLINE cl_u32 cl_move_in(struct cl_accounts *accounts, cl_table table, cl_u64 now, cl_u32 id, cl_u64 floor)
{
    cl_u32 tick = cl_ticks(now), mine = cl_set_of(accounts, id, accounts->salt), best = 0, shared = id % CL_WAYS, old = CL_WAYS, way;
    cl_u32 is_changing = now < accounts->changing_until, before_set = cl_set_of(accounts, id, accounts->salt_before);
    struct cl_set *set = cl_set(table, mine), *before = is_changing ? cl_set(table, before_set) : 0;
    cl_u64 least = CL_MAX_U64, inherited;
    struct cl_account *taken, *known = 0;

    if (!set)
        return 0;
    if (before) {
        old = cl_way_of(before, id);
        CL_OPAQUE(old);
        if (old < CL_WAYS)
            known = &before->cells[old];
    }
    CL_OPAQUE(shared);
    shared &= CL_WAYS - 1;
    if (!known && now < accounts->shared_until) {
        /* It may have packets that are charged to the account that it shared: it stays behind them. */
        if (before && before->cells[shared].waiting) {
            accounts->shared_until = now + CL_SILENCE;
            return before_set * CL_WAYS + shared;
        }
        if (set->cells[shared].waiting) {
            accounts->shared_until = now + CL_SILENCE;
            return mine * CL_WAYS + shared;
        }
    }
    /* Cells of which packets wait come last, and those of flows that have been silent for long first; then who owes least. */
    for (way = 0; way < CL_WAYS; way++) {
        struct cl_account *cell = &set->cells[way];
        cl_u64 is_live = cell->state & CL_USED && !cl_is_silent(cell, tick);
        cl_u64 rank = (cl_u64)!!cell->waiting << 63 | is_live << 62 | cl_finish(accounts, cell) >> 2;

        if (rank < least) {
            least = rank;
            best = way;
        }
    }
    CL_OPAQUE(best);
    best &= CL_WAYS - 1;
    taken = &set->cells[best];
    if (taken->waiting) {
        if (known)
            return before_set * CL_WAYS + (old & (CL_WAYS - 1));
        accounts->shared_until = now + CL_SILENCE;
        return mine * CL_WAYS + shared;
    }
    inherited = cl_finish(accounts, taken);
    if (inherited <= floor)
        inherited = 0;
    taken->lag = 0;
    if (known) {
        /* Packets that wait stay with the cell before, until they have left. */
        cl_u64 finish = cl_finish(accounts, known);
        cl_u16 last = known->at, warned = known->warned_until, state = known->state;

        if (!known->waiting) {
            known->finish = known->id = 0;
            known->upper_finish = known->at = known->lag = known->warned_until = known->state = 0;
        }
        cl_set_finish(accounts, taken, cl_max(finish, inherited));
        taken->at = last;
        taken->warned_until = warned;
        taken->state = state;
    } else {
        int was_here = CL_VISIT(accounts, table, now, cl_mix(id ^ accounts->salt));

        cl_set_finish(accounts, taken, inherited);
        taken->at = cl_at_time(tick);
        taken->warned_until = tick;
        taken->state = was_here ? CL_USED : CL_USED | CL_NEW | cl_birth(tick);
    }
    taken->id = id;
    taken->waiting = 0;
    return mine * CL_WAYS + best;
}

/* Finds the account of a flow, or takes a cell for it, and notes that a packet of it has come. Returns the cell. */
CL_INLINE struct cl_account *cl_find(struct cl_accounts *accounts, cl_table table, cl_u64 now, cl_u32 id, cl_u64 floor, struct cl_found *found)
{
    cl_u32 tick = cl_ticks(now), mine, way;
    struct cl_account *cell;
    struct cl_set *set;

    if (now >= accounts->salt_until) {
        cl_u64 fresh = cl_random();

        accounts->salt_before = accounts->salt_until ? accounts->salt : fresh;
        accounts->changing_until = accounts->salt_until ? now + CL_SILENCE : now;
        accounts->salt = fresh;
        accounts->salt_until = now + CL_SALT_AGE;
    }
    mine = cl_set_of(accounts, id, accounts->salt);
    set = cl_set(table, mine);
    found->place = 0;
    found->is_new = 0;
    if (!set)
        return 0;
    way = cl_way_of(set, id);
    if (way < CL_WAYS) {
        found->place = mine * CL_WAYS + way;
        CL_OPAQUE(way);
        cell = &set->cells[way & (CL_WAYS - 1)];
    } else {
        found->place = CL_MOVE_IN(accounts, table, now, id, floor);
        cell = cl_at(table, found->place);
        if (!cell)
            return 0;
    }
    if (cl_is_silent(cell, tick) && !cell->waiting) {
        cell->state = CL_USED | CL_NEW | cl_birth(tick);
        cell->warned_until = tick;
    }
    cell->at = cl_at_time(tick);
    found->is_new = !!(cell->state & CL_NEW);
    if (found->is_new && ((cl_birth(tick) - cell->state) & CL_BIRTH) >= accounts->grown_up) {
        cell->state &= ~(CL_NEW | CL_BEHIND);
        found->is_new = 0;
    }
    return cell;
}

/* Notes that a packet has left that was charged to the account in this place, and returns that. It is that of the same flow: a cell of which packets wait is
 * never given up. */
CL_INLINE struct cl_account *cl_left(cl_table table, cl_u32 place)
{
    struct cl_account *cell = cl_at(table, place);

    if (cell && cell->waiting)
        cell->waiting--;
    return cell;
}

#endif
