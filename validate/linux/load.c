/* Flows through a bottleneck between three network namespaces, and what becomes of them, for validate/linux.py.
 *
 *   load SEED SECONDS WARM_UP FLOWS...
 *
 * FLOWS are "tcp:COUNT:CONGESTION_CONTROL[:HOST[:CODE_POINT]]", "pages:COUNT:CONGESTION_CONTROL:HOST:CODE_POINT:MEDIAN:SIGMA:PAUSE" and
 * "udp:NAME:COUNT:BITS_PER_SECOND:cbr|poisson[:HOST[:CODE_POINT[:FRAME]]]", with the bytes of a frame. A flow of pages sends a page over its connection, waits from the arrival of
 * the last byte for an exponential time with the mean PAUSE, in seconds, and sends the next one. Sizes are lognormal, with the median MEDIAN in
 * bytes. Senders are in the namespace `src`, with the address 10.0.1.HOST if there is one; receivers are in `dst`; the queue is at the device
 * `bottleneck` of the namespace `r`. One process does everything, so there is one clock. Prints a line "RESULT {...}" of JSON, with the
 * goodputs of TCP in the order of FLOWS. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <math.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FRAME = 1000, OVERHEAD = 14 + 20 + 8, MOST = 512, PORT = 6000, CHUNK = 65536 };

struct class { const char *name; int first, count, poisson, host, code_point, frame; double gap; };
struct udp { int class, socket; double next; unsigned sent, arrived; double *delays; size_t received, room; };
struct pages { double median, sigma, pause, next; size_t unsent, awaited; }; /* Without a median it is one long transfer. */
struct tcp { int socket, accepted, host, code_point; const char *control; double start, bytes; unsigned retransmissions; struct sockaddr_in from; struct pages pages; };
struct stamp { double sent; int flow, measured; };

static struct class classes[8];
static struct udp udps[MOST];
static struct tcp tcps[MOST];
static int class_count, udp_count, tcp_count, poll_fd;
static unsigned long long state;
static char chunk[CHUNK];

static void fail(const char *what) { printf("FAILED %s: %s\n", what, strerror(errno)); exit(1); }

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static double uniform(void) { /* SplitMix64 (Steele, Lea and Flood 2014) */
    unsigned long long z = state += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return ((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

static double exponential(double mean) { return -log(1 - uniform()) * mean; }

static double lognormal(double median, double sigma) { /* Box and Muller 1958 */
    double radius = sqrt(-2 * log(1 - uniform()));
    return median * exp(sigma * radius * cos(2 * M_PI * uniform()));
}

/* The machine has no source of entropy. Until the kernel has some, a random number costs it ten thousand instructions, and CAKE
 * needs hundreds of them a packet. So it gets the seed. */
static void give_entropy(unsigned long long seed) {
    enum { WORDS = 8 };
    struct rand_pool_info *entropy = calloc(1, sizeof *entropy + WORDS * sizeof entropy->buf[0]);
    entropy->entropy_count = 32 * WORDS;
    entropy->buf_size = WORDS * sizeof entropy->buf[0];
    for (int i = 0; i < WORDS; i++) entropy->buf[i] = (unsigned)seed + i;
    int fd = open("/dev/urandom", O_RDWR);
    if (fd < 0 || ioctl(fd, RNDADDENTROPY, entropy) < 0) fail("/dev/urandom");
    close(fd);
    free(entropy);
}

static void enter(const char *namespace) {
    char path[64];
    snprintf(path, sizeof path, "/run/netns/%s", namespace);
    int fd = open(path, O_RDONLY);
    if (fd < 0 || setns(fd, CLONE_NEWNET) < 0) fail(path);
    close(fd);
}

static struct sockaddr_in address(const char *ip, int port) {
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
    inet_pton(AF_INET, ip, &to.sin_addr);
    return to;
}

static int number_or(const char *text, int otherwise) { return text ? atoi(text) : otherwise; }

/* The flow comes from this host, if it is one. */
static void from_host(int socket, int host) {
    char ip[24];
    if (!host) return;
    snprintf(ip, sizeof ip, "10.0.1.%d", host);
    struct sockaddr_in from = address(ip, 0);
    if (bind(socket, (void *)&from, sizeof from) < 0) fail(ip);
}

static void watch(int fd, unsigned events, unsigned long long data) {
    struct epoll_event event = { .events = events, .data.u64 = data };
    if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event) < 0) fail("epoll_ctl");
}

static void parse(char *flows) {
    char *kind = strtok(flows, ":");
    if (strcmp(kind, "udp")) {
        int count = atoi(strtok(NULL, ":"));
        struct tcp flow = { .socket = -1, .accepted = -1, .control = strtok(NULL, ":") };
        flow.host = number_or(strtok(NULL, ":"), 0);
        flow.code_point = number_or(strtok(NULL, ":"), 0);
        if (!strcmp(kind, "pages")) {
            flow.pages.median = atof(strtok(NULL, ":"));
            flow.pages.sigma = atof(strtok(NULL, ":"));
            flow.pages.pause = atof(strtok(NULL, ":"));
        }
        while (count--) tcps[tcp_count++] = flow;
        return;
    }
    struct class *class = &classes[class_count];
    class->name = strtok(NULL, ":");
    class->first = udp_count;
    class->count = atoi(strtok(NULL, ":"));
    double rate = atof(strtok(NULL, ":"));
    class->poisson = !strcmp(strtok(NULL, ":"), "poisson");
    class->host = number_or(strtok(NULL, ":"), 0);
    class->code_point = number_or(strtok(NULL, ":"), 0);
    class->frame = number_or(strtok(NULL, ":"), FRAME);
    if (class->frame > FRAME || class->frame < OVERHEAD + (int)sizeof(struct stamp)) { errno = EINVAL; fail("frame"); }
    class->gap = class->frame * 8 / rate;
    for (int i = 0; i < class->count; i++) udps[udp_count++] = (struct udp){ .class = class_count };
    class_count++;
}

/* Sends the packets that are due, and returns the time of the next one. */
static double send_udp(double at, int measured, double end) {
    double next = end;
    for (int i = 0; i < udp_count; i++) {
        struct udp *flow = &udps[i];
        struct class *class = &classes[flow->class];
        while (flow->next <= at) {
            char packet[FRAME - OVERHEAD] = { 0 };
            struct stamp stamp = { now(), i, measured };
            memcpy(packet, &stamp, sizeof stamp);
            send(flow->socket, packet, class->frame - OVERHEAD, 0);
            flow->sent += measured;
            flow->next += class->poisson ? exponential(class->gap) : class->gap;
        }
        if (flow->next < next) next = flow->next;
    }
    return next;
}

static void mark(int socket, int code_point) {
    int octet = code_point << 2;
    if (setsockopt(socket, IPPROTO_IP, IP_TOS, &octet, sizeof octet) < 0) fail("IP_TOS");
}

static double start_tcp(double at, double end) {
    double next = end;
    struct sockaddr_in to = address("10.0.2.1", PORT);
    for (int i = 0; i < tcp_count; i++) {
        struct tcp *flow = &tcps[i];
        if (flow->socket >= 0) continue;
        if (flow->start > at) { if (flow->start < next) next = flow->start; continue; }
        flow->socket = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (setsockopt(flow->socket, IPPROTO_TCP, TCP_CONGESTION, flow->control, strlen(flow->control)) < 0) fail(flow->control);
        from_host(flow->socket, flow->host);
        mark(flow->socket, flow->code_point);
        if (connect(flow->socket, (void *)&to, sizeof to) < 0 && errno != EINPROGRESS) fail("connect");
        socklen_t size = sizeof flow->from;
        if (getsockname(flow->socket, (void *)&flow->from, &size) < 0) fail("getsockname");
        /* A flow of pages is idle at times, with room in its buffer. */
        watch(flow->socket, EPOLLOUT | (flow->pages.median > 0 ? EPOLLET : 0), 1ULL << 32 | (unsigned)i);
    }
    return next;
}

static void send_tcp(struct tcp *flow) {
    if (flow->pages.median <= 0) {
        while (send(flow->socket, chunk, CHUNK, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) { }
        return;
    }
    while (flow->pages.unsent > 0) {
        size_t part = flow->pages.unsent < CHUNK ? flow->pages.unsent : CHUNK;
        ssize_t sent = send(flow->socket, chunk, part, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent <= 0) return;
        flow->pages.unsent -= sent;
    }
}

/* Sends the pages that are due and returns when the next one is. */
static double send_pages(double at, double end) {
    double next = end;
    for (int i = 0; i < tcp_count; i++) {
        struct pages *pages = &tcps[i].pages;
        if (pages->median <= 0 || tcps[i].socket < 0 || pages->awaited > 0) continue;
        if (pages->next > at) { if (pages->next < next) next = pages->next; continue; }
        double size = round(lognormal(pages->median, pages->sigma));
        pages->awaited = pages->unsent = size < 1 ? 1 : (size_t)size;
        send_tcp(&tcps[i]);
    }
    return next;
}

static void receive_tcp(struct tcp *flow, int measured) {
    ssize_t got;
    while ((got = recv(flow->accepted, NULL, 1 << 20, MSG_DONTWAIT | MSG_TRUNC)) > 0) {
        if (measured) flow->bytes += got;
        if (flow->pages.median <= 0) continue;
        flow->pages.awaited -= got;
        if (!flow->pages.awaited) flow->pages.next = now() + exponential(flow->pages.pause);
    }
}

/* The number of the flow from this address. */
static int flow_from(const struct sockaddr_in *peer) {
    for (int i = 0; i < tcp_count; i++) {
        const struct sockaddr_in *from = &tcps[i].from;
        if (tcps[i].socket >= 0 && from->sin_port == peer->sin_port && from->sin_addr.s_addr == peer->sin_addr.s_addr) return i;
    }
    errno = ENOENT;
    fail("accept");
    return -1;
}

/* The delays are those of packets that were sent in the measured time; `arrived` counts packets that arrive in it. */
static void receive_udp(int socket, int measured) {
    struct stamp stamp;
    char control[64];
    struct iovec part = { &stamp, sizeof stamp };
    for (;;) {
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
        if (recvmsg(socket, &message, MSG_DONTWAIT | MSG_TRUNC) < 0) return;
        struct timespec *came = (void *)CMSG_DATA(CMSG_FIRSTHDR(&message));
        struct udp *flow = &udps[stamp.flow];
        flow->arrived += measured;
        if (!stamp.measured) continue;
        if (flow->received == flow->room) flow->delays = realloc(flow->delays, sizeof(double) * (flow->room = 2 * flow->room + 1024));
        flow->delays[flow->received++] = came->tv_sec + came->tv_nsec / 1e9 - stamp.sent;
    }
}

static void handle(unsigned long long data, int measured) {
    unsigned index = (unsigned)data;
    switch (data >> 32) {
    case 0: receive_udp(index, measured); return;
    case 1: send_tcp(&tcps[index]); return;
    case 2: {
        int fd;
        struct sockaddr_in peer;
        socklen_t size = sizeof peer;
        while ((fd = accept4(index, (void *)&peer, &size, SOCK_NONBLOCK)) >= 0) {
            int flow = flow_from(&peer);
            tcps[flow].accepted = fd;
            watch(fd, EPOLLIN, 3ULL << 32 | (unsigned)flow);
            size = sizeof peer;
        }
        return;
    }
    default: receive_tcp(&tcps[index], measured);
    }
}

/* tc runs from the beginning on, and reads commands: to start it takes most of a second of this machine's only processor, in which no flow is
 * served. */
static FILE *commands, *answers;

static void ask_tc(void) {
    fputs("qdisc show dev bottleneck\n", commands);
    fflush(commands);
    int last = 0;
    for (int byte = fgetc(answers); byte != '\n' || last != ']'; byte = fgetc(answers)) {
        if (byte == EOF) fail("tc");
        if (byte != '\n') putchar(last = byte);
    }
}

static void start_tc(void) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0) fail("pipe");
    pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) {
        if (dup2(in[0], 0) < 0 || dup2(out[1], 1) < 0) _exit(127);
        execl("/tools/ip", "ip", "netns", "exec", "r", "/tools/tc", "-s", "-j", "-b", "-", (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    commands = fdopen(in[1], "w");
    answers = fdopen(out[0], "r");
    if (!commands || !answers) fail("fdopen");
    /* The first answer takes as long as the start. */
    printf("READY ");
    ask_tc();
    putchar('\n');
}

static void tell_queue(const char *when) {
    printf("QUEUE %s ", when);
    ask_tc();
    putchar('\n');
    fflush(stdout);
}

static void count_tcp(int sign) {
    for (int i = 0; i < tcp_count; i++) {
        struct tcp_info info = { 0 };
        socklen_t size = sizeof info;
        if (tcps[i].socket < 0 || getsockopt(tcps[i].socket, IPPROTO_TCP, TCP_INFO, &info, &size) < 0) continue;
        tcps[i].retransmissions += sign * info.tcpi_total_retrans;
    }
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void tell(double measured) {
    printf("RESULT {\"classes\": {");
    for (int c = 0; c < class_count; c++) {
        struct class *class = &classes[c];
        double sent = 0, received = 0, arrived = 0, sum = 0, p50 = 0, p99 = 0; /* Quantiles are means over the flows. */
        for (int i = class->first; i < class->first + class->count; i++) {
            struct udp *flow = &udps[i];
            sent += flow->sent;
            received += flow->received;
            arrived += flow->arrived;
            if (!flow->received) continue;
            for (size_t k = 0; k < flow->received; k++) sum += flow->delays[k];
            qsort(flow->delays, flow->received, sizeof(double), ascending);
            p50 += flow->delays[(flow->received - 1) / 2] / class->count;
            p99 += flow->delays[(size_t)((flow->received - 1) * .99)] / class->count;
        }
        printf("%s\"%s\": {\"sent\": %.0f, \"received\": %.0f, \"arrived\": %.0f, \"mean\": %.9f, \"p50\": %.9f, \"p99\": %.9f}",
               c ? ", " : "", class->name, sent, received, arrived, received ? sum / received : 0, p50, p99);
    }
    double retransmissions = 0;
    printf("}, \"goodputs\": [");
    for (int i = 0; i < tcp_count; i++) {
        retransmissions += tcps[i].retransmissions;
        printf("%s%.0f", i ? ", " : "", tcps[i].bytes * 8 / measured);
    }
    printf("], \"retransmissions\": %.0f, \"seconds\": %.6f}\n", retransmissions, measured);
}

int main(int count, char **arguments) {
    if (count < 5) { errno = EINVAL; fail("load SEED SECONDS WARM_UP FLOWS..."); }
    state = strtoull(arguments[1], NULL, 10);
    give_entropy(state);
    double seconds = atof(arguments[2]), warm_up = atof(arguments[3]);
    for (int i = 4; i < count; i++) parse(arguments[i]);
    poll_fd = epoll_create1(0);

    enter("dst");
    struct sockaddr_in here = address("10.0.2.1", PORT);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), sink = socket(AF_INET, SOCK_DGRAM, 0), on = 1, room = 1 << 24;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* After a load before this one. */
    if (bind(listener, (void *)&here, sizeof here) < 0 || listen(listener, MOST) < 0) fail("listen");
    setsockopt(sink, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    setsockopt(sink, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    if (bind(sink, (void *)&here, sizeof here) < 0) fail("bind");
    watch(sink, EPOLLIN, (unsigned)sink);
    watch(listener, EPOLLIN, 2ULL << 32 | (unsigned)listener);

    start_tc();
    enter("src");
    double begin = now() + .01, from = begin + warm_up, end = begin + seconds;
    for (int i = 0; i < udp_count; i++) {
        struct class *class = &classes[udps[i].class];
        udps[i].socket = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
        mark(udps[i].socket, class->code_point);
        from_host(udps[i].socket, class->host);
        if (connect(udps[i].socket, (void *)&here, sizeof here) < 0) fail("connect");
        udps[i].next = begin + uniform();
    }
    for (int i = 0; i < tcp_count; i++) tcps[i].start = tcps[i].pages.next = begin + uniform();

    int measuring = 0;
    for (double at = now(); at < end; at = now()) {
        if (!measuring && at >= from) {
            measuring = 1;
            count_tcp(-1);
            tell_queue("begin");
            from = now();
        }
        double next = send_udp(at, measuring, end), start = start_tcp(at, end), page = send_pages(at, end);
        if (start < next) next = start;
        if (page < next) next = page;
        if (!measuring && from < next) next = from;
        double wait = next - now();
        struct timespec timeout = { 0 };
        if (wait > 0) timeout = (struct timespec){ (time_t)wait, (long)((wait - floor(wait)) * 1e9) };
        struct epoll_event events[64];
        int ready = epoll_pwait2(poll_fd, events, 64, &timeout, NULL);
        for (int i = 0; i < ready; i++) handle(events[i].data.u64, measuring);
    }
    end = now();
    count_tcp(1);
    tell_queue("end");
    double drained = now() + 2; /* Packets on their way arrive; TCP is no longer counted. */
    while (now() < drained) {
        struct epoll_event events[64];
        int ready = epoll_wait(poll_fd, events, 64, 50);
        for (int i = 0; i < ready; i++) handle(events[i].data.u64, 0);
    }
    tell(end - from);
    fclose(commands);
    wait(NULL); /* The namespaces are removed next. */
    return 0;
}
