/*
 * QoS sockets: an application states its requirements on a connection, and gets reports of the delivery.
 *
 * A call that fails returns -1, or a null pointer, and sets errno; cutline_error() returns the reason as text. Several threads
 * may use a socket at the same time, and one thread at a time may use options. See cutline_socket(3).
 *
 * Written by crates/endpoint/ffi/tests/header.rs: do not edit.
 */
#ifndef CUTLINE_H
#define CUTLINE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A connected or listening socket. */
typedef struct cutline_socket cutline_socket;
/* The requirements of an application on a socket. */
typedef struct cutline_options cutline_options;

/* Kind of an event. */
#define CUTLINE_EVENT_AGREED 1 /* Both ends agree. */
#define CUTLINE_EVENT_REFUSED 2 /* The ends do not agree. The previous agreement holds. */
#define CUTLINE_EVENT_ONE_SIDED 3 /* The peer does not negotiate, or does not answer. The previous agreement holds. */
#define CUTLINE_EVENT_VIOLATED 4 /* A measure is outside its limit. */
#define CUTLINE_EVENT_RESTORED 5 /* A measure is within its limit again. */
#define CUTLINE_EVENT_HINT 6 /* Packets have this hint from now on. */
#define CUTLINE_EVENT_RATE 7 /* The application should send at this rate from now on. */
#define CUTLINE_EVENT_REQUESTED 8 /* This end has requested another specification that the application accepts. */
#define CUTLINE_EVENT_LOST 9 /* The connection is broken, or the peer is silent. */
#define CUTLINE_EVENT_RECOVERED 10 /* The connection works again. */
#define CUTLINE_EVENT_GAVE_UP 11 /* The connection was not restored within the recovery time of the specification. */
#define CUTLINE_EVENT_ALLOCATED 12 /* The resource manager of the host has granted another rate to this end. */
#define CUTLINE_EVENT_UNALLOCATED 13 /* The resource manager has refused or revoked the share of this end. Its rate is no longer limited. */

/* A direction of a connection, as its end sees it. */
#define CUTLINE_TRAFFIC_DIRECTION_SEND 1 /* Traffic that this end sends. */
#define CUTLINE_TRAFFIC_DIRECTION_RECEIVE 2 /* Traffic that this end receives. */

/* Origin of a violation. */
#define CUTLINE_EVENT_ORIGIN_SENDING_HOST 1 /* The sending host: it held its application back. */
#define CUTLINE_EVENT_ORIGIN_NETWORK 2 /* The network, as far as both ends know. */
#define CUTLINE_EVENT_ORIGIN_RECEIVING_HOST 3 /* The receiving host: its application did not read, or its receive buffer was full. */

/* State of a direction's reservation. */
#define CUTLINE_GRANT_STATE_NOT_REQUESTED 0 /* Nothing was requested. */
#define CUTLINE_GRANT_STATE_PENDING 1 /* The network has not answered yet. */
#define CUTLINE_GRANT_STATE_RESERVED 2 /* The reservation is in place. */
#define CUTLINE_GRANT_STATE_FAILED 3 /* The reservation was refused, is lost, or was not answered in time. It is restored when the network can grant it. */

/* Reason for a missing reservation. */
#define CUTLINE_REASON_NONE 0 /* Nothing was refused. */
#define CUTLINE_REASON_BANDWIDTH 1 /* The bandwidth is not available. */
#define CUTLINE_REASON_BURST 2 /* The buckets of all reservations together would be too deep. */
#define CUTLINE_REASON_PACKET_SIZE 3 /* The packets are larger than the link's MTU. */
#define CUTLINE_REASON_NO_PATH 4 /* No path, or no sender. */
#define CUTLINE_REASON_CONFLICT 5 /* Another reservation for the same packets has another style, or other ports. */
#define CUTLINE_REASON_PREEMPTED 6 /* The resources were given to another reservation. */
#define CUTLINE_REASON_ENDED 7 /* The network has ended the reservation. */
#define CUTLINE_REASON_UNANSWERED 8 /* The network did not answer in time. */
#define CUTLINE_REASON_NO_AGENT 9 /* This host's cutlined cannot be reached. */
#define CUTLINE_REASON_INVALID 10 /* A value is not allowed. */
#define CUTLINE_REASON_OTHER 11 /* Another reason, which the text gives. */

/* Kind of a reservation's event. */
#define CUTLINE_RESERVATION_EVENT_GRANTED 1 /* A direction is reserved. */
#define CUTLINE_RESERVATION_EVENT_CHANGED 2 /* The reservation of a direction has changed. */
#define CUTLINE_RESERVATION_EVENT_CONFIRMED 3 /* A direction is reserved along the whole path, as a node reports. */
#define CUTLINE_RESERVATION_EVENT_LOST 4 /* A direction is refused, or lost. */

/* Priority of a protected thread. */
#define CUTLINE_THREAD_PRIORITY_HIGHEST 0 /* The highest priority that the process may have. */
#define CUTLINE_THREAD_PRIORITY_REAL_TIME 1 /* Real-time priority, before all normal threads: SCHED_RR with priority 1. */
#define CUTLINE_THREAD_PRIORITY_NICE 2 /* A larger share among normal threads: nice of -10. */

/* The kind of the last error of a thread. */
#define CUTLINE_ERROR_NONE 0 /* No error. */
#define CUTLINE_ERROR_ARGUMENT 1 /* An argument or an option is not allowed. */
#define CUTLINE_ERROR_REFUSED 2 /* The ends do not agree on a specification; or, with if-refused = fail, the network has not reserved it. */
#define CUTLINE_ERROR_NO_PEER 3 /* The peer is no QoS socket, or has another key. */
#define CUTLINE_ERROR_SYSTEM 4 /* A system call failed: errno gives the reason. */
#define CUTLINE_ERROR_INTERNAL 5 /* Internal error; the socket may be unusable. */
#define CUTLINE_ERROR_LOST 6 /* The connection was lost and is being restored. This call had no effect; the next call uses the new connection. */

/* Measures, in the order that structs have. */
#define CUTLINE_MEASURE_RATE 0
#define CUTLINE_MEASURE_DELAY 1
#define CUTLINE_MEASURE_GAP 2
#define CUTLINE_MEASURE_JITTER 3
#define CUTLINE_MEASURE_LOSS 4
#define CUTLINE_MEASURE_RECOVERY 5
#define CUTLINE_MEASURES 6

/* The sizes of fields for texts, and for names and addresses, bytes. */
#define CUTLINE_TEXT 512
#define CUTLINE_NAME 64

/* An event of a connection. Fields that do not belong to its kind are 0. */
typedef struct cutline_event {
    /* Size of this struct, set by the caller. Later versions have more fields at its end. */
    size_t size;
    /* Kind of the event: one of CUTLINE_EVENT_*. */
    int32_t kind;
    /* A violation's direction: one of CUTLINE_TRAFFIC_DIRECTION_*. */
    int32_t direction;
    /* A violation's measure: one of CUTLINE_MEASURE_*. */
    int32_t measure;
    /* The hint, 1 to 16. */
    int32_t hint;
    /* The worst acceptable value: messages/s, ms, or per cent. */
    double limit;
    /* The measured value of the last interval, in the same unit. */
    double measured;
    /* The largest error of the value due to the two clocks, in the same unit. */
    double error;
    /* The rate at which the application should send, messages/s. */
    double rate;
    /* Start of a violation, by the monotonic clock, ns. */
    int64_t since_ns;
    /* Duration of the violation or the loss, or of the attempts to restore the connection, ns. */
    int64_t after_ns;
    /* The event as text, with a zero at the end. */
    char text[CUTLINE_TEXT];
    /* Number of whole messages sent over the lost connection. */
    int64_t sent;
    /* Number of these messages that the peer has reported as received. It may have received more. */
    int64_t reported;
    /* 1 if a connection that works again is a new one; 0 if the peer sends again over the previous
     * one. */
    int64_t is_new;
    /* The worst value of a violation, in the unit of its limit. */
    double worst;
    /* Origin of a violation: one of CUTLINE_EVENT_ORIGIN_*. */
    int64_t origin;
    /* The rate that the resource manager of the host has granted to this end, of messages without headers, bit/s. */
    int64_t allocated_bps;
} cutline_event;

/* Token bucket of a direction: its largest traffic. All fields are -1 if there is none. */
typedef struct cutline_token_bucket {
    /* The rate, bit/s. */
    int64_t rate_bps;
    /* The depth, bytes. */
    int64_t bucket_bytes;
    /* The peak rate, bit/s. */
    int64_t peak_bps;
    /* The minimum policed unit: shorter packets count as this length, bytes. */
    int64_t min_policed_bytes;
    /* The longest packet with its IP header, bytes. */
    int64_t max_packet_bytes;
} cutline_token_bucket;

/* Reason for a missing reservation, its place, and the available rate. */
typedef struct cutline_refusal {
    /* Reason: one of CUTLINE_REASON_*; 0 if nothing was refused. */
    int64_t reason;
    /* The rate that would be granted, bit/s; -1 if it is not known. */
    int64_t available_bps;
    /* The address of the node that refused; empty if it is not known. */
    char node[CUTLINE_NAME];
    /* The refusal as text; empty if nothing was refused. */
    char text[CUTLINE_TEXT];
} cutline_refusal;

/* State of a direction's reservation. */
typedef struct cutline_direction_reservation {
    /* One of CUTLINE_GRANT_STATE_*. */
    int64_t state;
    /* The requested token bucket. */
    cutline_token_bucket requested;
    /* The reserved token bucket. */
    cutline_token_bucket reserved;
    /* Reason for a missing reservation. */
    cutline_refusal refusal;
} cutline_direction_reservation;

/* State of a connection's reservation. */
typedef struct cutline_reservation {
    /* The requested service (option service); empty if no reservation was requested. */
    char service[CUTLINE_NAME];
    /* Direction in which this end sends. */
    cutline_direction_reservation send;
    /* Direction in which this end receives. */
    cutline_direction_reservation receive;
} cutline_reservation;

/* An event of a reservation. Fields that do not belong to its kind are 0, -1 or empty. */
typedef struct cutline_reservation_event {
    /* Size of this struct, set by the caller. Later versions have more fields at its end. */
    size_t size;
    /* Kind of the event: one of CUTLINE_RESERVATION_EVENT_*. */
    int32_t kind;
    /* The direction: one of CUTLINE_TRAFFIC_DIRECTION_*. */
    int32_t direction;
    /* The token bucket that is now reserved. */
    cutline_token_bucket reserved;
    /* Reason for the loss. */
    cutline_refusal refusal;
    /* The address of the node that confirmed the reservation. */
    char node[CUTLINE_NAME];
    /* The event as text, with a zero at the end. */
    char text[CUTLINE_TEXT];
} cutline_reservation_event;

/* Requirements on a direction. An open number is NaN; an open time or size is -1. */
typedef struct cutline_requirements {
    /* The lowest acceptable rate, messages/s. */
    double min_rate;
    /* The highest useful rate, messages/s. */
    double max_rate;
    /* The highest rate of a burst, messages/s. */
    double peak_rate;
    /* The longest message, bytes. */
    int64_t size;
    /* The delay below which a shorter delay has no further use, ns. */
    int64_t min_delay_ns;
    /* The longest acceptable one-way delay, ns. */
    int64_t max_delay_ns;
    /* The longest time between the arrivals of two messages, ns. */
    int64_t max_gap_ns;
    /* The largest change of delay between consecutive messages, ns. */
    int64_t jitter_ns;
    /* The largest share of messages lost, per cent. */
    double loss;
    /* The longest time to recover a broken connection, ns. */
    int64_t recovery_ns;
    /* 1 if messages may be delivered out of order, 0 if not, -1 if this is open. */
    int64_t reordering;
} cutline_requirements;

/* Traffic received since the beginning. */
typedef struct cutline_totals {
    /* Messages received, without duplicates. */
    int64_t messages;
    /* Their bytes. */
    int64_t bytes;
    /* Messages lost. */
    int64_t lost;
    /* Messages received after one with a higher number. */
    int64_t late;
    /* Messages received more than once. */
    int64_t duplicated;
    /* Time in which received data waited because the application did not read, ns. */
    int64_t unread_ns;
    /* Datagrams that the receiving host dropped because the receive buffer of the socket was full. */
    int64_t overflowed;
} cutline_totals;

/* Traffic delivered in an interval, and its measures. Unknown times are -1. */
typedef struct cutline_interval {
    /* Length of the interval, ns. Before the first interval it is -1, and the other fields are 0. */
    int64_t length_ns;
    /* Messages that the sender has sent in the interval. */
    int64_t sent;
    /* Messages received, without duplicates. */
    int64_t messages;
    /* Their bytes. */
    int64_t bytes;
    /* Messages lost; negative if messages arrived that had been counted as lost. */
    int64_t lost;
    /* Messages received after one with a higher number. */
    int64_t late;
    /* Messages received more than once. */
    int64_t duplicated;
    /* Messages received per second. */
    double rate;
    /* The throughput, bit/s. */
    int64_t throughput_bps;
    /* The mean one-way delay, ns. */
    int64_t delay_mean_ns;
    /* The quantile of the delays that is compared with the limit, ns. */
    int64_t delay_quantile_ns;
    /* The longest delay, ns. */
    int64_t delay_worst_ns;
    /* The mean jitter, ns. */
    int64_t jitter_mean_ns;
    /* The quantile of the jitters that is compared with the limit, ns. */
    int64_t jitter_quantile_ns;
    /* The largest jitter, ns. */
    int64_t jitter_worst_ns;
    /* The longest time without an arrival, ns. */
    int64_t gap_ns;
    /* Time in which received data waited because the application did not read, ns. */
    int64_t unread_ns;
    /* Datagrams that the receiving host dropped because the receive buffer of the socket was full. */
    int64_t overflowed;
} cutline_interval;

/* Summary of a distribution of times. If it is empty, count is 0 and the times are -1. */
typedef struct cutline_distribution {
    /* Number of values. */
    int64_t count;
    /* The mean, ns. */
    int64_t mean_ns;
    /* The median, ns. */
    int64_t p50_ns;
    /* The 90th percentile, ns. */
    int64_t p90_ns;
    /* The 99th percentile, ns. */
    int64_t p99_ns;
    /* The greatest, ns. */
    int64_t max_ns;
} cutline_distribution;

/* Management information of a direction of a connection. */
typedef struct cutline_direction {
    /* The effective specification: the agreement, or this end's own specification. */
    cutline_requirements effective;
    /* 1 if both ends have agreed on this specification, otherwise 0. */
    int64_t agreed;
    /* Messages sent since the beginning; for the direction that this end receives, as the peer reports. */
    int64_t sent_messages;
    /* Their bytes. */
    int64_t sent_bytes;
    /* Time in which the sending application was held back, ns. */
    int64_t held_ns;
    /* Traffic received since the beginning; for the direction that this end sends, as the peer reports. */
    cutline_totals received;
    /* The last interval of measurement. */
    cutline_interval last;
    /* The measures that are outside their limits now: bit 1 << measure for each. */
    int64_t violated;
    /* Number of violations of each measure: rate, delay, gap, jitter, loss, recovery. */
    int64_t violations[CUTLINE_MEASURES];
} cutline_direction;

/* A measure in the region of operation, in its unit: messages/s, ms, or per cent. Unknown numbers are NaN. */
typedef struct cutline_axis {
    /* The best value; a better one has no further use. NaN if any value is acceptable, and then nothing is measured. */
    double best;
    /* The worst acceptable value. */
    double worst;
    /* The best value measured since the specification took effect. */
    double best_measured;
    /* The worst value measured since the specification took effect. */
    double worst_measured;
    /* Worst value of the present violation, while the measure is outside its limit. */
    double violated;
    /* The largest error of violated due to the two clocks. */
    double violated_error;
    /* Start of the violation, by the monotonic clock, ns; -1 without a violation. */
    int64_t violated_since_ns;
} cutline_axis;

/* Further management information of a direction of a connection. */
typedef struct cutline_details {
    /* Requirements of this end. All fields are open if the ends have not agreed. */
    cutline_requirements offered;
    /* Requirements of the peer. All fields are open if the ends have not agreed. */
    cutline_requirements requested;
    /* The requirements in effect that may be weakened: bit 1 << n for field n, counted from 0 at min_rate. */
    int64_t coerced;
    /* The region of operation, and the measurements in it: rate, delay, gap, jitter, loss, recovery. */
    cutline_axis operation[CUTLINE_MEASURES];
    /* Start of the last interval of measurement, by the monotonic clock of the receiving end, ns; -1 before the first. */
    int64_t last_since_ns;
    /* The time from the last arrival to the end of that interval, ns. */
    int64_t silence_ns;
    /* Messages received with an impossible number; no other field counts them. */
    int64_t impossible;
    /* The sum of the delays of the messages received, ns. */
    int64_t delay_sum_ns;
} cutline_details;

/* Traffic that this end has sent in an interval. */
typedef struct cutline_sent_interval {
    /* Start of the interval, by the monotonic clock, ns; -1 before the first. */
    int64_t since_ns;
    /* Length of the interval, ns. Before the first interval it is -1, and the other fields are 0. */
    int64_t length_ns;
    /* Messages. */
    int64_t messages;
    /* Their bytes. */
    int64_t bytes;
    /* The throughput, bit/s. */
    int64_t throughput_bps;
    /* Time in which the application was held back, ns. */
    int64_t held_ns;
} cutline_sent_interval;

/* The messages of negotiations. */
typedef struct cutline_negotiation {
    /* Messages sent. */
    int64_t sent;
    /* Messages that were sent again. */
    int64_t sent_again;
    /* Messages received and used. */
    int64_t received;
    /* Messages received that repeat an earlier one, or came too late. */
    int64_t stale;
    /* Messages of another session, kind or version, and malformed ones. */
    int64_t ignored;
    /* Messages with a wrong authentication tag, or without one. */
    int64_t unauthenticated;
} cutline_negotiation;

/* The kernel's data about a TCP connection. All fields are -1 for a datagram socket. */
typedef struct cutline_tcp {
    /* The smoothed round-trip time, ns. */
    int64_t rtt_ns;
    /* The variation of the round-trip time, ns. */
    int64_t rtt_deviation_ns;
    /* The least round-trip time, ns. */
    int64_t min_rtt_ns;
    /* The congestion window, segments. */
    int64_t congestion_window;
    /* Segments sent again since the beginning. */
    int64_t retransmissions;
    /* Bytes written and not yet sent. */
    int64_t not_sent;
    /* The rate at which the peer acknowledges data, bit/s. */
    int64_t delivery_rate_bps;
    /* The rate at which data is paced, bit/s. */
    int64_t pacing_rate_bps;
} cutline_tcp;

/* TFRC's state of the direction in which this end sends. Without TFRC (option rate-control) the loss event rate is NaN, and
 * the other fields are -1. */
typedef struct cutline_tfrc {
    /* The allowed rate, of messages without headers, bit/s. */
    int64_t rate_bps;
    /* The average round-trip time, ns; -1 also before the first feedback. */
    int64_t rtt_ns;
    /* The loss event rate that the peer has reported, 0 to 1. */
    double loss_event_rate;
    /* Feedback of the peer that was used. */
    int64_t feedback;
    /* Number of expiries of the nofeedback timer, each of which halved the rate. */
    int64_t nofeedback;
    /* Feedback that was stale, impossible, or not authentic. */
    int64_t refused;
} cutline_tfrc;

/* Messages of a managed datagram socket, and their deadlines. All fields are -1 for a stream, and without a share of the host
 * (option allocation). */
typedef struct cutline_scheduling_stats {
    /* Messages sent since the share was granted. */
    int64_t sent;
    /* Messages that left more than the longest acceptable delay after the call that sent them. */
    int64_t missed;
    /* The longest time by which a message was late, ns. */
    int64_t latest_ns;
} cutline_scheduling_stats;

/* State of a connection. */
typedef struct cutline_mib {
    /* Size of this struct, set by the caller. Later versions have more fields at its end. */
    size_t size;
    /* Time of these values, by the monotonic clock, ns. */
    int64_t at_ns;
    /* Direction in which this end sends. */
    cutline_direction send;
    /* Direction in which this end receives. */
    cutline_direction receive;
    /* The one-way delays received since the beginning. */
    cutline_distribution delay;
    /* The jitters received since the beginning. */
    cutline_distribution jitter;
    /* The rate at which the application should send, messages/s; NaN if no rate is requested. */
    double target_rate;
    /* The delay hint of the packets that this end sends, 1 to 16; -1 if they have none. */
    int64_t hint;
    /* The peer's clock minus the clock of this host, ns; valid if clock_error_ns is not -1. */
    int64_t clock_offset_ns;
    /* The largest error of clock_offset_ns, ns; -1 if the offset is unknown. */
    int64_t clock_error_ns;
    /* The latest round-trip time of a report, ns; -1 if it is unknown. */
    int64_t round_trip_ns;
    /* Reports of the peer that were used. */
    int64_t reports;
    /* Number of times that sending had to wait because the send queue was full. */
    int64_t queue_full;
    /* Number of times that sending had to wait for the agreed rate, or was refused until then. */
    int64_t pacing_waits;
    /* Messages sent although the application exceeded the agreed rate. */
    int64_t unpaced;
    /* Total time that sending has waited, ns. */
    int64_t waited_ns;
    /* Messages that were not sent because the interface's queue had no room; only datagrams show it. */
    int64_t no_buffers;
    /* The kernel's data about the TCP connection. */
    cutline_tcp tcp;
    /* Further information about the direction in which this end sends. */
    cutline_details send_details;
    /* Further information about the direction in which this end receives. */
    cutline_details receive_details;
    /* Traffic that this end has sent in the last interval. */
    cutline_sent_interval last_sent;
    /* Rate that the application may use beyond that of the last interval, by the agreement and by TFRC,
     * messages/s of the longest; NaN if it is unknown, or no rate limit is in effect. */
    double residual_rate;
    /* The same as a throughput, bit/s; -1 also if no message size is in effect, except with TFRC. */
    int64_t residual_bps;
    /* Send queue of the socket, bytes: for a stream the data written and not acknowledged, for datagrams the
     * data not sent by the interface, with the kernel's overhead; -1 if unknown. */
    int64_t send_queue;
    /* The memory that the send queue may take, with the kernel's overhead, bytes; -1 if it is unknown. */
    int64_t send_buffer;
    /* Number of ICMP messages that report the peer as unreachable for the time being. */
    int64_t unreachable;
    /* The messages of negotiations. */
    cutline_negotiation negotiation;
    /* Reports of the peer that were not newer than an earlier one. */
    int64_t reports_stale;
    /* Reports that contradict themselves, earlier ones, or the sent traffic. */
    int64_t reports_refused;
    /* Number of times that one of the two clocks was set. */
    int64_t clock_steps;
    /* TFRC's state of the direction in which this end sends. */
    cutline_tfrc tfrc;
    /* Number of reconnections. The numbers of messages are those of the present connection. */
    int64_t reconnections;
    /* Time of the last reconnection, by the monotonic clock, ns; -1 if there was none. */
    int64_t reconnected_ns;
    /* State of the reservation. */
    cutline_reservation reservation;
    /* Messages and their deadlines. */
    cutline_scheduling_stats scheduling;
} cutline_mib;

/* Event handler, and the data that it was set with. */
typedef void (*cutline_handler)(const cutline_event *event, void *data);

/* Returns new options. class is the class of application whose requirements both directions begin with, such as "video"; a
 * null pointer means no requirements. Free the options with cutline_options_free. */
cutline_options *cutline_options_new(const char *class);

/* Sets one option by the name and the text that a specification file has: cutline_options_set(o, "send.max-delay", "150 ms").
 * Options are checked against each other when a socket is created, so they can be set in any order. */
int cutline_options_set(cutline_options *options, const char *name, const char *value);

/* Reads all options from a document, TOML or JSON. It replaces earlier options, except the key. */
int cutline_options_read(cutline_options *options, const char *document);

/* Sets the key, of 32 to 4096 bytes, that the peer must prove to have. */
int cutline_options_set_key(cutline_options *options, const void *key, size_t length);

/* Checks the options against each other, as the creation of a socket does. */
int cutline_options_check(const cutline_options *options);

/* Frees options. Sockets that were created with them are not affected. A null pointer is allowed. */
void cutline_options_free(cutline_options *options);

/* Connects to an address, and negotiates with the QoS socket there: socket() and connect() in one. type is SOCK_STREAM or
 * SOCK_DGRAM. Null options mean no requirements. If the peer is a plain socket, the new socket is a plain one, too. Returns a
 * null pointer if the call fails. */
cutline_socket *cutline_connect(int type, const struct sockaddr *address, socklen_t length, const cutline_options *options);

/* As cutline_connect, with the address as a text: "192.0.2.1:5004", "[2001:db8::1]:5004", "host.example:5004". A link-local
 * address contains its interface: "[fe80::1%eth0]:5004". Frames below IP have addresses such as
 * "direct:eth0/02:00:00:00:00:01:7000": an interface of this host, and the link address and the port of the peer. Such frames
 * carry datagrams, and both processes need CAP_NET_RAW. */
cutline_socket *cutline_connect_to(int type, const char *address, const cutline_options *options);

/* Listens at an address: socket(), bind() and listen() in one. Datagram connections are accepted like streams. A stream's listener
 * uses the same port number of UDP as well, to announce that it is a QoS socket. */
cutline_socket *cutline_listen(int type, const struct sockaddr *address, socklen_t length, const cutline_options *options);

/* As cutline_listen, with the address as a text: "0.0.0.0:5004", "[::]:5004", "[fe80::1%eth0]:5004", and for frames below IP
 * "direct:eth0:7000". Port 0 selects a free port. */
cutline_socket *cutline_listen_at(int type, const char *address, const cutline_options *options);

/* Waits for the next connection. address and length are as in accept(), and may be null. */
cutline_socket *cutline_accept(cutline_socket *socket, struct sockaddr *address, socklen_t *length);

/* Sends a message. Returns the number of accepted bytes: all bytes of a datagram, possibly fewer of a stream. The call waits
 * while the application exceeds the agreed rate, according to the option pacing. flags is 0 or MSG_NOSIGNAL; SIGPIPE is
 * never raised. */
ssize_t cutline_send(cutline_socket *socket, const void *data, size_t length, int flags);

/* Receives bytes of a stream, or a datagram, whose bytes beyond length are lost. Returns the number of bytes; 0 at the end of
 * a stream. flags is 0. */
ssize_t cutline_recv(cutline_socket *socket, void *buffer, size_t length, int flags);

/* Returns the descriptor to wait for with poll(). Reading or writing it directly breaks the connection. Call cutline_pending
 * first: data that the library has already received does not make the descriptor readable. */
int cutline_fd(cutline_socket *socket);

/* Returns 1 if data has already been received, so that cutline_recv does not wait, and 0 if the caller must wait for the
 * descriptor. */
int cutline_pending(cutline_socket *socket);

/* Sets the mode of calls that would wait: they wait (0), or fail with EAGAIN (1). */
int cutline_set_nonblocking(cutline_socket *socket, int nonblocking);

/* Sets the time after which a waiting cutline_recv fails with EAGAIN; 0 is no limit. */
int cutline_set_recv_timeout(cutline_socket *socket, int timeout_ms);

/* Sets the time after which a waiting cutline_send of a stream fails with EAGAIN; 0 is no limit. */
int cutline_set_send_timeout(cutline_socket *socket, int timeout_ms);

/* Returns 1 if the peer is a QoS socket, and 0 if it is a plain one. For an accepted stream the call waits for the first bytes
 * of the peer, which show its kind. */
int cutline_has_qos_peer(cutline_socket *socket);

/* Writes the address of this end, as getsockname(). That of frames below IP is the link-local address of IPv6 that is derived from the
 * link address (RFC 4291 appendix A), with the interface as its zone. */
int cutline_getsockname(cutline_socket *socket, struct sockaddr *address, socklen_t *length);

/* Writes the address of the peer, as getpeername(), and for frames below IP as cutline_getsockname(). */
int cutline_getpeername(cutline_socket *socket, struct sockaddr *address, socklen_t *length);

/* Writes the address of this end as a text that cutline_listen_at() takes. As snprintf(), it writes at most length bytes with a zero
 * at the end, and returns the length of the whole text without the zero. */
ssize_t cutline_local_address(cutline_socket *socket, char *buffer, size_t length);

/* As cutline_local_address(), for the address of the peer as a text that cutline_connect_to() takes. */
ssize_t cutline_peer_address(cutline_socket *socket, char *buffer, size_t length);

/* Shuts down one direction of a stream, or both: how is SHUT_RD, SHUT_WR or SHUT_RDWR. A waiting call of another thread returns. */
int cutline_shutdown(cutline_socket *socket, int how);

/* Closes a socket and frees its handle. No other call on the socket may be under way. A null pointer is allowed. The call does
 * not wait: data that a stream has accepted is delivered in the background, according to the option linger. */
int cutline_close(cutline_socket *socket);

/* Takes the next event of a connection. The call waits for at most timeout_ms; 0 does not wait, and -1 waits without a limit.
 * event->size must be set to sizeof *event. Returns 1, or 0 if there was no event. */
int cutline_next_event(cutline_socket *socket, cutline_event *event, int timeout_ms);

/* Sets the event handler of a connection; a null pointer removes it. The handler is called first with the events that were not
 * taken yet, and then with each new event. data is passed to the handler. cutline_next_event() still returns the events, too.
 * A thread of the library, which serves all connections, calls the handler. The handler may call all functions of this library
 * except cutline_close() of this socket, and must return soon. The event is valid until the handler returns. When this call or
 * cutline_close() returns, an earlier handler no longer runs, unless the handler itself makes the call. */
int cutline_on_event(cutline_socket *socket, cutline_handler handler, void *data);

/* Reads the state and the measurements of a connection. mib->size must be set to sizeof *mib. */
int cutline_get_mib(cutline_socket *socket, cutline_mib *mib);

/* Takes the next event of a connection's reservation, without waiting. event->size must be set to sizeof *event. Returns 1, or
 * 0 if there was no event; without the option service there are none. The state of the reservation is in the MIB. */
int cutline_next_reservation_event(cutline_socket *socket, cutline_reservation_event *event);

/* Requests the specification of these options from the peer. The outcome is an event. Until then, the previous agreement holds. */
int cutline_renegotiate(cutline_socket *socket, const cutline_options *options);

/* Protects the calling thread from the other work of its processor until cutline_unprotect_thread() or the end of the thread. A
 * protected thread runs before normal threads, and so does the library's own thread meanwhile. priority is one of
 * CUTLINE_THREAD_PRIORITY_*. The protection is for threads that receive messages and do a bounded amount of work for each.
 * Threads and processes that the thread starts are not protected. Returns the priority in effect, or -1 with EPERM or EACCES if
 * the process may not have it, and with EBUSY if the thread is protected already. */
int cutline_protect_thread(int priority);

/* Ends the protection of the calling thread, and restores its previous priority. Returns -1 with EINVAL if the thread is not
 * protected: no thread can end the protection of another one. */
int cutline_unprotect_thread(void);

/* Returns the message of the last failed call of this thread: the field, its value and the allowed values. The text is empty if
 * no call has failed. It is valid until the next call of this library by this thread. */
const char *cutline_error(void);

/* Returns the kind of the last error of this thread: one of CUTLINE_ERROR_*. */
int cutline_error_code(void);

/* Returns the version of the library. */
const char *cutline_version(void);

#ifdef __cplusplus
}
#endif

#endif
