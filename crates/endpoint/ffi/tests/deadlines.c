/* A managed datagram socket counts its messages that leave after their deadlines. The argument is where the manager listens. */
#include <arpa/inet.h>
#include <cutline.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

int main(int count, char **words)
{
    CHECK(count == 2);
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof there;
    int receiver = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(receiver >= 0 && bind(receiver, (struct sockaddr *)&there, sizeof there) == 0);
    CHECK(getsockname(receiver, (struct sockaddr *)&there, &length) == 0);

    cutline_options *options = cutline_options_new(NULL);
    /* A delay of 1 us has passed when a message leaves. */
    const char *set[][2] = {{"send.min-rate", "1"},        {"send.max-rate", "200"},      {"send.peak-rate", "200"},
                            {"send.size", "1000 B"},       {"send.max-delay", "1 us"},    {"peer", "plain"},
                            {"allocation", "real-time"},   {"allocation-socket", words[1]}};
    for (size_t place = 0; place < sizeof set / sizeof *set; place++)
        CHECK(cutline_options_set(options, set[place][0], set[place][1]) == 0);
    cutline_socket *socket = cutline_connect(SOCK_DGRAM, (struct sockaddr *)&there, length, options);
    CHECK(socket);
    cutline_options_free(options);
    cutline_event event = {.size = sizeof event};
    do
        CHECK(cutline_next_event(socket, &event, 60000) == 1);
    while (event.kind != CUTLINE_EVENT_ALLOCATED);

    cutline_mib mib = {.size = sizeof mib};
    CHECK(cutline_get_mib(socket, &mib) == 0);
    CHECK(mib.scheduling.sent == 0 && mib.scheduling.missed == 0 && mib.scheduling.latest_ns == 0);
    char message[1000] = {0};
    for (int sent = 0; sent < 100; sent++)
        CHECK(cutline_send(socket, message, sizeof message, 0) == sizeof message);
    CHECK(cutline_get_mib(socket, &mib) == 0 && mib.size == sizeof mib);
    printf("%lld %lld %d\n", (long long)mib.scheduling.sent, (long long)mib.scheduling.missed,
           mib.scheduling.latest_ns > 0);
    CHECK(cutline_close(socket) == 0);
    close(receiver);
    return 0;
}
