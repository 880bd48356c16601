/*
 * Sends every datagram back to where it came from.
 *
 *     echo_server NODE [BIND]
 *
 * NODE is the path of the node's socket, /run/weft/NAME/xia.sock. BIND is what to be reached by: a sink such
 * as xdp-<40 hex digits>, or a whole address; without it the node draws a sink at random.
 */
#include <stdio.h>

#include <weft_xia.h>

/* Waits for the node to return if it went away. Nothing else that happens to a socket can be mended. */
static int mended(weft_xia_socket *socket, int64_t result) {
    switch (result) {
    case WEFT_XIA_REFUSED: /* An answer could not leave the node, and that was all. */
        return 1;
    case WEFT_XIA_CLOSED:
        fputs("the node went away; waiting for it to return\n", stderr);
        return weft_xia_reattach(socket, -1) == 0;
    default:
        return 0;
    }
}

int main(int argc, char **argv) {
    static unsigned char datagram[WEFT_XIA_LONGEST];
    char text[WEFT_XIA_TEXT];
    weft_xia_address address;

    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: %s NODE [BIND]\n", argv[0]);
        return 2;
    }
    weft_xia_socket *socket = weft_xia_open(argv[1], argc == 3 ? argv[2] : NULL, -1, NULL);
    if (socket == NULL || weft_xia_local(socket, &address) != 0 ||
        weft_xia_text(&address, text, sizeof text) < 0) {
        fprintf(stderr, "%s: %s\n", argv[0], weft_xia_error());
        return 1;
    }
    printf("echoing at %s\n", text);
    fflush(stdout);

    for (;;) {
        int64_t result = weft_xia_recv(socket, datagram, sizeof datagram, &address, -1);
        /* Without the address of its sender a datagram cannot be answered. */
        if (result >= 0 && address.count > 0)
            result = weft_xia_send(socket, datagram, (size_t)result, &address, -1);
        if (result < 0 && !mended(socket, result)) {
            fprintf(stderr, "%s: %s\n", argv[0], weft_xia_error());
            return 1;
        }
    }
}
