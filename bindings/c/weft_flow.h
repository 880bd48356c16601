/*
 * Flows: the channel between an application and a stack of weft on the same machine.
 *
 * A flow carries messages (datagrams, whose borders are kept) or bytes (a stream) in both directions
 * through memory that both sides share. Link with -lweftflow.
 *
 * A flow is used by one thread at a time; different flows by different threads. No call but
 * weft_flow_close() frees anything. After fork(2) only one of the two processes may use a flow.
 *
 * Calls that can fail return NULL or one of the negative numbers below, and weft_flow_error() then says
 * in words what happened and what to do about it.
 */
#ifndef WEFT_FLOW_H
#define WEFT_FLOW_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a flow carries. */
#define WEFT_FLOW_DATAGRAM 1 /* messages of 1 to WEFT_FLOW_LONGEST bytes */
#define WEFT_FLOW_STREAM 2   /* bytes */

/* The longest message, in bytes. */
#define WEFT_FLOW_LONGEST 65536

/* Why a call failed. */
#define WEFT_FLOW_CLOSED (-1)     /* the other side closed the flow or died; all it sent was received */
#define WEFT_FLOW_HOSTILE (-2)    /* the other side broke the rules; close the flow */
#define WEFT_FLOW_TIMED_OUT (-3)  /* not in the time given */
#define WEFT_FLOW_EMPTY (-4)      /* a message has at least one byte */
#define WEFT_FLOW_TOO_LONG (-5)   /* the message is longer than WEFT_FLOW_LONGEST */
#define WEFT_FLOW_TOO_SMALL (-6)  /* the buffer is shorter than the next message, which stays */
#define WEFT_FLOW_NO_STACK (-7)   /* nobody listens there, or this user may not connect */
#define WEFT_FLOW_REFUSED (-8)    /* the stack said no */
#define WEFT_FLOW_NOT_A_FLOW (-9) /* something else listens there */
#define WEFT_FLOW_SYSTEM (-10)    /* a system call failed */
#define WEFT_FLOW_ARGUMENT (-11)  /* this call makes no sense: a null pointer, an unknown kind */
#define WEFT_FLOW_BUG (-12)       /* an error in the library itself; close the flow */

/* A flow. */
typedef struct weft_flow weft_flow;

/*
 * Attaches to the stack whose control socket is at `path`.
 *
 * kind: WEFT_FLOW_DATAGRAM or WEFT_FLOW_STREAM.
 * up, down: the wanted sizes, in bytes, of the rings to the stack and from it; 0 for what is usual. They are
 *     rounded up to a power of two. A stack refuses rings that are larger than it takes.
 * timeout_ms: how long to wait for a stack that does not answer, in milliseconds; negative: 5 seconds.
 *
 * Returns NULL if that fails, and puts the reason into *error unless `error` is NULL.
 */
weft_flow *weft_flow_connect(const char *path, int kind, uint32_t up, uint32_t down, int timeout_ms,
                             int *error);

/*
 * Sends a message, or bytes of a stream. Waits for room for `timeout_ms` milliseconds; 0: not at all,
 * negative: for ever.
 *
 * Returns how many bytes were sent: of a stream fewer than `len` if the time was over before.
 */
int64_t weft_flow_send(weft_flow *flow, const void *bytes, size_t len, int timeout_ms);

/*
 * Receives one message, or what there is of a stream, into `buffer`. Waits as weft_flow_send() does.
 *
 * Returns its length, at least 1; WEFT_FLOW_CLOSED after the last one.
 */
int64_t weft_flow_recv(weft_flow *flow, void *buffer, size_t len, int timeout_ms);

/*
 * The descriptor to poll for reading in a loop of one's own. When it is ready, call weft_flow_recv()
 * with no timeout (0) until it returns WEFT_FLOW_TIMED_OUT; only then poll again. It belongs to the flow:
 * do not read from it, and do not close it.
 */
int weft_flow_fd(const weft_flow *flow);

/*
 * The descriptor to poll for reading after weft_flow_send() with no timeout (0) has returned
 * WEFT_FLOW_TIMED_OUT, or less than all of a stream: when it is ready, send again.
 */
int weft_flow_room_fd(const weft_flow *flow);

/*
 * After WEFT_FLOW_CLOSED: waits for the stack to return, for `timeout_ms` milliseconds (negative: for
 * ever), and attaches again. What was on its way is lost; the descriptors are others. Whatever the stack
 * has to know of this application has to be sent again.
 *
 * Returns 0.
 */
int weft_flow_reattach(weft_flow *flow, int timeout_ms);

/* Closes a flow and frees it. What was sent still arrives. NULL is no flow and no error. */
void weft_flow_close(weft_flow *flow);

/*
 * Says in words why the last call of this thread failed. Valid until the next call of this thread.
 */
const char *weft_flow_error(void);

#ifdef __cplusplus
}
#endif

#endif
