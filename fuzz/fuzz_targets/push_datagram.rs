//! Push datagrams: what is read is written as the same value, and a receiver takes any of them.
//!
//! Input: datagrams, each after its length in one octet (times 8) and with its checksum mended, as
//! nothing else would get past it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_base::{FileId, Instant, Packet};
use weft_runtime::{Component, DiskReply, DiskRequest};
use weft_wire::checksum;
use weft_xia_push::host::{HostInput, HostOutput};
use weft_xia_push::object::SenderKey;
use weft_xia_push::receiver::{
    Destination, Limits, Receiver, ReceiverConfig, ReceiverInput, ReceiverOutput,
};
use weft_xia_push::wire::Datagram;

/// What the receiver may hold in memory: one block of each limit below, with room to spare.
const MEMORY: usize = 8 << 20;

fuzz_target!(|bytes: &[u8]| {
    let _ = Datagram::parse(bytes);
    let directory = Destination::Directory("d".into());
    for destination in [directory, Destination::Stdout] {
        let mut host = Host::new(destination);
        let mut rest = bytes;
        while let Some((len, tail)) = rest.split_first() {
            let (datagram, tail) = tail.split_at(tail.len().min(usize::from(*len) * 8));
            let mut datagram = datagram.to_vec();
            mend(&mut datagram);
            round_trip(&datagram);
            host.take(&datagram);
            rest = tail;
        }
        host.finish();
    }
});

/// Makes the checksum right.
fn mend(datagram: &mut [u8]) {
    if datagram.len() >= 6 {
        datagram[4..6].fill(0);
        let sum = checksum::checksum(datagram).to_be_bytes();
        datagram[4..6].copy_from_slice(&sum);
    }
}

fn round_trip(bytes: &[u8]) {
    let Ok(datagram) = Datagram::parse(bytes) else { return };
    let again = match &datagram {
        Datagram::Symbol(symbol) => symbol.emit(symbol.payload.len() as u16),
        Datagram::Announce(announce) => announce.emit(),
    };
    assert_eq!(Datagram::parse(again.bytes()), Ok(datagram));
}

/// A receiver on a disk that forgets everything.
struct Host {
    receiver: Receiver,
    now: Instant,
    files: u32,
}

impl Host {
    fn new(destination: Destination) -> Self {
        let limits = Limits {
            block_bytes: 1 << 16,
            block_symbols: 256,
            window_bytes: 1 << 20,
            ..Limits::default()
        };
        let config = ReceiverConfig { limits, ..ReceiverConfig::new(destination) };
        let mut host = Self { receiver: Receiver::new(config), now: Instant::ZERO, files: 0 };
        host.tell(ReceiverInput::Start);
        host
    }

    fn take(&mut self, datagram: &[u8]) {
        let packet = Packet::from_slice(datagram);
        self.tell(ReceiverInput::Datagram { packet, from: SenderKey::new(b"sender") });
        assert!(self.receiver.memory() <= MEMORY);
    }

    fn finish(&mut self) {
        if let Some(deadline) = self.receiver.deadline() {
            self.now = deadline;
            self.tell(HostInput::Tick.into());
        }
        self.tell(HostInput::Stop.into());
    }

    fn tell(&mut self, input: ReceiverInput) {
        let mut out = Vec::new();
        self.receiver.handle(self.now, input, &mut out);
        loop {
            for output in std::mem::take(&mut out) {
                if let ReceiverOutput::Host(HostOutput::Disk { token, request }) = output {
                    let result = Ok(self.reply(&request));
                    let input = HostInput::Disk { token, result };
                    self.receiver.handle(self.now, input.into(), &mut out);
                }
            }
            if !out.is_empty() {
                continue;
            }
            if !self.receiver.has_background_work() {
                return;
            }
            self.receiver.handle(self.now, HostInput::Slice.into(), &mut out);
        }
    }

    fn reply(&mut self, request: &DiskRequest) -> DiskReply {
        match request {
            DiskRequest::Open { .. } => {
                self.files += 1;
                DiskReply::Opened { file: FileId(self.files), len: Some(0) }
            }
            DiskRequest::Read { len, .. } => DiskReply::Data { bytes: vec![0; *len], end: false },
            DiskRequest::List { .. } => DiskReply::Names(Vec::new()),
            _ => DiskReply::Done,
        }
    }
}
