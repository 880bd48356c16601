// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Seeded packet loss for a link: a traffic control classifier in direct-action mode.
//
// Each packet that passes the hook takes the next index n of the attachment, from an atomic counter,
// and is dropped when the upper 32 bits of the n-th SplitMix64 output for the seed lie below the
// threshold. There is no state but the counter, so no lock is needed: two CPUs draw two different
// indices, and which indices are dropped depends on the seed alone. User space computes the same
// function (src/loss/sequence.rs) and can tell beforehand which packets of a sequence get lost.
//
// A packet that is kept goes on to the next classifier of the hook (TC_ACT_UNSPEC).
//
// Reference: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators",
// OOPSLA 2014; classifiers and return codes: tc-bpf(8).

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

// The elements of the map. They have the same form, so that one map, of which one descriptor is to be
// kept, holds both.
//
// CONFIG is written by user space, before and while the program is attached: the seed, and the threshold,
// of which 0 drops nothing and 2^32 drops everything.
//
// COUNTERS is written by the program: the packets seen, which is the index of the next one, and those
// dropped.
enum { CONFIG, COUNTERS, ELEMENTS };

struct loss_words {
	union {
		__u64 seed;
		__u64 seen;
	};
	union {
		__u64 threshold;
		__u64 dropped;
	};
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ELEMENTS);
	__type(key, __u32);
	__type(value, struct loss_words);
} loss_state SEC(".maps");

static __always_inline __u64 splitmix64(__u64 seed, __u64 n)
{
	__u64 z = seed + (n + 1) * 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

SEC("classifier")
int weft_loss(struct __sk_buff *skb)
{
	const __u32 first = CONFIG, second = COUNTERS;
	const struct loss_words *config = bpf_map_lookup_elem(&loss_state, &first);
	struct loss_words *counters = bpf_map_lookup_elem(&loss_state, &second);
	__u64 n;

	// Array elements always exist; the verifier wants to see the question.
	if (!config || !counters)
		return TC_ACT_UNSPEC;

	n = __sync_fetch_and_add(&counters->seen, 1);
	if (splitmix64(config->seed, n) >> 32 >= config->threshold)
		return TC_ACT_UNSPEC;

	__sync_fetch_and_add(&counters->dropped, 1);
	return TC_ACT_SHOT;
}

// Only helpers that any licence may call are used.
char _license[] SEC("license") = "Apache-2.0 OR MIT";
