/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* The laws under TSQ, by number. A law has neither a queue nor random numbers. It is told the backlog before each change. */
#ifndef CUTLINE_LAW_H
#define CUTLINE_LAW_H

#include "pi.h"
#include "pi2.h"

/* Packets that wait, and their bytes on the link. */
struct cl_backlog {
    cl_u64 packets;
    cl_u64 bytes;
};

struct cl_law {
    struct cl_pi pi;
    struct cl_pi2 pi2;
};

CL_INLINE void cl_law_reset(struct cl_law *law, const struct cutline_config *config, cl_u64 now)
{
    if (config->law == CUTLINE_LAW_PI)
        cl_pi_reset(&law->pi, &config->pi, now);
    else if (config->law == CUTLINE_LAW_PI2)
        cl_pi2_reset(&law->pi2, &config->pi2, now);
}

/* Takes the steps that are due at `now`; the backlog has been this since the last call. */
CL_INLINE void cl_law_advance(struct cl_law *law, const struct cutline_config *config, cl_u64 byte_time, cl_u64 now,
                              const struct cl_backlog *backlog)
{
    if (config->law == CUTLINE_LAW_PI)
        cl_pi_advance(&law->pi, &config->pi, now, backlog->packets, backlog->bytes);
    else if (config->law == CUTLINE_LAW_PI2)
        cl_pi2_advance(&law->pi2, &config->pi2, now, cl_drain(byte_time, backlog->bytes));
}

/* Returns p of a packet that arrives now, 2^-60. */
CL_INLINE cl_u64 cl_law_p(const struct cl_law *law, const struct cutline_config *config)
{
    if (config->law == CUTLINE_LAW_PI)
        return law->pi.p;
    if (config->law == CUTLINE_LAW_PI2)
        return cl_pi2_p(&law->pi2);
    return 0;
}

/* Returns whether the configuration of the law is in range. */
CL_INLINE int cl_law_is_valid(const struct cutline_config *config)
{
    const struct cutline_pi *pi = &config->pi;
    const struct cutline_pi2 *pi2 = &config->pi2;
    const cl_u64 most_packets = 10000000ULL << CUTLINE_PACKET_BITS, most_gain = CUTLINE_ONE / 10000000;

    if (config->law == CUTLINE_LAW_NONE)
        return 1;
    if (config->law == CUTLINE_LAW_PI)
        return pi->b < pi->a && pi->a <= CUTLINE_ONE && pi->q_ref <= most_packets && pi->period >= 1000 &&
               pi->period <= 1000000000000ULL && pi->mean_packet <= 1000000;
    if (config->law == CUTLINE_LAW_PI2)
        return pi2->alpha <= most_gain && pi2->beta <= most_gain && pi2->target >= 100000 && pi2->target <= 10000000000ULL &&
               pi2->t_update >= 1000000 && pi2->t_update <= 10000000000ULL;
    return 0;
}

#endif
