/* What the test programs have in common. */
#pragma once
#include <cutline.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the program with a message if something does not hold. */
#define CHECK(truth)                                                                                                   \
    do {                                                                                                               \
        if (!(truth)) {                                                                                                \
            fprintf(stderr, "line %d: %s: %s (errno %d)\n", __LINE__, #truth, cutline_error(), errno);                \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
