/* A telephone: 50 messages of 160 samples a second each way. It sends a tone, and writes the received sound.
 *
 *     phone answer 0.0.0.0:5006 10 | aplay -f U8 -r 8000
 *     phone call 192.0.2.1:5006 10 | aplay -f U8 -r 8000        for 10 s
 *
 * Build: cc -o phone phone.c $(pkg-config --cflags --libs cutline) -lm -lpthread
 */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <cutline.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAMPLES = 160, RATE = 8000 };

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, cutline_error());
    return 1;
}

/* Writes the received sound until no message arrives for a second. */
static void *hear(void *socket)
{
    unsigned char samples[2 * SAMPLES];
    ssize_t length;
    while ((length = cutline_recv(socket, samples, sizeof samples, 0)) >= 0) {
        fwrite(samples, 1, (size_t)length, stdout);
        fflush(stdout);
    }
    return NULL;
}

static int speak(cutline_socket *socket, int messages)
{
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (int message = 0; message < messages; message++) {
        unsigned char samples[SAMPLES];
        for (int i = 0; i < SAMPLES; i++)
            samples[i] = (unsigned char)(128 + 60 * sin(440 * 6.283185307 * (message * SAMPLES + i) / RATE));
        /* A message is lost if this host has no room for it. */
        if (cutline_send(socket, samples, sizeof samples, 0) < 0 && errno != EAGAIN && errno != ENOBUFS)
            return fail("cannot send");
        cutline_event event = {.size = sizeof event};
        while (cutline_next_event(socket, &event, 0) == 1) {
            fprintf(stderr, "%s\n", event.text);
            event.size = sizeof event;
        }
        next.tv_nsec += 1000000000L / RATE * SAMPLES;
        next.tv_sec += next.tv_nsec / 1000000000L;
        next.tv_nsec %= 1000000000L;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    return 0;
}

static int talk(cutline_socket *socket, double duration)
{
    pthread_t ear;
    if (!socket || cutline_set_recv_timeout(socket, 1000) < 0)
        return fail("no call");
    if (pthread_create(&ear, NULL, hear, socket) != 0)
        return 1;
    int failed = speak(socket, (int)(duration * RATE / SAMPLES));
    pthread_join(ear, NULL);
    cutline_mib mib = {.size = sizeof mib};
    cutline_get_mib(socket, &mib);
    fprintf(stderr, "heard %lld messages, %lld lost, delay %.3f ms, violations of delay %lld\n",
            (long long)mib.receive.received.messages, (long long)mib.receive.received.lost,
            (double)mib.delay.p50_ns / 1e6, (long long)mib.receive.violations[CUTLINE_MEASURE_DELAY]);
    return cutline_close(socket) | failed;
}

int main(int count, char **words)
{
    cutline_options *options = cutline_options_new("audio");
    if (count == 4 && strcmp(words[1], "call") == 0)
        return talk(cutline_connect_to(SOCK_DGRAM, words[2], options), atof(words[3]));
    if (count == 4 && strcmp(words[1], "answer") == 0) {
        cutline_socket *listener = cutline_listen_at(SOCK_DGRAM, words[2], options);
        struct sockaddr_in here = {0};
        socklen_t length = sizeof here;
        if (!listener || cutline_getsockname(listener, (struct sockaddr *)&here, &length) < 0)
            return fail("cannot listen");
        fprintf(stderr, "port %d\n", ntohs(here.sin_port));
        return talk(cutline_accept(listener, NULL, NULL), atof(words[3]));
    }
    fprintf(stderr, "phone call ADDRESS SECONDS | phone answer ADDRESS SECONDS\n");
    return 2;
}
