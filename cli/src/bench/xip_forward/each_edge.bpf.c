// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The kernel engine of XIP with one look-up for each edge, for comparison with its one look-up for all edges.

#define LOOK_UP_EACH_EDGE
#include "../../../../xia/kernel/bpf/xip.bpf.c"
