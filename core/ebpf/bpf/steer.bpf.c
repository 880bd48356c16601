// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Steers the frames of one EtherType past the network stack to an AF_XDP socket: a program at XDP.
//
// All others go on to the network stack, and so do those that came in by a queue without a socket. Frames with a
// VLAN tag go on, too: their EtherType is that of the tag.
//
// Reference: Linux kernel, Documentation/networking/af_xdp.rst.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_helpers.h>

// The EtherType, as it is in frames. Written once, before the program is attached.
volatile __u64 steered;

// By the number of the queue.
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

SEC("xdp")
int weft_steer(struct xdp_md *context)
{
	const void *data = (const void *)(long)context->data;
	const void *end = (const void *)(long)context->data_end;
	const struct ethhdr *header = data;

	if ((const void *)(header + 1) > end || header->h_proto != (__u16)steered)
		return XDP_PASS;
	return bpf_redirect_map(&sockets, context->rx_queue_index, XDP_PASS);
}

// Only helpers that any licence may call are used.
char _license[] SEC("license") = "Apache-2.0 OR MIT";
