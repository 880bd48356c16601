//! Captures in network namespaces: packet sockets at every interface, read by one thread.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

use weft_port::{Options, Port, PortSpec};

use super::pcapng::Writer;
use crate::LabError;
use crate::netns::{Target, wait_readable};

/// Frames of every EtherType (`ETH_P_ALL` of packet(7)).
const ALL_FRAMES: u16 = 3;
const BATCH: usize = 64;
/// The receive buffer of each port, of which the kernel makes twice as much (socket(7), SO_RCVBUF).
const RECEIVE_BUFFER: usize = 4 << 20;
/// Batches taken from each port when the capture ends: as many frames as can have been waiting, even
/// if all of them are short and the kernel charges no more than 512 bytes for each. Without a limit
/// a capture would not end while frames come faster than they are written.
const LAST_BATCHES: usize = 2 * RECEIVE_BUFFER / 512 / BATCH;

/// A capture that goes on until it is dropped or finished.
pub(crate) struct Capture {
    path: PathBuf,
    /// Closing it ends the thread.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<io::Result<u64>>>,
}

impl Capture {
    /// Begins to write what passes these interfaces into the file `path`. When this returns, no
    /// packet is missed any more.
    pub(crate) fn start(path: &Path, targets: &[Target]) -> Result<Self, LabError> {
        let file = File::create(path).map_err(LabError::disk("write", path))?;
        let names: Vec<String> =
            targets.iter().map(|target| format!("{}:{}", target.node, target.interface)).collect();
        let writer = Writer::new(BufWriter::new(file), names.iter().map(String::as_str));
        let writer = writer.map_err(LabError::disk("write", path))?;
        let ports = targets.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let (stop, stopped) = UnixStream::pair().map_err(LabError::system("start a capture"))?;
        let thread = thread::Builder::new().name("weft-capture".into());
        let thread = thread
            .spawn(move || Reader { ports, writer, stopped, packets: 0 }.run())
            .map_err(LabError::system("start a capture"))?;
        Ok(Self { path: path.to_owned(), stop: Some(stop), thread: Some(thread) })
    }

    /// Ends the capture; how many packets it has.
    pub(crate) fn finish(mut self) -> Result<u64, LabError> {
        self.stop = None;
        let thread = self.thread.take().map(JoinHandle::join);
        match thread {
            Some(Ok(result)) => result.map_err(LabError::disk("write", &self.path)),
            _ => Err(LabError::Usage("the capture ended early".into())),
        }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // What it has written by then is a good capture.
            let _ = thread.join();
        }
    }
}

fn open(target: &Target) -> Result<Option<Box<dyn Port>>, LabError> {
    let spec = PortSpec::Ethernet { interface: target.interface.clone(), ethertype: ALL_FRAMES };
    let options = Options {
        promiscuous: true,
        outgoing: true,
        receive_buffer: RECEIVE_BUFFER,
        ..Options::default()
    };
    let port = target.namespace.inside(|| weft_port::open(&spec, &options))?;
    let action = format!("capture on node {}", target.node);
    port.map(Some).map_err(LabError::system(action))
}

struct Reader<W> {
    /// `None` where the interface is gone.
    ports: Vec<Option<Box<dyn Port>>>,
    writer: Writer<W>,
    stopped: UnixStream,
    packets: u64,
}

impl<W: Write> Reader<W> {
    fn run(mut self) -> io::Result<u64> {
        self.stopped.set_nonblocking(true)?;
        loop {
            let ports = self.ports.iter().flatten().map(|port| port.fd());
            wait_readable(ports.chain([self.stopped.as_fd()]), None)?;
            if matches!(self.stopped.read(&mut [0]), Ok(0)) {
                return self.finish();
            }
            self.take()?;
        }
    }

    /// What has passed by now belongs to the capture, too.
    fn finish(mut self) -> io::Result<u64> {
        for _ in 0..LAST_BATCHES {
            if self.take()? == 0 {
                break;
            }
        }
        self.writer.flush()?;
        Ok(self.packets)
    }

    /// Writes a batch from each port; how many packets there were.
    fn take(&mut self) -> io::Result<usize> {
        let mut batch = Vec::new();
        let mut taken = 0;
        for (interface, slot) in self.ports.iter_mut().enumerate() {
            let Some(port) = slot else { continue };
            let lost = port.receive(&mut batch, BATCH).is_err();
            let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let time = time.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
            taken += batch.len();
            for packet in batch.drain(..) {
                // A lab has fewer than 2^32 interfaces.
                self.writer.packet(interface as u32, time, None, packet.bytes())?;
            }
            if lost {
                *slot = None;
            }
        }
        self.packets += taken as u64;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::os::fd::BorrowedFd;

    use weft_base::Packet;
    use weft_port::{Lost, PortInfo, PortStatistics};

    use super::*;

    /// A port at which there is always another batch.
    struct Busy {
        info: PortInfo,
        statistics: PortStatistics,
        readable: UnixStream,
    }

    impl Port for Busy {
        fn info(&self) -> &PortInfo {
            &self.info
        }

        fn fd(&self) -> BorrowedFd<'_> {
            self.readable.as_fd()
        }

        fn receive(&mut self, batch: &mut Vec<Packet>, max: usize) -> Result<(), Lost> {
            batch.extend((0..max).map(|_| Packet::from_slice(b"frame")));
            Ok(())
        }

        fn transmit(&mut self, _: &mut VecDeque<Packet>) -> Result<(), Lost> {
            Ok(())
        }

        fn statistics(&mut self) -> &PortStatistics {
            &self.statistics
        }
    }

    #[test]
    fn a_capture_ends_though_frames_never_do() {
        let (readable, mut peer) = UnixStream::pair().unwrap();
        peer.write_all(b"x").unwrap();
        let info = PortInfo { mac: [0; 6], mtu: 1500, local: None };
        let port = Busy { info, statistics: PortStatistics::default(), readable };
        let (stop, stopped) = UnixStream::pair().unwrap();
        let reader = Reader {
            ports: vec![Some(Box::new(port) as Box<dyn Port>)],
            writer: Writer::new(io::sink(), ["a:eth0"]).unwrap(),
            stopped,
            packets: 0,
        };
        let thread = thread::spawn(move || reader.run());
        drop(stop);
        let packets = thread.join().unwrap().unwrap();
        assert!(packets >= (LAST_BATCHES * BATCH) as u64, "what waited is in it: {packets}");
    }
}
