/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* The schedule of a link, as in the router (crates/core/router/src/shaper.rs), for the kernel and for the host.
 *
 * The transmission of a packet starts when the last bit of the previous one has left, even if the kernel asks later, so a late timer does not
 * slow the link down. The schedule may be late by `burst` and still catch up; more than that is slip. */
#ifndef CUTLINE_SHAPER_H
#define CUTLINE_SHAPER_H

#include "fixed.h"

struct cl_shaper {
    cl_u64 free_at; /* time at which the link is free, ns */
};

/* Returns the rate that the laws know, bit/s. */
CL_INLINE cl_u64 cl_rate(const struct cutline_config *config)
{
    return config->shape_bps ? config->shape_bps : config->link_bps;
}

/* Returns the bytes of a packet on the link: of `length` bytes, in that many segments, of which there is one at least. */
CL_INLINE cl_u32 cl_size(const struct cutline_config *config, cl_u32 length, cl_u32 segments)
{
    cl_s64 size = (cl_s64)length + (cl_s64)config->overhead * segments;
    cl_s64 least = (cl_s64)config->least_bytes * segments;

    if (size < least)
        size = least;
    return size < 1 ? 1 : (cl_u32)size;
}

/* Returns the segments of a packet of `length` bytes: each has the `headers` bytes of headers, and at most `most` bytes behind them. */
CL_INLINE cl_u32 cl_segments_of(cl_u32 length, cl_u32 headers, cl_u32 most)
{
    return most && length > headers ? (length - headers + most - 1) / most : 1;
}

/* Notes that a packet comes to a queue that is empty. */
CL_INLINE void cl_shaper_begin(struct cl_shaper *shaper, cl_u64 now)
{
    shaper->free_at = cl_max(shaper->free_at, now);
}

/* Returns the time at which the next packet starts, which is not after `now`. The link is free. */
CL_INLINE cl_u64 cl_shaper_start(struct cl_shaper *shaper, const struct cutline_config *config, cl_u64 now, cl_u64 *slipped)
{
    cl_u64 earliest = cl_since(now, config->burst);

    if (shaper->free_at < earliest) {
        *slipped += earliest - shaper->free_at;
        shaper->free_at = earliest;
    }
    return shaper->free_at;
}

/* Returns whether a configuration is in range, except for settings of the queue. */
CL_INLINE int cl_config_is_valid(const struct cutline_config *config)
{
    const cl_u64 slowest = 1000, fastest = 10000000000000ULL;
    cl_u64 rate = cl_rate(config);

    if (config->layout != CUTLINE_LAYOUT || rate < slowest || rate > fastest || config->link_bps < slowest || config->link_bps > fastest)
        return 0;
    if (!config->burst || config->burst > 1000000000 || !config->limit_packets)
        return 0;
    if (config->overhead < -64 || config->overhead > 256 || config->least_bytes > 256)
        return 0;
    for (cl_u32 i = 0; i < CUTLINE_CODE_POINTS; i++)
        if (config->hints[i] < 1 || config->hints[i] > CUTLINE_HINTS)
            return 0;
    return 1;
}

#endif
