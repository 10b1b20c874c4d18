/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* The laws under TSQ, by number. A law has neither a queue nor random numbers. It gets the backlog before each change. */
#ifndef CUTLINE_LAW_H
#define CUTLINE_LAW_H

#include "pi.h"
#include "pi2.h"
#include "red_worcester.h"

/* Packets that wait, and their bytes on the link. */
struct cl_backlog {
    cl_u64 packets;
    cl_u64 bytes;
};

struct cl_law {
    struct cl_pi pi;
    struct cl_pi2 pi2;
    struct cl_red red;
};

CL_INLINE void cl_law_reset(struct cl_law *law, const struct cutline_config *config, cl_u64 now)
{
    if (config->law == CUTLINE_LAW_PI)
        cl_pi_reset(&law->pi, &config->pi, now);
    else if (config->law == CUTLINE_LAW_PI2)
        cl_pi2_reset(&law->pi2, &config->pi2, now);
    else if (config->law == CUTLINE_LAW_RED_WORCESTER)
        cl_red_reset(&law->red, &config->red_worcester, now);
}

/* Takes the steps that are due at `now`; the backlog has been this since the last call. */
CL_INLINE void cl_law_advance(struct cl_law *law, const struct cutline_config *config, cl_u64 byte_time, cl_u64 now,
                              const struct cl_backlog *backlog)
{
    if (config->law == CUTLINE_LAW_PI)
        cl_pi_advance(&law->pi, &config->pi, now, backlog->packets, backlog->bytes);
    else if (config->law == CUTLINE_LAW_PI2)
        cl_pi2_advance(&law->pi2, &config->pi2, now, cl_drain(byte_time, backlog->bytes));
    else if (config->law == CUTLINE_LAW_RED_WORCESTER && now >= law->red.next_step)
        cl_red_advance(&law->red, &config->red_worcester, byte_time, now, backlog->packets);
}

/* Returns p as it stands, 2^-60. */
CL_INLINE cl_u64 cl_law_p(const struct cl_law *law, const struct cutline_config *config)
{
    if (config->law == CUTLINE_LAW_PI)
        return law->pi.p;
    if (config->law == CUTLINE_LAW_PI2)
        return cl_pi2_p(&law->pi2);
    if (config->law == CUTLINE_LAW_RED_WORCESTER)
        return law->red.p_b;
    return 0;
}

/* Returns p of a packet that arrives now, 2^-60. Every arrival comes here, also one that a full queue then refuses. */
CL_INLINE cl_u64 cl_law_arrive(struct cl_law *law, const struct cutline_config *config, cl_u64 byte_time, cl_u64 now, cl_u32 level,
                               cl_u32 size, const struct cl_backlog *backlog)
{
    if (config->law != CUTLINE_LAW_RED_WORCESTER)
        return cl_law_p(law, config);
    law->red.packets = backlog->packets;
    law->red.level = level;
    law->red.size = size;
    cl_red_arrive(&law->red, &config->red_worcester, byte_time, now);
    return law->red.p_a;
}

/* Notes that a packet is hit. */
CL_INLINE void cl_law_hit(struct cl_law *law, const struct cutline_config *config)
{
    if (config->law == CUTLINE_LAW_RED_WORCESTER)
        law->red.count = 0;
}

/* Notes that a packet, which needs this time on the link, leaves the queue at `now`. */
CL_INLINE void cl_law_departed(struct cl_law *law, const struct cutline_config *config, cl_u64 now, cl_u64 time, const struct cl_backlog *backlog)
{
    if (config->law == CUTLINE_LAW_RED_WORCESTER && !backlog->packets)
        cl_red_departed(&law->red, now, time);
}

/* Returns whether the configuration of the law is in range. */
CL_INLINE int cl_law_is_valid(const struct cutline_config *config)
{
    const struct cutline_pi *pi = &config->pi;
    const struct cutline_pi2 *pi2 = &config->pi2;
    const struct cutline_red_worcester *red = &config->red_worcester;
    const cl_u64 most_packets = 10000000ULL << CUTLINE_PACKET_BITS, most_gain = CUTLINE_ONE / 10000000;

    if (config->law == CUTLINE_LAW_NONE)
        return 1;
    if (config->law == CUTLINE_LAW_PI)
        return pi->b < pi->a && pi->a <= CUTLINE_ONE && pi->q_ref <= most_packets && pi->period >= 1000 &&
               pi->period <= 1000000000000ULL && pi->mean_packet <= 1000000;
    if (config->law == CUTLINE_LAW_PI2)
        return pi2->alpha <= most_gain && pi2->beta <= most_gain && pi2->target >= 100000 && pi2->target <= 10000000000ULL &&
               pi2->t_update >= 1000000 && pi2->t_update <= 10000000000ULL;
    if (config->law == CUTLINE_LAW_RED_WORCESTER) {
        for (cl_u32 i = 0; i < CUTLINE_HINTS; i++)
            if (red->delays[i] > 10000000000ULL)
                return 0;
        return red->min_th < red->max_th && red->max_th <= most_packets && red->max_p <= CUTLINE_ONE && red->w_q <= CUTLINE_ONE &&
               red->w_t <= CUTLINE_ONE && red->interval >= 1000000 && red->interval <= 100000000000ULL && red->alpha <= CUTLINE_ONE &&
               red->beta <= CUTLINE_ONE && red->range <= CUTLINE_ONE / 2 && red->floor <= red->ceiling && red->ceiling <= CUTLINE_ONE &&
               red->mean_packet && red->mean_packet <= 1000000;
    }
    return 0;
}

#endif
