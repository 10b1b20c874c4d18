/* A connection whose reservation is asked for at a local socket: argument 1 is where, argument 2 what the agent there answers. */
#include <cutline.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

static atomic_int is_over;

/* Accepts connections, and keeps them open until the end. */
static void *serve(void *listener)
{
    cutline_socket *accepted[2] = {NULL, NULL};
    for (size_t count = 0; count < 2 && !is_over;) {
        struct pollfd descriptor = {.fd = cutline_fd(listener), .events = POLLIN};
        poll(&descriptor, 1, 20);
        if ((accepted[count] = cutline_accept(listener, NULL, NULL)))
            count++;
    }
    while (!is_over)
        poll(NULL, 0, 5);
    cutline_close(accepted[0]);
    cutline_close(accepted[1]);
    return NULL;
}

static struct sockaddr_in there;

static cutline_socket *reach(cutline_options *options)
{
    return cutline_connect(SOCK_DGRAM, (struct sockaddr *)&there, sizeof there, options);
}

static int granted(cutline_options *options)
{
    cutline_socket *socket = reach(options);
    CHECK(socket);
    cutline_mib mib = {.size = sizeof mib};
    CHECK(cutline_get_mib(socket, &mib) == 0 && mib.size == sizeof mib);
    CHECK(strcmp(mib.reservation.service, "rsvp") == 0);
    const cutline_direction_reservation *send = &mib.reservation.send, *receive = &mib.reservation.receive;
    CHECK(send->state == CUTLINE_GRANT_STATE_RESERVED && receive->state == CUTLINE_GRANT_STATE_RESERVED);
    /* The agent gives less than is asked for, and confirms the other direction without a number. */
    CHECK(send->reserved.rate_bps == 500000 && send->requested.rate_bps > 500000);
    CHECK(send->reserved.bucket_bytes == 3000 && send->reserved.max_packet_bytes == 1500);
    CHECK(receive->requested.rate_bps > 0 && receive->reserved.rate_bps == receive->requested.rate_bps);
    CHECK(receive->reserved.bucket_bytes == receive->requested.bucket_bytes);
    CHECK(send->refusal.reason == CUTLINE_REASON_NONE && send->refusal.text[0] == 0);

    cutline_reservation_event event = {.size = sizeof event};
    CHECK(cutline_next_reservation_event(socket, &event) == 1 && event.size == sizeof event);
    CHECK(event.kind == CUTLINE_RESERVATION_EVENT_GRANTED && event.direction == CUTLINE_TRAFFIC_DIRECTION_SEND);
    CHECK(event.reserved.rate_bps == 500000 && strcmp(event.text, "send: 500 kbit/s is reserved") == 0);
    CHECK(cutline_next_reservation_event(socket, &event) == 1);
    CHECK(event.kind == CUTLINE_RESERVATION_EVENT_GRANTED && event.direction == CUTLINE_TRAFFIC_DIRECTION_RECEIVE);
    CHECK(cutline_next_reservation_event(socket, &event) == 1);
    CHECK(event.kind == CUTLINE_RESERVATION_EVENT_CONFIRMED && event.direction == CUTLINE_TRAFFIC_DIRECTION_RECEIVE);
    CHECK(strcmp(event.node, "10.0.0.1") == 0);
    CHECK(cutline_next_reservation_event(socket, &event) == 0);
    event.size = 3;
    CHECK(cutline_next_reservation_event(socket, &event) == -1 && errno == EINVAL);
    return cutline_close(socket);
}

/* With `fail`, connecting is an error with this text. Otherwise the connection continues, and its receiving direction has this reason. */
static int refused(cutline_options *options, const char *text, int reason, int64_t available_bps)
{
    CHECK(cutline_options_set(options, "if-refused", "fail") == 0);
    errno = 0;
    CHECK(reach(options) == NULL && errno == ECONNREFUSED);
    CHECK(cutline_error_code() == CUTLINE_ERROR_REFUSED && strstr(cutline_error(), text));

    CHECK(cutline_options_set(options, "if-refused", "best-effort") == 0);
    cutline_socket *socket = reach(options);
    CHECK(socket);
    cutline_mib mib = {.size = sizeof mib};
    CHECK(cutline_get_mib(socket, &mib) == 0);
    const cutline_direction_reservation *receive = &mib.reservation.receive;
    CHECK(receive->state == CUTLINE_GRANT_STATE_FAILED && receive->requested.rate_bps > 0);
    CHECK(receive->reserved.rate_bps == -1 && receive->refusal.reason == reason);
    CHECK(receive->refusal.available_bps == available_bps && strstr(receive->refusal.text, text));
    cutline_reservation_event event = {.size = sizeof event};
    if (reason == CUTLINE_REASON_UNANSWERED) {
        CHECK(cutline_next_reservation_event(socket, &event) == 0);
    } else {
        do
            CHECK(cutline_next_reservation_event(socket, &event) == 1);
        while (event.direction != CUTLINE_TRAFFIC_DIRECTION_RECEIVE);
        CHECK(event.kind == CUTLINE_RESERVATION_EVENT_LOST && event.refusal.reason == reason);
        CHECK(event.refusal.available_bps == available_bps && strstr(event.text, text));
    }
    return cutline_close(socket);
}

static int without(void)
{
    cutline_options *options = cutline_options_new("video");
    CHECK(options);
    CHECK(cutline_options_set(options, "service", "atm") == -1 && strstr(cutline_error(), "\"rsvp\""));
    CHECK(cutline_options_set(options, "ack-path", "best-effort") == 0);
    CHECK(cutline_options_check(options) == -1);
    CHECK(strstr(cutline_error(), "key \"ack-path\": value best-effort is not allowed"));
    cutline_options_free(options);
    cutline_socket *socket = reach(NULL);
    CHECK(socket);
    cutline_mib mib = {.size = sizeof mib};
    CHECK(cutline_get_mib(socket, &mib) == 0);
    CHECK(mib.reservation.service[0] == 0 && mib.reservation.send.state == CUTLINE_GRANT_STATE_NOT_REQUESTED);
    CHECK(mib.reservation.send.requested.rate_bps == -1 && mib.reservation.send.refusal.reason == CUTLINE_REASON_NONE);
    cutline_reservation_event event = {.size = sizeof event};
    CHECK(cutline_next_reservation_event(socket, &event) == 0);
    return cutline_close(socket);
}

int main(int count, char **arguments)
{
    CHECK(count == 3);
    cutline_socket *listener = cutline_listen_at(SOCK_DGRAM, "127.0.0.1:0", NULL);
    CHECK(listener);
    socklen_t length = sizeof there;
    CHECK(cutline_getsockname(listener, (struct sockaddr *)&there, &length) == 0);
    CHECK(cutline_set_nonblocking(listener, 1) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, serve, listener) == 0);

    cutline_options *options = cutline_options_new("video");
    CHECK(options);
    const char *answer = arguments[2], *patience = strcmp(answer, "unanswered") == 0 ? "200 ms" : "20 s";
    CHECK(cutline_options_set(options, "reservation-patience", patience) == 0);
    CHECK(cutline_options_set(options, "service-socket", arguments[1]) == 0);
    CHECK(cutline_options_set(options, "service", "rsvp") == 0);
    int failed = 1;
    if (strcmp(answer, "granted") == 0)
        failed = granted(options);
    else if (strcmp(answer, "refused") == 0)
        failed = refused(options, "the bandwidth is not available at 10.0.0.1; 400 kbit/s would be granted",
                         CUTLINE_REASON_BANDWIDTH, 400000);
    else if (strcmp(answer, "unanswered") == 0)
        failed = refused(options, "there was no answer in time", CUTLINE_REASON_UNANSWERED, -1);
    else if (strcmp(answer, "no-agent") == 0)
        failed = refused(options, "cutlined cannot be reached", CUTLINE_REASON_NO_AGENT, -1);
    else if (strcmp(answer, "without") == 0)
        failed = without();
    is_over = 1;
    CHECK(!failed);
    cutline_options_free(options);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(cutline_close(listener) == 0);
    puts(answer);
    return 0;
}
