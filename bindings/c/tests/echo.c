/* Talks to a stack that echoes: what a program in C does with weft_flow.h. Arguments: the path of the
 * stack's socket, and the path of one that does not exist. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft_flow.h"

#define CHECK(condition)                                                                     \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            fprintf(stderr, "line %d: not true: %s (%s)\n", __LINE__, #condition,            \
                    weft_flow_error());                                                      \
            return 1;                                                                        \
        }                                                                                    \
    } while (0)

static unsigned char message[WEFT_FLOW_LONGEST], buffer[WEFT_FLOW_LONGEST];

/* Messages of all kinds of lengths come back as they were. */
static int datagrams(const char *path) {
    static const size_t lengths[] = {1, 64, 1400, 65000, WEFT_FLOW_LONGEST};
    weft_flow *flow = weft_flow_connect(path, WEFT_FLOW_DATAGRAM, 0, 0, -1, NULL);
    CHECK(flow != NULL);
    CHECK(weft_flow_recv(flow, buffer, sizeof buffer, 0) == WEFT_FLOW_TIMED_OUT);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        memset(message, (int)i + 1, lengths[i]);
        CHECK(weft_flow_send(flow, message, lengths[i], -1) == (int64_t)lengths[i]);
        struct pollfd ready = {.fd = weft_flow_fd(flow), .events = POLLIN};
        int64_t len;
        while ((len = weft_flow_recv(flow, buffer, sizeof buffer, 0)) == WEFT_FLOW_TIMED_OUT)
            CHECK(poll(&ready, 1, -1) == 1);
        CHECK(len == (int64_t)lengths[i] && memcmp(buffer, message, lengths[i]) == 0);
    }
    CHECK(weft_flow_send(flow, message, 0, 0) == WEFT_FLOW_EMPTY);
    CHECK(weft_flow_send(flow, message, sizeof message + 1, 0) == WEFT_FLOW_TOO_LONG);
    CHECK(weft_flow_send(flow, NULL, 1, 0) == WEFT_FLOW_ARGUMENT);
    CHECK(weft_flow_recv(flow, NULL, 1, 0) == WEFT_FLOW_ARGUMENT);
    CHECK(weft_flow_send(flow, "four", 4, -1) == 4);
    CHECK(weft_flow_recv(flow, buffer, 3, -1) == WEFT_FLOW_TOO_SMALL);
    CHECK(strstr(weft_flow_error(), "4 bytes") != NULL);
    CHECK(weft_flow_recv(flow, buffer, 4, -1) == 4);
    /* No memory is as long as that. */
    CHECK(weft_flow_send(flow, message, SIZE_MAX, 0) == WEFT_FLOW_ARGUMENT);
    CHECK(weft_flow_recv(flow, buffer, SIZE_MAX / 2 + 1, 0) == WEFT_FLOW_ARGUMENT);
    CHECK(strstr(weft_flow_error(), "no memory") != NULL);
    /* The stack closes the flow when it is told so. */
    CHECK(weft_flow_send(flow, "close", 5, -1) == 5);
    CHECK(weft_flow_recv(flow, buffer, sizeof buffer, -1) == WEFT_FLOW_CLOSED);
    CHECK(weft_flow_reattach(flow, -1) == 0);
    CHECK(weft_flow_send(flow, "again", 5, -1) == 5);
    CHECK(weft_flow_recv(flow, buffer, sizeof buffer, -1) == 5);
    CHECK(memcmp(buffer, "again", 5) == 0);
    weft_flow_close(flow);
    return 0;
}

/* A stream that nobody reads for a while takes what it has room for, and tells when there is more. */
static int stream(const char *path) {
    weft_flow *flow = weft_flow_connect(path, WEFT_FLOW_STREAM, 4096, 4096, 5000, NULL);
    CHECK(flow != NULL && weft_flow_room_fd(flow) >= 0);
    size_t sent = 0, received = 0;
    for (size_t i = 0; i < sizeof message; i++)
        message[i] = (unsigned char)(i * 7);
    while (received < sizeof message) {
        if (sent < sizeof message) {
            int64_t len = weft_flow_send(flow, message + sent, sizeof message - sent, 0);
            CHECK(len > 0 || len == WEFT_FLOW_TIMED_OUT);
            sent += len > 0 ? (size_t)len : 0;
        }
        int64_t len = weft_flow_recv(flow, buffer + received, sizeof buffer - received, 0);
        CHECK(len > 0 || len == WEFT_FLOW_TIMED_OUT);
        received += len > 0 ? (size_t)len : 0;
    }
    CHECK(memcmp(buffer, message, sizeof message) == 0);
    weft_flow_close(flow);
    return 0;
}

static int errors(const char *missing) {
    int error = 0;
    CHECK(weft_flow_connect(missing, WEFT_FLOW_STREAM, 0, 0, 100, &error) == NULL);
    CHECK(error == WEFT_FLOW_NO_STACK);
    CHECK(strstr(weft_flow_error(), "is the node running?") != NULL);
    CHECK(weft_flow_connect(missing, 7, 0, 0, 100, &error) == NULL && error == WEFT_FLOW_ARGUMENT);
    CHECK(weft_flow_connect(NULL, 1, 0, 0, 100, &error) == NULL && error == WEFT_FLOW_ARGUMENT);
    CHECK(weft_flow_fd(NULL) == WEFT_FLOW_ARGUMENT);
    CHECK(weft_flow_send(NULL, "x", 1, 0) == WEFT_FLOW_ARGUMENT);
    weft_flow_close(NULL);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    if (errors(argv[2]) || datagrams(argv[1]) || stream(argv[1]))
        return 1;
    puts("all as it should be");
    return 0;
}
