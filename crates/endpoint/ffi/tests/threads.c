/* While the system refuses a thread, a process cannot connect or accept, and no connection is lost: the call works as soon as there is a thread. */
#define _DEFAULT_SOURCE
#include <arpa/inet.h>
#include <cutline.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

/* Memory that a call may use without a thread, whose stack takes 2 MiB. */
enum { ROOM = 1 << 20 };

static void refuse_threads(int refuse)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    if (refuse) {
        unsigned long pages = 0;
        FILE *file = fopen("/proc/self/statm", "r");
        CHECK(file && fscanf(file, "%lu", &pages) == 1);
        CHECK(fclose(file) == 0);
        limit.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ROOM;
    }
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
}

/* Not EAGAIN: a caller would wait for the descriptor. */
#define CHECK_REFUSED(socket) CHECK(!(socket) && errno == ENOMEM && strstr(cutline_error(), "a thread"))

static void connects(int type, const char *place)
{
    cutline_options *options = cutline_options_new("telemetry");
    refuse_threads(1);
    CHECK_REFUSED(cutline_connect_to(type, place, options));
    refuse_threads(0);
    cutline_socket *made = cutline_connect_to(type, place, options);
    CHECK(made);
    char data[100] = {0};
    CHECK(cutline_send(made, data, sizeof data, 0) == sizeof data);
    CHECK(cutline_recv(made, data, sizeof data, 0) == sizeof data);
    cutline_close(made);
    cutline_options_free(options);
}

static void accepts(int type)
{
    cutline_options *options = cutline_options_new(NULL);
    CHECK(cutline_options_set(options, "peer", "plain") == 0);
    cutline_socket *listener = cutline_listen_at(type, "127.0.0.1:0", options);
    CHECK(listener);
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    CHECK(cutline_getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    int client = socket(AF_INET, type, 0);
    CHECK(client >= 0 && connect(client, (struct sockaddr *)&address, length) == 0);
    char data[] = {'h', 'e', 'l', 'l', 'o'};
    CHECK(send(client, data, sizeof data, 0) == sizeof data);
    refuse_threads(1);
    CHECK_REFUSED(cutline_accept(listener, NULL, NULL));
    refuse_threads(0);
    cutline_socket *accepted = cutline_accept(listener, NULL, NULL);
    CHECK(accepted && cutline_recv(accepted, data, sizeof data, 0) == sizeof data);
    CHECK(cutline_send(accepted, data, sizeof data, 0) == sizeof data);
    CHECK(recv(client, data, sizeof data, 0) == sizeof data && memcmp(data, "hello", sizeof data) == 0);
    cutline_close(accepted);
    cutline_close(listener);
    close(client);
    cutline_options_free(options);
}

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    /* A hang ends the test. */
    alarm(240);
    int type = strcmp(words[1], "datagrams") == 0 ? SOCK_DGRAM : SOCK_STREAM;
    if (strcmp(words[2], "accept") == 0)
        accepts(type);
    else
        connects(type, words[2]);
    puts("all is well");
    return 0;
}
