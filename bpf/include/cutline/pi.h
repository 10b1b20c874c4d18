/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* PI, a controller of the queue's length (Hollot, Misra, Towsley and Gong, INFOCOM 2001, section IV):
 *
 *     p(k) = a (q(k) - qref) - b (q(k-1) - qref) + p(k-1)
 *          = (a - b) (q(k) - qref) + b (q(k) - q(k-1)) + p(k-1),   clamped to 0..1
 *
 * The second form has one term for the level of the queue and one for its change, so that a bounded term does not hide the other.
 * The queue does not change between two calls, so the samples after the first one that was missed all add (a - b) (q - qref): any number of
 * them is one multiplication.
 *
 * Error: a sample adds less than 2^-58 to that of p, and the rounding of both gains to 2^-60 less than 2^-60 |q - qref|. After 17,000 samples
 * (100 s) of a queue within 1000 packets of its reference, p is wrong by less than 1.5e-11. */
#ifndef CUTLINE_PI_H
#define CUTLINE_PI_H

#include "fixed.h"

struct cl_pi {
    cl_u64 p;     /* p(k-1), 2^-60 */
    cl_u64 q_old; /* q(k-1), 2^-20 packets */
    struct cl_clock clock;
};

CL_INLINE void cl_pi_reset(struct cl_pi *pi, const struct cutline_pi *config, cl_u64 now)
{
    pi->p = 0;
    pi->q_old = 0;
    pi->clock.next = now + config->period;
}

/* Returns the length of the queue, 2^-20 packets. */
CL_INLINE cl_u64 cl_pi_length(const struct cutline_pi *config, cl_u64 packets, cl_u64 bytes)
{
    return config->mean_packet ? (bytes << CUTLINE_PACKET_BITS) / config->mean_packet : packets << CUTLINE_PACKET_BITS;
}

/* Returns the change of p by a sample. */
CL_INLINE cl_s64 cl_pi_step(const struct cutline_pi *config, cl_u64 q, cl_u64 q_old)
{
    return cl_gain(config->a - config->b, q, config->q_ref, CUTLINE_PACKET_BITS) + cl_gain(config->b, q, q_old, CUTLINE_PACKET_BITS);
}

/* Takes the samples that are due at `now`; the queue has had this length since the last call. */
CL_INLINE void cl_pi_advance(struct cl_pi *pi, const struct cutline_pi *config, cl_u64 now, cl_u64 packets, cl_u64 bytes)
{
    cl_u64 due, q;

    if (now < pi->clock.next)
        return;
    due = cl_due(&pi->clock, now, config->period);
    q = cl_pi_length(config, packets, bytes);
    pi->p = cl_probability((cl_s64)pi->p + cl_pi_step(config, q, pi->q_old));
    pi->p = cl_steps(pi->p, cl_pi_step(config, q, q), due - 1);
    pi->q_old = q;
}

#endif
