/* Video-like traffic: frames at a rate that adapts to the network's delivery.
 *
 *     video receive 0.0.0.0:5004
 *     video send 192.0.2.1:5004 10        for 10 s
 * Build: cc -o video video.c $(pkg-config --cflags --libs cutline)
 */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <cutline.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, cutline_error());
    return 1;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void print_events(cutline_socket *socket, double *rate)
{
    cutline_event event = {.size = sizeof event};
    while (cutline_next_event(socket, &event, 0) == 1) {
        puts(event.text);
        if (event.kind == CUTLINE_EVENT_RATE)
            *rate = event.rate;
        event.size = sizeof event;
    }
}

static void print_delivery(const char *what, cutline_socket *socket)
{
    cutline_mib mib = {.size = sizeof mib};
    cutline_get_mib(socket, &mib);
    const cutline_direction *direction = strcmp(what, "sent") == 0 ? &mib.send : &mib.receive;
    printf("%s: %lld frames, %lld lost, %.0f kbit/s\n", what, (long long)direction->received.messages,
           (long long)direction->received.lost, (double)direction->last.throughput_bps / 1e3);
}

static int send_frames(const char *address, double duration, cutline_options *options)
{
    cutline_socket *socket = cutline_connect_to(SOCK_DGRAM, address, options);
    if (!socket)
        return fail("cannot connect");
    char frame[1000] = {0};
    double rate = 100, end = seconds() + duration, report = 0;
    while (seconds() < end) {
        print_events(socket, &rate);
        if (cutline_send(socket, frame, sizeof frame, 0) < 0 && errno != EAGAIN && errno != ENOBUFS)
            return fail("cannot send");
        struct timespec rest = {.tv_nsec = (long)(1e9 / (rate > 1 ? rate : 1.1))};
        nanosleep(&rest, NULL);
        if (seconds() - report > 1) {
            report = seconds();
            print_delivery("sent", socket);
        }
    }
    return cutline_close(socket);
}

static int receive_frames(const char *address, cutline_options *options)
{
    cutline_socket *listener = cutline_listen_at(SOCK_DGRAM, address, options);
    struct sockaddr_in here = {0};
    socklen_t length = sizeof here;
    if (!listener || cutline_getsockname(listener, (struct sockaddr *)&here, &length) < 0)
        return fail("cannot listen");
    printf("port %d\n", ntohs(here.sin_port));
    fflush(stdout);
    cutline_socket *socket = cutline_accept(listener, NULL, NULL);
    if (!socket || cutline_set_recv_timeout(socket, 2000) < 0)
        return fail("cannot accept");
    char frame[2000];
    while (cutline_recv(socket, frame, sizeof frame, 0) >= 0)
        print_events(socket, &(double){0});
    if (errno != EAGAIN && errno != ECONNREFUSED)
        return fail("cannot receive");
    print_delivery("received", socket);
    return cutline_close(socket) + cutline_close(listener);
}

int main(int count, char **words)
{
    cutline_options *options = cutline_options_new("video");
    if (count == 4 && strcmp(words[1], "send") == 0 && cutline_options_set(options, "adapt-rate", "true") == 0)
        return send_frames(words[2], atof(words[3]), options);
    if (count == 3 && strcmp(words[1], "receive") == 0)
        return receive_frames(words[2], options);
    return fprintf(stderr, "video send ADDRESS SECONDS | video receive ADDRESS\n"), 2;
}
