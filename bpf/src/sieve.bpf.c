/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* Sieve as a queueing discipline: a share for each flow, with a link's rate. */
#include "kernel.bpf.h"

/* A packet that waits. The inner map of `cutline_slots` has one for each packet of the limit, and one more. */
struct cl_node {
    struct sk_buff __kptr *skb;
    cl_u64 times, origin, links; /* calendar.h has their parts */
};

_Static_assert(sizeof(struct cl_node) == 32, "docs/internals/kernel-queues.md has the memory of a packet");

typedef void *cl_nodes;
typedef void *cl_table;

struct cl_set;

CL_INLINE struct cl_node *cl_node(cl_nodes nodes, cl_u32 index) { return bpf_map_lookup_elem(nodes, &index); }
CL_INLINE struct cl_set *cl_set(cl_table table, cl_u32 index) { return bpf_map_lookup_elem(table, &index); }
CL_INLINE cl_u64 cl_random(void) { return (cl_u64)(bpf_get_prandom_u32() >> 11) << 32 | bpf_get_prandom_u32(); }

/* Sorting is long and seldom: it is a program part of its own, which finds the instance's maps again. So is finding a cell for a flow. */
int cl_resort_instance(__u32 instance, __u64 floor, __u64 range);
int cl_sort_instance(__u32 instance);
__u32 cl_move_in_instance(__u32 instance, __u64 now, __u32 id, __u64 floor);
int cl_visit_instance(__u32 instance, __u64 now, __u64 hash);
#define CL_RESORT(calendar, nodes, floor, range) cl_resort_instance((calendar)->instance, floor, range)
#define CL_MOVE_IN(accounts, table, now, id, floor) cl_move_in_instance((accounts)->instance, now, id, floor)
#define CL_VISIT(accounts, table, now, hash) cl_visit_instance((accounts)->instance, now, hash)
#define CL_SORT(sieve, nodes, table) cl_sort_instance((sieve)->calendar.instance)

#include "../include/cutline/sieve_leaf.h"

/* The only entry of the inner map of `cutline_states`. A loader reads the first two fields. */
struct cl_state {
    cl_u64 owner; /* the queueing discipline that the instance belongs to; 0: none */
    struct cutline_config config;
    struct cl_shaper shaper;
    struct cl_sieve sieve;
    cl_u32 arrived;    /* place of the account of the packet that arrived last */
    cl_u32 is_own_hit; /* 1 if the queue was full and has pushed out a packet of this account */
    struct cl_sieve_leaf own; /* below `mq` */
};

_Static_assert(__builtin_offsetof(struct cl_state, config) == 8, "the loader reads the configuration at this place");
/* The kernel allocates up to 32 KiB in powers of two. The rest is for the map itself: 296 B in Linux 7.3. */
_Static_assert(sizeof(struct cl_state) <= 8192 - 512, "the state takes twice the memory");
_Static_assert(sizeof(struct cl_account) == 20 && sizeof(struct cl_set) == 160, "docs/internals/kernel-queues.md has the memory of a flow");

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
    __type(value, struct cl_node);
} cutline_slot_template SEC(".maps");

struct cl_account_map {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_INNER_MAP);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct cl_set);
} cutline_account_template SEC(".maps");

/* By the instance of the first hardware queue. */
struct cl_shared_map {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct cl_sieve_shared);
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
    __array(values, struct cl_account_map);
} cutline_accounts SEC(".maps");

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
CL_INLINE struct cl_sieve_shared *cl_shared(struct cl_state *state)
{
    __u32 group = state->own.leaf.group, first = 0;
    void *shared = state->own.leaf.queues ? bpf_map_lookup_elem(&cutline_shared, &group) : 0;

    return shared ? bpf_map_lookup_elem(shared, &first) : 0;
}

CL_SEPARATE int cl_resort_instance(__u32 instance, __u64 floor, __u64 range)
{
    void *nodes = bpf_map_lookup_elem(&cutline_slots, &instance);
    struct cl_state *state = cl_state(instance);

    return state && nodes ? cl_resort(&state->sieve.calendar, nodes, floor, range) : 0;
}

CL_SEPARATE int cl_sort_instance(__u32 instance)
{
    void *nodes = bpf_map_lookup_elem(&cutline_slots, &instance);
    void *table = bpf_map_lookup_elem(&cutline_accounts, &instance);
    struct cl_state *state = cl_state(instance);

    return state && nodes && table ? cl_sieve_sort(&state->sieve, nodes, table) : 0;
}

CL_SEPARATE __u32 cl_move_in_instance(__u32 instance, __u64 now, __u32 id, __u64 floor)
{
    void *table = bpf_map_lookup_elem(&cutline_accounts, &instance);
    struct cl_state *state = cl_state(instance);

    return state && table ? cl_move_in(&state->sieve.accounts, table, now, id, floor) : 0;
}

CL_SEPARATE int cl_visit_instance(__u32 instance, __u64 now, __u64 hash)
{
    void *table = bpf_map_lookup_elem(&cutline_accounts, &instance);
    struct cl_state *state = cl_state(instance);

    return state && table ? cl_visit(&state->sieve.accounts, table, now, hash) : 0;
}

/* Takes over a configuration that is in range. */
CL_SEPARATE int cl_configure(__u32 instance, int is_first)
{
    struct cutline_statistics *statistics = bpf_map_lookup_elem(&cutline_statistics, &instance);
    struct cutline_config *config = bpf_map_lookup_elem(&cutline_configs, &instance);
    void *nodes = bpf_map_lookup_elem(&cutline_slots, &instance);
    void *table = bpf_map_lookup_elem(&cutline_accounts, &instance);
    struct cl_state *state = cl_state(instance);
    __u32 generation;

    if (!state || !config || !statistics || !nodes || !table)
        return -CL_ENOENT;
    generation = config->generation;
    if (!cl_config_is_valid(config) || !cl_sieve_is_valid(config)) {
        statistics->refused_generation = generation;
        return -CL_EINVAL;
    }
    if (is_first)
        state->config = *config;
    else
        cl_sieve_change(&state->sieve, nodes, table, &state->config, config, bpf_ktime_get_ns());
    state->config.generation = generation;
    statistics->generation = generation;
    return 0;
}

/* Begins the arrival of a packet in a leaf. */
CL_SEPARATE int cl_enter(__u32 instance, __u64 now)
{
    void *nodes = bpf_map_lookup_elem(&cutline_slots, &instance);
    void *table = bpf_map_lookup_elem(&cutline_accounts, &instance);
    struct cl_state *state = cl_state(instance);
    struct cl_sieve_shared *shared = state ? cl_shared(state) : 0;

    if (!shared || !nodes || !table)
        return 0;
    cl_sieve_enter(&state->sieve, nodes, table, shared, &state->own, &state->config, now);
    cl_begin_link(&shared->link, &state->own.leaf, now);
    cl_sieve_room(&state->sieve, nodes, shared, &state->own, &state->config);
    return 0;
}

/* Ends the arrival or the departure of a packet in a leaf. */
CL_SEPARATE int cl_leave(__u32 instance)
{
    void *nodes = bpf_map_lookup_elem(&cutline_slots, &instance);
    struct cl_state *state = cl_state(instance);
    struct cl_sieve_shared *shared = state ? cl_shared(state) : 0;

    if (shared && nodes)
        cl_sieve_leave(&state->sieve, nodes, shared, &state->own);
    return 0;
}

/* Begins the departure of the next packet of a leaf. Returns the time at which it starts; 0 if the leaf has to ask again at `wake`. */
CL_SEPARATE __u64 cl_turn(__u32 instance, __u64 now)
{
    struct cutline_statistics *statistics = bpf_map_lookup_elem(&cutline_statistics, &instance);
    struct cutline_config *config = bpf_map_lookup_elem(&cutline_configs, &instance);
    void *nodes = bpf_map_lookup_elem(&cutline_slots, &instance);
    void *table = bpf_map_lookup_elem(&cutline_accounts, &instance);
    struct cl_state *state = cl_state(instance);
    struct cl_sieve_shared *shared = state ? cl_shared(state) : 0;

    if (state)
        state->own.leaf.wake = now + CL_PATIENCE;
    if (!shared || !nodes || !table || !config || !statistics)
        return 0;
    if (config->generation != state->config.generation && config->generation != statistics->refused_generation)
        cl_configure(instance, 0);
    return cl_sieve_turn(&state->sieve, nodes, table, shared, &state->own, &state->config, now, &statistics->slipped);
}

CL_SEPARATE int cl_correct(__u32 instance, __u64 time)
{
    struct cl_state *state = cl_state(instance);
    struct cl_sieve_shared *shared = state ? cl_shared(state) : 0;

    if (shared)
        cl_sieve_correct(shared, &state->own, &state->config, time);
    return 0;
}

/* Takes a packet out of its node, which is free after that. */
CL_INLINE struct sk_buff *cl_take_out(struct cl_state *state, struct cl_node *node, __u32 index)
{
    struct sk_buff *skb = bpf_kptr_xchg(&node->skb, 0);

    cl_give_node_back(&state->sieve.calendar, node, index);
    return skb;
}

/* Drops the packets that a full queue pushes out, and notes whether one of them is of the account of the packet that has just arrived. */
CL_INLINE void cl_push_out(struct cl_state *state, struct cutline_statistics *statistics, void *nodes, void *table, struct Qdisc *sch,
                           struct bpf_sk_buff_ptr *to_free)
{
    while (CL_CAN_LOOP) {
        __u32 index = CL_NIL, length, level;
        struct cl_node *node = cl_sieve_push_out(&state->sieve, nodes, table, &state->config, &index);
        struct sk_buff *skb;

        if (!node)
            break;
        level = cl_node_level(node);
        if (cl_node_place(node) == state->arrived)
            state->is_own_hit = 1;
        skb = cl_take_out(state, node, index);
        length = skb ? cl_length(skb) : 0;
        cl_count(&statistics->overflow, length);
        cl_uncount(&statistics->backlog, length);
        cl_count(&cl_hint(statistics, level)->dropped, length);
        sch->q.qlen--;
        sch->qstats.backlog -= length;
        sch->qstats.drops++;
        if (skb)
            bpf_qdisc_skb_drop(skb, to_free);
    }
}

SEC("struct_ops")
int BPF_PROG(cutline_sieve_enqueue, struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free)
{
    __u32 instance = cl_instance(sch), length = cl_length(skb), size, level, index, id;
    struct cutline_statistics *statistics = bpf_map_lookup_elem(&cutline_statistics, &instance);
    struct cutline_config *config = bpf_map_lookup_elem(&cutline_configs, &instance);
    void *nodes = bpf_map_lookup_elem(&cutline_slots, &instance);
    void *table = bpf_map_lookup_elem(&cutline_accounts, &instance);
    struct cl_state *state = cl_state(instance);
    __u64 now = bpf_ktime_get_ns();
    struct cl_arrival arrival;
    struct cl_node *node;
    struct sk_buff *old;
    int octet, verdict;

    if (!state || !config || !statistics || !nodes || !table || state->owner != (__u64)sch)
        goto drop;
    if (config->generation != state->config.generation && config->generation != statistics->refused_generation)
        cl_configure(instance, 0);
    if (state->own.leaf.queues)
        cl_enter(instance, now);
    octet = cl_traffic_class(skb);
    level = state->config.hints[octet < 0 ? 0 : (octet >> 2 & 63)];
    size = cl_size(&state->config, length, cl_segments(skb));
    id = cl_mix(bpf_skb_get_hash(skb) ^ state->config.salt);
    cl_count(&statistics->received, length);
    statistics->latest = now;
    if (octet < 0)
        cl_count(&statistics->not_ip, length);
    if (!state->sieve.backlog.packets)
        cl_shaper_begin(&state->shaper, now);
    cl_sieve_arrive(&state->sieve, nodes, table, &state->config, now, level, size, id, &arrival);
    cl_count(arrival.waits ? &statistics->above_fair_share : &statistics->below_fair_share, length);
    statistics->fair_share_bps = cl_sieve_share(&state->sieve);
    verdict = cl_sieve_verdict(&arrival, arrival.p ? (__u64)bpf_get_prandom_u32() << 28 : 0);
    if (verdict == 1) {
        cl_sieve_warn(&state->config, now, &arrival);
        cl_count(&statistics->early, length);
        goto drop_of_hint;
    }
    index = CL_NIL;
    node = verdict ? 0 : cl_take_node(&state->sieve.calendar, nodes, &index);
    if (!node) {
        cl_count(&statistics->overflow, length);
        goto drop_of_hint;
    }
    cl_sieve_push(&state->sieve, nodes, now, level, &arrival, node, index);
    state->arrived = arrival.place;
    state->is_own_hit = 0;
    cl_count(&statistics->backlog, length);
    sch->q.qlen++;
    sch->qstats.backlog += length;
    old = bpf_kptr_xchg(&node->skb, skb);
    if (old)
        bpf_kfree_skb(old);
    cl_push_out(state, statistics, nodes, table, sch, to_free);
    if (state->own.leaf.queues)
        cl_leave(instance);
    /* As sch_fq_codel: a sender on this host learns at once that its flow has lost a packet. */
    return state->is_own_hit ? CL_XMIT_CN : CL_XMIT_SUCCESS;

drop_of_hint:
    cl_count(&cl_hint(statistics, level)->dropped, length);
    if (state->own.leaf.queues)
        cl_leave(instance);
drop:
    sch->qstats.drops++;
    bpf_qdisc_skb_drop(skb, to_free);
    return CL_XMIT_DROP;
}

SEC("struct_ops")
struct sk_buff *BPF_PROG(cutline_sieve_dequeue, struct Qdisc *sch)
{
    __u32 instance = cl_instance(sch), index = CL_NIL, level, length;
    struct cutline_statistics *statistics;
    struct cl_state *state;
    struct sk_buff *skb;
    struct cl_node *node;
    void *nodes, *table;
    __u64 now, at, wait;

    /* The kernel asks again after each packet. */
    if (!sch->q.qlen)
        return 0;
    state = cl_state(instance);
    if (!state || state->owner != (__u64)sch || !state->sieve.backlog.packets)
        return 0;
    now = bpf_ktime_get_ns();
    at = now;
    /* Most calls find the link busy: the kernel also asks after each packet that comes. */
    if (!state->own.leaf.queues && state->config.shape_bps && state->shaper.free_at > now) {
        bpf_qdisc_watchdog_schedule(sch, state->shaper.free_at, 0);
        return 0;
    }
    statistics = bpf_map_lookup_elem(&cutline_statistics, &instance);
    nodes = bpf_map_lookup_elem(&cutline_slots, &instance);
    table = bpf_map_lookup_elem(&cutline_accounts, &instance);
    if (!statistics || !nodes || !table)
        return 0;
    if (state->own.leaf.queues) {
        at = cl_turn(instance, now);
        if (!at) {
            bpf_qdisc_watchdog_schedule(sch, state->own.leaf.wake, 0);
            return 0;
        }
    } else if (state->config.shape_bps) {
        at = cl_shaper_start(&state->shaper, &state->config, now, &statistics->slipped);
    }
    node = cl_sieve_pop(&state->sieve, nodes, table, &state->config, now, &index);
    statistics->fair_share_bps = cl_sieve_share(&state->sieve);
    statistics->latest = now;
    if (!node)
        return 0;
    state->shaper.free_at = at + cl_drain(state->sieve.byte_time, cl_node_size(node));
    wait = cl_node_waited(node, at);
    level = cl_node_level(node);
    if (state->own.leaf.queues && state->shaper.free_at != at + state->own.time)
        cl_correct(instance, state->shaper.free_at - at);
    skb = cl_take_out(state, node, index);
    length = skb ? cl_length(skb) : 0;
    cl_depart(statistics, level, length, wait);
    sch->q.qlen--;
    sch->qstats.backlog -= length;
    if (state->own.leaf.queues)
        cl_leave(instance);
    if (!skb)
        return 0;
    bpf_qdisc_bstats_update(sch, skb);
    return skb;
}

/* Frees what waits. */
CL_SEPARATE int cl_flush(__u32 instance)
{
    struct cutline_statistics *statistics = bpf_map_lookup_elem(&cutline_statistics, &instance);
    void *nodes = bpf_map_lookup_elem(&cutline_slots, &instance);
    void *table = bpf_map_lookup_elem(&cutline_accounts, &instance);
    struct cl_state *state = cl_state(instance);
    struct cl_sieve_shared *shared;
    struct cl_node *node;
    struct sk_buff *skb;

    if (!state || !statistics || !nodes || !table)
        return 0;
    for (__u32 i = 0; i < state->sieve.calendar.fresh && CL_CAN_LOOP; i++) {
        node = cl_node(nodes, i);
        if (!node)
            break;
        skb = bpf_kptr_xchg(&node->skb, 0);
        if (!skb)
            continue;
        cl_count(&statistics->unsent, cl_length(skb));
        cl_uncount(&statistics->backlog, cl_length(skb));
        bpf_kfree_skb(skb);
    }
    state->shaper.free_at = bpf_ktime_get_ns();
    state->sieve.calendar.instance = state->sieve.accounts.instance = instance;
    cl_sieve_reset(&state->sieve, nodes, table, &state->config, state->shaper.free_at);
    shared = cl_shared(state);
    if (shared)
        cl_forget_leaf(&shared->link, &state->own.leaf);
    return 0;
}

SEC("struct_ops")
int BPF_PROG(cutline_sieve_init, struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
    struct cutline_statistics *statistics;
    struct cl_state *state;
    struct cl_seat seat;
    __u32 instance;
    int error;

    /* Without a use like this, the compiler leaves the structures out of the types by which the loader finds their sizes. */
    if (!bpf_core_type_id_local(struct cl_node) || !bpf_core_type_id_local(struct cl_set) || !bpf_core_type_id_local(struct cl_sieve_shared))
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
    if (seat.queues && !cl_shared(state))
        return -CL_ENOENT;
    error = cl_configure(instance, 1);
    if (error)
        return error;
    cl_flush(instance);
    cl_begin(statistics, state->config.generation);
    state->owner = (__u64)sch;
    sch->limit = instance;
    return 0;
}

SEC("struct_ops")
void BPF_PROG(cutline_sieve_reset, struct Qdisc *sch)
{
    __u32 instance = cl_instance(sch);
    struct cl_state *state = cl_state(instance);

    if (state && state->owner == (__u64)sch)
        cl_flush(instance);
}

SEC("struct_ops")
void BPF_PROG(cutline_sieve_destroy, struct Qdisc *sch)
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
struct Qdisc_ops cutline_sieve = {
    .enqueue = (void *)cutline_sieve_enqueue,
    .dequeue = (void *)cutline_sieve_dequeue,
    .init = (void *)cutline_sieve_init,
    .reset = (void *)cutline_sieve_reset,
    .destroy = (void *)cutline_sieve_destroy,
    .id = CUTLINE_SIEVE_NAME,
};

char _license[] SEC("license") = "Dual MIT/GPL";
