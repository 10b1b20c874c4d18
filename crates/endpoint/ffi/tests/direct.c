/*
 * Messages in frames below IP. Without arguments both ends are on the loopback interface; `receive ADDRESS` and `send ADDRESS` are the
 * two ends on a link, and `refused` is a process without CAP_NET_RAW.
 */
#include <cutline.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { LONGEST = 66000, ROUNDS = 20 };

static cutline_options *options;

static cutline_socket *accepted(cutline_socket *listener)
{
    cutline_socket *socket = cutline_accept(listener, NULL, NULL);
    CHECK(socket && cutline_set_recv_timeout(socket, 60000) == 0 && cutline_has_qos_peer(socket) == 1);
    return socket;
}

/* Returns messages until an empty one comes, which it returns, too. */
static void echo(cutline_socket *socket)
{
    char *buffer = malloc(LONGEST + 1);
    CHECK(buffer);
    ssize_t bytes;
    do {
        CHECK((bytes = cutline_recv(socket, buffer, LONGEST + 1, 0)) >= 0);
        CHECK(cutline_send(socket, buffer, (size_t)bytes, 0) == bytes);
    } while (bytes > 0);
    free(buffer);
    CHECK(cutline_close(socket) == 0);
}

static void *echo_once(void *listener)
{
    echo(accepted(listener));
    return NULL;
}

static void talk(cutline_socket *socket)
{
    char *message = malloc(LONGEST), *answer = malloc(LONGEST + 1);
    CHECK(message && answer);
    for (int round = 0; round <= ROUNDS; round++) {
        size_t length = (size_t)round * LONGEST / ROUNDS;
        memset(message, round, length);
        if (round == 0)
            continue;
        CHECK(cutline_send(socket, message, length, MSG_NOSIGNAL) == (ssize_t)length);
        struct pollfd descriptor = {.fd = cutline_fd(socket), .events = POLLIN};
        if (!cutline_pending(socket))
            CHECK(poll(&descriptor, 1, 60000) == 1);
        CHECK(cutline_recv(socket, answer, LONGEST + 1, 0) == (ssize_t)length && memcmp(message, answer, length) == 0);
    }
    cutline_mib mib = {.size = sizeof mib};
    CHECK(cutline_get_mib(socket, &mib) == 0 && mib.send.agreed == 1 && mib.hint == 3);
    CHECK(mib.receive.received.messages == ROUNDS && mib.receive.received.lost == 0);
    CHECK(mib.scheduling.sent == -1 && mib.scheduling.missed == -1 && mib.scheduling.latest_ns == -1);
    cutline_event event = {.size = sizeof event};
    CHECK(cutline_next_event(socket, &event, 60000) == 1 && event.kind == CUTLINE_EVENT_AGREED);
    /* Datagrams have no end. */
    CHECK(cutline_shutdown(socket, SHUT_WR) == -1 && errno == EOPNOTSUPP);
    CHECK(cutline_send(socket, "", 0, 0) == 0 && cutline_recv(socket, answer, LONGEST, 0) == 0);
    free(message);
    free(answer);
    CHECK(cutline_close(socket) == 0);
}

/* The address of a socket as a text, and as one of IPv6. */
static void address_of(cutline_socket *socket, char *text, size_t length)
{
    ssize_t whole = cutline_local_address(socket, text, length);
    CHECK(whole > 0 && (size_t)whole < length && (size_t)whole == strlen(text));
    char part[8] = "xxxxxxx";
    CHECK(cutline_local_address(socket, part, 7) == whole && strncmp(part, text, 6) == 0 && part[6] == 0);
    CHECK(cutline_local_address(socket, NULL, 0) == whole);
    CHECK(cutline_local_address(socket, NULL, 1) == -1 && errno == EINVAL);
    struct sockaddr_in6 address;
    socklen_t room = sizeof address;
    CHECK(cutline_getsockname(socket, (struct sockaddr *)&address, &room) == 0 && room == sizeof address);
    CHECK(address.sin6_family == AF_INET6 && address.sin6_scope_id > 0 && address.sin6_addr.s6_addr[0] == 0xfe);
    CHECK(ntohs(address.sin6_port) == atoi(strrchr(text, ':') + 1));
}

static void loopback(void)
{
    cutline_socket *listener = cutline_listen_at(SOCK_DGRAM, "direct:lo:0", options);
    CHECK(listener);
    char here[100], there[100];
    address_of(listener, here, sizeof here);
    CHECK(strncmp(here, "direct:lo/00:00:00:00:00:00:", 28) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, echo_once, listener) == 0);
    cutline_socket *socket = cutline_connect_to(SOCK_DGRAM, here, options);
    CHECK(socket && cutline_has_qos_peer(socket) == 1);
    CHECK(cutline_peer_address(socket, there, sizeof there) > 0 && strcmp(there, here) == 0);
    CHECK(cutline_peer_address(listener, there, sizeof there) == -1 && errno == EOPNOTSUPP);
    talk(socket);
    CHECK(pthread_join(thread, NULL) == 0);
    /* The port is in use. */
    CHECK(cutline_listen_at(SOCK_DGRAM, here, options) == NULL && errno == EADDRINUSE);
    CHECK(cutline_close(listener) == 0);
    listener = cutline_listen_at(SOCK_DGRAM, here, options);
    CHECK(listener);
    CHECK(cutline_close(listener) == 0);
}

static void *accept_one(void *listener)
{
    return accepted(listener);
}

/* A child closes the sockets that it has inherited. The frames of its parent's connections still arrive at the parent's sockets alone. */
static void forked(void)
{
    cutline_socket *listener = cutline_listen_at(SOCK_DGRAM, "direct:lo:0", options);
    char here[100], byte;
    CHECK(listener && cutline_local_address(listener, here, sizeof here) > 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, accept_one, listener) == 0);
    cutline_socket *ours = cutline_connect_to(SOCK_DGRAM, here, options);
    CHECK(ours);
    void *theirs;
    CHECK(pthread_join(thread, &theirs) == 0);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        cutline_close(theirs);
        cutline_close(ours);
        cutline_close(listener);
        _exit(0);
    }
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    /* Frames from before the connection was accepted. */
    CHECK(cutline_set_nonblocking(listener, 1) == 0 && !cutline_accept(listener, NULL, NULL) && errno == EAGAIN);
    CHECK(cutline_send(ours, "x", 1, 0) == 1 && cutline_recv(theirs, &byte, 1, 0) == 1 && byte == 'x');
    struct pollfd descriptor = {.fd = cutline_fd(listener), .events = POLLIN};
    CHECK(poll(&descriptor, 1, 100) == 0);
    cutline_close(theirs);
    cutline_close(ours);
    cutline_close(listener);
}

static void wrong(void)
{
    static const struct {
        int type;
        const char *address, *expected;
    } calls[] = {
        {SOCK_STREAM, "direct:lo/00:00:00:00:00:00:7", "frames below IP carry datagrams"},
        {SOCK_DGRAM, "direct:lo", "direct:INTERFACE"},
        {SOCK_DGRAM, "direct:lo/00:00:7", "direct:INTERFACE"},
        {SOCK_DGRAM, "direct:nosuch0/00:00:00:00:00:00:7", "one of the interfaces "},
    };
    for (size_t place = 0; place < sizeof calls / sizeof *calls; place++) {
        CHECK(cutline_connect_to(calls[place].type, calls[place].address, options) == NULL && errno == EINVAL);
        CHECK(cutline_error_code() == CUTLINE_ERROR_ARGUMENT && strstr(cutline_error(), calls[place].expected));
        CHECK(cutline_listen_at(calls[place].type, calls[place].address, options) == NULL && errno == EINVAL);
        CHECK(strstr(cutline_error(), calls[place].expected));
    }
    CHECK(cutline_listen_at(SOCK_DGRAM, "direct:nosuch0:7", options) == NULL && errno == ENODEV);
    CHECK(strstr(cutline_error(), "there is no interface `nosuch0`"));
    CHECK(cutline_listen_at(SOCK_DGRAM, "direct:lo/02:00:00:00:00:01:0", options) == NULL && errno == EINVAL);
    CHECK(strstr(cutline_error(), "that of the interface, direct:lo/00:00:00:00:00:00:"));
    CHECK(cutline_options_set(options, "service", "mark") == 0);
    CHECK(cutline_listen_at(SOCK_DGRAM, "direct:lo:0", options) == NULL && errno == EINVAL);
    CHECK(strstr(cutline_error(), "frames below IP cross no router"));
}

int main(int count, char **words)
{
    options = cutline_options_new(NULL);
    CHECK(options);
    CHECK(cutline_options_read(options, "[send]\nsize = '66000 B'\ncoerce = true\n"
                                        "[receive]\nsize = '66000 B'\ncoerce = true\n") == 0);
    CHECK(cutline_options_set(options, "marking", "3") == 0);
    /* A thread of a busy machine may have no turn for seconds. */
    CHECK(cutline_options_set(options, "detection", "60 s") == 0);
    if (count == 1) {
        loopback();
        forked();
        wrong();
    } else if (strcmp(words[1], "receive") == 0) {
        cutline_socket *listener = cutline_listen_at(SOCK_DGRAM, words[2], options);
        CHECK(listener);
        printf("listening\n");
        fflush(stdout);
        cutline_socket *socket = accepted(listener);
        char from[100];
        CHECK(cutline_peer_address(socket, from, sizeof from) > 0);
        echo(socket);
        CHECK(cutline_close(listener) == 0);
        printf("%s\n", from);
    } else if (strcmp(words[1], "send") == 0) {
        cutline_socket *socket = cutline_connect_to(SOCK_DGRAM, words[2], options);
        CHECK(socket && cutline_set_recv_timeout(socket, 60000) == 0);
        talk(socket);
    } else {
        CHECK(cutline_listen_at(SOCK_DGRAM, "direct:lo:0", options) == NULL && errno == EPERM);
        CHECK(cutline_error_code() == CUTLINE_ERROR_SYSTEM && strstr(cutline_error(), "CAP_NET_RAW"));
        CHECK(cutline_connect_to(SOCK_DGRAM, "direct:lo/00:00:00:00:00:00:7", options) == NULL && errno == EPERM);
        CHECK(cutline_error_code() == CUTLINE_ERROR_SYSTEM && strstr(cutline_error(), "CAP_NET_RAW"));
    }
    cutline_options_free(options);
    printf("all is well\n");
    return 0;
}
