//! The server: answers as the probe of `weft bench xrl` does.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tonic::body::Body;
use tonic::server::Grpc;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use crate::messages::{Nothing, Take, TakeReply, Ten, Twentyfive};

/// The service `probe`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Server;

type Answer = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

impl tower::Service<http::Request<Body>> for Server {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Answer {
        match request.uri().path() {
            "/probe/zero" => answer(request, |_: Nothing| Nothing {}),
            "/probe/ten" => answer(request, |_: Ten| Nothing {}),
            "/probe/twentyfive" => answer(request, |_: Twentyfive| Nothing {}),
            "/probe/take" => {
                answer(request, |take: Take| TakeReply { count: take.routes.len() as u32 })
            }
            _ => Box::pin(async { Ok(Status::unimplemented("no such method").into_http()) }),
        }
    }
}

fn answer<A, B>(request: http::Request<Body>, reply: fn(A) -> B) -> Answer
where
    A: prost::Message + Default + 'static,
    B: prost::Message + 'static,
{
    Box::pin(async move {
        let method = tower::service_fn(move |request: Request<A>| async move {
            Ok::<_, Status>(Response::new(reply(request.into_inner())))
        });
        Ok(Grpc::new(ProstCodec::<B, A>::default()).unary(method, request).await)
    })
}
