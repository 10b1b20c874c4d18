/* A signal ends each call that waits, with EINTR; connecting ends with its time. */
#define _DEFAULT_SOURCE
#include <arpa/inet.h>
#include <cutline.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "check.h"

static void handle(int number)
{
    (void)number;
}

/* From now on a signal comes each 100 ms. */
static void signals(int on)
{
    struct itimerval timer = {{0, on ? 100000 : 0}, {0, on ? 100000 : 0}};
    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

/* A datagram socket that answers nothing. */
static int unanswered_socket(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int made = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(made >= 0 && bind(made, (struct sockaddr *)&address, sizeof address) == 0);
    return made;
}

static cutline_socket *connect_to(int type, cutline_socket *listener, const cutline_options *options)
{
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    CHECK(cutline_getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    return cutline_connect(type, (struct sockaddr *)&address, length, options);
}

int main(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    cutline_options *plain = cutline_options_new(NULL);
    CHECK(cutline_options_set(plain, "peer", "plain") == 0);
    int types[2] = {SOCK_STREAM, SOCK_DGRAM};
    for (int place = 0; place < 2; place++) {
        cutline_socket *listener = cutline_listen_at(types[place], "127.0.0.1:0", plain);
        CHECK(listener);
        signals(1);
        CHECK(!cutline_accept(listener, NULL, NULL) && errno == EINTR);
        signals(0);
        cutline_socket *ours = connect_to(types[place], listener, plain);
        CHECK(ours);
        char data[100] = {0};
        signals(1);
        CHECK(cutline_recv(ours, data, sizeof data, 0) == -1 && errno == EINTR);
        cutline_event event = {.size = sizeof event};
        int found;
        while ((found = cutline_next_event(ours, &event, -1)) == 1)
            ;
        CHECK(found == -1 && errno == EINTR);
        signals(0);
        CHECK(cutline_next_event(ours, &event, 1) == 0);
        cutline_close(ours);
        cutline_close(listener);
    }
    /* Sending that waits for room, and for its turn. */
    cutline_socket *listener = cutline_listen_at(SOCK_STREAM, "127.0.0.1:0", plain);
    cutline_socket *ours = connect_to(SOCK_STREAM, listener, plain);
    CHECK(ours);
    static char much[1 << 20];
    signals(1);
    while (cutline_send(ours, much, sizeof much, 0) > 0)
        ;
    CHECK(errno == EINTR);
    signals(0);
    cutline_close(ours);
    cutline_close(listener);
    CHECK(cutline_options_set(plain, "send.max-rate", "0.01") == 0);
    cutline_socket *other = cutline_listen_at(SOCK_DGRAM, "127.0.0.1:0", NULL);
    ours = connect_to(SOCK_DGRAM, other, plain);
    CHECK(ours);
    signals(1);
    while (cutline_send(ours, "slow", 4, 0) == 4)
        ;
    CHECK(errno == EINTR);
    signals(0);
    cutline_close(ours);
    cutline_close(other);
    /* Waiting for a connection that is made again, to a server that is gone. */
    cutline_options *again = cutline_options_new(NULL);
    CHECK(again && cutline_options_set(again, "peer", "plain") == 0);
    CHECK(cutline_options_set(again, "receive.recovery", "60 s") == 0);
    CHECK(cutline_options_set(again, "reconnect", "true") == 0);
    int server = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof there;
    CHECK(server >= 0 && bind(server, (struct sockaddr *)&there, size) == 0 && listen(server, 1) == 0);
    CHECK(getsockname(server, (struct sockaddr *)&there, &size) == 0);
    ours = cutline_connect(SOCK_STREAM, (struct sockaddr *)&there, size, again);
    CHECK(ours);
    int peer = accept(server, NULL, NULL);
    struct linger reset = {.l_onoff = 1};
    CHECK(peer >= 0 && setsockopt(peer, SOL_SOCKET, SO_LINGER, &reset, sizeof reset) == 0);
    CHECK(close(server) == 0 && close(peer) == 0);
    char lost[10];
    CHECK(cutline_recv(ours, lost, sizeof lost, 0) == -1 && errno == ECONNABORTED);
    signals(1);
    CHECK(cutline_recv(ours, lost, sizeof lost, 0) == -1 && errno == EINTR);
    signals(0);
    cutline_close(ours);
    cutline_options_free(again);
    /* The peer does not answer. */
    int silent = unanswered_socket();
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    CHECK(getsockname(silent, (struct sockaddr *)&address, &length) == 0);
    CHECK(cutline_options_set(plain, "peer", "speaks") == 0);
    CHECK(cutline_options_set(plain, "connect-timeout", "200 ms") == 0);
    CHECK(!cutline_connect(SOCK_DGRAM, (struct sockaddr *)&address, length, plain) && errno == ETIMEDOUT);
    CHECK(strstr(cutline_error(), "connect timeout of 200"));
    close(silent);
    cutline_options_free(plain);
    puts("all is well");
    return 0;
}
