/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* Interface between Cutline's queueing disciplines in the kernel and their loader.
 *
 * Both sides include this file: the BPF objects, and the loader by its own copy of the layouts, which a test compares with this one. Only
 * types of fixed size are used, every field is aligned to its size, and there is no implicit padding.
 *
 * A loader does the following:
 *
 *  1. It loads the object and pins its maps and its `struct_ops` map. The object cannot be loaded twice under one kernel name.
 *  2. For an interface it chooses a free instance, which is a number below the entries of `cutline_configs`. It creates the inner maps of
 *     the instance like their templates, with the same type, sizes, flags and BTF, and puts them at that number into the outer maps:
 *
 *         outer map         template                    entries of the inner map
 *         cutline_states    cutline_state_template      1
 *         cutline_slots     cutline_slot_template       limit_packets + 1
 *         cutline_accounts  cutline_account_template    sets of eight flows, 160 B each, and behind them 3 of 20 sets for filters; Sieve alone
 *
 *  3. It writes `cutline_configs[instance]`, and `cutline_interfaces[{namespace, interface}] = {instance, 1}`.
 *  4. It adds the queueing discipline at the root of the interface by its kernel name, with any `tc` or by netlink.
 *
 * A queueing discipline for each of N hardware queues of an interface, at one rate (shared.h): it chooses N free instances in a row, does step 2 for each of
 * them, with at most as many slots as the limit has packets, and creates for the first one
 *
 *         cutline_shared    cutline_shared_template     1
 *
 * It writes the same configuration for each instance, and `{first instance, N}` for the interface. It adds `mq` at the root, and the queueing discipline
 * below it for each queue, the first one at `:1`. Limits are those of all instances together. Statistics are the sums; gauges, those of the instance with the
 * last packet.
 *
 * Without step 3 the kernel refuses step 4 with ENOENT; with a configuration that is out of range, with EINVAL.
 *
 * The entry of the map of the state begins with 8 B of its own and the configuration in use.
 *
 * A change is written to `cutline_configs[instance]`, `generation` last. The next packet takes it over, and
 * `cutline_statistics.generation` becomes the same. A change that is out of range is not taken over, and `refused_generation` becomes the same.
 * Packets that wait stay. What finds no slot in the inner map is dropped as at the limit, so a larger
 * `limit_packets` needs another inner map, and for that the queueing discipline has to be removed.
 *
 * To remove: remove the queueing discipline, then delete the interface's entry and the inner maps. Packets that an inner map still
 * holds are freed with it. */
#ifndef CUTLINE_QDISC_H
#define CUTLINE_QDISC_H

#ifndef __bpf__
#include <stdint.h>
typedef uint8_t cl_u8;
typedef uint16_t cl_u16;
typedef uint32_t cl_u32;
typedef int32_t cl_s32;
typedef uint64_t cl_u64;
typedef int64_t cl_s64;
#else
typedef __u8 cl_u8;
typedef __u16 cl_u16;
typedef __u32 cl_u32;
typedef __s32 cl_s32;
typedef __u64 cl_u64;
typedef __s64 cl_s64;
#endif

/* Version of these layouts. It is also the last part of the kernel names, so that objects of two versions can be loaded at a time. */
#define CUTLINE_LAYOUT 3
/* Names for `tc qdisc add ... NAME`, at most 15 characters. */
#define CUTLINE_TSQ_NAME "cutline_tsq3"
#define CUTLINE_SIEVE_NAME "cutline_sieve3"

/* Code points (RFC 2474). */
#define CUTLINE_CODE_POINTS 64
/* Levels of hints: 1 is as little delay as possible, 16 throughput only. */
#define CUTLINE_HINTS 16
/* Buckets of waiting times: those below 1, 2, 4, ... 2^23 us, and one for longer waits. */
#define CUTLINE_WAITS 25
/* The most hardware queues of an interface with a queueing discipline for each. */
#define CUTLINE_QUEUES 256
/* A probability of 1. Probabilities and gains have 60 fractional bits. */
#define CUTLINE_ONE (1ULL << 60)
/* Fractional bits of numbers of packets. */
#define CUTLINE_PACKET_BITS 20
/* Fractional bits of ratios of delays. */
#define CUTLINE_RATIO_BITS 23

/* Key of `cutline_interfaces` (a hash). */
struct cutline_interface {
    cl_u32 namespace_inode; /* inode of the network namespace, as in the link /proc/self/ns/net */
    cl_u32 index;           /* index of the interface in it */
};

/* Value of `cutline_interfaces`. */
struct cutline_assignment {
    cl_u32 instance; /* the instance of the queueing discipline at the root */
    cl_u32 queues;   /* number of hardware queues that have an instance each, from this one on, under `mq`; 1 without `mq` */
};

/* Law under TSQ: `cutline_config.law`. */
enum cutline_law {
    CUTLINE_LAW_NONE = 0, /* nothing is dropped early */
    CUTLINE_LAW_PI = 1,
    CUTLINE_LAW_PI2 = 2,
    CUTLINE_LAW_RED_WORCESTER = 3,
};

/* PI (Hollot et al. 2001 section IV). */
struct cutline_pi {
    cl_u64 a;           /* gain on the present error, 2^-60 per packet; more than b, at most 2^60 */
    cl_u64 b;           /* gain on the error one sample ago, 2^-60 per packet */
    cl_u64 q_ref;       /* reference length, 2^-20 packets; at most 10^7 packets */
    cl_u64 period;      /* between samples, ns; 10^3 to 10^12 */
    cl_u32 mean_packet; /* B that count as a packet, at most 10^6; 0 counts whole packets */
    cl_u32 reserved;    /* 0 */
};

/* PI2 (De Schepper et al. 2016). There is no coupling: nothing is marked. */
struct cutline_pi2 {
    cl_u64 alpha;    /* gain on the distance from the target, 2^-60 per ns; at most 10^-7 per ns (100 per s) */
    cl_u64 beta;     /* gain on the change since the last update, 2^-60 per ns; as alpha */
    cl_u64 target;   /* queuing delay to hold, ns; 10^5 to 10^10 */
    cl_u64 t_update; /* between updates, ns; 10^6 to 10^10 */
};

/* RED-Worcester's Adaptive RED (RED-Worcester section 2.3; Floyd, Gummadi and Shenker 2001), in packets, with the papers' variant. Without
 * hints that ask for less, it is Adaptive RED. */
struct cutline_red_worcester {
    cl_u64 min_th;      /* threshold, 2^-20 packets */
    cl_u64 max_th;      /* threshold, 2^-20 packets; more than min_th, at most 10^7 packets */
    cl_u64 max_p;       /* first probability at max_th, 2^-60 */
    cl_u64 w_q;         /* weight of an arrival in the average, 2^-60 */
    cl_u64 ln_keep;     /* -ln(1 - w_q), 2^-60 */
    cl_u64 w_t;         /* weight of an arrival in the moving target, 2^-60; 0 keeps it in the middle of the thresholds: Adaptive RED */
    cl_u64 interval;    /* between changes of max_p, ns; 10^6 to 10^11 */
    cl_u64 alpha;       /* increment of max_p, 2^-60; 0 is min(0.01, max_p / 4) */
    cl_u64 beta;        /* factor of a decrease, 2^-60 */
    cl_u64 range;       /* deviation of the average from its target, part of max_th - min_th, 2^-60; at most a half */
    cl_u64 floor;       /* least max_p, 2^-60 */
    cl_u64 ceiling;     /* largest max_p, 2^-60; not below floor */
    cl_u32 mean_packet; /* B of a packet for idle times, at most 10^6 */
    cl_u32 gentle;      /* 1: the probability rises from max_p to 1 between max_th and twice that; 0: it jumps */
    cl_u64 delays[CUTLINE_HINTS]; /* delay that each level requests, ns; at most 10^10 */
};

/* TSQ (the TSQ paper, section 3). */
struct cutline_tsq {
    cl_u64 l;          /* delay outside the queue that the charge assumes, ns; 10^6 to 10^9 */
    cl_u64 ratio_root; /* square root of the largest p' / p, 2^-23; 0: no bound */
    cl_u32 bits;       /* n: hints are 1 to 2^n; 1 to 4 */
    cl_u32 reserved;   /* 0 */
};

/* Sieve. */
struct cutline_sieve {
    cl_u64 rtt;          /* round-trip time, without queues, of most flows that fill the link, ns; 10^6 to 10^10 */
    cl_u64 tau;          /* time for which an unused share is kept, ns; 10^7 to 10^11 */
    cl_u64 newcomer_age; /* age below which a flow counts as new, ns; at most 3 * 10^10 */
};

/* Value of `cutline_configs` (an array by instance). */
struct cutline_config {
    cl_u32 layout;        /* CUTLINE_LAYOUT */
    cl_u32 generation;    /* number of this configuration, other than the one before; written last */
    cl_u64 link_bps;      /* rate of the link for the laws, bit/s; 10^3 to 10^13 */
    cl_u64 shape_bps;     /* rate to shape to, bit/s; 10^3 to 10^13, and then the laws' rate as well; 0: not shaped */
    cl_u64 burst;         /* time by which the schedule of shaping may be late and still catch up, ns; 1 to 10^9 */
    cl_u64 limit_bytes;   /* most bytes that wait, overhead included; 0: no such limit */
    cl_u32 limit_packets; /* most packets that wait; at least 1, with Sieve below 2^20 - 1 */
    cl_s32 overhead;      /* bytes that the link adds to each packet and segment, -64 to 256 */
    cl_u32 least_bytes;   /* least bytes of a packet or segment on the link, overhead included, at most 256 */
    cl_u32 law;           /* enum cutline_law, for TSQ */
    cl_u64 salt;          /* salt of hashes of flows; random, and other than that of other machines */
    cl_u8 hints[CUTLINE_CODE_POINTS]; /* level of each code point, 1 to 16; of code point 0 also for packets other than IP */
    struct cutline_tsq tsq;
    union {
        struct cutline_pi pi;
        struct cutline_pi2 pi2;
        struct cutline_red_worcester red_worcester;
    };
    struct cutline_sieve sieve;
};

/* Packets and their bytes: of frames as the interface has them, without overhead. A packet that the interface will cut into segments is
 * one packet, with the bytes of all its segments. */
struct cutline_count {
    cl_u64 packets;
    cl_u64 bytes; /* B */
};

/* Packets of one hint: the router's `HintStatistics`. */
struct cutline_hint_statistics {
    struct cutline_count departed; /* handed to the interface */
    struct cutline_count dropped;  /* dropped by the queue */
    cl_u64 waited;                 /* sum of the waits of those departed, ns */
    cl_u64 longest_wait;           /* the longest of these, ns */
};

/* Sieve's table of flows is in the inner map of `cutline_accounts`: `struct cl_set` of accounts.h. Of n sets, the last n * 3 / 20, rounded down, have no cells.
 * A cell counts as used if bit 15 of its `state` is set and the time since `at` (2^22 ns of CLOCK_MONOTONIC, modulo 2^16) is at most tau. The router's `load`
 * is the part of the cells that is. */

/* Value of `cutline_statistics` (an array by instance): the router's `Direction`. The gauges are those of the last packet, on its way in or out: no program
 * runs on an idle link, where a reader follows them by `latest`. The counters grow from the time at which the queueing discipline was
 * added. At any time received = sent + early + overflow + unsent + backlog. */
struct cutline_statistics {
    cl_u32 layout;             /* CUTLINE_LAYOUT once the queueing discipline is added */
    cl_u32 generation;         /* that of the configuration in use */
    cl_u32 refused_generation; /* that of the last configuration that was out of range; 0: none */
    cl_u32 running;            /* 1 from adding to removing, else 0 */
    cl_u64 since;              /* time at which it was added, ns of CLOCK_MONOTONIC */
    struct cutline_count received;
    struct cutline_count sent;
    struct cutline_count early;    /* dropped: by a probability */
    struct cutline_count overflow; /* dropped: the queue was full */
    struct cutline_count unsent;   /* dropped: the interface went down, or the queueing discipline was removed */
    struct cutline_count not_ip;   /* received, without an IP header */
    struct cutline_count marked;   /* 0 as long as a kernel gives no way to mark */
    struct cutline_count backlog;  /* a gauge; its bytes are without overhead */
    cl_u64 probability;            /* p of TSQ's law, 2^-60: a gauge */
    cl_u64 average;                /* average queue of Adaptive RED, 2^-20 packets: a gauge */
    cl_u64 max_p;                  /* its max_p, 2^-60: a gauge */
    cl_u64 target;                 /* its target, 2^-20 packets: a gauge */
    cl_u64 slipped;                /* time by which the schedule of shaping has slipped, ns */
    cl_u64 waits_sum;              /* sum of all waits, ns */
    cl_u64 waits[CUTLINE_WAITS];   /* packets that departed, by wait */
    struct cutline_hint_statistics hints[CUTLINE_HINTS]; /* by level - 1 */
    struct cutline_count below_fair_share; /* Sieve: received from flows below the fair share */
    struct cutline_count above_fair_share; /* Sieve: received from flows above it */
    cl_u64 fair_share_bps;                 /* Sieve: the fair share of a flow, bit/s: a gauge */
    cl_u64 latest;                         /* time at which the last packet came or left, ns of CLOCK_MONOTONIC; 0: none has come */
};

#endif
