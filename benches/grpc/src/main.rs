//! The peer of `weft bench xrl`: the same calls over gRPC (tonic and prost).
//!
//! ```text
//! weft-bench-grpc TRANSPORT METHOD WARM CALLS IN_FLIGHT
//! TRANSPORT = "tcp" | "tls" | "unix:" path | "memory"
//! METHOD    = "zero" | "ten" | "twentyfive" | "take:" routes per call
//! ```
//!
//! Prints `{"per_second": N}`: calls, or routes, per second. Server and client have a thread with a
//! runtime of its own each, but in memory, where both share one. So many calls are in flight as tasks
//! take turns: each makes its next call when it has its reply. The windows of HTTP/2 are opened wide,
//! since the usual ones would throttle large messages.

mod calls;
mod messages;
mod server;
mod tls;

use std::future::Future;
use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;

use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::{Builder, Runtime};
use tokio_stream::wrappers::{TcpListenerStream, UnixListenerStream};
use tonic::transport::{Channel, ClientTlsConfig, Endpoint, ServerTlsConfig};

use calls::Work;

/// Bytes that the other side may send on before it is told to go on.
const WINDOW: u32 = 16 << 20;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    match run() {
        Ok(rate) => {
            println!("{}", serde_json::json!({ "per_second": rate }));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<f64, Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [transport, method, numbers @ ..] = words.as_slice() else { return Err(usage()) };
    let work = Work::parse(method, numbers).ok_or_else(usage)?;
    match transport.as_str() {
        "memory" => in_memory(work),
        "tcp" => apart(work, Place::Tcp, None),
        "tls" => {
            let (server, client) = tls::both()?;
            apart(work, Place::Tls(server), Some(client))
        }
        other => {
            let path = other.strip_prefix("unix:").ok_or_else(usage)?;
            apart(work, Place::Unix(PathBuf::from(path)), None)
        }
    }
}

fn usage() -> Failure {
    "usage: weft-bench-grpc tcp|tls|unix:PATH|memory zero|ten|twentyfive|take:N WARM CALLS IN_FLIGHT"
        .into()
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Where the server listens.
enum Place {
    Unix(PathBuf),
    Tcp,
    /// TLS over TCP.
    Tls(ServerTlsConfig),
}

/// Runs the server in a thread of its own, which ends with the program.
fn apart(work: Work, place: Place, client: Option<ClientTlsConfig>) -> Result<f64, Failure> {
    let (told, address) = mpsc::channel();
    thread::Builder::new().name("server".to_owned()).spawn(move || {
        let result = runtime().map_err(Failure::from).and_then(|runtime| {
            runtime.block_on(serve(place, |address| {
                // Who asked is there until it has the address.
                let _ = told.send(address);
            }))
        });
        if let Err(error) = result {
            eprintln!("error: the server: {error}");
        }
    })?;
    let address = address.recv()?;
    runtime()?.block_on(async {
        let mut endpoint = endpoint(address)?;
        if let Some(client) = client {
            endpoint = endpoint.tls_config(client)?;
        }
        let channel = endpoint.connect().await?;
        calls::measure(channel, work).await
    })
}

async fn serve(place: Place, tell: impl FnOnce(String)) -> Result<(), Failure> {
    if let Place::Unix(path) = place {
        // What an earlier run has left.
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path)?;
        tell(format!("unix:{}", path.display()));
        builder().serve_with_incoming(server::Server, UnixListenerStream::new(listener)).await?;
    } else {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let mut builder = builder();
        match place {
            Place::Tls(config) => {
                builder = builder.tls_config(config)?;
                tell(format!("https://{address}"));
            }
            _ => tell(format!("http://{address}")),
        }
        let without_delay =
            tokio_stream::StreamExt::map(TcpListenerStream::new(listener), |stream| {
                stream.and_then(|stream| stream.set_nodelay(true).map(|()| stream))
            });
        builder.serve_with_incoming(server::Server, without_delay).await?;
    }
    Ok(())
}

fn builder() -> tonic::transport::Server {
    tonic::transport::Server::builder()
        .initial_connection_window_size(WINDOW)
        .initial_stream_window_size(WINDOW)
}

fn endpoint(address: String) -> Result<Endpoint, Failure> {
    Ok(Endpoint::from_shared(address)?
        .tcp_nodelay(true)
        .initial_connection_window_size(WINDOW)
        .initial_stream_window_size(WINDOW))
}

/// Client and server in one thread, with a pipe in memory between them.
fn in_memory(work: Work) -> Result<f64, Failure> {
    runtime()?.block_on(async {
        let (near, far) = tokio::io::duplex(1 << 20);
        let incoming = tokio_stream::once(Ok::<DuplexStream, io::Error>(far));
        let server = tokio::spawn(serve_one(incoming));
        let channel = connect(near).await?;
        let rate = calls::measure(channel, work).await;
        server.abort();
        rate
    })
}

fn serve_one(
    incoming: impl tokio_stream::Stream<Item = io::Result<DuplexStream>> + Send + 'static,
) -> impl Future<Output = Result<(), tonic::transport::Error>> + Send {
    builder().serve_with_incoming(server::Server, incoming)
}

async fn connect(near: DuplexStream) -> Result<Channel, Failure> {
    let mut near = Some(near);
    let connector = tower::service_fn(move |_| {
        let stream = near.take().ok_or_else(|| io::Error::other("the connection was lost"));
        async move { stream.map(TokioIo::new) }
    });
    let endpoint = endpoint("http://in.memory".to_owned())?;
    Ok(endpoint.connect_with_connector(connector).await?)
}
