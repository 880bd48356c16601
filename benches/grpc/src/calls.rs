//! The client: keeps calls in flight and measures.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use http::uri::PathAndQuery;
use tokio::task::JoinSet;
use tonic::Request;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic_prost::ProstCodec;

use crate::Failure;
use crate::messages::{Nothing, Route, Take, TakeReply, Ten, Twentyfive};

/// The first number among arguments; the least that is as long on the wire as most.
const FIRST: u32 = 1_000_000;

/// What is called.
#[derive(Clone, Copy, Debug)]
enum Method {
    Zero,
    Ten,
    Twentyfive,
    /// With so many routes.
    Take(u32),
}

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    method: Method,
    warm: usize,
    calls: usize,
    in_flight: usize,
}

impl Work {
    /// Reads what was asked for.
    pub(crate) fn parse(method: &str, numbers: &[String]) -> Option<Self> {
        let method = match method {
            "zero" => Method::Zero,
            "ten" => Method::Ten,
            "twentyfive" => Method::Twentyfive,
            other => Method::Take(other.strip_prefix("take:")?.parse().ok()?),
        };
        let [warm, calls, in_flight] = numbers else { return None };
        let number = |text: &String| text.parse().ok();
        Some(Self {
            method,
            warm: number(warm)?,
            calls: number(calls)?,
            in_flight: number(in_flight)?,
        })
    }
}

/// Calls, or routes, per second.
pub(crate) async fn measure(channel: Channel, work: Work) -> Result<f64, Failure> {
    match work.method {
        Method::Zero => phases(channel, work, "/probe/zero", |_| Nothing {}, one).await,
        Method::Ten => phases(channel, work, "/probe/ten", |_| Ten::from(FIRST), one).await,
        Method::Twentyfive => {
            phases(channel, work, "/probe/twentyfive", |_| Twentyfive::from(FIRST), one).await
        }
        Method::Take(_) => phases(channel, work, "/probe/take", take, |r| u64::from(r.count)).await,
    }
}

fn one(_: TakeReply) -> u64 {
    1
}

fn take(work: &Work) -> Take {
    let Method::Take(count) = work.method else { return Take::default() };
    let route = |index: u32| Route {
        net: (index << 8).to_be_bytes().to_vec(),
        len: 24,
        nexthop: (0xc000_0200 + (index & 63)).to_be_bytes().to_vec(),
        metric: FIRST + index,
        comment: String::new(),
    };
    Take { routes: (0..count).map(route).collect() }
}

async fn phases<A: prost::Message + 'static>(
    channel: Channel,
    work: Work,
    path: &'static str,
    request: fn(&Work) -> A,
    worth: fn(TakeReply) -> u64,
) -> Result<f64, Failure> {
    call_all(&channel, work, work.warm, path, request, worth).await?;
    let begin = Instant::now();
    let done = call_all(&channel, work, work.calls, path, request, worth).await?;
    Ok(done as f64 / begin.elapsed().as_secs_f64())
}

/// Makes `count` calls and says what their replies are worth.
async fn call_all<A: prost::Message + 'static>(
    channel: &Channel,
    work: Work,
    count: usize,
    path: &'static str,
    request: fn(&Work) -> A,
    worth: fn(TakeReply) -> u64,
) -> Result<u64, Failure> {
    let begun = Arc::new(AtomicUsize::new(0));
    let done = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..work.in_flight {
        let (begun, done) = (Arc::clone(&begun), Arc::clone(&done));
        let mut client = Grpc::new(channel.clone());
        tasks.spawn(async move {
            while begun.fetch_add(1, Ordering::Relaxed) < count {
                client.ready().await?;
                // A reply without fields reads as one with all fields at their defaults.
                let codec = ProstCodec::<A, TakeReply>::default();
                let request = Request::new(request(&work));
                let reply = client.unary(request, PathAndQuery::from_static(path), codec).await?;
                done.fetch_add(worth(reply.into_inner()), Ordering::Relaxed);
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(result) = tasks.join_next().await {
        result??;
    }
    Ok(done.load(Ordering::Relaxed))
}
