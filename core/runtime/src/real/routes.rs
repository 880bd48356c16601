//! Routes of the machine's IP, changed and read over rtnetlink, by `weft_netlink`.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use weft_base::Token;
use weft_netlink::{DeletedRoutes, RouteDump, RouteSpace, RouteWriter, RoutesTold};
use weft_port::filter;

use super::poller::{Interest, Poller, Source};
use crate::{Event, RouteReply, RouteRequest};

/// What of it this process uses.
#[derive(Default)]
pub(super) struct Routes {
    writer: Option<RouteWriter>,
    /// The dumps that are under way, by numbers of their own.
    dumps: BTreeMap<u32, (Token, RouteDump)>,
    last_dump: u32,
    /// Where what others delete is heard of.
    watch: Option<(Token, DeletedRoutes)>,
}

impl Routes {
    pub(super) fn carry_out(
        &mut self,
        token: Token,
        request: RouteRequest,
        poller: &Poller,
        events: &mut VecDeque<Event>,
    ) {
        let result = match request {
            RouteRequest::Change { space, changes } => self
                .change(&space, &changes)
                .map(Some)
                .map_err(|error| format!("the kernel cannot be told of routes: {error}")),
            RouteRequest::Dump { space } => self
                .begin(token, space, poller)
                .map(|()| None)
                .map_err(|error| format!("the kernel cannot be asked for routes: {error}")),
            RouteRequest::Watch { protocol } => self
                .watch(token, protocol, poller)
                .map(|()| None)
                .map_err(|error| format!("routes that others delete will not be noticed: {error}")),
        };
        let answer = result.transpose();
        events.extend(answer.map(|result| Event::RoutesAnswered { token, result }));
    }

    fn change(
        &mut self,
        space: &RouteSpace,
        changes: &[weft_netlink::RouteChange],
    ) -> io::Result<RouteReply> {
        let mut writer = self.writer()?;
        // Behind an error the socket is opened anew: nobody knows which answers still wait in it.
        let refused = writer.change(space, changes)?;
        self.writer = Some(writer);
        let refused = refused.into_iter().map(|(place, why)| (place, why.to_string()));
        Ok(RouteReply::Changed { refused: refused.collect() })
    }

    /// Takes the socket by which routes are changed.
    fn writer(&mut self) -> io::Result<RouteWriter> {
        if let Some(writer) = self.writer.take() {
            return Ok(writer);
        }
        let writer = RouteWriter::open()?;
        if let Some((_, watch)) = &self.watch {
            filter::attach(watch.fd(), &mut watch.filter(writer.number()))?;
        }
        Ok(writer)
    }

    fn watch(&mut self, token: Token, protocol: u8, poller: &Poller) -> io::Result<()> {
        let writer = self.writer()?;
        let watch = DeletedRoutes::open(protocol)?;
        filter::attach(watch.fd(), &mut watch.filter(writer.number()))?;
        self.writer = Some(writer);
        if let Some((_, before)) = self.watch.take() {
            poller.remove(before.fd());
        }
        poller.add(watch.fd(), Source::DeletedRoutes, Interest::Read)?;
        self.watch = Some((token, watch));
        Ok(())
    }

    /// Reads what others have deleted.
    pub(super) fn deleted(&mut self, poller: &Poller, events: &mut VecDeque<Event>) {
        let Some((token, watch)) = &mut self.watch else { return };
        let token = *token;
        let result = match watch.read() {
            Ok(deletions) if deletions.is_empty() => return,
            Ok(deletions) => Ok(RouteReply::Deleted(deletions)),
            Err(error) => {
                poller.remove(watch.fd());
                self.watch = None;
                Err(format!("routes that others delete are not noticed any more: {error}"))
            }
        };
        events.push_back(Event::RoutesAnswered { token, result });
    }

    fn begin(&mut self, token: Token, space: RouteSpace, poller: &Poller) -> io::Result<()> {
        let dump = RouteDump::open(space)?;
        self.last_dump = self.last_dump.wrapping_add(1);
        poller.add(dump.fd(), Source::Routes(self.last_dump), Interest::Read)?;
        self.dumps.insert(self.last_dump, (token, dump));
        Ok(())
    }

    /// Reads a piece of what the kernel tells.
    pub(super) fn told(&mut self, number: u32, poller: &Poller, events: &mut VecDeque<Event>) {
        let Some((token, dump)) = self.dumps.get_mut(&number) else { return };
        let (token, mut routes) = (*token, Vec::new());
        let told = dump.read(&mut routes);
        if !matches!(told, Ok(RoutesTold::More | RoutesTold::Again)) {
            poller.remove(dump.fd());
            self.dumps.remove(&number);
        }
        let result = match told {
            Ok(RoutesTold::More) if routes.is_empty() => return,
            Ok(told) => Ok(RouteReply::Told { routes, told }),
            Err(error) => Err(format!("the kernel does not tell of routes any more: {error}")),
        };
        events.push_back(Event::RoutesAnswered { token, result });
    }
}
