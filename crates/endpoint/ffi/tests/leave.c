/* Sends so many bytes over a stream and ends: leave ADDRESS BYTES close|idle|return|exit|shutdown|destructor [PEER] */
#include <cutline.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cutline_socket *at_the_end;

__attribute__((destructor)) static void closes_at_the_end(void)
{
    /* Data that is sent here is delivered, too. */
    if (at_the_end && cutline_send(at_the_end, "end", 3, 0) == 3)
        cutline_close(at_the_end);
}

int main(int count, char **words)
{
    static char data[65536];
    if (count != 4 && count != 5)
        return 2;
    cutline_options *options = cutline_options_new("file");
    cutline_options_set(options, "monitor.interval", "20 ms");
    if (count == 5)
        cutline_options_set(options, "peer", words[4]);
    cutline_socket *socket = cutline_connect_to(SOCK_STREAM, words[1], options);
    cutline_options_free(options);
    if (!socket) {
        fprintf(stderr, "cannot connect: %s\n", cutline_error());
        return 1;
    }
    int at_the_end_too = strcmp(words[3], "destructor") == 0;
    for (size_t left = strtoul(words[2], NULL, 10) - (at_the_end_too ? 3 : 0); left > 0;) {
        ssize_t sent = cutline_send(socket, data, left < sizeof data ? left : sizeof data, 0);
        if (sent < 0) {
            fprintf(stderr, "cannot send: %s\n", cutline_error());
            return 1;
        }
        left -= (size_t)sent;
    }
    /* Reports of the peer come, which are not read. */
    if (strcmp(words[3], "idle") == 0)
        poll(NULL, 0, 300);
    if (strcmp(words[3], "close") == 0 || strcmp(words[3], "idle") == 0)
        return cutline_close(socket);
    if (strcmp(words[3], "shutdown") == 0)
        return cutline_shutdown(socket, SHUT_RDWR);
    if (at_the_end_too)
        at_the_end = socket;
    if (strcmp(words[3], "exit") == 0)
        exit(0);
    return 0;
}
