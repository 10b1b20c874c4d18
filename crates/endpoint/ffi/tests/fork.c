/* Children of a process that has connections make their own, and may not use those of their parent: fork STREAM DATAGRAMS CHILDREN */
#define _DEFAULT_SOURCE
#include <cutline.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(truth)                                                                                                   \
    do {                                                                                                               \
        if (!(truth)) {                                                                                                \
            fprintf(stderr, "line %d: %s: %s (errno %d)\n", __LINE__, #truth, cutline_error(), errno);                \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static char **places;

/* A stream's and a datagram's, which this process and its children have. */
static cutline_socket *listeners[2];
static cutline_options *plain;

static cutline_socket *connected(int datagrams)
{
    cutline_options *options = cutline_options_new("telemetry");
    cutline_options_set(options, "monitor.interval", "20 ms");
    /* A thread of a busy machine may have no turn for seconds. */
    cutline_options_set(options, "detection", "60 s");
    cutline_socket *made = cutline_connect_to(datagrams ? SOCK_DGRAM : SOCK_STREAM, places[datagrams], options);
    CHECK(made);
    cutline_options_free(options);
    return made;
}

static void exchange(cutline_socket *socket, int datagrams)
{
    char data[100] = {0};
    CHECK(cutline_send(socket, data, sizeof data, 0) == sizeof data);
    ssize_t got = cutline_recv(socket, data, sizeof data, 0);
    if (got != sizeof data)
        fprintf(stderr, "%s: %zd bytes\n", datagrams ? "datagrams" : "stream", got);
    CHECK(got == sizeof data);
}

/* Accepts a connection, of which this process has both ends. */
static void accept_own(int datagrams)
{
    char place[100], data[16] = {0};
    CHECK(cutline_local_address(listeners[datagrams], place, sizeof place) > 0);
    cutline_socket *ours = cutline_connect_to(datagrams ? SOCK_DGRAM : SOCK_STREAM, place, plain);
    CHECK(ours && cutline_send(ours, data, sizeof data, 0) == sizeof data);
    cutline_socket *theirs = cutline_accept(listeners[datagrams], NULL, NULL);
    CHECK(theirs && cutline_recv(theirs, data, sizeof data, 0) == sizeof data);
    cutline_close(ours);
    cutline_close(theirs);
}

static atomic_bool is_over;

/* Makes connections all the time, so that a fork meets this thread, and those of the library, anywhere. It ends before the process does: the end
   of a process closes the streams of all threads. */
static void *busy(void *unused)
{
    for (int datagrams = 0; !is_over; datagrams = !datagrams) {
        cutline_socket *socket = connected(datagrams);
        exchange(socket, datagrams);
        cutline_close(socket);
    }
    return unused;
}

static void child(cutline_socket **inherited)
{
    alarm(120);
    for (int datagrams = 0; datagrams < 2; datagrams++) {
        char data[100] = {0};
        CHECK(cutline_send(inherited[datagrams], data, 1, 0) == -1 && errno == ENOTCONN);
        CHECK(strstr(cutline_error(), "fork"));
        CHECK(cutline_recv(inherited[datagrams], data, 1, 0) == -1 && errno == ENOTCONN);
        cutline_mib none = {.size = sizeof none};
        CHECK(cutline_get_mib(inherited[datagrams], &none) == -1 && errno == ENOTCONN);
        /* They would change the parent's socket. */
        CHECK(cutline_set_nonblocking(inherited[datagrams], 1) == -1 && errno == ENOTCONN);
        CHECK(cutline_set_recv_timeout(inherited[datagrams], 1) == -1 && errno == ENOTCONN);
        cutline_close(inherited[datagrams]);
        cutline_socket *own = connected(datagrams);
        exchange(own, datagrams);
        /* A thread of this process takes the peer's reports. */
        cutline_mib mib = {.size = sizeof mib};
        do
            CHECK(cutline_get_mib(own, &mib) == 0);
        while (mib.send.received.messages < 1 && usleep(1000) == 0);
        cutline_close(own);
    }
    /* A stream listener may be inherited, one of datagrams may not. */
    accept_own(0);
    CHECK(!cutline_accept(listeners[1], NULL, NULL) && errno == ENOTCONN && strstr(cutline_error(), "fork"));
    /* It would change the parent's listener. */
    CHECK(cutline_set_nonblocking(listeners[1], 1) == -1 && errno == ENOTCONN);
    cutline_close(listeners[0]);
    cutline_close(listeners[1]);
    exit(0);
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    places = words + 1;
    cutline_socket *sockets[2] = {connected(0), connected(1)};
    /* One thread has both ends of each accepted connection, so they do not negotiate. */
    plain = cutline_options_new(NULL);
    CHECK(cutline_options_set(plain, "peer", "plain") == 0);
    listeners[0] = cutline_listen_at(SOCK_STREAM, "127.0.0.1:0", plain);
    listeners[1] = cutline_listen_at(SOCK_DGRAM, "127.0.0.1:0", plain);
    CHECK(listeners[0] && listeners[1]);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, busy, NULL) == 0);
    for (int left = atoi(words[3]); left > 0; left--) {
        /* A message that is lost ends the test, later than the child. */
        alarm(240);
        pid_t pid = fork();
        if (pid == 0)
            child(sockets);
        int status;
        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
        if (status != 0) {
            fprintf(stderr, "a child ended with %d (14: it hung)\n", status);
            return 1;
        }
        /* The parent's connections and listeners are as they were. */
        for (int datagrams = 0; datagrams < 2; datagrams++) {
            exchange(sockets[datagrams], datagrams);
            accept_own(datagrams);
        }
    }
    is_over = true;
    CHECK(pthread_join(thread, NULL) == 0);
    cutline_close(sockets[0]);
    cutline_close(sockets[1]);
    cutline_close(listeners[0]);
    cutline_close(listeners[1]);
    cutline_options_free(plain);
    puts("all is well");
    return 0;
}
