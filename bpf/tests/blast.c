/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* Sends datagrams as fast as it can from 64 ports, and prints the time of each, which in the virtual machine is the number of instructions:
 *
 *     blast PACKETS ADDRESS STEP
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

enum { SOCKETS = 64, WARM_UP = 2000 };

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int count, char **words)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
    int sockets[SOCKETS], packets;
    char payload[100] = { 0 };
    double begin = 0;

    if (count != 4 || inet_pton(AF_INET, words[2], &to.sin_addr) != 1) {
        printf("FAILED blast PACKETS ADDRESS STEP\n");
        return 1;
    }
    packets = atoi(words[1]);
    for (int i = 0; i < SOCKETS; i++) {
        sockets[i] = socket(AF_INET, SOCK_DGRAM, 0);
        if (sockets[i] < 0 || connect(sockets[i], (void *)&to, sizeof to)) {
            perror("FAILED blast");
            return 1;
        }
    }
    for (int i = 0; i < WARM_UP + packets; i++) {
        if (i == WARM_UP)
            begin = now();
        if (send(sockets[i % SOCKETS], payload, sizeof payload, 0) < 0) {
            perror("FAILED blast");
            return 1;
        }
    }
    printf("BLAST %s %.1f\n", words[3], (now() - begin) / packets);
    return 0;
}
