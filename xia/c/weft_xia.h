/*
 * Datagram sockets of XIA: an application's way to the XIA node on its machine.
 *
 * A socket is bound once, to an address that ends in a sink; then it sends datagrams to whole addresses,
 * and receives datagrams with the addresses that they came from. Datagrams can be lost, doubled and
 * reordered, as those of UDP can. Link with -lweftxia.
 *
 * Addresses are directed acyclic graphs of XIDs. There are two forms: text, for people and files, and
 * weft_xia_address, which holds the rows as they are in packets.
 *
 * Multicast. There are no groups to join. To send to many, send to an address that leads through a
 * zFilter, the union of the identifiers of a tree's links (weft_xia_tree), and ends in a sink
 * (weft_xia_path): the network copies the datagram where links part. To receive what is sent so, bind to
 * that same sink on every machine; each machine's node must let packets in by a link of its own, which its
 * operator says (`zf { local link NAME; }` in the node file). A sink belongs to one socket of a machine.
 *
 * A socket is used by one thread at a time; different sockets by different threads. No call but
 * weft_xia_close() frees anything. After fork(2) only one of the two processes may use a socket.
 *
 * Calls that can fail return NULL or one of the negative numbers below, and weft_xia_error() then says in
 * words what happened and what to do about it. Times are in milliseconds: 0 is not to wait at all, a
 * negative one to wait for ever.
 */
#ifndef WEFT_XIA_H
#define WEFT_XIA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a row: the type of an XID (4), its identifier (20), four edges. */
#define WEFT_XIA_ROW 28
/* The most rows of an address. */
#define WEFT_XIA_ROWS 9
/* Room for the text of any address, or of any XID, with the zero at its end, in bytes. */
#define WEFT_XIA_TEXT 640
/* No datagram is longer, in bytes. What links carry is less: their MTU without the header. */
#define WEFT_XIA_LONGEST 65536
/* How far datagrams go if nothing else is said, in hops. */
#define WEFT_XIA_HOP_LIMIT 128

/* Why a call failed. */
#define WEFT_XIA_CLOSED (-1)      /* the node went away; weft_xia_reattach() waits for it to return */
#define WEFT_XIA_HOSTILE (-2)     /* the node broke the rules of the channel; close the socket */
#define WEFT_XIA_TIMED_OUT (-3)   /* not in the time given */
#define WEFT_XIA_TOO_LONG (-5)    /* the datagram is too long for the channel to the node */
#define WEFT_XIA_TOO_SMALL (-6)   /* the buffer is shorter than the next datagram, which stays, or the text */
#define WEFT_XIA_NO_NODE (-7)     /* there is no node there, or this user may not talk to it */
#define WEFT_XIA_REFUSED (-8)     /* the node said no; receiving: an earlier datagram could not leave it or was dropped */
#define WEFT_XIA_SYSTEM (-10)     /* a system call failed */
#define WEFT_XIA_ARGUMENT (-11)   /* this call makes no sense: a null pointer, a hop limit of 300 */
#define WEFT_XIA_BUG (-12)        /* an error in the library itself; close the socket */
#define WEFT_XIA_BAD_ADDRESS (-13) /* this is no address, or no XID */

/* An address. */
typedef struct weft_xia_address {
    uint8_t count;                               /* how many rows: 1 to WEFT_XIA_ROWS; 0: no address */
    uint8_t rows[WEFT_XIA_ROWS * WEFT_XIA_ROW];  /* as in packets; those beyond `count` are zero */
} weft_xia_address;

/* A socket. */
typedef struct weft_xia_socket weft_xia_socket;

/*
 * Reads the text of an address, such as "hid-<40 hex digits>-1:xdp-<40 hex digits>-0", into *address. One
 * XID alone stands for the address of one node.
 *
 * Returns 0, or WEFT_XIA_BAD_ADDRESS if it is no sound address.
 */
int weft_xia_parse(const char *text, weft_xia_address *address);

/*
 * Writes the text of an address, and a zero, into `text`, which has `len` bytes; WEFT_XIA_TEXT are enough.
 * The text of an address that is not sound begins with "!".
 *
 * Returns the length of the text without the zero, WEFT_XIA_BAD_ADDRESS if there are no rows or too many,
 * or WEFT_XIA_TOO_SMALL.
 */
int64_t weft_xia_text(const weft_xia_address *address, char *text, size_t len);

/*
 * Makes the address entry -> first -> second -> ... -> last of `count` XIDs, which are texts such as
 * "xdp-<40 hex digits>".
 *
 * Returns 0, or WEFT_XIA_BAD_ADDRESS.
 */
int weft_xia_path(const char *const *xids, size_t count, weft_xia_address *address);

/*
 * Makes the zFilter of the tree that has these `count` links, each an XID such as "zf-<40 hex digits>":
 * the union of their bits. A tree is a link of a larger one. Writes it, as text and a zero, into `text`, which
 * has `len` bytes.
 *
 * Returns the length of the text without the zero, WEFT_XIA_BAD_ADDRESS if something is no link, or
 * WEFT_XIA_TOO_SMALL.
 */
int64_t weft_xia_tree(const char *const *links, size_t count, char *text, size_t len);

/*
 * Attaches to the node whose socket is at `node`, /run/weft/NAME/xia.sock as a rule, and binds.
 *
 * bind: a whole address, which others then send to; or a sink, such as "xdp-<40 hex digits>", in front of
 *     which the node puts its own address; or the type of a sink, such as "xdp", of which the node draws one
 *     at random. NULL is "xdp".
 * timeout_ms: how long to wait for a node that does not answer; negative: 5 seconds.
 *
 * Returns NULL if that fails, and puts the reason into *error unless `error` is NULL.
 */
weft_xia_socket *weft_xia_open(const char *node, const char *bind, int timeout_ms, int *error);

/* Puts the address that others reach this socket by into *address. Returns 0. */
int weft_xia_local(const weft_xia_socket *socket, weft_xia_address *address);

/* Sets how far datagrams go from now on, in hops: 0 (no router passes them on) to 255. Returns 0. */
int weft_xia_set_hop_limit(weft_xia_socket *socket, int hops);

/*
 * Sends a datagram of `len` bytes, 0 or more, to an address; waits for room for `timeout_ms`. That it was
 * sent says nothing about its arrival: if it could not even leave the node, a later weft_xia_recv() returns
 * WEFT_XIA_REFUSED.
 *
 * Returns `len`.
 */
int64_t weft_xia_send(weft_xia_socket *socket, const void *bytes, size_t len,
                      const weft_xia_address *to, int timeout_ms);

/*
 * Receives a datagram into `buffer`, waiting for `timeout_ms`, and puts the address that it came from, which
 * an answer is sent to, into *from unless `from` is NULL: with `count` 0 if the sender gave none.
 *
 * Returns its length, 0 or more. After WEFT_XIA_REFUSED, which tells of an earlier datagram that was sent,
 * call it again. After WEFT_XIA_TOO_SMALL the datagram is still there for a larger buffer.
 */
int64_t weft_xia_recv(weft_xia_socket *socket, void *buffer, size_t len, weft_xia_address *from,
                      int timeout_ms);

/*
 * The descriptor to poll for reading in a loop of one's own. When it is ready, call weft_xia_recv() with no
 * timeout (0) until it returns WEFT_XIA_TIMED_OUT; only then poll again. It belongs to the socket: do not read
 * from it, and do not close it.
 */
int weft_xia_fd(const weft_xia_socket *socket);

/*
 * The descriptor to poll for reading after weft_xia_send() with no timeout (0) has returned
 * WEFT_XIA_TIMED_OUT: when it is ready, send again.
 */
int weft_xia_room_fd(const weft_xia_socket *socket);

/*
 * After WEFT_XIA_CLOSED: waits for the node to return, for `timeout_ms` each to attach and to bind, and binds
 * to the same address. What was on its way is lost; the descriptors are others.
 *
 * Returns 0.
 */
int weft_xia_reattach(weft_xia_socket *socket, int timeout_ms);

/* Closes a socket and frees it. What was sent still leaves the node. NULL is no socket and no error. */
void weft_xia_close(weft_xia_socket *socket);

/*
 * Says in words why the last call of this thread failed. Valid until the next call of this thread.
 */
const char *weft_xia_error(void);

#ifdef __cplusplus
}
#endif

#endif
