// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Counts what the kernel tells of routes of IPv4, and notes when it told so, without anybody being woken: the messages
// of rtnetlink end here.
//
// A message begins with struct nlmsghdr (16 bytes) and struct rtmsg (12); the first attribute is the table (8), the
// second the destination.
//
// Reference: linux/netlink.h, linux/rtnetlink.h; rtnetlink(7).

#include <linux/bpf.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

enum {
	/* Routes of this length in 198.18.0.0/15 are probes; told.rs has the same numbers. */
	PROBE_LENGTH = 28,
	PROBE_NETWORK = 0xC612,
	PROBES = 8192,
	MAIN = 254,
	TYPE_AT = 4,
	FLAGS_AT = 6,
	LENGTH_AT = 17,
	TABLE_AT = 20,
	DESTINATION_AT = 40,
};

/* The words of `told`; told.rs has the same. */
enum {
	ADDED,
	REPLACED,
	DELETED,
	/* How many routes are there, and how many are waited for. */
	PRESENT,
	WANTED,
	/* When that many were there, and when a route last came or went. */
	REACHED,
	LAST,
	FIRST_PROBE = 8,
	WORDS = FIRST_PROBE + 2 * PROBES,
};

struct words {
	__u64 word[WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct words);
} told SEC(".maps");

SEC("socket")
int weft_told(struct __sk_buff *skb)
{
	__u32 key = 0, destination = 0;
	__u16 type = 0, flags = 0;
	__u8 length = 0, table = 0;
	__u64 now = bpf_ktime_get_ns();
	struct words *words = bpf_map_lookup_elem(&told, &key);
	if (!words)
		return 0;
	if (bpf_skb_load_bytes(skb, TYPE_AT, &type, sizeof(type)) ||
	    bpf_skb_load_bytes(skb, FLAGS_AT, &flags, sizeof(flags)) ||
	    bpf_skb_load_bytes(skb, LENGTH_AT, &length, sizeof(length)) ||
	    bpf_skb_load_bytes(skb, TABLE_AT, &table, sizeof(table)))
		return 0;
	if (table != MAIN || (type != RTM_NEWROUTE && type != RTM_DELROUTE))
		return 0;
	/* A default route has no destination. */
	if (length && bpf_skb_load_bytes(skb, DESTINATION_AT, &destination, sizeof(destination)))
		return 0;
	destination = bpf_ntohl(destination);
	if (length == PROBE_LENGTH && (destination >> 16 & 0xFFFE) == PROBE_NETWORK) {
		__u32 probe = destination >> 4 & (PROBES - 1);
		__u32 place = FIRST_PROBE + 2 * probe + (type == RTM_DELROUTE);
		if (place < WORDS && !words->word[place])
			words->word[place] = now;
		return 0;
	}
	if (type == RTM_NEWROUTE && flags & NLM_F_REPLACE) {
		__sync_fetch_and_add(&words->word[REPLACED], 1);
		return 0;
	}
	if (type == RTM_NEWROUTE) {
		__sync_fetch_and_add(&words->word[ADDED], 1);
		__sync_fetch_and_add(&words->word[PRESENT], 1);
	} else {
		__sync_fetch_and_add(&words->word[DELETED], 1);
		__sync_fetch_and_add(&words->word[PRESENT], -1);
	}
	words->word[LAST] = now;
	if (words->word[PRESENT] == words->word[WANTED])
		words->word[REACHED] = now;
	return 0;
}

char _license[] SEC("license") = "Dual MIT/GPL";
