/* Link-local addresses as texts, with the name of the interface. Its argument is an interface that has fe80::1, or nothing: then only
 * refusals are checked. */
#include <string.h>

#include "check.h"

/* An address that is refused before anything is sent, with the reason. */
static void refused(const char *address, const char *why)
{
    int types[2] = {SOCK_STREAM, SOCK_DGRAM};
    for (int place = 0; place < 2; place++) {
        CHECK(!cutline_connect_to(types[place], address, NULL) && errno == EINVAL && strstr(cutline_error(), why));
        CHECK(!cutline_listen_at(types[place], address, NULL) && errno == EINVAL && strstr(cutline_error(), why));
    }
}

static void exchange(int type, const char *interface)
{
    /* One thread has both ends, so they do not negotiate. */
    cutline_options *plain = cutline_options_new(NULL);
    CHECK(cutline_options_set(plain, "peer", "plain") == 0);
    char address[128], own[128];
    snprintf(address, sizeof address, "[fe80::1%%%s]:0", interface);
    cutline_socket *listener = cutline_listen_at(type, address, plain);
    CHECK(listener && cutline_local_address(listener, own, sizeof own) > 0);
    snprintf(address, sizeof address, "[fe80::1%%%s]%s", interface, strrchr(own, ':'));
    cutline_socket *ours = cutline_connect_to(type, address, plain);
    CHECK(ours);
    CHECK(cutline_send(ours, "hello", 5, 0) == 5);
    cutline_socket *theirs = cutline_accept(listener, NULL, NULL);
    char data[16];
    CHECK(theirs && cutline_recv(theirs, data, sizeof data, 0) == 5 && !memcmp(data, "hello", 5));
    /* The library's own text leads there, too. */
    cutline_socket *again = cutline_connect_to(type, own, plain);
    CHECK(again);
    cutline_close(again);
    cutline_close(ours);
    cutline_close(theirs);
    cutline_close(listener);
    cutline_options_free(plain);
}

int main(int count, char **arguments)
{
    refused("[fe80::1]:80", "write fe80::1%INTERFACE");
    refused("[fe80::1%nosuch0]:80", "no interface `nosuch0`");
    refused("127.0.0.1", "HOST:PORT");
    if (count > 1) {
        exchange(SOCK_STREAM, arguments[1]);
        exchange(SOCK_DGRAM, arguments[1]);
    }
    puts("all is well");
    return 0;
}
