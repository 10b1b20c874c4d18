/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* The kernel's queues over arrays of a process, and the numbers of its commands, for the programs that run them on the host. A program that includes
 * this file defines `cl_random` before that, and CL_ELSEWHERE (tsq.h) if it has several queues of one link. */
#ifndef CUTLINE_TESTS_HOST_H
#define CUTLINE_TESTS_HOST_H

#include "../include/cutline/fixed.h"
#include "fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `label` is the program's own. */
struct cl_slot {
    cl_u64 weight, number, bytes_before, stamp;
    cl_u32 size, next, label;
};

struct cl_node {
    cl_u64 times, origin, links;
    cl_u32 label;
};

struct slots { struct cl_slot *first; cl_u32 count; };
struct nodes { struct cl_node *first; cl_u32 count; };
struct table { struct cl_set *first; cl_u32 count; };

typedef struct slots *cl_slots;
typedef struct nodes *cl_nodes;
typedef struct table *cl_table;
#define CL_CAN_LOOP 1

static struct cl_slot *cl_slot(cl_slots slots, cl_u32 index) { return index < slots->count ? slots->first + index : NULL; }
static struct cl_node *cl_node(cl_nodes nodes, cl_u32 index) { return index < nodes->count ? nodes->first + index : NULL; }
static struct cl_set *cl_set(cl_table table, cl_u32 index);

#include "../include/cutline/sieve.h"
#include "../include/cutline/tsq.h"

static struct cl_set *cl_set(cl_table table, cl_u32 index) { return index < table->count ? table->first + index : NULL; }

/* The next number of a command, whose first word has been read. */
static cl_u64 next(void)
{
    char *word = strtok(NULL, " \n");

    if (!word) {
        fprintf(stderr, "a number is missing\n");
        exit(1);
    }
    return strtoull(word, NULL, 0);
}

/* Reads commands, and sets the fields of `set`. Returns the first word of another command, or NULL after the last one. */
static const char *next_command(struct cutline_config *config)
{
    static char line[256];

    while (fgets(line, sizeof line, stdin)) {
        char *word = strtok(line, " \n"), *name;

        if (!word)
            continue;
        if (strcmp(word, "set"))
            return word;
        name = strtok(NULL, " ");
        if (!name || set_field(config, name, next())) {
            fprintf(stderr, "there is no field `%s`\n", name ? name : "");
            exit(1);
        }
    }
    return NULL;
}

#endif
