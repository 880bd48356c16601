/* What a program in C does with addresses, and with a node that is not there: its path is the argument. */
#include <stdio.h>
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

#define HOST "hid-abababababababababababababababababababab"
#define SINK "xdp-0102030405060708090a0b0c0d0e0f1011121314"
#define EAST "zf-8000000000000000000000000000000000000001"
#define WEST "zf-4000000000000000000000000000000000000010"
#define BOTH "zf-c000000000000000000000000000000000000011"

static char text[WEFT_XIA_TEXT];

static int texts(void) {
    weft_xia_address address, again;
    CHECK(sizeof address == 1 + WEFT_XIA_ROWS * WEFT_XIA_ROW);
    CHECK(weft_xia_parse(HOST "-1:" SINK "-10", &address) == 0 && address.count == 2);
    /* The second row: type 0x17, the identifier, and the edges of the entry. */
    static const unsigned char row[] = {0, 0, 0, 0x17, 1, 2};
    CHECK(memcmp(address.rows + WEFT_XIA_ROW, row, sizeof row) == 0);
    CHECK(address.rows[2 * WEFT_XIA_ROW - 4] == 1 && address.rows[2 * WEFT_XIA_ROW - 1] == 0x7f);
    CHECK(weft_xia_text(&address, text, sizeof text) == (int64_t)strlen(text));
    CHECK(strcmp(text, HOST "-1:" SINK "-10") == 0);
    CHECK(weft_xia_parse(text, &again) == 0 && memcmp(&address, &again, sizeof again) == 0);
    CHECK(weft_xia_text(&address, text, strlen(text)) == WEFT_XIA_TOO_SMALL);
    /* Rows that somebody wrote himself are printed, whatever they say. */
    memset(&again, 0xff, sizeof again);
    again.count = WEFT_XIA_ROWS;
    CHECK(weft_xia_text(&again, text, sizeof text) > 0 && text[0] == '!');
    return 0;
}

static int built(void) {
    weft_xia_address address;
    const char *path[] = {HOST, SINK}, *links[] = {EAST, WEST};
    CHECK(weft_xia_path(path, 2, &address) == 0);
    CHECK(weft_xia_text(&address, text, sizeof text) > 0 && !strcmp(text, HOST "-1:" SINK "-0"));
    CHECK(weft_xia_tree(links, 2, text, sizeof text) == (int64_t)strlen(BOTH) && !strcmp(text, BOTH));
    path[0] = text;
    CHECK(weft_xia_path(path, 2, &address) == 0 && address.rows[3] == 0x20);
    CHECK(weft_xia_tree(links, 2, text, strlen(BOTH)) == WEFT_XIA_TOO_SMALL);
    return 0;
}

static int mistakes(const char *missing) {
    weft_xia_address address;
    const char *path[] = {HOST, "nothing"}, *none = NULL;
    int error = 0;
    CHECK(weft_xia_parse("hid-ab-0", &address) == WEFT_XIA_BAD_ADDRESS);
    CHECK(strstr(weft_xia_error(), "write for example") != NULL);
    CHECK(weft_xia_parse(HOST "-2:" SINK "-0", &address) == WEFT_XIA_BAD_ADDRESS);
    CHECK(weft_xia_parse("\xff", &address) == WEFT_XIA_BAD_ADDRESS);
    CHECK(weft_xia_parse(NULL, &address) == WEFT_XIA_ARGUMENT);
    CHECK(weft_xia_parse(HOST, NULL) == WEFT_XIA_ARGUMENT);
    address.count = 0;
    CHECK(weft_xia_text(&address, text, sizeof text) == WEFT_XIA_BAD_ADDRESS);
    address.count = WEFT_XIA_ROWS + 1;
    CHECK(weft_xia_text(&address, text, sizeof text) == WEFT_XIA_BAD_ADDRESS);
    CHECK(weft_xia_path(path, 0, &address) == WEFT_XIA_BAD_ADDRESS);
    CHECK(weft_xia_path(path, 2, &address) == WEFT_XIA_BAD_ADDRESS);
    CHECK(weft_xia_path(&none, 1, &address) == WEFT_XIA_ARGUMENT);
    CHECK(weft_xia_path(NULL, 1, &address) == WEFT_XIA_ARGUMENT);
    CHECK(weft_xia_path(path, SIZE_MAX, &address) == WEFT_XIA_ARGUMENT);
    CHECK(weft_xia_tree(path, SIZE_MAX / sizeof *path, text, sizeof text) == WEFT_XIA_ARGUMENT);
    CHECK(strstr(weft_xia_error(), "no memory") != NULL);
    CHECK(weft_xia_tree(path, 1, text, sizeof text) == WEFT_XIA_BAD_ADDRESS);
    CHECK(strstr(weft_xia_error(), "is no link") != NULL);
    CHECK(weft_xia_open(missing, NULL, 100, &error) == NULL && error == WEFT_XIA_NO_NODE);
    CHECK(strstr(weft_xia_error(), "weft run") != NULL);
    CHECK(weft_xia_open(missing, "nothing", 100, &error) == NULL && error == WEFT_XIA_BAD_ADDRESS);
    CHECK(weft_xia_open(NULL, "xdp", 100, &error) == NULL && error == WEFT_XIA_ARGUMENT);
    CHECK(weft_xia_local(NULL, &address) == WEFT_XIA_ARGUMENT);
    CHECK(weft_xia_fd(NULL) == WEFT_XIA_ARGUMENT && weft_xia_room_fd(NULL) == WEFT_XIA_ARGUMENT);
    CHECK(weft_xia_send(NULL, "x", 1, &address, 0) == WEFT_XIA_ARGUMENT);
    CHECK(weft_xia_recv(NULL, text, 1, NULL, 0) == WEFT_XIA_ARGUMENT);
    CHECK(weft_xia_set_hop_limit(NULL, 1) == WEFT_XIA_ARGUMENT);
    CHECK(weft_xia_reattach(NULL, 0) == WEFT_XIA_ARGUMENT);
    weft_xia_close(NULL);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    if (texts() || built() || mistakes(argv[1]))
        return 1;
    puts("all as it should be");
    return 0;
}
