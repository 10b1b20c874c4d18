/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* Fields of a configuration by name, and a first configuration, for the programs of the tests. */
#ifndef CUTLINE_TESTS_FIELDS_H
#define CUTLINE_TESTS_FIELDS_H

#include "../include/cutline/qdisc.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct field { const char *name; size_t at, size; };
#define FIELD(name, member) { name, offsetof(struct cutline_config, member), sizeof ((struct cutline_config *)0)->member }

static const struct field FIELDS[] = {
    FIELD("link_bps", link_bps), FIELD("shape_bps", shape_bps), FIELD("burst", burst), FIELD("limit_bytes", limit_bytes),
    FIELD("limit_packets", limit_packets), FIELD("overhead", overhead), FIELD("least_bytes", least_bytes), FIELD("law", law),
    FIELD("tsq.l", tsq.l), FIELD("tsq.ratio_root", tsq.ratio_root), FIELD("tsq.bits", tsq.bits), FIELD("pi.a", pi.a), FIELD("pi.b", pi.b),
    FIELD("pi.q_ref", pi.q_ref), FIELD("pi.period", pi.period), FIELD("pi.mean_packet", pi.mean_packet), FIELD("pi2.alpha", pi2.alpha),
    FIELD("pi2.beta", pi2.beta), FIELD("pi2.target", pi2.target), FIELD("pi2.t_update", pi2.t_update), FIELD("red.min_th",
    red_worcester.min_th), FIELD("red.max_th", red_worcester.max_th), FIELD("red.max_p", red_worcester.max_p), FIELD("red.w_q",
    red_worcester.w_q), FIELD("red.ln_keep", red_worcester.ln_keep), FIELD("red.w_t", red_worcester.w_t), FIELD("red.interval",
    red_worcester.interval), FIELD("red.alpha", red_worcester.alpha), FIELD("red.beta", red_worcester.beta), FIELD("red.range",
    red_worcester.range), FIELD("red.floor", red_worcester.floor), FIELD("red.ceiling", red_worcester.ceiling), FIELD("red.mean_packet",
    red_worcester.mean_packet), FIELD("red.gentle", red_worcester.gentle),
    FIELD("sieve.rtt", sieve.rtt),
    FIELD("sieve.tau", sieve.tau), FIELD("sieve.newcomer_age", sieve.newcomer_age),
};

/* Sets a field, and answers 0 if there is one of this name. Hints are `hint.CODE_POINT`, delays `red.delay.LEVEL`. */
static int set_field(struct cutline_config *config, const char *name, unsigned long long number)
{
    if (!strncmp(name, "hint.", 5)) {
        config->hints[atoi(name + 5) & (CUTLINE_CODE_POINTS - 1)] = number;
        return 0;
    }
    if (!strncmp(name, "red.delay.", 10)) {
        config->red_worcester.delays[(atoi(name + 10) - 1) & (CUTLINE_HINTS - 1)] = number;
        return 0;
    }
    for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++)
        if (!strcmp(FIELDS[i].name, name)) {
            memcpy((char *)config + FIELDS[i].at, &number, FIELDS[i].size);
            return 0;
        }
    return -1;
}

/* The paper's TSQ over PI at 10 Mbit/s, with hints in the code points of pool 2 (`xxxx11`). */
static void begin(struct cutline_config *config)
{
    *config = (struct cutline_config){
        .layout = CUTLINE_LAYOUT, .link_bps = 10000000, .shape_bps = 10000000, .burst = 10000000, .limit_packets = 800,
        .law = CUTLINE_LAW_PI, .salt = 1, .tsq = { .l = 40000000, .bits = 4 },
        .pi = { .a = 1.822e-5 * CUTLINE_ONE, .b = 1.816e-5 * CUTLINE_ONE, .q_ref = 200 << CUTLINE_PACKET_BITS, .period = 5882353 },
        .sieve = { .rtt = 100000000, .tau = 150000000, .newcomer_age = 200000000 },
    };
    for (int i = 0; i < CUTLINE_CODE_POINTS; i++)
        config->hints[i] = (i & 3) == 3 ? (i >> 2) + 1 : CUTLINE_HINTS;
}

#endif
