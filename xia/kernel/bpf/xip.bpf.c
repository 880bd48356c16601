// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The kernel's part of XIP forwarding: it carries out decisions that the portable engine has made.
//
// A packet of EtherType 0xC0DE stands at the last node of its destination address. The XIDs to which the
// edges of that node lead, in order, are the key of a decision (`dst1` to `dst4`, by the number of edges):
// go on from the target of one edge, which is this node; send the packet to a neighbour; drop it. What has
// no decision is passed on, and so is everything that takes more than these three: delivery, copies, error
// messages, malformed packets, hop limits at their end, packets longer than the next link takes. The
// packet port of the stack receives what is passed, unchanged, and the portable engine decides; where that is one
// of AF_XDP, it gets packets straight from here. So the program can be attached and detached between any two
// packets.
//
// How many packets may be passed from a port in a time can be limited (`limits`), so that a flood on one
// port cannot take the stack from the others. Those that are passed by a decision, to sockets of this node for
// example, are not limited, nor those that have a decision which the program alone cannot carry out.
//
// Checks and changes are those of xia/xip/src/header.rs, xia/xip/src/dag/check.rs and
// xia/xip/src/forward; tests compare the bytes. User space knows the layouts by xia/kernel/src/layout.rs, and
// those that all packet engines have in common (`ports`, `egress`, `port`) by core/ebpf/src/engine.rs.
//
// Reference: Machado et al., "Linux XIA", section 4.2 (the routing cache).

#include <stddef.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <asm/byteorder.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "../../../core/ebpf/bpf/open_table.h"

enum { ETHERTYPE = 0xc0de, VERSION = 1, MOST_ROWS = 9, FAN_OUT = 4 };
/* Row numbers and marks in the fields of edges and of the last node. */
enum { ENTRY = 0x7e, EMPTY = 0x7f, CHOSEN = 0x80 };
#define EVERY_EDGE(byte) ((byte) * 0x01010101U)

struct xid {
	__u64 words[3];
};

struct xip_header {
	__u8 version;
	__u8 next_header;
	__be16 payload_len;
	__u8 hop_limit;
	__u8 rows;
	__u8 source_rows;
	__u8 last_node;
} __attribute__((packed));

struct xip_row {
	struct xid xid;
	__u8 edges[FAN_OUT];
} __attribute__((packed));

/* Values of `entry.decision`. */
enum { THROUGH = 1, FORWARD, DROP, PASS, REPORT };

// What is to be done. No word of it is zero: that is no entry. Small, and never written here: tables of many
// decisions are as fast as the memory that they take.
union entry {
	__u32 word;
	struct {
		__u8 decision;
		/* The edge taken, 0 to 3. */
		__u8 edge;
		/* FORWARD: an element of `hops`; DROP: the reason. */
		__u16 hop;
	};
};

#define XID_WORDS (sizeof(struct xid) / sizeof(__u64))

/* Decisions, by the XIDs of as many edges. */
OPEN_TABLE(dst1, XID_WORDS);
OPEN_TABLE(dst2, 2 * XID_WORDS);
OPEN_TABLE(dst3, 3 * XID_WORDS);
OPEN_TABLE(dst4, 4 * XID_WORDS);

// Neighbours: a MAC address in the lower 48 bits, in the order of memory, and an element of `ports` and
// `egress` above. Zero is no neighbour. One word, so that it changes at once.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} hops SEC(".maps");

struct port_out {
	/* Its own MAC address, as in `hops`. */
	__u64 mac;
	/* The longest XIP packet; in the upper half PORT_* flags. */
	__u64 mtu;
};

/* Its driver may drop what a program in driver mode hands over. */
#define PORT_RELUCTANT (1ULL << 32)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct port_out);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} egress SEC(".maps");

// The AF_XDP socket of the stack, where this port has one: by the number of the queue that it is bound to.
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

/* What happened to packets. */
enum {
	FORWARDED,
	DROPPED,
	PASSED_OTHERS,		/* not to this port's address */
	PASSED_MALFORMED,
	PASSED_MISS,
	PASSED_SINK,		/* the address ends here */
	PASSED_HOP_LIMIT,
	PASSED_TOO_BIG,
	PASSED_NO_HOP,		/* the neighbour or its port is gone */
	PASSED_RELUCTANT,	/* the next link takes no packets in driver mode */
	PASSED_KNOWN,		/* by a decision */
	PASSED_DROP,		/* to be dropped, and its source told */
	LIMITED,		/* was to be passed, but too many were: dropped */
	BY_REASON,		/* dropped, by the reason of the decision */
	REASONS = 32,
	COUNTERS = BY_REASON + REASONS,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

// How many packets may be passed from each port: nanoseconds between two of them, 0 if there is no limit; how far
// ahead of their time they may come; and how far the first one may after others were refused.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 3);
	__type(key, __u32);
	__type(value, __u64);
} limits SEC(".maps");

// The port that this copy of the program is attached to.
volatile struct {
	/* Its own MAC address, as in `hops`. */
	__u64 mac;
	/* When the next packet should be passed, by the monotonic clock. */
	__u64 next;
	/* Packets were refused and none was passed since. */
	__u64 saves;
	/* PROGRAM_* */
	__u64 flags;
} port;

/* It hands nothing to ports that are reluctant. */
#define PROGRAM_CAREFUL 2

static __always_inline void count(__u32 what)
{
	__u64 *counter = bpf_map_lookup_elem(&counters, &what);

	if (counter)
		*counter += 1;
}

// Hands the packet to the stack: to its AF_XDP socket, else to its packet socket.
static __always_inline int hand_over(const struct xdp_md *ctx, __u32 reason)
{
	count(reason);
	return bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
}

// Passes the packet on, unless too many were.
//
// Each passed packet moves `next` by one interval; who is more than a burst ahead of the clock waits. This
// is the virtual scheduling form of a token bucket (ITU-T I.371): all its state is one word. Who had to wait
// does so until there is room for a batch: waking the stack for each packet costs more than the packet.
static __always_inline int pass(const struct xdp_md *ctx, __u32 reason)
{
	const __u32 at_interval = 0, at_burst = 1, at_saving = 2;
	const __u64 *interval = bpf_map_lookup_elem(&limits, &at_interval);
	const __u64 *burst = bpf_map_lookup_elem(&limits, port.saves ? &at_saving : &at_burst);

	if (interval && burst && *interval) {
		const __u64 now = bpf_ktime_get_ns();
		const __u64 next = port.next;
		const __u64 begin = next > now ? next : now;

		if (begin - now > *burst) {
			if (!port.saves)
				port.saves = 1;
			count(LIMITED);
			return XDP_DROP;
		}
		/* Two processors at the same instant: one of them is refused, which errs on the safe side. */
		if (!__sync_bool_compare_and_swap(&port.next, next, begin + *interval)) {
			count(LIMITED);
			return XDP_DROP;
		}
		if (port.saves)
			port.saves = 0;
	}
	return hand_over(ctx, reason);
}

static __always_inline __u64 mac_word(const __u8 *mac)
{
	return *(const __u32 *)mac | (__u64)*(const __u16 *)(mac + 4) << 32;
}

static __always_inline void put_mac(__u8 *mac, __u64 word)
{
	*(__u32 *)mac = word;
	*(__u16 *)(mac + 4) = word >> 32;
}


/* Where a packet stands, and the edges that lead on from there. */
struct place {
	struct xip_row *rows;
	void *end;
	__u32 count;
	__u32 last_node;
	/* How many edges there are, and the rows to which they lead, a byte for each, the first one lowest. */
	__u32 edges;
	__u32 targets;
};

static __always_inline struct xip_row *row_at(const struct place *place, __u32 index)
{
	struct xip_row *row = place->rows + (index & 0xf);

	/* Else the compiler computes the pointer again behind the check, and the verifier does not know it. */
	asm volatile("" : "+r"(row));
	return (void *)(row + 1) > place->end ? NULL : row;
}

/* The edges of a row in a word, the first one lowest. */
static __always_inline __u32 edges_of(const struct xip_row *row)
{
	return __le32_to_cpu(*(const __le32 *)row->edges);
}

/* The row that has the edges of the last node; those of the entry node are in the last row. */
static __always_inline __u32 row_of_edges(const struct place *place)
{
	return place->last_node == ENTRY ? place->count - 1 : place->last_node;
}

// Checks the edges of the last node and puts together the key of the decision.
static __always_inline int candidate_edges(struct place *place, struct xid *key)
{
	const __u32 at = row_of_edges(place);
	const int is_last = at + 1 == place->count;
	const struct xip_row *row = row_at(place, at), *target;
	__u32 edges, edge, to;

	/* The walk was over before the packet came; or edges are marked that were not taken. */
	if (!row || (is_last && place->last_node != ENTRY))
		return -1;
	edges = edges_of(row);
	if (edges & EVERY_EDGE(CHOSEN))
		return -1;
	place->edges = 0;
	place->targets = 0;
#pragma unroll
	for (edge = 0; edge < FAN_OUT; edge++) {
		to = edges >> (8 * edge) & 0xff;
		if (to == EMPTY)
			continue;
		/* No gaps, to rows that there are, and to higher ones but from the entry node. */
		if (place->edges != edge || to >= place->count || (!is_last && to <= at))
			return -1;
		target = row_at(place, to);
		if (!target)
			return -1;
		key[edge] = target->xid;
		place->targets |= to << (8 * edge);
		place->edges = edge + 1;
	}
	return place->edges ? 0 : -1;
}

#ifndef LOOK_UP_EACH_EDGE
static __always_inline union entry decision(const struct place *place, const struct xid *key)
{
	const __u64 *words = key->words;
	union entry entry;

	switch (place->edges) {
	case 1:
		entry.word = open_table_find(&dst1, words, XID_WORDS);
		break;
	case 2:
		entry.word = open_table_find(&dst2, words, 2 * XID_WORDS);
		break;
	case 3:
		entry.word = open_table_find(&dst3, words, 3 * XID_WORDS);
		break;
	default:
		entry.word = open_table_find(&dst4, words, 4 * XID_WORDS);
	}
	return entry;
}
#else
// For measurements: what it would be like to look edges up one by one. An edge that alone is dropped leads
// nowhere.
static __always_inline union entry decision(const struct place *place, const struct xid *key)
{
	union entry entry = {};
	__u32 edge;

	for (edge = 0; edge < FAN_OUT && edge < place->edges; edge++) {
		entry.word = open_table_find(&dst1, key[edge].words, XID_WORDS);
		if (entry.decision != DROP)
			break;
	}
	return entry;
}
#endif

static __always_inline int is_sink(const struct place *place, __u32 index)
{
	const struct xip_row *row = row_at(place, index);

	return index + 1 == place->count || !row ||
	       (edges_of(row) & EVERY_EDGE(EMPTY)) == EVERY_EDGE(EMPTY);
}

// What a packet leaves behind on its way through the program. Not on the stack, whose contents the verifier tracks:
// it would follow each step of the loop below once for every way that has led to it.
struct notes {
	struct xid key[FAN_OUT];
	/* The edges that were taken: the row times 4, and the edge. */
	__u8 taken[(MOST_ROWS + 1 + 7) / 8 * 8];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct notes);
} notes SEC(".maps");

SEC("xdp")
int weft_xip(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *ethernet = data;
	struct xip_header *header = data + sizeof(*ethernet);
	struct place place = { .rows = (void *)(header + 1), .end = end };
	const __u32 first = 0;
	struct notes *note = bpf_map_lookup_elem(&notes, &first);
	__u32 total, len, at_hop, port_out, step, steps, edge;
	struct port_out *out;
	union entry entry;
	__u64 *hop;

	if (!note || (void *)(ethernet + 1) > end || ethernet->h_proto != bpf_htons(ETHERTYPE))
		return XDP_PASS;
	if (mac_word(ethernet->h_dest) != port.mac)
		return pass(ctx, PASSED_OTHERS);
	if ((void *)(place.rows + 1) > end)
		return pass(ctx, PASSED_MALFORMED);
	place.count = header->rows;
	place.last_node = header->last_node;
	if (header->version != VERSION || place.count == 0 || place.count > MOST_ROWS ||
	    header->source_rows > MOST_ROWS ||
	    (place.last_node >= place.count && place.last_node != ENTRY))
		return pass(ctx, PASSED_MALFORMED);
	total = sizeof(*ethernet) + sizeof(*header) +
		(place.count + header->source_rows) * sizeof(struct xip_row) +
		bpf_ntohs(header->payload_len);
	len = end - data;
	if (total > len)
		return pass(ctx, PASSED_MALFORMED);

	/* Each step leads to a higher row. */
	for (steps = 0; steps <= MOST_ROWS; steps++) {
		if (candidate_edges(&place, note->key))
			return pass(ctx, PASSED_MALFORMED);
		entry = decision(&place, note->key);
		if (!entry.word)
			return pass(ctx, PASSED_MISS);
		if (entry.decision != THROUGH)
			break;
		edge = entry.edge & 3;
		note->taken[steps] = row_of_edges(&place) << 2 | edge;
		place.last_node = place.targets >> (8 * edge) & 0xff;
		if (is_sink(&place, place.last_node))
			return pass(ctx, PASSED_SINK);
	}
	if (steps > MOST_ROWS)
		return pass(ctx, PASSED_MALFORMED);
	if (entry.decision == PASS)
		return hand_over(ctx, PASSED_KNOWN);
	if (entry.decision == REPORT)
		return pass(ctx, PASSED_DROP);
	if (entry.decision != FORWARD) {
		count(DROPPED);
		count(BY_REASON + (entry.hop & (REASONS - 1)));
		return XDP_DROP;
	}

	if (header->hop_limit == 0)
		return pass(ctx, PASSED_HOP_LIMIT);
	at_hop = entry.hop;
	hop = bpf_map_lookup_elem(&hops, &at_hop);
	if (!hop || !*hop)
		return hand_over(ctx, PASSED_NO_HOP);
	const __u64 neighbour = *hop;

	port_out = neighbour >> 48;
	out = bpf_map_lookup_elem(&ports, &port_out);
	if (!out || bpf_redirect_map(&egress, port_out, XDP_ABORTED) != XDP_REDIRECT)
		return hand_over(ctx, PASSED_NO_HOP);
	if (out->mtu & PORT_RELUCTANT && port.flags & PROGRAM_CAREFUL)
		return hand_over(ctx, PASSED_RELUCTANT);
	if (total - sizeof(*ethernet) > (__u32)out->mtu)
		return pass(ctx, PASSED_TOO_BIG);

	/* Nothing was changed so far, and from here on nothing can fail. */
	for (step = 0; step < steps && step <= MOST_ROWS; step++) {
		__u8 *mark = place.rows[note->taken[step] >> 2 & 0xf].edges + (note->taken[step] & 3);

		/* As in row_at. */
		asm volatile("" : "+r"(mark));
		if ((void *)(mark + 1) <= end)
			*mark |= CHOSEN;
	}
	header->last_node = place.last_node;
	header->hop_limit--;
	put_mac(ethernet->h_dest, neighbour);
	put_mac(ethernet->h_source, out->mac);
	count(FORWARDED);
	/* What the link has added behind the packet. */
	if (total < len)
		bpf_xdp_adjust_tail(ctx, (int)total - (int)len);
	return XDP_REDIRECT;
}

// No helper is called that asks for another licence.
char _license[] SEC("license") = "Apache-2.0 OR MIT";
