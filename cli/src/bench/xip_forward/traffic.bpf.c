// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Both ends of the traffic that a router is measured with: a source of packets at the processor's full speed,
// and a sink that counts what arrives and drops it.
//
// The source works on frames that the kernel uses again and again (live frames of BPF_PROG_RUN), so it writes
// all that a router changes: link addresses, hop limit or TTL, the last node and its edges, the checksum. The
// destinations are those of `samples`, in turn.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <asm/byteorder.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "outlets.h"

/* Packets that go to one interface before the next one has its turn. */
enum { RUN_SHIFT = 4 };

// Four bytes each, as they stand in packets.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} received SEC(".maps");

volatile struct {
	/* The next packet's number. */
	__u64 next;
	/* How many samples there are less one; a power of two less one. */
	__u64 sample_mask;
	/* How many outlets there are less one; a power of two less one. */
	__u64 outlet_mask;
	/* Where in the frame the sample goes, and where the edges of the entry node are and what they are. */
	__u64 identifier_at;
	__u64 edges_at;
	__u64 edges;
	/* Nanoseconds from packet to packet; zero: as fast as possible. */
	__u64 interval;
	/* When the next packet is due. */
	__u64 due;
	/* FLOOD_*: every other packet is one of a flood. */
	__u64 flood;
	/* Where the identifier begins in which packets of a flood differ: the destination's, or that of a domain that
	 * nobody knows and that is tried before it. */
	__u64 flood_at;
} source;

enum { FLOOD_NONE, FLOOD_NEW, FLOOD_ONE };
/* Packets of a flood do not count when they arrive. */
enum { HOPS = 255, FLOOD_HOPS = 100 };
/* How identifiers begin that nobody knows, as in net-eval. */
#define NOBODY bpf_htonl(0x00010203)

/* Who is this late does not catch up. */
enum { LATEST = 1000000 };

static __always_inline int write_word(void *data, void *end, __u64 at, __u32 word)
{
	__u8 *place = data + (at & 0x1ff);

	asm volatile("" : "+r"(place));
	if ((void *)(place + 4) > end)
		return -1;
	*(__u32 *)place = word;
	return 0;
}

/* Whether it is time for a packet. */
static __always_inline int is_due(void)
{
	__u64 now;

	if (!source.interval)
		return 1;
	now = bpf_ktime_get_ns();
	if (now < source.due)
		return 0;
	if (now - source.due > LATEST)
		source.due = now;
	source.due += source.interval;
	return 1;
}

/* The next sample, and the link header towards the next outlet; its interface. */
static __always_inline __u32 next_frame(struct ethhdr *ethernet, __u32 *sample)
{
	const __u64 number = source.next;
	__u32 outlet_index = number >> RUN_SHIFT & source.outlet_mask;
	__u32 sample_index = number & source.sample_mask;
	struct outlet *outlet = bpf_map_lookup_elem(&outlets, &outlet_index);
	__u64 *drawn = bpf_map_lookup_elem(&samples, &sample_index);

	source.next = number + 1;
	if (!outlet || !drawn)
		return 0;
	*sample = *drawn;
	__builtin_memcpy(ethernet->h_dest, outlet->to, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, outlet->from, ETH_ALEN);
	return outlet->interface;
}

SEC("xdp")
int weft_xip_source(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *ethernet = data;
	__u8 *header = data + sizeof(*ethernet);
	__u32 sample, interface, first;

	if ((void *)(header + 8) > end)
		return XDP_ABORTED;
	if (!is_due())
		return XDP_DROP;
	interface = next_frame(ethernet, &sample);
	if (!interface)
		return XDP_ABORTED;
	header[4] = HOPS;
	header[7] = 0x7e;
	if (source.flood) {
		first = NOBODY;
		if (source.next & 1) {
			header[4] = FLOOD_HOPS;
			if (source.flood == FLOOD_ONE)
				sample = NOBODY;
			else if (source.flood_at == source.identifier_at)
				sample = bpf_get_prandom_u32();
			else
				first = bpf_get_prandom_u32();
		}
		if (write_word(data, end, source.flood_at, first))
			return XDP_ABORTED;
	}
	if (write_word(data, end, source.identifier_at, sample) ||
	    write_word(data, end, source.edges_at, source.edges))
		return XDP_ABORTED;
	return bpf_redirect(interface, 0);
}

SEC("xdp")
int weft_ip_source(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *ethernet = data;
	struct iphdr *header = data + sizeof(*ethernet);
	__u32 sample, interface, sum = 0, word;
	const __u16 *words = (void *)header;

	if ((void *)(header + 1) > end)
		return XDP_ABORTED;
	if (!is_due())
		return XDP_DROP;
	interface = next_frame(ethernet, &sample);
	if (!interface)
		return XDP_ABORTED;
	header->ttl = 255;
	header->daddr = sample;
	header->check = 0;
#pragma unroll
	for (word = 0; word < sizeof(*header) / 2; word++)
		sum += words[word];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	header->check = ~sum;
	return bpf_redirect(interface, 0);
}

// Counts the packets that a router has forwarded once; others do not count.
SEC("xdp")
int weft_sink(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *ethernet = data;
	__u8 *header = data + sizeof(*ethernet);
	const __u32 first = 0;
	__u64 *counter;
	__u8 hops;

	if ((void *)(header + 20) > end)
		return XDP_DROP;
	hops = ethernet->h_proto == bpf_htons(ETH_P_IP) ? header[8] : header[4];
	counter = bpf_map_lookup_elem(&received, &first);
	if (counter && hops == 254)
		*counter += 1;
	return XDP_DROP;
}

// No helper is called that asks for another licence.
char _license[] SEC("license") = "Apache-2.0 OR MIT";
