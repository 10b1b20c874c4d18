/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* TSQ as a queueing discipline: lanes by hint over PI, PI2 or RED-Worcester, with a link's rate. */
#include "kernel.bpf.h"

/* A packet that waits. The inner map of `cutline_slots` has one for each packet of the limit. */
struct cl_slot {
    struct sk_buff __kptr *skb;
    cl_u64 weight;       /* w, ns */
    cl_u64 number;       /* packets that came before it */
    cl_u64 bytes_before; /* bytes that entered its lane before it */
    cl_u64 stamp;        /* its arrival and its hint (fixed.h) */
    cl_u32 size;         /* bytes on the link */
    cl_u32 next;         /* slot of the next packet of the lane, or of the next free slot */
};

_Static_assert(sizeof(struct cl_slot) == 48, "docs/internals/kernel-queues.md has the memory of a packet");

typedef void *cl_slots;

CL_INLINE struct cl_slot *cl_slot(cl_slots slots, cl_u32 index) { return bpf_map_lookup_elem(slots, &index); }

/* The search for q' is long and seldom: it is a program part of its own, which finds the instance's maps again. */
cl_u64 cl_q_prime_in_instance(__u32 instance, __u32 lane, __u64 w, __u64 in_service);
#define CL_Q_PRIME(tsq, slots, point) cl_q_prime_in_instance((tsq)->instance, (point)->lane, (point)->weight, (point)->in_service)
cl_u64 cl_elsewhere(__u32 instance, __u64 w);
#define CL_ELSEWHERE(tsq, w) ((tsq)->is_leaf ? cl_elsewhere((tsq)->instance, w) : 0)

#include "../include/cutline/tsq_leaf.h"

/* The only entry of the inner map of `cutline_states`. A loader reads the first two fields. */
struct cl_state {
    cl_u64 owner; /* the queueing discipline that the instance belongs to; 0: none */
    struct cutline_config config;
    struct cl_shaper shaper;
    struct cl_tsq tsq;
    struct cl_tsq_leaf own; /* below `mq` */
};

_Static_assert(__builtin_offsetof(struct cl_state, config) == 8, "the loader reads the configuration at this place");
/* The kernel allocates up to 32 KiB in powers of two. The rest is for the map itself: 296 B in Linux 7.3. */
_Static_assert(sizeof(struct cl_state) <= 8192 - 512, "the state takes twice the memory");

struct cl_states {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct cl_state);
} cutline_state_template SEC(".maps");

struct cl_slot_map {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_INNER_MAP);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct cl_slot);
} cutline_slot_template SEC(".maps");

/* By the instance of the first hardware queue. */
struct cl_shared_map {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct cl_tsq_shared);
} cutline_shared_template SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, CL_INSTANCES);
    __type(key, __u32);
    __array(values, struct cl_states);
} cutline_states SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, CL_INSTANCES);
    __type(key, __u32);
    __array(values, struct cl_slot_map);
} cutline_slots SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, CL_INSTANCES);
    __type(key, __u32);
    __array(values, struct cl_shared_map);
} cutline_shared SEC(".maps");

CL_INLINE struct cl_state *cl_state(__u32 instance)
{
    void *states = bpf_map_lookup_elem(&cutline_states, &instance);
    __u32 first = 0;

    return states ? bpf_map_lookup_elem(states, &first) : 0;
}

/* Returns what the leaves of an interface share; NULL for a queue that is alone. */
CL_INLINE struct cl_tsq_shared *cl_shared(struct cl_state *state)
{
    __u32 group = state->own.leaf.group, first = 0;
    void *shared = state->own.leaf.queues ? bpf_map_lookup_elem(&cutline_shared, &group) : 0;

    return shared ? bpf_map_lookup_elem(shared, &first) : 0;
}

CL_SEPARATE cl_u64 cl_elsewhere(__u32 instance, __u64 w)
{
    struct cl_state *state = cl_state(instance);
    struct cl_tsq_shared *shared = state ? cl_shared(state) : 0;

    return shared ? cl_tsq_elsewhere(shared, &state->own, w) : 0;
}

CL_SEPARATE cl_u64 cl_q_prime_in_instance(__u32 instance, __u32 lane, __u64 w, __u64 in_service)
{
    struct cl_point point = { .weight = w, .in_service = in_service, .lane = lane };
    void *slots = bpf_map_lookup_elem(&cutline_slots, &instance);
    struct cl_state *state = cl_state(instance);

    return state && slots ? cl_tsq_q_prime(&state->tsq, slots, &point) : in_service;
}

/* Takes over a configuration that is in range. */
CL_SEPARATE int cl_configure(__u32 instance)
{
    struct cutline_statistics *statistics = bpf_map_lookup_elem(&cutline_statistics, &instance);
    struct cutline_config *config = bpf_map_lookup_elem(&cutline_configs, &instance);
    struct cl_state *state = cl_state(instance);
    __u32 generation;

    if (!state || !config || !statistics)
        return -CL_ENOENT;
    generation = config->generation;
    if (!cl_config_is_valid(config) || !cl_tsq_is_valid(config)) {
        statistics->refused_generation = generation;
        return -CL_EINVAL;
    }
    cl_tsq_change(&state->tsq, &state->config, config, bpf_ktime_get_ns());
    state->config.generation = generation;
    statistics->generation = generation;
    return 0;
}

/* Begins the arrival of a packet in a leaf. */
CL_SEPARATE int cl_enter(__u32 instance, __u64 now)
{
    struct cl_state *state = cl_state(instance);
    struct cl_tsq_shared *shared = state ? cl_shared(state) : 0;

    if (!shared)
        return 0;
    cl_tsq_enter(&state->tsq, shared, &state->own, &state->config, now);
    cl_begin_link(&shared->link, &state->own.leaf, now);
    return 0;
}

/* Ends the arrival or the departure of a packet in a leaf. */
CL_SEPARATE int cl_leave(__u32 instance, __u32 lane)
{
    struct cl_state *state = cl_state(instance);
    struct cl_tsq_shared *shared = state ? cl_shared(state) : 0;

    if (shared)
        cl_tsq_leave(&state->tsq, shared, &state->own, lane);
    return 0;
}

/* Begins the departure of the next packet of a leaf. Returns the time at which it starts; 0 if the leaf has to ask again at `wake`. */
CL_SEPARATE __u64 cl_turn(__u32 instance, __u64 now)
{
    struct cutline_statistics *statistics = bpf_map_lookup_elem(&cutline_statistics, &instance);
    struct cutline_config *config = bpf_map_lookup_elem(&cutline_configs, &instance);
    void *slots = bpf_map_lookup_elem(&cutline_slots, &instance);
    struct cl_state *state = cl_state(instance);
    struct cl_tsq_shared *shared = state ? cl_shared(state) : 0;

    if (state)
        state->own.leaf.wake = now + CL_PATIENCE;
    if (!shared || !slots || !config || !statistics)
        return 0;
    if (config->generation != state->config.generation && config->generation != statistics->refused_generation)
        cl_configure(instance);
    return cl_tsq_turn(&state->tsq, slots, shared, &state->own, &state->config, now, &statistics->slipped);
}

SEC("struct_ops")
int BPF_PROG(cutline_tsq_enqueue, struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free)
{
    __u32 instance = cl_instance(sch), length = cl_length(skb), size, level, index;
    struct cutline_statistics *statistics = bpf_map_lookup_elem(&cutline_statistics, &instance);
    struct cutline_config *config = bpf_map_lookup_elem(&cutline_configs, &instance);
    void *slots = bpf_map_lookup_elem(&cutline_slots, &instance);
    struct cl_state *state = cl_state(instance);
    __u64 now = bpf_ktime_get_ns();
    enum cl_verdict verdict;
    struct cl_point point;
    struct sk_buff *old;
    struct cl_slot *slot;
    int octet;

    if (!state || !config || !statistics || !slots || state->owner != (__u64)sch)
        goto drop;
    if (config->generation != state->config.generation && config->generation != statistics->refused_generation)
        cl_configure(instance);
    if (state->own.leaf.queues)
        cl_enter(instance, now);
    octet = cl_traffic_class(skb);
    level = state->config.hints[octet < 0 ? 0 : (octet >> 2 & 63)];
    size = cl_size(&state->config, length, cl_segments(skb));
    cl_count(&statistics->received, length);
    statistics->latest = now;
    if (octet < 0)
        cl_count(&statistics->not_ip, length);
    if (!state->tsq.backlog.packets)
        cl_shaper_begin(&state->shaper, now);
    verdict = cl_tsq_judge(&state->tsq, slots, &state->config, now, level, size, (__u64)bpf_get_prandom_u32() << 28, &point);
    statistics->probability = cl_law_p(&state->tsq.law, &state->config);
    if (state->config.law == CUTLINE_LAW_RED_WORCESTER) {
        statistics->average = state->tsq.law.red.avg >> (CL_AVERAGE_BITS - CUTLINE_PACKET_BITS);
        statistics->max_p = state->tsq.law.red.max_p;
        statistics->target = state->tsq.law.red.target >> (CL_AVERAGE_BITS - CUTLINE_PACKET_BITS);
    }
    if (verdict == CL_EARLY) {
        cl_count(&statistics->early, length);
        goto drop_of_hint;
    }
    index = CL_NIL;
    slot = 0;
    if (verdict == CL_PASS) {
        index = cl_tsq_take(&state->tsq, slots);
        slot = cl_slot(slots, index);
    }
    if (!slot) {
        cl_count(&statistics->overflow, length);
        goto drop_of_hint;
    }
    cl_tsq_push(&state->tsq, slots, cl_stamp(now, level), &point, slot, index, size);
    cl_count(&statistics->backlog, length);
    sch->q.qlen++;
    sch->qstats.backlog += length;
    old = bpf_kptr_xchg(&slot->skb, skb);
    if (old)
        bpf_kfree_skb(old);
    if (state->own.leaf.queues)
        cl_leave(instance, point.lane);
    return CL_XMIT_SUCCESS;

drop_of_hint:
    cl_count(&cl_hint(statistics, level)->dropped, length);
    if (state->own.leaf.queues)
        cl_leave(instance, 0);
drop:
    sch->qstats.drops++;
    bpf_qdisc_skb_drop(skb, to_free);
    return CL_XMIT_DROP;
}

SEC("struct_ops")
struct sk_buff *BPF_PROG(cutline_tsq_dequeue, struct Qdisc *sch)
{
    __u32 instance = cl_instance(sch), index, lane, level, length;
    struct cutline_statistics *statistics;
    struct cl_state *state;
    struct cl_slot *slot;
    __u64 now, at, wait;
    struct sk_buff *skb;
    void *slots;

    /* The kernel asks again after each packet. */
    if (!sch->q.qlen)
        return 0;
    statistics = bpf_map_lookup_elem(&cutline_statistics, &instance);
    slots = bpf_map_lookup_elem(&cutline_slots, &instance);
    state = cl_state(instance);
    if (!state || !statistics || !slots || state->owner != (__u64)sch || !state->tsq.backlog.packets)
        return 0;
    now = bpf_ktime_get_ns();
    at = now;
    if (state->own.leaf.queues) {
        at = cl_turn(instance, now);
        if (!at) {
            bpf_qdisc_watchdog_schedule(sch, state->own.leaf.wake, 0);
            return 0;
        }
    } else if (state->config.shape_bps) {
        if (state->shaper.free_at > now) {
            bpf_qdisc_watchdog_schedule(sch, state->shaper.free_at, 0);
            return 0;
        }
        at = cl_shaper_start(&state->shaper, &state->config, now, &statistics->slipped);
    }
    cl_law_advance(&state->tsq.law, &state->config, state->tsq.byte_time, now, &state->tsq.backlog);
    statistics->probability = cl_law_p(&state->tsq.law, &state->config);
    statistics->latest = now;
    lane = cl_tsq_next(&state->tsq);
    index = cl_tsq_pop(&state->tsq, slots, lane);
    slot = cl_slot(slots, index);
    if (!slot)
        return 0;
    /* Without shaping, the backlog of the interface is bounded by `burst`. */
    if (!state->config.shape_bps && !state->own.leaf.queues)
        at = cl_min(cl_max(state->shaper.free_at, now), now + state->config.burst);
    cl_tsq_serve(&state->tsq, &state->config, at, slot->size);
    state->shaper.free_at = state->tsq.service_ends;
    wait = cl_waited(slot->stamp, state->config.shape_bps ? at : now);
    level = cl_stamp_level(slot->stamp);
    skb = bpf_kptr_xchg(&slot->skb, 0);
    length = skb ? cl_length(skb) : 0;
    cl_tsq_give_back(&state->tsq, slot, index);
    cl_depart(statistics, level, length, wait);
    sch->q.qlen--;
    sch->qstats.backlog -= length;
    if (state->own.leaf.queues)
        cl_leave(instance, lane);
    if (!skb)
        return 0;
    bpf_qdisc_bstats_update(sch, skb);
    return skb;
}

/* Frees what waits. */
CL_SEPARATE int cl_flush(__u32 instance)
{
    struct cutline_statistics *statistics = bpf_map_lookup_elem(&cutline_statistics, &instance);
    void *slots = bpf_map_lookup_elem(&cutline_slots, &instance);
    struct cl_state *state = cl_state(instance);
    struct cl_tsq_shared *shared;
    struct sk_buff *skb;
    struct cl_slot *slot;

    if (!state || !statistics || !slots)
        return 0;
    for (__u32 i = 0; i < state->tsq.fresh && CL_CAN_LOOP; i++) {
        slot = cl_slot(slots, i);
        if (!slot)
            break;
        skb = bpf_kptr_xchg(&slot->skb, 0);
        if (!skb)
            continue;
        cl_count(&statistics->unsent, cl_length(skb));
        cl_uncount(&statistics->backlog, cl_length(skb));
        bpf_kfree_skb(skb);
    }
    state->shaper.free_at = bpf_ktime_get_ns();
    cl_tsq_reset(&state->tsq, &state->config, state->shaper.free_at);
    shared = cl_shared(state);
    if (shared)
        cl_tsq_forget(shared, &state->own);
    return 0;
}

SEC("struct_ops")
int BPF_PROG(cutline_tsq_init, struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
    struct cutline_statistics *statistics;
    struct cl_state *state;
    struct cl_seat seat;
    __u32 instance;
    int error;

    /* Without a use like this, the compiler leaves the structures out of the types by which the loader finds their sizes. */
    if (!bpf_core_type_id_local(struct cl_slot) || !bpf_core_type_id_local(struct cl_tsq_shared))
        return -CL_EINVAL;
    error = cl_find_seat(sch, &seat);
    if (error)
        return error;
    instance = seat.instance;
    statistics = bpf_map_lookup_elem(&cutline_statistics, &instance);
    state = cl_state(instance);
    if (!state || !statistics)
        return -CL_ENOENT;
    if (state->owner)
        return -CL_EBUSY;
    state->own.leaf.queues = seat.queues;
    state->own.leaf.queue = seat.queue;
    state->own.leaf.group = seat.group;
    state->tsq.instance = instance;
    state->tsq.is_leaf = seat.queues > 0;
    if (seat.queues && !cl_shared(state))
        return -CL_ENOENT;
    error = cl_configure(instance);
    if (error)
        return error;
    cl_flush(instance);
    cl_begin(statistics, state->config.generation);
    state->owner = (__u64)sch;
    sch->limit = instance;
    return 0;
}

SEC("struct_ops")
void BPF_PROG(cutline_tsq_reset, struct Qdisc *sch)
{
    __u32 instance = cl_instance(sch);
    struct cl_state *state = cl_state(instance);

    if (state && state->owner == (__u64)sch)
        cl_flush(instance);
}

SEC("struct_ops")
void BPF_PROG(cutline_tsq_destroy, struct Qdisc *sch)
{
    __u32 instance = cl_instance(sch);
    struct cutline_statistics *statistics = bpf_map_lookup_elem(&cutline_statistics, &instance);
    struct cl_state *state = cl_state(instance);

    /* It is called also where adding failed. */
    if (!state || !statistics || state->owner != (__u64)sch)
        return;
    cl_flush(instance);
    state->owner = 0;
    statistics->running = 0;
}

SEC(".struct_ops.link")
struct Qdisc_ops cutline_tsq = {
    .enqueue = (void *)cutline_tsq_enqueue,
    .dequeue = (void *)cutline_tsq_dequeue,
    .init = (void *)cutline_tsq_init,
    .reset = (void *)cutline_tsq_reset,
    .destroy = (void *)cutline_tsq_destroy,
    .id = CUTLINE_TSQ_NAME,
};

char _license[] SEC("license") = "Dual MIT/GPL";
