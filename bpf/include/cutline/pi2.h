/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* PI2, a controller of the queuing delay whose output is squared (De Schepper, Bondarenko, Tsang and Briscoe, CoNEXT 2016):
 *
 *     p' += alpha (qdelay - target) + beta (qdelay - qdelay_old)      every t-update, clamped to 0..1
 *     p   = p'^2
 *
 * The delay is what waits at the link's rate, because sojourn times differ by hint under TSQ. As with PI, missed updates are one
 * multiplication.
 *
 * Error: an update adds less than 2^-58 to that of p', and the rounding of both gains to 2^-60 per ns less than 2^-60 for each ns from the target:
 * with alpha = 0.3125 per s that is a part of 3e-9 of the gain. The square is wrong by less than twice the error of p' and 2^-60. */
#ifndef CUTLINE_PI2_H
#define CUTLINE_PI2_H

#include "fixed.h"

struct cl_pi2 {
    cl_u64 p_prime;    /* p', 2^-60 */
    cl_u64 qdelay_old; /* delay at the last update, ns */
    struct cl_clock clock;
};

CL_INLINE void cl_pi2_reset(struct cl_pi2 *pi2, const struct cutline_pi2 *config, cl_u64 now)
{
    pi2->p_prime = 0;
    pi2->qdelay_old = 0;
    pi2->clock.next = now + config->t_update;
}

/* A gain per ns times a difference of delays. Delays are below 2^54 ns, so the difference has 9 bits of room. */
CL_INLINE cl_s64 cl_pi2_gain(cl_u64 gain, cl_u64 to, cl_u64 from)
{
    return cl_gain(gain, to << 9, from << 9, 9);
}

/* Takes the updates that are due at `now`; the queue has had this delay, ns, since the last call. */
CL_INLINE void cl_pi2_advance(struct cl_pi2 *pi2, const struct cutline_pi2 *config, cl_u64 now, cl_u64 qdelay)
{
    cl_s64 integral;
    cl_u64 due;

    if (now < pi2->clock.next)
        return;
    due = cl_due(&pi2->clock, now, config->t_update);
    integral = cl_pi2_gain(config->alpha, qdelay, config->target);
    pi2->p_prime = cl_probability((cl_s64)pi2->p_prime + integral + cl_pi2_gain(config->beta, qdelay, pi2->qdelay_old));
    pi2->p_prime = cl_steps(pi2->p_prime, integral, due - 1);
    pi2->qdelay_old = qdelay;
}

/* Returns p. */
CL_INLINE cl_u64 cl_pi2_p(const struct cl_pi2 *pi2)
{
    return cl_mul_shift(pi2->p_prime, pi2->p_prime, 60);
}

#endif
