/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* Sends datagrams of 1000 B (as frames of Ethernet) from one processor at a rate, for the virtual machine of `make test-vm`:
 *
 *     pinned PROCESSOR ADDRESS KBPS SECONDS
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

enum { FRAME = 1000, HEADERS = 42 };

static long long now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int fail(const char *what)
{
    printf("FAILED pinned %s: errno %d\n", what, errno);
    return 1;
}

int main(int count, char **words)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
    static char payload[FRAME - HEADERS];
    long long at, end, gap;
    cpu_set_t set;
    int packets, sent = 0;

    if (count != 5 || inet_pton(AF_INET, words[2], &to.sin_addr) != 1 || atoi(words[3]) <= 0)
        return fail("PROCESSOR ADDRESS KBPS SECONDS");
    CPU_ZERO(&set);
    CPU_SET(atoi(words[1]), &set);
    if (sched_setaffinity(0, sizeof set, &set))
        return fail("sched_setaffinity");
    packets = socket(AF_INET, SOCK_DGRAM, 0);
    if (packets < 0 || connect(packets, (void *)&to, sizeof to))
        return fail("connect");
    gap = FRAME * 8LL * 1000000 / atoi(words[3]);
    at = now();
    end = at + atoll(words[4]) * 1000000000LL;
    for (; at < end; at += gap) {
        struct timespec t = { .tv_sec = at / 1000000000, .tv_nsec = at % 1000000000 };

        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
            ;
        /* A full queue or an interface that is down refuses packets. */
        if (send(packets, payload, sizeof payload, MSG_DONTWAIT) >= 0)
            sent++;
    }
    errno = 0;
    return sent ? 0 : fail("nothing was sent");
}
