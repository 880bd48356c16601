//! The table of prefixes: a tree with five bits to a node, in which ways without branches are skipped.
//!
//! Reference: Eatherton, Varghese, Dittia, "Tree Bitmap: Hardware/Software IP Lookups with Incremental
//! Updates", CCR 34(2), 2004, for nodes of several bits whose children and values stand side by side and
//! are found by counting ones; Morrison, "PATRICIA", JACM 15(4), 1968, for skipping what does not decide.
//!
//! Why this one: a look-up costs what it waits for memory. A binary tree waits at each bit that decides,
//! some twenty times in the Internet's table; here a node decides on five bits in half a cache line, and
//! of the five nodes on the way to a /24 the first three stay in the processor's caches. Tables that
//! expand prefixes, such as DIR-24-8, wait once, and pay with 64 MiB, with updates that touch thousands
//! of slots, and with 32 bits; this one keeps every prefix once, so a change touches one node and a full
//! table fits into the caches of the next level. Prefixes of 160 random bits take two or three nodes,
//! because up to 60 bits are skipped at once.
//!
//! Each prefix has one home whatever else is in the table: the node that begins at the last multiple of
//! five below its length. Nodes without values exist only where ways part, or where a way is longer than
//! a node can skip.

mod blocks;
mod cursor;
mod node;
#[cfg(test)]
mod tests;

use crate::Prefix;
use crate::prefix::Bits;
use blocks::Blocks;
pub use cursor::Cursor;
use node::{LINES, MOST_SKIPPED, Node, PLACES, STRIDE, branch_of, number};

/// The place of the root, which is always there.
const ROOT: u32 = 0;
/// Most nodes on the way to a prefix.
const MOST_NODES: usize = (crate::MAX_BITS / STRIDE) as usize + 1;

/// Prefixes and their values.
///
/// Values should be small, for they are moved when their neighbours change: numbers of gateways
/// rather than gateways.
#[derive(Clone, Debug)]
pub struct PrefixTable<V> {
    nodes: Blocks<Node>,
    values: Blocks<V>,
    len: usize,
}

/// How many look-ups wait for memory at the same time: processors have room for some ten reads that wait.
pub const TOGETHER: usize = 16;

/// Where a look-up is: at a node whose path is not looked at yet, with so many bits left, and the number that the prefix has
/// at its home.
#[derive(Clone, Copy)]
struct Way {
    at: u32,
    rest: Bits,
    left: u8,
    number: u8,
}

impl<V: Default> PrefixTable<V> {
    /// A table without prefixes.
    #[must_use]
    pub fn new() -> Self {
        let mut nodes = Blocks::new();
        let root = nodes.insert(ROOT, 0, 0, Node::default());
        debug_assert_eq!(root, ROOT);
        Self { nodes, values: Blocks::new(), len: 0 }
    }

    /// How many prefixes it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The memory that it takes, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.nodes.memory() + self.values.memory()
    }

    /// Of the prefixes that `name` begins with, itself included, the longest: its length and value.
    #[must_use]
    #[inline]
    pub fn longest(&self, name: &Prefix) -> Option<(u8, &V)> {
        let (mut rest, mut left) = (name.bits(), name.length());
        let mut node = self.nodes.get(ROOT);
        let mut best = None;
        loop {
            let branch = branch_of(rest.front());
            let line = LINES[usize::from(left.min(STRIDE))][usize::from(branch)];
            if node.prefixes & line != 0 {
                best = Some((node, line, left));
            }
            if left <= STRIDE {
                break;
            }
            let Some(child) = node.child(branch) else { break };
            node = self.nodes.get(child);
            (rest, left) = (rest.after(STRIDE), left - STRIDE);
            if node.skipped > 0 {
                let Some((after, bits)) = skip(node, rest, left) else { break };
                (rest, left) = (after, left - bits);
            }
        }
        let (node, line, left) = best?;
        let longest = (node.prefixes & line).ilog2() as u8;
        let length = name.length() - left + PLACES[usize::from(longest)].length;
        Some((length, self.values.get(node.values + node.value_index(longest))))
    }

    /// The value of exactly this prefix.
    #[must_use]
    pub fn get(&self, prefix: &Prefix) -> Option<&V> {
        self.find(prefix).map(|place| self.values.get(place))
    }

    /// The value of exactly this prefix, to be changed.
    pub fn get_mut(&mut self, prefix: &Prefix) -> Option<&mut V> {
        self.find(prefix).map(|place| self.values.get_mut(place))
    }

    /// The place of the value of exactly this prefix.
    fn find(&self, prefix: &Prefix) -> Option<u32> {
        let (home, number) = address(prefix);
        let (mut rest, mut left) = (prefix.bits(), home);
        let mut node = self.nodes.get(ROOT);
        while left > 0 {
            node = self.nodes.get(node.child(branch_of(rest.front()))?);
            (rest, left) = (rest.after(STRIDE), left - STRIDE);
            if node.skipped > 0 {
                let (after, bits) = skip(node, rest, left)?;
                (rest, left) = (after, left - bits);
            }
        }
        let found = node.prefixes >> number & 1 == 1;
        found.then(|| node.values + node.value_index(number))
    }

    /// Has what look-ups of these prefixes will need come closer to the processor. Their ways are gone side by side, so that
    /// while one waits for memory the others do, too: in a large table that is most of what a look-up takes. Those behind
    /// the first [`TOGETHER`] are left out, and one that is alone.
    pub fn approach(&self, prefixes: &[Prefix]) {
        // One alone would have nobody to wait beside.
        if prefixes.len() < 2 {
            return;
        }
        let mut ways = [None; TOGETHER];
        let ways = &mut ways[..prefixes.len().min(TOGETHER)];
        for (way, prefix) in ways.iter_mut().zip(prefixes) {
            let (home, number) = address(prefix);
            *way = Some(Way { at: ROOT, rest: prefix.bits(), left: home, number });
        }
        while ways.iter().any(Option::is_some) {
            for way in &mut *ways {
                *way = way.and_then(|way| self.step(way));
            }
        }
    }

    /// One step on the way to a value, of which what comes next is fetched; none behind the last.
    fn step(&self, mut way: Way) -> Option<Way> {
        let node = self.nodes.get(way.at);
        if node.skipped > 0 {
            let (after, bits) = skip(node, way.rest, way.left)?;
            (way.rest, way.left) = (after, way.left - bits);
        }
        if way.left == 0 {
            let found = node.prefixes >> way.number & 1 == 1;
            if found {
                self.values.prefetch(node.values + node.value_index(way.number));
            }
            return None;
        }
        way.at = node.child(branch_of(way.rest.front()))?;
        self.nodes.prefetch(way.at);
        (way.rest, way.left) = (way.rest.after(STRIDE), way.left - STRIDE);
        Some(way)
    }

    /// Gives `prefix` the value; returns the one that it replaces.
    pub fn insert(&mut self, prefix: Prefix, value: V) -> Option<V> {
        let (home, number) = address(&prefix);
        let place = self.make_way(prefix.bits(), home);
        let node = self.nodes.get_mut(place);
        let index = node.value_index(number);
        if node.prefixes >> number & 1 == 1 {
            return Some(std::mem::replace(self.values.get_mut(node.values + index), value));
        }
        node.values = self.values.insert(node.values, node.value_count(), index as usize, value);
        node.prefixes |= 1 << number;
        self.len += 1;
        None
    }

    /// Goes `left` bits of the way, makes the nodes that are missing, and returns the place of the last.
    fn make_way(&mut self, mut rest: Bits, mut left: u8) -> u32 {
        let mut at = ROOT;
        while left > 0 {
            let branch = branch_of(rest.front());
            (rest, left) = (rest.after(STRIDE), left - STRIDE);
            let parent = at;
            let bits;
            if let Some(child) = self.nodes.get(parent).child(branch) {
                at = child;
                let common = common_strides(self.nodes.get(child), rest, left);
                bits = common * STRIDE;
                if common < self.nodes.get(child).skipped {
                    self.split(child, common);
                    // The path to the child is shorter now and may fit into the parent's.
                    if parent != ROOT && self.merge(parent) {
                        at = parent;
                    }
                }
            } else {
                let skipped = (left / STRIDE).min(MOST_SKIPPED);
                bits = skipped * STRIDE;
                let path = rest.front() & front_mask(bits);
                at = self.add_child(parent, branch, Node { path, skipped, ..Node::default() });
            }
            if bits > 0 {
                (rest, left) = (rest.after(bits), left - bits);
            }
        }
        at
    }

    /// Adds a child; returns its place.
    fn add_child(&mut self, at: u32, branch: u8, child: Node) -> u32 {
        let node = self.nodes.get(at);
        let (children, count) = (node.children, node.child_count());
        let index = node.child_index(branch);
        let children = self.nodes.insert(children, count, index as usize, child);
        let node = self.nodes.get_mut(at);
        node.children = children;
        node.branches |= 1 << branch;
        children + index
    }

    /// Puts a node in front of the node at `at`, behind the first `common` strides of its path.
    fn split(&mut self, at: u32, common: u8) {
        let node = self.nodes.get_mut(at);
        let upper_path = node.path & front_mask(common * STRIDE);
        let upper = Node { path: upper_path, skipped: common, ..Node::default() };
        let mut lower = std::mem::replace(node, upper);
        let behind = lower.path << (common * STRIDE);
        lower.path = behind << STRIDE;
        lower.skipped -= common + 1;
        let lower = self.add_child(at, branch_of(behind), lower);
        // Its path is shorter now, so that what is below may fit into it.
        self.merge(lower);
    }

    /// Removes a prefix; returns its value.
    pub fn remove(&mut self, prefix: &Prefix) -> Option<V> {
        let (home, number) = address(prefix);
        let (mut rest, mut left) = (prefix.bits(), home);
        let mut at = ROOT;
        // The nodes that were passed, and the branches that were taken there.
        let (mut way, mut passed) = ([(ROOT, 0); MOST_NODES], 0);
        while left > 0 {
            let branch = branch_of(rest.front());
            way[passed] = (at, branch);
            passed += 1;
            at = self.nodes.get(at).child(branch)?;
            (rest, left) = (rest.after(STRIDE), left - STRIDE);
            let node = self.nodes.get(at);
            if node.skipped > 0 {
                let (after, bits) = skip(node, rest, left)?;
                (rest, left) = (after, left - bits);
            }
        }
        let node = self.nodes.get_mut(at);
        if node.prefixes >> number & 1 == 0 {
            return None;
        }
        let index = node.value_index(number) as usize;
        let (values, value) = self.values.remove(node.values, node.value_count(), index);
        node.values = values;
        node.prefixes &= !(1 << number);
        self.len -= 1;
        self.tidy(at, &way[..passed]);
        Some(value)
    }

    /// Removes the node at `at`, to which `way` leads, if nothing needs it any more, and then the ones
    /// above it for which that is so.
    fn tidy(&mut self, mut at: u32, way: &[(u32, u8)]) {
        for (parent, branch) in way.iter().rev() {
            let node = self.nodes.get(at);
            if node.prefixes != 0 || node.branches != 0 {
                self.merge(at);
                return;
            }
            let node = self.nodes.get(*parent);
            let (children, count) = (node.children, node.child_count());
            let index = node.child_index(*branch) as usize;
            let (children, _) = self.nodes.remove(children, count, index);
            let node = self.nodes.get_mut(*parent);
            node.children = children;
            node.branches &= !(1 << branch);
            at = *parent;
        }
    }

    /// Lets the only child of the node at `at`, which is not the root, take its place if there is no value
    /// between them and the path is not too long. Returns whether it does.
    fn merge(&mut self, at: u32) -> bool {
        let node = self.nodes.get(at);
        if node.prefixes != 0 || !node.branches.is_power_of_two() {
            return false;
        }
        let skipped = node.skipped + 1 + self.nodes.get(node.children).skipped;
        if skipped > MOST_SKIPPED {
            return false;
        }
        let (path, bits) = (node.path, node.path_bits());
        let branch = u64::from(node.branches.trailing_zeros());
        let (_, mut child) = self.nodes.remove(node.children, 1, 0);
        child.path = path | (branch << (64 - STRIDE) | child.path >> STRIDE) >> bits;
        child.skipped = skipped;
        *self.nodes.get_mut(at) = child;
        true
    }
}

impl<V: Default> Default for PrefixTable<V> {
    fn default() -> Self {
        Self::new()
    }
}

/// Where a prefix lives: the depth of its node in bits, and its number there.
fn address(prefix: &Prefix) -> (u8, u8) {
    let home = prefix.length().saturating_sub(1) / STRIDE * STRIDE;
    (home, number(prefix.branch_at(home), prefix.length() - home))
}

/// What is left behind the node's path, and the length of the path; `None` if `rest`, of which `left`
/// bits count, does not begin with it.
#[inline]
fn skip(node: &Node, rest: Bits, left: u8) -> Option<(Bits, u8)> {
    let bits = node.path_bits();
    let differ = (rest.front() ^ node.path) & front_mask(bits);
    (differ == 0 && bits <= left).then(|| (rest.after(bits), bits))
}

/// With how many strides of the node's path `rest`, of which `left` bits count, begins.
fn common_strides(node: &Node, rest: Bits, left: u8) -> u8 {
    let same = (rest.front() ^ node.path).leading_zeros() as u8;
    (same.min(left) / STRIDE).min(node.skipped)
}

/// Ones at the first `bits` (0 to 60) places.
#[inline]
fn front_mask(bits: u8) -> u64 {
    !(u64::MAX >> bits)
}
