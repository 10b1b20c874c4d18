/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* Common part of TSQ and Sieve in the kernel: types, maps, packets, statistics. */
#ifndef CUTLINE_KERNEL_BPF_H
#define CUTLINE_KERNEL_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "../include/cutline/shaper.h"

/* True until the kernel has had enough of a loop. */
#define CL_CAN_LOOP                                                      \
    ({                                                                   \
        __label__ cl_break, cl_continue;                                 \
        int cl_can = 1;                                                  \
        asm volatile goto("may_goto %l[cl_break]" : : : : cl_break);     \
        goto cl_continue;                                                \
    cl_break:                                                            \
        cl_can = 0;                                                      \
    cl_continue:;                                                        \
        cl_can;                                                          \
    })

#define CL_XMIT_SUCCESS 0
#define CL_XMIT_DROP 1
/* The packet waits, and another one of its flow was dropped. */
#define CL_XMIT_CN 2
#define CL_EINVAL 22
#define CL_ENOENT 2
#define CL_EBUSY 16
#define CL_IPV4 0x0800
#define CL_IPV6 0x86dd
#define CL_VLAN 0x8100
#define CL_SERVICE_VLAN 0x88a8
#define CL_ETHERNET 14
/* Parent of a queueing discipline at the root. */
#define CL_ROOT 0xffffffff
/* SKB_GSO_TCPV4 and SKB_GSO_TCPV6. */
#define CL_GSO_TCP 0x11
/* SKB_GSO_DODGY: the number of segments is from outside of the kernel, such as from a virtual machine, or missing. */
#define CL_GSO_DODGY 2

/* Instances, unless the loader sets another number. */
#define CL_INSTANCES 64

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, CL_INSTANCES);
    __type(key, struct cutline_interface);
    __type(value, struct cutline_assignment);
} cutline_interfaces SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, CL_INSTANCES);
    __type(key, __u32);
    __type(value, struct cutline_config);
} cutline_configs SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, CL_INSTANCES);
    __type(key, __u32);
    __type(value, struct cutline_statistics);
} cutline_statistics SEC(".maps");

/* The instance that a queueing discipline belongs to. It is in the only word of a queueing discipline that a program may write
 * and the kernel does not read. */
CL_INLINE __u32 cl_instance(struct Qdisc *sch) { return sch->limit; }

/* Returns the frame's bytes, of all its segments with their headers. */
CL_INLINE __u32 cl_length(struct sk_buff *skb) { return ((struct qdisc_skb_cb *)skb->cb)->pkt_len; }

/* Returns the number of segments that the interface will make of a packet. Where no number can be trusted, it follows from the length, as the kernel
 * finds the bytes of all segments. */
CL_INLINE __u32 cl_segments(struct sk_buff *skb)
{
    struct skb_shared_info *shared = bpf_core_cast(skb->head + (__u64)skb->end, struct skb_shared_info);
    __u32 segments, most = shared->gso_size, type, headers = 0;
    __u64 begin, transport, end;
    __u8 *octets;

    if (!most)
        return 1;
    segments = shared->gso_segs;
    type = shared->gso_type;
    if (segments && !(type & CL_GSO_DODGY))
        return segments;
    begin = (__u64)(skb->data - skb->head);
    end = begin + skb->len - skb->data_len;
    transport = skb->transport_header;
    if (transport >= begin && transport + 20 <= end) {
        octets = (void *)bpf_core_cast(skb->head + transport, struct tcphdr);
        headers = transport - begin + (type & CL_GSO_TCP ? (octets[12] >> 4) * 4 : 8);
    }
    return cl_segments_of(skb->len, headers, most);
}

/* Returns the traffic class octet of a packet, or -1 if it is not IP. */
CL_INLINE int cl_traffic_class(struct sk_buff *skb)
{
    __u64 mac = skb->mac_header, network = skb->network_header, at = mac + CL_ETHERNET - 2;
    __u64 end = (__u64)(skb->data - skb->head) + skb->len - skb->data_len;
    __u16 protocol = bpf_ntohs(skb->protocol);
    struct ipv6hdr *ip;
    __u8 *octets;

    if (protocol == CL_VLAN || protocol == CL_SERVICE_VLAN) {
        /* Tags in the frame: two at most. */
        octets = 0;
        for (int i = 0; i < 2 && (protocol == CL_VLAN || protocol == CL_SERVICE_VLAN); i++) {
            struct vlan_hdr *tag;

            at += 4;
            if (at + 2 > end)
                return -1;
            tag = bpf_core_cast(skb->head + at - 2, struct vlan_hdr);
            protocol = bpf_ntohs(tag->h_vlan_encapsulated_proto);
        }
        network = at + 2;
    }
    if (network + 20 > end)
        return -1;
    ip = bpf_core_cast(skb->head + network, struct ipv6hdr);
    octets = (void *)ip;
    if (protocol == CL_IPV4 && octets[0] >> 4 == 4)
        return octets[1];
    if (protocol == CL_IPV6 && octets[0] >> 4 == 6)
        return (octets[0] & 15) << 4 | octets[1] >> 4;
    return -1;
}

CL_INLINE void cl_count(struct cutline_count *count, __u32 length)
{
    count->packets++;
    count->bytes += length;
}

CL_INLINE void cl_uncount(struct cutline_count *count, __u32 length)
{
    count->packets--;
    count->bytes -= length;
}

CL_INLINE struct cutline_hint_statistics *cl_hint(struct cutline_statistics *statistics, __u32 level)
{
    __u32 i = level - 1;

    i &= CUTLINE_HINTS - 1;
    CL_OPAQUE(i);
    i &= CUTLINE_HINTS - 1;
    return &statistics->hints[i];
}

/* Counts a packet that leaves the queue after a wait, ns. */
CL_INLINE void cl_depart(struct cutline_statistics *statistics, __u32 level, __u32 length, __u64 wait)
{
    struct cutline_hint_statistics *hint = cl_hint(statistics, level);
    __u64 us = wait / 1000;
    __u32 bucket = 0;

    cl_count(&statistics->sent, length);
    cl_uncount(&statistics->backlog, length);
    cl_count(&hint->departed, length);
    hint->waited += wait;
    hint->longest_wait = cl_max(hint->longest_wait, wait);
    statistics->waits_sum += wait;
    /* The number of bits of the wait. */
    if (us >> 24)
        us = 1 << 24;
    if (us >> 16) { bucket += 16; us >>= 16; }
    if (us >> 8) { bucket += 8; us >>= 8; }
    if (us >> 4) { bucket += 4; us >>= 4; }
    if (us >> 2) { bucket += 2; us >>= 2; }
    if (us >> 1) { bucket += 1; us >>= 1; }
    bucket += us;
    if (bucket >= CUTLINE_WAITS)
        bucket = CUTLINE_WAITS - 1;
    CL_OPAQUE(bucket);
    if (bucket < CUTLINE_WAITS)
        statistics->waits[bucket]++;
}

/* Begins to count. */
CL_INLINE void cl_begin(struct cutline_statistics *statistics, __u32 generation)
{
    volatile __u64 *words = (void *)statistics;

    for (__u32 i = 0; i < sizeof *statistics / sizeof *words && CL_CAN_LOOP; i++)
        words[i] = 0;
    statistics->layout = CUTLINE_LAYOUT;
    statistics->generation = generation;
    statistics->running = 1;
    statistics->since = bpf_ktime_get_ns();
}

/* The place of a queueing discipline. */
struct cl_seat {
    __u32 instance;
    __u32 group;  /* instance of the first hardware queue */
    __u32 queues; /* hardware queues that have an instance each; 0: one queue for all */
    __u32 queue;  /* number of its own */
};

/* Finds the place of a queueing discipline that is added: at the root, or under `mq` that of its hardware queue, where each has one. Returns
 * a negative error if nothing is configured for it. */
CL_INLINE int cl_find_seat(struct Qdisc *sch, struct cl_seat *seat)
{
    struct net_device *dev = sch->dev_queue->dev;
    struct cutline_interface key = { .namespace_inode = dev->nd_net.net->ns.inum, .index = dev->ifindex };
    struct cutline_assignment *assignment = bpf_map_lookup_elem(&cutline_interfaces, &key);
    __u32 queue;

    if (!assignment)
        return -CL_ENOENT;
    seat->instance = seat->group = assignment->instance;
    seat->queues = seat->queue = 0;
    if (assignment->queues <= 1)
        return sch->parent == CL_ROOT ? 0 : -CL_ENOENT;
    queue = (sch->parent & 0xffff) - 1;
    if (queue >= assignment->queues || queue >= CUTLINE_QUEUES)
        return -CL_ENOENT;
    seat->instance += queue;
    seat->queues = assignment->queues;
    seat->queue = queue;
    return 0;
}

#endif
