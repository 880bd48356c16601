/*
 * Sends each line of standard input as a datagram, and prints what comes back and from where.
 *
 *     echo_client NODE SERVER [ANSWERS]
 *
 * NODE is the path of the node's socket, /run/weft/NAME/xia.sock. SERVER is the address that an echo server
 * prints, or one that leads to several through a zFilter; then ANSWERS says how many answers each line has.
 * A datagram may be lost: when a node has said that it was dropped, or after two seconds, the client says so and
 * goes on with the next line; it ends with status 1.
 */
/* For clock_gettime(), which C itself does not have. */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weft_xia.h>

#define PATIENCE_MS 2000

static long long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Prints the answers to a line, of which there should be `wanted`; returns how many there were, or what
 * went wrong. */
static int64_t answers(weft_xia_socket *socket, const char *line, size_t len, long wanted) {
    static char answer[WEFT_XIA_LONGEST];
    char text[WEFT_XIA_TEXT];
    weft_xia_address from;
    long long end = now_ms() + PATIENCE_MS;
    long found = 0;

    while (found < wanted) {
        long long left = end - now_ms();
        int64_t got =
            weft_xia_recv(socket, answer, sizeof answer, &from, left > 0 ? (int)left : 0);
        if (got == WEFT_XIA_TIMED_OUT)
            break;
        if (got < 0)
            return got;
        /* A late answer to an earlier line is none to this one. */
        if ((size_t)got != len || memcmp(answer, line, len) != 0)
            continue;
        if (from.count == 0 || weft_xia_text(&from, text, sizeof text) < 0)
            strcpy(text, "nobody");
        printf("%.*s (from %s)\n", (int)len, line, text);
        fflush(stdout);
        found++;
    }
    return found;
}

int main(int argc, char **argv) {
    char line[1000];
    weft_xia_address server;
    long wanted = argc == 4 ? strtol(argv[3], NULL, 10) : 1;
    int status = 0;

    if (argc < 3 || argc > 4 || wanted < 1) {
        fprintf(stderr, "usage: %s NODE SERVER [ANSWERS]\n", argv[0]);
        return 2;
    }
    weft_xia_socket *socket = weft_xia_open(argv[1], NULL, -1, NULL);
    if (socket == NULL || weft_xia_parse(argv[2], &server) != 0) {
        fprintf(stderr, "%s: %s\n", argv[0], weft_xia_error());
        return 1;
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        size_t len = strcspn(line, "\n");
        int64_t found = weft_xia_send(socket, line, len, &server, -1);
        if (found >= 0)
            found = answers(socket, line, len, wanted);
        if (found == WEFT_XIA_REFUSED) {
            fprintf(stderr, "%.*s: %s\n", (int)len, line, weft_xia_error());
            status = 1;
            continue;
        }
        if (found < 0) {
            fprintf(stderr, "%s: %s\n", argv[0], weft_xia_error());
            return 1;
        }
        if (found < wanted) {
            fprintf(stderr, "%.*s: %ld of %ld answers\n", (int)len, line, (long)found, wanted);
            status = 1;
        }
    }
    weft_xia_close(socket);
    return status;
}
