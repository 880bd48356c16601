// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Hash tables with open addressing in the memory of an array, which one process writes by plain stores and
// programs read. What they look like is said in core/ebpf/src/open_table.rs, which writes them.
//
// A look-up touches one line of memory, seldom two, where BPF_MAP_TYPE_HASH has to follow a chain of pointers; and
// before that the sieve, which is small and says of most keys that are not there that they are not.

#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* Words of a slot: the key, the value, and what makes it full lines or halves of lines. */
#define OPEN_TABLE_SLOT(key_words) (((key_words) + 1 + 3) / 4 * 4)
/* In how many slots a key may be: WINDOW in core/ebpf/src/open_table.rs. */
#define OPEN_TABLE_WINDOW 16
/* Slots in front of the first one that holds an entry. */
#define OPEN_TABLE_HEADER 2
/* Bits of the sieve for each place, and words of it in each slot behind the entries: the highest power of two that fits. */
#define OPEN_TABLE_SIEVE_BITS 4
#define OPEN_TABLE_SIEVE_WORDS(slot_words) ((slot_words) >= 16 ? 16 : (slot_words) >= 8 ? 8 : 4)

#define OPEN_TABLE(name, key_words)						\
	struct {								\
		__uint(type, BPF_MAP_TYPE_ARRAY);				\
		__uint(map_flags, BPF_F_MMAPABLE);				\
		__uint(max_entries, 1);						\
		__type(key, __u32);						\
		__type(value, __u64[OPEN_TABLE_SLOT(key_words)]);		\
	} name SEC(".maps")

/* What is read behind this is not older than what was read before. */
static __always_inline void open_table_reads(void)
{
#ifdef WEFT_READS_IN_ORDER
	asm volatile("" ::: "memory");
#else
	__u64 nothing = 0;

	/* An atomic operation that returns something is a full barrier (BPF_FETCH), if what it returns is used. */
	asm volatile("" : : "r"(__sync_fetch_and_add(&nothing, 1)) : "memory");
#endif
}

// Another number for each, neighbours far from each other: stir in core/ebpf/src/open_table.rs.
static __always_inline __u32 open_table_stir(__u32 hash)
{
	hash = (hash ^ hash >> 16) * 0x85ebca6b;
	return (hash ^ hash >> 13) * 0xc2b2ae35;
}

// Whether there may be a key with this place in the sieve of a table for so many places.
static __always_inline int open_table_sieve_has(void *table, __u32 places, __u64 place, const __u32 slot_words)
{
	const __u32 words = OPEN_TABLE_SIEVE_WORDS(slot_words), word = place >> 6;
	const __u32 at = OPEN_TABLE_HEADER + places + OPEN_TABLE_WINDOW + word / words;
	const volatile __u64 *slot = bpf_map_lookup_elem(table, &at);

	return slot && slot[word & (words - 1)] >> (place & 63) & 1;
}

// The value of a key; 0 if there is none.
//
// A slot whose value has changed while its key was read holds something else by now: its value has a generation that
// no other key in this slot has had.
static __always_inline __u32 open_table_find(void *table, const __u64 *key, const __u32 key_words)
{
	const __u32 slot_words = OPEN_TABLE_SLOT(key_words);
	const __u32 at_first = 0, at_second = 1;
	const __u64 *first = bpf_map_lookup_elem(table, &at_first);
	const __u64 *second = bpf_map_lookup_elem(table, &at_second);
	__u32 word, probe, at, places;
	__u64 hash, place;

	if (!first || !second)
		return 0;
#define HEADER(index) ((index) < slot_words ? first[index] : second[(index) - slot_words])
	hash = HEADER(1);
#pragma unroll
	for (word = 0; word < key_words; word++)
		hash += ((__u32)key[word] + HEADER(2 + 2 * word)) * ((key[word] >> 32) + HEADER(3 + 2 * word));
#undef HEADER
	places = *first;
	place = open_table_stir(hash >> 32) * ((__u64)places * OPEN_TABLE_SIEVE_BITS) >> 32;
	if (!open_table_sieve_has(table, places, place, slot_words))
		return 0;
	at = OPEN_TABLE_HEADER + place / OPEN_TABLE_SIEVE_BITS;
	for (probe = 0; probe < OPEN_TABLE_WINDOW; probe++, at++) {
		const volatile __u64 *slot = bpf_map_lookup_elem(table, &at);
		__u64 value, other = 0;

		if (!slot)
			return 0;
		value = slot[key_words];
		if (!value)
			return 0;
		open_table_reads();
#pragma unroll
		for (word = 0; word < key_words; word++)
			other |= slot[word] ^ key[word];
		open_table_reads();
		/* All in one branch: the verifier follows each of them through all slots. */
		other |= slot[key_words] ^ value;
		if (!other)
			return value;
	}
	return 0;
}
