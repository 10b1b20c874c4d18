/* A file server: a client sends a name and a newline, the server answers with the file and closes.
 *
 *     files serve 0.0.0.0:5005 /srv/files
 *     files get 192.0.2.1:5005 NAME > copy
 * Build: cc -o files files.c $(pkg-config --cflags --libs cutline)
 */
#include <arpa/inet.h>
#include <cutline.h>
#include <stdio.h>
#include <string.h>

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, cutline_error());
    return 1;
}

static int send_all(cutline_socket *socket, const char *data, size_t length)
{
    while (length > 0) {
        ssize_t sent = cutline_send(socket, data, length, 0);
        if (sent < 0)
            return -1;
        data += sent;
        length -= (size_t)sent;
    }
    return 0;
}

/* Reads the name and sends the file. A name with a slash is refused: it could lead out of the folder. */
static int answer(cutline_socket *socket, const char *folder)
{
    char name[256], path[4096], data[65536];
    size_t length = 0;
    while (length + 1 < sizeof name && !memchr(name, '\n', length)) {
        ssize_t got = cutline_recv(socket, name + length, sizeof name - 1 - length, 0);
        if (got <= 0)
            return -1;
        length += (size_t)got;
    }
    name[length] = '\0';
    name[strcspn(name, "\r\n")] = '\0';
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = strchr(name, '/') || name[0] == '.' ? NULL : fopen(path, "rb");
    if (!file)
        return send_all(socket, "no such file\n", 13);
    int failed = 0;
    while (!failed && (length = fread(data, 1, sizeof data, file)) > 0)
        failed = send_all(socket, data, length);
    return fclose(file) | failed;
}

static int serve(const char *address, const char *folder, const cutline_options *options)
{
    cutline_socket *listener = cutline_listen_at(SOCK_STREAM, address, options);
    struct sockaddr_in here = {0};
    socklen_t length = sizeof here;
    if (!listener || cutline_getsockname(listener, (struct sockaddr *)&here, &length) < 0)
        return fail("cannot listen");
    printf("port %d\n", ntohs(here.sin_port));
    fflush(stdout);
    for (;;) {
        cutline_socket *socket = cutline_accept(listener, NULL, NULL);
        if (!socket)
            return fail("cannot accept");
        cutline_set_recv_timeout(socket, 10000);
        cutline_set_send_timeout(socket, 10000);
        if (answer(socket, folder) < 0)
            fail("cannot answer a client");
        cutline_close(socket);
    }
}

static int get(const char *address, const char *name, const cutline_options *options)
{
    cutline_socket *socket = cutline_connect_to(SOCK_STREAM, address, options);
    if (!socket || send_all(socket, name, strlen(name)) < 0 || send_all(socket, "\n", 1) < 0)
        return fail("cannot request the file");
    char data[65536];
    ssize_t got;
    while ((got = cutline_recv(socket, data, sizeof data, 0)) > 0)
        fwrite(data, 1, (size_t)got, stdout);
    cutline_mib mib = {.size = sizeof mib};
    cutline_get_mib(socket, &mib);
    fprintf(stderr, "%lld bytes, round-trip time %.3f ms\n", (long long)mib.receive.received.bytes,
            (double)mib.tcp.rtt_ns / 1e6);
    return got < 0 ? fail("cannot receive") : cutline_close(socket);
}

int main(int count, char **words)
{
    cutline_options *options = cutline_options_new("file");
    if (count == 4 && strcmp(words[1], "serve") == 0)
        return serve(words[2], words[3], options);
    if (count == 4 && strcmp(words[1], "get") == 0)
        return get(words[2], words[3], options);
    return fprintf(stderr, "files serve ADDRESS FOLDER | files get ADDRESS NAME\n"), 2;
}
