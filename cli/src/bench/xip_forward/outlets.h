/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Where programs send frames, by the numbers of ports; `traffic.rs` fills it. */

struct outlet {
	__u64 interface;
	/* Link addresses of the receiver and of the sender, in the order of memory. */
	__u8 to[8];
	__u8 from[8];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, struct outlet);
} outlets SEC(".maps");
