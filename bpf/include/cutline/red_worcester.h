/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* RED-Worcester: Adaptive RED whose target follows the hints of the traffic (the RED-Worcester paper, section 2.3; Floyd and Jacobson 1993; Floyd,
 * Gummadi and Shenker 2001), in packets, with uniform spacing of hits.
 *
 *     MovingTarget = (1 - w_t) MovingTarget + w_t C D / P
 *     avg <- (1 - w_q) avg + w_q q                      on every arrival
 *     avg <- (1 - w_q)^(m+1) avg                        on one that finds the queue empty, after m packet times idle
 *     p_b = max_p (avg - min_th) / (max_th - min_th),   p_a = p_b / (1 - count p_b)
 *     every interval: max_p += alpha above the target range, max_p *= beta below it, within floor and ceiling
 *
 * Averages and targets have 32 fractional bits of a packet. An arrival adds less than 2^-31 packets to the error of avg, which also shrinks by w_q: it is
 * at most 2^-31 / w_q packets. An exponential is wrong by less than 1e-11, and by the time of a packet: 16 fractional bits of a ns.
 * p_a is wrong by less than 2^-40 of itself and what follows from avg. In one call at most 256 steps of max_p are taken; the others follow. */
#ifndef CUTLINE_RED_WORCESTER_H
#define CUTLINE_RED_WORCESTER_H

#include "fixed.h"

#define CL_AVERAGE_BITS 32
#define CL_MOST_STEPS 256

struct cl_red {
    cl_u64 avg;       /* 2^-32 packets */
    cl_s64 count;     /* packets since the last hit; -1 while nothing can be hit */
    cl_u64 idle_from; /* time at which the last packet of the queue has left the link, ns */
    cl_u64 p_a, p_b;  /* 2^-60; p_a of the packet that arrives */
    cl_u64 max_p;     /* 2^-60 */
    cl_u64 target;    /* 2^-32 packets */
    cl_u64 next_step; /* time of the next change of max_p, ns */
    cl_u64 packets;   /* backlog that the packet that arrives finds */
    cl_u32 level, size; /* of that packet */
};

/* Returns a threshold of the configuration in 2^-32 packets. */
CL_INLINE cl_u64 cl_red_length(cl_u64 packets) { return packets << (CL_AVERAGE_BITS - CUTLINE_PACKET_BITS); }

CL_INLINE void cl_red_reset(struct cl_red *red, const struct cutline_red_worcester *config, cl_u64 now)
{
    red->avg = 0;
    red->count = -1;
    red->idle_from = now;
    red->p_a = red->p_b = 0;
    red->max_p = config->max_p;
    red->target = (cl_red_length(config->min_th) + cl_red_length(config->max_th)) / 2;
    red->next_step = now + config->interval;
}

/* Returns e^-x, 2^-60, of x with 40 fractional bits. */
CL_SEPARATE cl_u64 cl_decay(cl_u64 x)
{
    const cl_u64 log2_e = 1663314137230540311ULL, ln_2 = 799144290325165978ULL;
    cl_u64 whole, y, power = CUTLINE_ONE;

    if (x >= 42ULL << 40)
        return 0;
    x = cl_mul_shift(x, log2_e, 60);
    whole = x >> 40;
    /* 2^-f = e^(-f ln 2), by its series. */
    y = cl_mul_shift((x & ((1ULL << 40) - 1)) << 20, ln_2, 60);
    for (cl_u32 k = 13; k; k--)
        power = CUTLINE_ONE - cl_mul_shift(y, power, 60) / k;
    return power >> (whole & 63);
}

/* Returns the average at a time, if the queue has been empty since its last packet left. */
CL_SEPARATE cl_u64 cl_red_idle(const struct cl_red *red, const struct cutline_red_worcester *config, cl_u64 byte_time, cl_u64 at)
{
    cl_u64 idle, packet, passed, avg;

    if (!red || !config)
        return 0;
    idle = cl_min(cl_since(at, red->idle_from), 1ULL << 47);
    if (!idle || !red->avg)
        return red->avg;
    packet = cl_max(cl_mul_shift(byte_time, config->mean_packet, 16), 1);
    /* Packets that could have passed, 2^-32. */
    idle <<= 16;
    passed = (cl_min(idle / packet, 1ULL << 31) << 32) + (cl_fraction(idle % packet, packet) >> 28);
    avg = cl_mul_shift(red->avg, cl_decay(cl_mul_shift(passed, config->ln_keep, 52)), 60);
    return avg < 4 ? 0 : avg;
}

/* Takes the steps of max_p that are due at `now`. */
CL_SEPARATE int cl_red_advance(struct cl_red *red, const struct cutline_red_worcester *config, cl_u64 byte_time, cl_u64 now, cl_u64 packets)
{
    const cl_u64 largest = CUTLINE_ONE / 100;
    cl_u64 margin, high, low;

    if (!red || !config)
        return 0;
    margin = cl_mul_shift(config->range, cl_red_length(config->max_th - config->min_th), 60);
    high = red->target + margin;
    low = cl_since(red->target, margin);
    for (cl_u32 i = 0; i < CL_MOST_STEPS && red->next_step <= now && CL_CAN_LOOP; i++) {
        cl_u64 avg = packets ? red->avg : cl_red_idle(red, config, byte_time, red->next_step), before = red->max_p, next = before;

        if (avg > high && before < config->ceiling)
            next = cl_min(before + (config->alpha ? config->alpha : cl_min(largest, before / 4)), config->ceiling);
        else if (avg < low && before > config->floor)
            next = cl_max(cl_mul_shift(before, config->beta, 60), config->floor);
        red->max_p = next;
        red->next_step += config->interval;
        /* Nothing more changes, unless the average of an idle link falls out of the range. */
        if (next == before && (packets || avg < low) && red->next_step <= now)
            red->next_step += ((now - red->next_step) / config->interval + 1) * config->interval;
    }
    return 0;
}

/* Returns p_b (Floyd and Jacobson 1993 eq. 3; gentle: Floyd 2000). */
CL_INLINE cl_u64 cl_red_slope(const struct cl_red *red, const struct cutline_red_worcester *config)
{
    cl_u64 min_th = cl_red_length(config->min_th), max_th = cl_red_length(config->max_th);

    if (red->avg < min_th)
        return 0;
    if (red->avg < max_th)
        return cl_mul_shift(red->max_p, cl_fraction(red->avg - min_th, max_th - min_th), 60);
    if (config->gentle && red->avg < 2 * max_th)
        return cl_min(red->max_p + cl_mul_shift(CUTLINE_ONE - red->max_p, cl_fraction(red->avg - max_th, max_th), 60), CUTLINE_ONE);
    return CUTLINE_ONE;
}

/* Averages over the packet that arrives, and sets p_a. */
CL_SEPARATE int cl_red_arrive(struct cl_red *red, const struct cutline_red_worcester *config, cl_u64 byte_time, cl_u64 now)
{
    cl_u64 asked, time, delay, length, passed;
    cl_u32 lane;

    if (!red || !config)
        return 0;
    lane = (red->level - 1) & (CUTLINE_HINTS - 1);
    CL_OPAQUE(lane);
    lane &= CUTLINE_HINTS - 1;
    /* Target of RED-Worcester section 2.3: the delay over the time of the packet. */
    time = cl_max(cl_mul_shift(byte_time, red->size, 16), 1);
    delay = config->delays[lane] << 16;
    asked = (cl_min(delay / time, 1ULL << 24) << CL_AVERAGE_BITS) + (cl_fraction(delay % time, time) >> (60 - CL_AVERAGE_BITS));
    if (asked > red->target)
        red->target += cl_mul_shift(config->w_t, asked - red->target, 60);
    else
        red->target -= cl_mul_shift(config->w_t, red->target - asked, 60);
    length = red->packets << CL_AVERAGE_BITS;
    if (!red->packets) {
        red->avg = cl_mul_shift(cl_red_idle(red, config, byte_time, now), CUTLINE_ONE - config->w_q, 60);
        red->idle_from = cl_max(red->idle_from, now);
    } else if (length > red->avg) {
        red->avg += cl_mul_shift(config->w_q, length - red->avg, 60);
    } else {
        red->avg -= cl_mul_shift(config->w_q, red->avg - length, 60);
    }
    red->p_b = cl_red_slope(red, config);
    if (!red->p_b) {
        red->count = -1;
        red->p_a = 0;
        return 0;
    }
    red->count++;
    /* Floyd and Jacobson 1993 eq. 4. */
    passed = cl_mul_shift(red->p_b, (cl_u64)red->count << 1, 1);
    red->p_a = passed < CUTLINE_ONE ? cl_fraction(red->p_b, CUTLINE_ONE - passed) : CUTLINE_ONE;
    return 0;
}

/* Notes that a packet of this time on the link has left an empty queue at `now`. */
CL_INLINE void cl_red_departed(struct cl_red *red, cl_u64 now, cl_u64 time) { red->idle_from = now + time; }

#endif
