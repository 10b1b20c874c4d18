/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* Sends frames that no socket of IP sends, from an interface of this network namespace, for the virtual machine of `make test-vm`. They are for
 * an address that no host has.
 *
 *     frames INTERFACE points         five frames for each code point: IPv4, IPv6, IPv6 with an extension header, IPv4 behind a tag, IPv6 behind two
 *     frames INTERFACE malformed      seven frames without an IP header that can be read
 *     frames INTERFACE jumbo COUNT    frames of 9014 B
 *     frames INTERFACE extensions     eight frames of IPv6 with extension headers and the code point 46 (EF), two of them cut off there
 *     frames INTERFACE flows COUNT    a frame of each of so many flows of UDP, at most 2^24
 */
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { CODE_POINTS = 64, EF = 46, SMALL = 100, JUMBO = 9014, UDP = 17 };
/* Extension headers of IPv6, of 8 octets here. */
enum { HOP_BY_HOP = 0, ROUTING = 43, FRAGMENT = 44, DESTINATION = 60, AUTHENTICATION = 51 };

static int packets;
static struct sockaddr_ll out = { .sll_family = AF_PACKET };
static unsigned char frame[JUMBO];
static size_t end; /* B of the frame up to its IP header */

static void begin(void)
{
    memset(frame, 0, sizeof frame);
    frame[0] = frame[6] = 2;
    frame[5] = 0x77;
    end = 12;
}

static void word(unsigned value)
{
    frame[end++] = value >> 8;
    frame[end++] = value;
}

static void tag(unsigned type)
{
    word(type);
    word(7);
}

static void ipv4(unsigned point, unsigned length)
{
    word(ETH_P_IP);
    frame[end] = 0x45;
    frame[end + 1] = point << 2;
    frame[end + 2] = length >> 8;
    frame[end + 3] = length;
    frame[end + 8] = 64;
    frame[end + 9] = UDP;
    frame[end + 12] = frame[end + 16] = 10;
    frame[end + 19] = 9;
}

/* A traffic class is the code point and two bits of ECN, half in the first octet. */
static void ipv6(unsigned point, unsigned next)
{
    word(ETH_P_IPV6);
    frame[end] = 0x60 | point >> 2;
    frame[end + 1] = (point & 3) << 6;
    frame[end + 5] = SMALL - 40;
    frame[end + 6] = next;
    frame[end + 7] = 64;
}

/* Sends the frame with so many bytes behind its headers of the link. A frame that the queue drops on arrival is no failure: it is counted there. */
static void send_with(size_t bytes)
{
    if (sendto(packets, frame, end + bytes, 0, (void *)&out, sizeof out) < 0 && errno != ENOBUFS) {
        perror("FAILED frames");
        exit(1);
    }
}

static void send_points(void)
{
    for (unsigned point = 0; point < CODE_POINTS; point++) {
        begin(); ipv4(point, SMALL); send_with(SMALL);
        begin(); ipv6(point, UDP); send_with(SMALL);
        begin(); ipv6(point, HOP_BY_HOP); frame[end + 40] = UDP; send_with(SMALL);
        begin(); tag(ETH_P_8021Q); ipv4(point, SMALL); send_with(SMALL);
        begin(); tag(ETH_P_8021AD); tag(ETH_P_8021Q); ipv6(point, UDP); send_with(SMALL);
    }
}

static void send_malformed(void)
{
    /* Headers that are cut off. */
    begin(); ipv4(1, SMALL); send_with(10);
    begin(); ipv6(1, UDP); send_with(19);
    begin(); tag(ETH_P_8021Q); send_with(0);
    /* Types that are not those of the header. */
    begin(); ipv4(1, SMALL); frame[end] = 0x65; send_with(SMALL);
    begin(); ipv6(1, UDP); frame[end] = 0x40; send_with(SMALL);
    /* Neither IP, nor behind two tags at most. */
    begin(); word(ETH_P_ARP); send_with(SMALL);
    begin(); tag(ETH_P_8021AD); tag(ETH_P_8021Q); tag(ETH_P_8021Q); ipv4(1, SMALL); send_with(SMALL);
}

static void send_extensions(void)
{
    static const unsigned char HEADERS[] = { HOP_BY_HOP, ROUTING, FRAGMENT, DESTINATION, AUTHENTICATION };

    for (size_t i = 0; i < sizeof HEADERS; i++) {
        begin(); ipv6(EF, HEADERS[i]); frame[end + 40] = UDP; send_with(SMALL);
    }
    /* Three in a row; one that is cut off behind its first octet; and none, although the IP header names one. */
    begin(); ipv6(EF, HOP_BY_HOP); frame[end + 40] = DESTINATION; frame[end + 48] = ROUTING; frame[end + 56] = UDP; send_with(SMALL);
    begin(); ipv6(EF, HOP_BY_HOP); frame[end + 40] = UDP; send_with(41);
    begin(); ipv6(EF, HOP_BY_HOP); send_with(40);
}

static void send_flows(unsigned count)
{
    begin();
    ipv4(0, SMALL);
    frame[end + 21] = frame[end + 23] = 9; /* the ports */
    for (unsigned flow = 0; flow < count; flow++) {
        frame[end + 13] = flow >> 16;
        frame[end + 14] = flow >> 8;
        frame[end + 15] = flow;
        send_with(SMALL);
    }
}

int main(int count, char **words)
{
    if (count < 3 || !(out.sll_ifindex = if_nametoindex(words[1])) || (packets = socket(AF_PACKET, SOCK_RAW, 0)) < 0) {
        perror("FAILED frames INTERFACE points|malformed|jumbo COUNT|extensions|flows COUNT");
        return 1;
    }
    if (!strcmp(words[2], "points")) {
        send_points();
    } else if (!strcmp(words[2], "malformed")) {
        send_malformed();
    } else if (!strcmp(words[2], "jumbo") && count == 4) {
        begin();
        ipv4(0, JUMBO - ETH_HLEN);
        for (int left = atoi(words[3]); left > 0; left--)
            send_with(JUMBO - ETH_HLEN);
    } else if (!strcmp(words[2], "extensions")) {
        send_extensions();
    } else if (!strcmp(words[2], "flows") && count == 4) {
        send_flows(atoi(words[3]));
    } else {
        printf("FAILED frames: there is no kind `%s`\n", words[2]);
        return 1;
    }
    return 0;
}
