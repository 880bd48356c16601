/* What a program in C does with sockets of a node that runs. Arguments: the path of the node's socket, and a
 * command that kills the node's stack, which is then started again. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft_xia.h"

#define CHECK(condition)                                                                     \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            fprintf(stderr, "line %d: not true: %s (%s)\n", __LINE__, #condition,            \
                    weft_xia_error());                                                       \
            return 1;                                                                        \
        }                                                                                    \
    } while (0)

/* However busy the machine is, in milliseconds. */
#define PATIENCE 60000
#define SINK "xdp-0102030405060708090a0b0c0d0e0f1011121314"

static unsigned char message[60000], buffer[WEFT_XIA_LONGEST];
static char text[WEFT_XIA_TEXT];

static int same(const weft_xia_address *one, const weft_xia_address *other) {
    return memcmp(one, other, sizeof *one) == 0;
}

/* Waits for a datagram with poll(2). */
static int64_t polled(weft_xia_socket *socket, weft_xia_address *from) {
    struct pollfd ready = {.fd = weft_xia_fd(socket), .events = POLLIN};
    int64_t len;
    while ((len = weft_xia_recv(socket, buffer, sizeof buffer, from, 0)) == WEFT_XIA_TIMED_OUT)
        if (poll(&ready, 1, PATIENCE) != 1)
            break;
    return len;
}

static int datagrams(weft_xia_socket *here, weft_xia_socket *there) {
    static const size_t lengths[] = {0, 1, 1400, sizeof message};
    weft_xia_address from, to, own;
    CHECK(weft_xia_local(here, &own) == 0 && weft_xia_local(there, &to) == 0 && !same(&own, &to));
    CHECK(weft_xia_recv(there, buffer, sizeof buffer, &from, 0) == WEFT_XIA_TIMED_OUT);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        int64_t len = (int64_t)lengths[i];
        memset(message, (int)i + 1, lengths[i]);
        CHECK(weft_xia_send(here, message, lengths[i], &to, PATIENCE) == len);
        CHECK(polled(there, &from) == len && memcmp(buffer, message, lengths[i]) == 0);
        CHECK(same(&from, &own));
    }
    /* A buffer that is too small takes nothing away. */
    CHECK(weft_xia_send(here, "four", 4, &to, PATIENCE) == 4);
    CHECK(weft_xia_recv(there, buffer, 3, &from, PATIENCE) == WEFT_XIA_TOO_SMALL);
    CHECK(strstr(weft_xia_error(), "4 bytes") != NULL);
    CHECK(weft_xia_recv(there, buffer, 4, NULL, 0) == 4 && memcmp(buffer, "four", 4) == 0);
    CHECK(weft_xia_recv(there, buffer, 4, NULL, 0) == WEFT_XIA_TIMED_OUT);
    /* What makes no sense. */
    CHECK(weft_xia_send(here, buffer, sizeof buffer, &to, 0) == WEFT_XIA_TOO_LONG);
    CHECK(weft_xia_send(here, NULL, 1, &to, 0) == WEFT_XIA_ARGUMENT);
    CHECK(weft_xia_send(here, "x", 1, NULL, 0) == WEFT_XIA_ARGUMENT);
    CHECK(weft_xia_recv(here, NULL, 1, NULL, 0) == WEFT_XIA_ARGUMENT);
    CHECK(weft_xia_send(here, buffer, SIZE_MAX, &to, 0) == WEFT_XIA_ARGUMENT);
    CHECK(weft_xia_recv(here, buffer, SIZE_MAX / 2 + 1, NULL, 0) == WEFT_XIA_ARGUMENT);
    CHECK(strstr(weft_xia_error(), "no memory") != NULL);
    CHECK(weft_xia_set_hop_limit(here, 256) == WEFT_XIA_ARGUMENT);
    CHECK(weft_xia_set_hop_limit(here, -1) == WEFT_XIA_ARGUMENT);
    CHECK(weft_xia_set_hop_limit(here, 3) == 0);
    return 0;
}

/* The node says when a datagram cannot leave it, and the socket goes on. */
static int nowhere(weft_xia_socket *socket) {
    weft_xia_address unknown, own, from;
    CHECK(weft_xia_parse("hid-abababababababababababababababababababab-1:" SINK "-0", &unknown) == 0);
    CHECK(weft_xia_send(socket, "lost", 4, &unknown, PATIENCE) == 4);
    CHECK(weft_xia_recv(socket, buffer, sizeof buffer, &from, PATIENCE) == WEFT_XIA_REFUSED);
    CHECK(weft_xia_local(socket, &own) == 0);
    CHECK(weft_xia_send(socket, "self", 4, &own, PATIENCE) == 4);
    CHECK(weft_xia_recv(socket, buffer, sizeof buffer, &from, PATIENCE) == 4 && same(&from, &own));
    return 0;
}

/* A sink belongs to one; so does an address. */
static int bound(const char *node) {
    int error = 0;
    weft_xia_address address;
    weft_xia_socket *socket = weft_xia_open(node, SINK, PATIENCE, &error);
    CHECK(socket != NULL && weft_xia_local(socket, &address) == 0);
    CHECK(weft_xia_text(&address, text, sizeof text) > 0 && strstr(text, SINK) != NULL);
    CHECK(weft_xia_open(node, SINK, PATIENCE, &error) == NULL && error == WEFT_XIA_REFUSED);
    CHECK(weft_xia_open(node, text, PATIENCE, &error) == NULL && error == WEFT_XIA_REFUSED);
    weft_xia_close(socket);
    return 0;
}

static int restart(weft_xia_socket *socket, const char *command) {
    weft_xia_address before, after, from;
    CHECK(weft_xia_local(socket, &before) == 0);
    CHECK(system(command) == 0);
    CHECK(weft_xia_recv(socket, buffer, sizeof buffer, &from, PATIENCE) == WEFT_XIA_CLOSED);
    CHECK(weft_xia_reattach(socket, PATIENCE) == 0);
    CHECK(weft_xia_local(socket, &after) == 0 && same(&before, &after));
    CHECK(weft_xia_send(socket, "back", 4, &after, PATIENCE) == 4);
    CHECK(weft_xia_recv(socket, buffer, sizeof buffer, &from, PATIENCE) == 4 && same(&from, &after));
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    weft_xia_socket *here = weft_xia_open(argv[1], NULL, PATIENCE, NULL);
    weft_xia_socket *there = weft_xia_open(argv[1], "xdp", PATIENCE, NULL);
    CHECK(here != NULL && there != NULL && weft_xia_room_fd(here) >= 0);
    if (datagrams(here, there) || nowhere(here) || bound(argv[1]) || restart(here, argv[2]))
        return 1;
    weft_xia_close(there);
    weft_xia_close(here);
    puts("all as it should be");
    return 0;
}
