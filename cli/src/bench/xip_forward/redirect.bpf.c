// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// A router that decides nothing: it sends each packet of XIP on with one hop less, out of the port that bits of its
// destination names. What that costs, no router that moves frames like this can do without.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_helpers.h>
#include "outlets.h"

volatile struct {
	/* How many outlets there are less one; a power of two less one. */
	__u64 outlet_mask;
	/* Where in the frame the destination begins. */
	__u64 identifier_at;
} redirect;

SEC("xdp")
int weft_redirect(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *ethernet = data;
	__u8 *header = data + sizeof(*ethernet), *place = data + (redirect.identifier_at & 0xff);
	struct outlet *outlet;
	__u32 index;

	if ((void *)(header + 8) > end)
		return XDP_DROP;
	asm volatile("" : "+r"(place));
	if ((void *)(place + 4) > end)
		return XDP_DROP;
	index = place[1] & redirect.outlet_mask;
	outlet = bpf_map_lookup_elem(&outlets, &index);
	if (!outlet || header[4] == 0)
		return XDP_DROP;
	header[4]--;
	__builtin_memcpy(ethernet->h_dest, outlet->to, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, outlet->from, ETH_ALEN);
	return bpf_redirect(outlet->interface, 0);
}

// No helper is called that asks for another licence.
char _license[] SEC("license") = "Apache-2.0 OR MIT";
