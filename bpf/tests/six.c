/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* Sends a stream of TCP over IPv6 from one network namespace to another, for the virtual machine of `make test-vm`:
 *
 *     six FROM TO ADDRESS CODE_POINT SECONDS
 *
 * Prints the bytes that the other end has received, and the time from the first to the last of them, as "SIX {...}".
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 7 };

static char chunk[16384];

static _Noreturn void fail(const char *what)
{
    printf("FAILED six %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void enter(const char *namespace)
{
    char path[256];
    int file;

    snprintf(path, sizeof path, "/run/netns/%s", namespace);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || setns(file, CLONE_NEWNET))
        fail(path);
    close(file);
}

static void receive(int listener)
{
    int stream = accept(listener, NULL, NULL);
    unsigned long long bytes = 0;
    double first = 0, last = 0;
    ssize_t count;

    if (stream < 0)
        fail("accept");
    while ((count = read(stream, chunk, sizeof chunk)) > 0) {
        last = now();
        if (!bytes)
            first = last;
        bytes += count;
    }
    if (count < 0)
        fail("read");
    printf("SIX {\"bytes\": %llu, \"seconds\": %.3f}\n", bytes, last - first);
}

int main(int count, char **words)
{
    struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_port = htons(PORT) };
    int listener, sender, on = 1, traffic_class, status;
    double end;
    pid_t child;

    errno = EINVAL;
    if (count != 6)
        fail("FROM TO ADDRESS CODE_POINT SECONDS");
    enter(words[2]);
    listener = socket(AF_INET6, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (listener < 0 || bind(listener, (void *)&to, sizeof to) || listen(listener, 1))
        fail("listen");
    child = fork();
    if (child < 0)
        fail("fork");
    if (!child) {
        receive(listener);
        return 0;
    }
    close(listener);
    enter(words[1]);
    sender = socket(AF_INET6, SOCK_STREAM, 0);
    traffic_class = atoi(words[4]) << 2;
    if (sender < 0 || setsockopt(sender, IPPROTO_IPV6, IPV6_TCLASS, &traffic_class, sizeof traffic_class))
        fail("IPV6_TCLASS");
    if (inet_pton(AF_INET6, words[3], &to.sin6_addr) != 1 || connect(sender, (void *)&to, sizeof to)) {
        printf("FAILED six connect: %s\n", strerror(errno));
        /* It waits for the connection. */
        kill(child, 9);
        return 1;
    }
    end = now() + atof(words[5]);
    while (now() < end)
        if (write(sender, chunk, sizeof chunk) < 0)
            fail("write");
    shutdown(sender, SHUT_WR);
    return waitpid(child, &status, 0) != child || status != 0;
}
