/* What a program may do with its sockets and its signals: the first argument is the part, the second the way. Each part checks its own calls,
   and exits with the line of the one that failed. */
#define _GNU_SOURCE
#include <aio.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define CHECK(condition) do { if (!(condition)) { perror(#condition); exit(__LINE__ % 200 + 20); } } while (0)
#define IS(word) (strcmp(way, word) == 0)

static char data[10000];

static int socket_to(int type, const struct sockaddr_in *address) {
    int fd = socket(AF_INET, type, 0);
    CHECK(fd >= 0 && connect(fd, (const void *)address, sizeof *address) == 0);
    return fd;
}

/* A system call that no library sees. */
static long unseen(long number, long a, long b, long c) {
#ifdef __x86_64__
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
#else
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
#endif
}

/* A receiver that is never read. */
static struct sockaddr_in receiver(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    int fd = unseen(SYS_socket, AF_INET, SOCK_DGRAM, 0);
    CHECK(bind(fd, (void *)&address, length) == 0 && getsockname(fd, (void *)&address, &length) == 0);
    return address;
}

/* A datagram socket that sends to a receiver. */
static int datagrams(void) {
    struct sockaddr_in address = receiver();
    return socket_to(SOCK_DGRAM, &address);
}

/* Both ends of a connection. */
static void connection(int *client, int *accepted) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    int server = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(server, (void *)&address, length) == 0 && listen(server, 1) == 0);
    CHECK(getsockname(server, (void *)&address, &length) == 0);
    *client = socket_to(SOCK_STREAM, &address);
    *accepted = accept(server, 0, 0);
    CHECK(*accepted >= 0 && close(server) == 0);
}

/* ---------------------------------------------------------------------------------------------------------- signals */

static volatile sig_atomic_t count;

static void got(int number) {
    char line[8];
    int length = 0;
    count++;
    if (number >= 10) line[length++] = '0' + number / 10;
    line[length++] = '0' + number % 10;
    line[length++] = '\n';
    if (write(1, line, length) != length) _exit(9);
}

static void signals(const char *way) {
    static const int caught[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    struct sigaction action = {.sa_handler = got, .sa_flags = SA_RESTART};
    for (int i = 0; i < 6; i++) CHECK(sigaction(caught[i], &action, 0) == 0);
    if (way && IS("own-group")) CHECK(setpgid(0, 0) == 0);
    CHECK(write(1, "ready\n", 6) == 6);
    char byte;
    while (read(0, &byte, 1) > 0) {}
    printf("%d signals\n", (int)count);
}

static void state(void) {
    struct sigaction pipe, hup;
    sigset_t blocked;
    CHECK(sigaction(SIGPIPE, 0, &pipe) == 0 && sigaction(SIGHUP, 0, &hup) == 0 && sigprocmask(0, 0, &blocked) == 0);
    printf("SIGPIPE %s, SIGHUP %s, SIGUSR1 %sblocked\n", pipe.sa_handler == SIG_IGN ? "ignored" : "default",
           hup.sa_handler == SIG_IGN ? "ignored" : "default", sigismember(&blocked, SIGUSR1) ? "" : "not ");
}

static void with(const char *way, char **command) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    void (*to)(int) = IS("changed") ? SIG_IGN : SIG_DFL;
    static const int all[] = {SIGPIPE, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    for (int i = 0; i < 7; i++) CHECK(signal(all[i], to) != SIG_ERR);
    sigprocmask(IS("changed") ? SIG_BLOCK : SIG_UNBLOCK, &set, 0);
    execvp(command[0], command);
    exit(127);
}

/* ---------------------------------------------------------------------------------------------------------- numbers */

static void reuse(const char *way) {
    int fd = datagrams();
    CHECK(send(fd, data, 1000, 0) == 1000);
    int other = open("/dev/null", O_WRONLY), is_replaced = 0;
    FILE *stream = 0;
    if (IS("close")) CHECK(close(fd) == 0);
    if (IS("close_range")) CHECK(close_range(fd, fd, 0) == 0);
    if (IS("closefrom")) { CHECK(dup2(other, fd - 1) == fd - 1); closefrom(fd); other = fd - 1; }
    if (IS("fclose")) { CHECK((stream = fdopen(fd, "w"))); CHECK(fclose(stream) == 0); }
    if (IS("freopen")) {
        CHECK((stream = fdopen(fd, "w")) && (stream = freopen("/dev/null", "w", stream)));
        fd = fileno(stream);
        is_replaced = 1;
    }
    if (IS("syscall")) CHECK(syscall(SYS_close, fd) == 0);
    if (IS("syscall-range")) CHECK(syscall(SYS_close_range, fd, fd, 0) == 0);
    if (IS("dup2")) { CHECK(dup2(other, fd) == fd); is_replaced = 1; }
    if (IS("syscall-dup3")) { CHECK(syscall(SYS_dup3, other, fd, 0) == fd); is_replaced = 1; }
    if (is_replaced) {
        for (int i = 0; i < 5; i++) CHECK(write(fd, data, 1000) == 1000);
        return;
    }
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0 && pair[0] == fd);
    for (int i = 0; i < 5; i++) CHECK(send(fd, data, 1000, 0) == 1000 && write(fd, data, 1000) == 1000);
}

static void copy(const char *way) {
    int fd = datagrams(), copied = -1;
    if (IS("fcntl")) copied = fcntl(fd, F_DUPFD, 100);
    if (IS("dup")) copied = dup(fd);
    if (IS("syscall-dup")) copied = syscall(SYS_dup, fd);
    CHECK(copied > fd && close(fd) == 0);
    for (int i = 0; i < 5; i++) CHECK(write(copied, data, 1000) == 1000);
}

/* ---------------------------------------------------------------------------------------------------------- sending */

static int formatted(int fd, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vdprintf(fd, format, arguments);
    va_end(arguments);
    return length;
}

static void send_all(const char *way) {
    int fd = datagrams(), file = open("/dev/zero", O_RDONLY), pipes[2];
    char name[] = "/tmp/cutline-ordinary-XXXXXX";
    int blob = mkstemp(name);
    CHECK(file >= 0 && pipe(pipes) == 0 && blob >= 0 && unlink(name) == 0 && ftruncate(blob, 5000) == 0);
    struct iovec part = {data, 1000};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (IS("sendmmsg")) {
        struct mmsghdr messages[5];
        for (int i = 0; i < 5; i++) messages[i] = (struct mmsghdr){.msg_hdr = message};
        CHECK(sendmmsg(fd, messages, 5, 0) == 5);
        return;
    }
    if (IS("stdout")) {
        CHECK(dup2(fd, 1) == 1 && printf("%999d\n", 1) == 1000 && fflush(stdout) == 0);
        CHECK(dup2(2, 1) == 1);
        return;
    }
    FILE *stream = IS("stdio") ? fdopen(fd, "w") : 0;
    for (int i = 0; i < 5; i++) {
        off_t from = 0;
        if (IS("write")) CHECK(write(fd, data, 1000) == 1000);
        if (IS("writev")) CHECK(writev(fd, &part, 1) == 1000);
        if (IS("pwritev2")) CHECK(pwritev2(fd, &part, 1, -1, 0) == 1000);
        if (IS("sendfile")) CHECK(sendfile(fd, blob, &from, 1000) == 1000);
        if (IS("splice")) {
            CHECK(write(pipes[1], data, 1000) == 1000 && splice(pipes[0], 0, fd, 0, 1000, 0) == 1000);
        }
        if (IS("send")) CHECK(send(fd, data, 1000, 0) == 1000);
        if (IS("sendto")) CHECK(sendto(fd, data, 1000, 0, 0, 0) == 1000);
        if (IS("sendmsg")) CHECK(sendmsg(fd, &message, 0) == 1000);
        if (stream) CHECK(fprintf(stream, "%999d\n", i) == 1000 && fflush(stream) == 0);
        /* Arguments of every kind, more than there are registers for. */
#define MANY "%d %s %g %g %g %g %g %g %g %g %g %d %d %d %ld\n", i, "two", .5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9, 10, 11, 12L
        if (IS("dprintf")) {
            char expected[100], got[100] = "";
            int length = snprintf(expected, sizeof expected, MANY);
            CHECK(dprintf(fd, MANY) == length && dprintf(pipes[1], MANY) == length);
            CHECK(read(pipes[0], got, sizeof got) == length && strcmp(got, expected) == 0);
        }
        if (IS("syscall")) CHECK(syscall(SYS_sendto, fd, data, 1000, 0, 0, 0) == 1000);
        if (IS("syscall-write")) CHECK(syscall(SYS_write, fd, data, 1000) == 1000);
        if (IS("aio_write") || IS("lio_listio")) {
            struct aiocb request = {.aio_fildes = fd, .aio_buf = data, .aio_nbytes = 1000, .aio_lio_opcode = LIO_WRITE,
                                    .aio_sigevent = {.sigev_notify = SIGEV_NONE}};
            struct aiocb *list[] = {&request};
            const struct aiocb *waits[] = {&request};
            if (IS("aio_write")) CHECK(aio_write(&request) == 0 && aio_suspend(waits, 1, 0) == 0);
            else CHECK(lio_listio(LIO_WAIT, list, 1, 0) == 0);
            CHECK(aio_error(&request) == 0 && aio_return(&request) == 1000);
        }
        if (IS("vdprintf")) CHECK(formatted(fd, "%d %s\n", i, "two") == 6);
    }
}

/* ------------------------------------------------------------------------------------------------------ connections */

static void one_connection(const char *way, char *self) {
    int client, accepted;
    connection(&client, &accepted);
    /* The kernel's own byte for the end of a stream is not asked for: the other end is not in the counters of this check. */
    CHECK(send(client, data, 10000, 0) == 10000);
    for (int got = 0; got < 10000;) {
        ssize_t length = recv(accepted, data, sizeof data, 0);
        CHECK(length > 0);
        got += length;
    }
    fcntl(client, F_SETFD, FD_CLOEXEC);
    char *end[] = {self, "nothing", 0};
    if (IS("close")) CHECK(close(client) == 0);
    if (IS("fclose")) CHECK(fclose(fdopen(client, "r+")) == 0);
    if (IS("close_range")) CHECK(close_range(client, client, 0) == 0);
    if (IS("closefrom")) closefrom(client < accepted ? client : accepted);
    if (IS("syscall")) CHECK(syscall(SYS_close, client) == 0);
    if (IS("dup2")) CHECK(dup2(2, client) == client);
    if (IS("exit")) exit(0);
    if (IS("_exit")) _exit(0);
    if (IS("_Exit")) _Exit(0);
    if (IS("quick_exit")) quick_exit(0);
    if (IS("exit_group")) syscall(SYS_exit_group, 0);
    if (IS("execve")) CHECK(execve(self, end, environ) == 0);
    if (IS("execvp")) CHECK(execvp(self, end) == 0);
    if (IS("execv")) CHECK(execv(self, end) == 0);
    if (IS("execvpe")) CHECK(execvpe(self, end, environ) == 0);
    if (IS("fexecve")) CHECK(fexecve(open(self, O_RDONLY | O_CLOEXEC), end, environ) == 0);
    if (IS("execveat")) CHECK(execveat(AT_FDCWD, self, end, environ, 0) == 0);
    if (IS("execl")) CHECK(execl(self, self, "nothing", (char *)0) == 0);
    if (IS("execlp")) CHECK(execlp(self, self, "nothing", (char *)0) == 0);
    if (IS("execle")) CHECK(execle(self, self, "nothing", (char *)0, environ) == 0);
    if (IS("return")) return;
    _exit(0);
}

/* Sockets that are made by syscall(2): datagrams through a copy, and a connection. */
static void made(void) {
    struct sockaddr_in address = receiver();
    int fd = syscall(SYS_socket, AF_INET, SOCK_DGRAM, 0), tos = 0;
    socklen_t length = sizeof tos;
    CHECK(fd >= 0 && syscall(SYS_connect, fd, &address, sizeof address) == 0);
    CHECK(syscall(SYS_setsockopt, fd, IPPROTO_IP, IP_TOS, &tos, sizeof tos) == 0);
    CHECK(getsockopt(fd, IPPROTO_IP, IP_TOS, &tos, &length) == 0 && tos == 23 << 2);
    int copied = syscall(SYS_fcntl, fd, F_DUPFD, 100);
    CHECK(copied >= 100 && close(fd) == 0);
    for (int i = 0; i < 5; i++) CHECK(write(copied, data, 1000) == 1000);
    int server = syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
    address.sin_port = 0;
    length = sizeof address;
    CHECK(bind(server, (void *)&address, length) == 0 && listen(server, 1) == 0);
    CHECK(getsockname(server, (void *)&address, &length) == 0);
    int client = socket_to(SOCK_STREAM, &address), accepted = syscall(SYS_accept, server, 0, 0);
    CHECK(accepted >= 0 && getsockopt(accepted, IPPROTO_IP, IP_TOS, &tos, &length) == 0 && tos == 23 << 2);
    CHECK(close(accepted) == 0 && close(client) == 0 && close(server) == 0);
}

/* A socket that was made without libc goes through a local one; then it is written to, and must be marked. */
static void passed(void) {
    int pair[2], made = unseen(SYS_socket, AF_INET, SOCK_DGRAM, 0), tos = 0;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    CHECK(made >= 0 && unseen(SYS_connect, made, (long)&address, sizeof address) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
    union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr header; } control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.header), &made, sizeof made);
    struct iovec part = {data, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    CHECK(sendmsg(pair[0], &message, 0) == 1 && recvmsg(pair[1], &message, 0) == 1);
    int fd;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    CHECK(fd != made && write(fd, data, 100) == 100);
    socklen_t length = sizeof tos;
    CHECK(getsockopt(fd, IPPROTO_IP, IP_TOS, &tos, &length) == 0 && tos == 23 << 2);
}

/* -------------------------------------------------------------------------------------------------------- sandboxes */

static void enter(const char *way) {
#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    struct sock_filter tight[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_read), ALLOW(SYS_write), ALLOW(SYS_close), ALLOW(SYS_sendto), ALLOW(SYS_exit), ALLOW(SYS_exit_group),
        ALLOW(SYS_rt_sigreturn), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_filter loose[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof tight / sizeof *tight, tight};
    if (IS("strict")) { CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0); return; }
    if (IS("harmless")) program = (struct sock_fprog){sizeof loose / sizeof *loose, loose};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (IS("seccomp")) CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
    else CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void sandbox(const char *way, const char *ending) {
    int client, accepted, udp = datagrams(), file = open("/dev/null", O_WRONLY);
    connection(&client, &accepted);
    CHECK(write(client, data, 10000) == 10000);
    for (int got = 0; got < 10000;) {
        ssize_t length = read(accepted, data, sizeof data);
        CHECK(length > 0);
        got += length;
    }
    enter(way);
    int is_strict = IS("strict");
    if (write(file, data, 5) != 5 || write(client, data, 5) != 5 || write(udp, data, 5) != 5) syscall(SYS_exit, 3);
    if (read(accepted, data, 5) != 5) syscall(SYS_exit, 4);
    if (!is_strict && (send(udp, data, 5, 0) != 5 || close(udp) || close(file) || close(client))) syscall(SYS_exit, 5);
    /* The strict mode allows only the thread's own exit. */
    if (is_strict) syscall(SYS_exit, 0);
    if (strcmp(ending, "_exit") == 0) _exit(0);
    exit(0);
}

int main(int argc, char **argv) {
    const char *part = argv[1], *way = argv[2];
    if (strcmp(part, "signals") == 0) signals(way);
    if (strcmp(part, "state") == 0) state();
    if (strcmp(part, "with") == 0) with(way, argv + 3);
    if (strcmp(part, "reuse") == 0) reuse(way);
    if (strcmp(part, "copy") == 0) copy(way);
    if (strcmp(part, "send") == 0) send_all(way);
    if (strcmp(part, "connection") == 0) one_connection(way, argv[0]);
    if (strcmp(part, "made") == 0) made();
    if (strcmp(part, "passed") == 0) passed();
    if (strcmp(part, "sandbox") == 0) sandbox(way, argv[3]);
    return 0;
}
