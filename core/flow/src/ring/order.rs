//! The order of loads and stores, tried in every way that the memory model allows, by loom.
//!
//! The ring's memory is here a handful of loom's atomic words; its bytes are relaxed ones, so that a byte
//! which is read too early shows as a wrong value. Waking is a `Notify`: a side that sleeps and is
//! not woken is a deadlock, which loom reports.

use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use loom::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, fence};
use loom::sync::{Arc, Notify};
use loom::thread;

use super::*;

struct Words {
    indices: [AtomicU64; 2],
    flags: [AtomicU32; 2],
    lengths: Vec<AtomicU32>,
    bytes: Vec<AtomicU8>,
}

impl Words {
    fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self {
            indices: [AtomicU64::new(0), AtomicU64::new(0)],
            flags: [AtomicU32::new(0), AtomicU32::new(0)],
            lengths: (0..capacity / ALIGN).map(|_| AtomicU32::new(0)).collect(),
            bytes: (0..capacity).map(|_| AtomicU8::new(0)).collect(),
        })
    }
}

impl Memory for Arc<Words> {
    fn capacity(&self) -> usize {
        self.bytes.len()
    }
    fn load(&self, index: Index) -> u64 {
        self.indices[index as usize].load(Acquire)
    }
    fn store(&self, index: Index, value: u64) {
        self.indices[index as usize].store(value, Release);
    }
    fn raise(&self, flag: Flag) -> bool {
        self.flags[flag as usize].swap(1, SeqCst) == 0
    }
    fn lower(&self, flag: Flag) -> bool {
        self.flags[flag as usize].swap(0, SeqCst) != 0
    }
    fn is_up(&self, flag: Flag) -> bool {
        self.flags[flag as usize].load(Relaxed) != 0
    }
    fn fence(&self) {
        fence(SeqCst);
    }
    fn store_length(&self, at: usize, len: u32) {
        self.lengths[at / ALIGN].store(len, Relaxed);
    }
    fn load_length(&self, at: usize) -> u32 {
        self.lengths[at / ALIGN].load(Relaxed)
    }
    fn write(&self, at: usize, bytes: &[u8]) {
        for (cell, byte) in self.bytes[at..].iter().zip(bytes) {
            cell.store(*byte, Relaxed);
        }
    }
    fn read(&self, at: usize, into: &mut [u8]) {
        for (byte, cell) in into.iter_mut().zip(&self.bytes[at..]) {
            *byte = cell.load(Relaxed);
        }
    }
}

/// A ring of `capacity` bytes through which `count` messages of one byte go.
fn transfer(capacity: usize, count: u8) {
    let words = Words::new(capacity);
    let (data, room) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let writer = {
        let (words, data, room) = (words.clone(), data.clone(), room.clone());
        thread::spawn(move || {
            let mut writer = Writer::new(words);
            for message in 1..=count {
                while !writer.put(&[message]).unwrap() {
                    if writer.ask(ALIGN).unwrap().sleep {
                        room.wait();
                    }
                }
                if writer.publish() {
                    data.notify();
                }
            }
        })
    };
    let mut reader = Reader::new(words);
    for message in 1..=count {
        while reader.next_len().unwrap().is_none() {
            if reader.release() {
                room.notify();
            }
            if reader.ask().unwrap().sleep {
                data.wait();
            }
        }
        let mut byte = [0];
        reader.take(&mut byte);
        assert_eq!(byte, [message]);
    }
    if reader.release() {
        room.notify();
    }
    writer.join().unwrap();
}

fn explore(preemptions: Option<usize>, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(test);
}

#[test]
fn a_message_is_whole_when_it_is_seen_and_who_sleeps_is_woken() {
    explore(None, || transfer(16, 1));
}

#[test]
fn room_is_used_again_only_when_it_is_free_and_who_waits_for_it_is_woken() {
    explore(Some(3), || transfer(8, 2));
}

#[test]
fn messages_stay_in_order_around_the_end_of_the_ring() {
    explore(Some(2), || transfer(16, 3));
}
