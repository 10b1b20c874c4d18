/* Both ends of connections in one program: an echo over a stream and over datagrams, events, the MIB, and errors. */
#include <arpa/inet.h>
#include <cutline.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

enum { ROUNDS = 50 };

/* Returns what comes until the peer has closed its direction, or sends an empty datagram. */
static void *echo(void *listener)
{
    struct sockaddr_in from;
    socklen_t length = sizeof from;
    cutline_socket *socket = cutline_accept(listener, (struct sockaddr *)&from, &length);
    CHECK(socket && length == sizeof from && from.sin_family == AF_INET);
    char buffer[2000];
    ssize_t bytes;
    while ((bytes = cutline_recv(socket, buffer, sizeof buffer, 0)) > 0)
        CHECK(cutline_send(socket, buffer, (size_t)bytes, MSG_NOSIGNAL) == bytes);
    CHECK(bytes == 0);
    CHECK(cutline_close(socket) == 0);
    return NULL;
}

struct seen {
    atomic_int agreed, others;
};

static void on_event(const cutline_event *event, void *data)
{
    struct seen *seen = data;
    if (event->kind == CUTLINE_EVENT_AGREED && strcmp(event->text, "both ends agree") == 0)
        seen->agreed++;
    else
        seen->others++;
}

static int talk(int type, cutline_options *options)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    cutline_socket *listener = cutline_listen(type, (struct sockaddr *)&any, sizeof any, options);
    CHECK(listener);
    struct sockaddr_in here;
    socklen_t length = sizeof here;
    CHECK(cutline_getsockname(listener, (struct sockaddr *)&here, &length) == 0 && here.sin_port != 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, echo, listener) == 0);

    cutline_socket *socket = cutline_connect(type, (struct sockaddr *)&here, sizeof here, options);
    CHECK(socket);
    CHECK(cutline_has_qos_peer(socket) == 1);
    struct sockaddr_in there;
    length = sizeof there;
    CHECK(cutline_getpeername(socket, (struct sockaddr *)&there, &length) == 0);
    CHECK(there.sin_port == here.sin_port);
    char message[700], answer[700];
    for (int round = 0; round < ROUNDS; round++) {
        memset(message, round, sizeof message);
        CHECK(cutline_send(socket, message, sizeof message, 0) == sizeof message);
        for (size_t got = 0; got < sizeof answer;) {
            struct pollfd descriptor = {.fd = cutline_fd(socket), .events = POLLIN};
            if (!cutline_pending(socket))
                CHECK(poll(&descriptor, 1, 60000) == 1);
            ssize_t bytes = cutline_recv(socket, answer + got, sizeof answer - got, 0);
            CHECK(bytes > 0);
            got += (size_t)bytes;
        }
        CHECK(memcmp(message, answer, sizeof answer) == 0);
    }
    cutline_event event = {.size = sizeof event};
    CHECK(cutline_next_event(socket, &event, 60000) == 1);
    CHECK(event.kind == CUTLINE_EVENT_AGREED && strcmp(event.text, "both ends agree") == 0);
    CHECK(cutline_next_event(socket, &event, 0) == 0);

    cutline_mib mib = {.size = sizeof mib};
    CHECK(cutline_get_mib(socket, &mib) == 0);
    CHECK(mib.size == sizeof mib && mib.send.agreed == 1);
    CHECK(mib.send.sent_messages == ROUNDS && mib.send.sent_bytes == ROUNDS * 700);
    CHECK(mib.receive.received.bytes == ROUNDS * 700 && mib.receive.received.lost == 0);
    CHECK(mib.send.effective.max_delay_ns == 150000000000 && mib.send.effective.size == 1000);
    CHECK(isnan(mib.send.effective.min_rate) && mib.send.effective.reordering == -1);
    CHECK((mib.tcp.congestion_window > 0) == (type == SOCK_STREAM));
    CHECK(mib.tfrc.rate_bps == -1 && mib.tfrc.feedback == -1 && isnan(mib.tfrc.loss_event_rate));
    CHECK(mib.send_details.offered.max_delay_ns == 150000000000 && mib.send_details.offered.size == 1000);
    CHECK(mib.send_details.requested.max_delay_ns == -1 && isnan(mib.send_details.requested.loss));
    const cutline_axis *delay = &mib.send_details.operation[CUTLINE_MEASURE_DELAY];
    CHECK(delay->best == 0 && delay->worst == 150000 && isnan(delay->violated) && delay->violated_since_ns == -1);
    CHECK(isnan(mib.send_details.operation[CUTLINE_MEASURE_GAP].best));
    CHECK(mib.negotiation.sent >= 1 && mib.negotiation.received >= 1 && mib.negotiation.unauthenticated == 0);
    CHECK(mib.send_buffer > 1000 && mib.send_queue >= 0 && mib.send_queue <= mib.send_buffer);
    CHECK(isnan(mib.residual_rate) && mib.residual_bps == -1 && mib.no_buffers == 0 && mib.unreachable == 0);

    struct seen seen = {0};
    CHECK(cutline_on_event(listener, on_event, &seen) == -1 && errno == EOPNOTSUPP);
    CHECK(cutline_on_event(socket, on_event, &seen) == 0);
    CHECK(cutline_options_set(options, "send.max-delay", "90 s") == 0);
    CHECK(cutline_renegotiate(socket, options) == 0);
    for (int waited = 0; seen.agreed == 0; waited++) {
        CHECK(waited < 60000);
        poll(NULL, 0, 1);
    }
    CHECK(cutline_next_event(socket, &event, 0) == 1);
    if (type == SOCK_DGRAM)
        CHECK(cutline_on_event(socket, NULL, NULL) == 0);
    CHECK(cutline_options_set(options, "send.max-delay", "150 s") == 0);

    CHECK(cutline_set_nonblocking(socket, 1) == 0);
    errno = 0;
    CHECK(cutline_recv(socket, answer, sizeof answer, 0) == -1 && errno == EAGAIN);
    CHECK(cutline_set_nonblocking(socket, 0) == 0 && cutline_set_recv_timeout(socket, 20) == 0);
    errno = 0;
    CHECK(cutline_recv(socket, answer, sizeof answer, 0) == -1 && errno == EAGAIN);
    CHECK(cutline_set_send_timeout(socket, 20) == (type == SOCK_STREAM ? 0 : -1));
    if (type == SOCK_DGRAM) {
        errno = 0;
        char long_message[1001] = {0};
        CHECK(cutline_send(socket, long_message, sizeof long_message, 0) == -1 && errno == EINVAL);
        CHECK(strstr(cutline_error(), "agreed on are at most 1000 B"));
        CHECK(cutline_send(socket, NULL, 0, 0) == 0);
    }
    errno = 0;
    CHECK(cutline_shutdown(socket, SHUT_WR) == 0 || (type == SOCK_DGRAM && errno == EOPNOTSUPP));
    if (type == SOCK_STREAM) {
        /* No signal ends the program. */
        errno = 0;
        CHECK(cutline_send(socket, message, sizeof message, 0) == -1 && errno == EPIPE);
        CHECK(cutline_send(socket, message, sizeof message, MSG_NOSIGNAL) == -1 && errno == EPIPE);
    }
    CHECK(cutline_close(socket) == 0);
    void *failed;
    CHECK(pthread_join(thread, &failed) == 0 && !failed);
    CHECK(cutline_close(listener) == 0);
    return 0;
}

static atomic_int is_over;

/* Accepts connections, all of which fail because their peers do not agree. */
static void *refuse(void *listener)
{
    while (!is_over) {
        struct pollfd descriptor = {.fd = cutline_fd(listener), .events = POLLIN};
        poll(&descriptor, 1, 20);
        CHECK(cutline_accept(listener, NULL, NULL) == NULL && errno == EAGAIN);
    }
    return NULL;
}

static int refusals(void)
{
    CHECK(cutline_options_new("vidoe") == NULL && errno == EINVAL);
    CHECK(strstr(cutline_error(), "\"video\"") && cutline_error_code() == CUTLINE_ERROR_ARGUMENT);
    cutline_options *options = cutline_options_new(NULL);
    CHECK(options);
    CHECK(cutline_options_set(options, "send.max-dely", "1 s") == -1);
    CHECK(strstr(cutline_error(), "did you mean \"max-delay\"?"));
    CHECK(cutline_options_set(options, "send.loss", "101") == -1);
    CHECK(strstr(cutline_error(), "from 0 to 100"));
    CHECK(cutline_options_set(options, "send.loss", "\xff") == -1 && strstr(cutline_error(), "UTF-8"));
    CHECK(cutline_options_set(options, "tfrc.t-mbi", "30 s") == 0);
    CHECK(cutline_options_set(options, "tfrc.t-mbi", "10 ms") == -1);
    CHECK(strstr(cutline_error(), "tfrc.t-mbi") && strstr(cutline_error(), "from 1 s to 3600 s"));
    CHECK(cutline_options_set_key(options, "short", 5) == -1 && strstr(cutline_error(), "32"));
    CHECK(cutline_options_read(options, "{\"class\": 3}") == -1);
    CHECK(cutline_options_read(options, "class = 'audio'\n[receive]\nmin-rate = 60\nmax-rate = 50\n") == -1);
    CHECK(cutline_options_set(options, "send.min-rate", "60") == 0);
    CHECK(cutline_options_set(options, "send.max-rate", "50") == 0);
    CHECK(cutline_options_check(options) == -1 && strstr(cutline_error(), "at most max-rate, which is 50"));
    CHECK(cutline_connect_to(SOCK_STREAM, "127.0.0.1:1", options) == NULL && errno == EINVAL);
    CHECK(cutline_options_read(options, "peer = 'plain'") == 0 && cutline_options_check(options) == 0);

    errno = 0;
    CHECK(cutline_connect_to(SOCK_STREAM, "127.0.0.1:1", options) == NULL && errno == ECONNREFUSED);
    CHECK(cutline_error_code() == CUTLINE_ERROR_SYSTEM);
    CHECK(cutline_connect_to(SOCK_RAW, "127.0.0.1:1", NULL) == NULL && strstr(cutline_error(), "SOCK_DGRAM"));
    CHECK(cutline_connect_to(SOCK_STREAM, "nowhere", NULL) == NULL);
    CHECK(cutline_connect_to(SOCK_STREAM, NULL, NULL) == NULL && strstr(cutline_error(), "null pointer"));
    CHECK(cutline_connect(SOCK_STREAM, NULL, 16, NULL) == NULL && errno == EINVAL);
    CHECK(cutline_send(NULL, "x", 1, 0) == -1 && errno == EINVAL);
    CHECK(cutline_fd(NULL) == -1 && cutline_accept(NULL, NULL, NULL) == NULL);

    cutline_socket *listener = cutline_listen_at(SOCK_STREAM, "127.0.0.1:0", NULL);
    CHECK(listener);
    errno = 0;
    CHECK(cutline_send(listener, "x", 1, 0) == -1 && errno == EOPNOTSUPP);
    cutline_mib mib = {.size = sizeof mib};
    CHECK(cutline_get_mib(listener, &mib) == -1 && cutline_pending(listener) == -1);
    CHECK(cutline_set_nonblocking(listener, 1) == 0);
    errno = 0;
    CHECK(cutline_accept(listener, NULL, NULL) == NULL && errno == EAGAIN);
    CHECK(cutline_shutdown(listener, 99) == -1 && strstr(cutline_error(), "SHUT_RDWR"));
    CHECK(cutline_close(listener) == 0 && cutline_close(NULL) == 0);

    /* Two ends that do not agree: neither may be weakened. */
    CHECK(cutline_options_read(options, "[receive]\nmax-delay = '10 ms'\n") == 0);
    listener = cutline_listen_at(SOCK_DGRAM, "127.0.0.1:0", options);
    CHECK(listener);
    struct sockaddr_in here;
    socklen_t length = sizeof here;
    CHECK(cutline_getsockname(listener, (struct sockaddr *)&here, &length) == 0);
    CHECK(cutline_set_nonblocking(listener, 1) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, refuse, listener) == 0);
    /* On a busy machine the listener may answer late. */
    const char *patient = "detection = '60 s'\n[send]\nmax-delay = '20 ms'\n[negotiation]\ngive-up = '60 s'\n";
    CHECK(cutline_options_read(options, patient) == 0);
    errno = 0;
    CHECK(cutline_connect(SOCK_DGRAM, (struct sockaddr *)&here, sizeof here, options) == NULL);
    CHECK(errno == ECONNREFUSED && cutline_error_code() == CUTLINE_ERROR_REFUSED);
    CHECK(strstr(cutline_error(), "max-delay"));
    is_over = 1;
    void *failed;
    CHECK(pthread_join(thread, &failed) == 0 && !failed);
    cutline_options_free(options);
    CHECK(cutline_close(listener) == 0);
    CHECK(strlen(cutline_version()) > 0);
    return 0;
}

int main(void)
{
    cutline_options *options = cutline_options_new(NULL);
    CHECK(options);
    /* A thread of a busy machine may have no turn for seconds. */
    CHECK(cutline_options_set(options, "detection", "60 s") == 0);
    CHECK(cutline_options_set(options, "send.max-delay", "150 s") == 0);
    CHECK(cutline_options_set(options, "send.size", "1000 B") == 0);
    CHECK(cutline_options_set(options, "send.coerce", "true") == 0);
    CHECK(cutline_options_set_key(options, "a key that has at least 32 bytes", 32) == 0);
    int failed = talk(SOCK_STREAM, options) || talk(SOCK_DGRAM, options) || refusals();
    cutline_options_free(options);
    if (!failed)
        puts("all is well");
    return failed;
}
