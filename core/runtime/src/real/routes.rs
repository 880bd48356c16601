//! Routes of the machine's IP, changed and read over rtnetlink, by `weft_netlink`.
//!
//! The kernel takes as long for a request as it has work with it, and the process waits. So requests of a turn are carried
//! out at its end, and answered when the next one has served all sources: a process that asks for the next piece with each answer
//! hears between any two of them what has come, and asks for what is urgent first.

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
    /// What was asked for in this turn.
    requests: VecDeque<(Token, RouteRequest)>,
    /// What is to be told when all sources are served.
    answers: VecDeque<Event>,
    writer: Option<RouteWriter>,
    /// The dumps that are under way, by numbers of their own.
    dumps: BTreeMap<u32, (Token, RouteDump)>,
    last_dump: u32,
    /// Where what others delete is heard of.
    watch: Option<(Token, DeletedRoutes)>,
}

impl Routes {
    /// Has this carried out at the end of the turn.
    pub(super) fn ask(&mut self, token: Token, request: RouteRequest) {
        self.requests.push_back((token, request));
    }

    /// Whether there are answers to be told.
    pub(super) fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Takes them, in the order in which they were asked for.
    pub(super) fn take_answers(&mut self) -> impl Iterator<Item = Event> {
        self.answers.drain(..)
    }

    /// Has the kernel carry out what was asked for.
    pub(super) fn flush(&mut self, poller: &Poller) {
        while let Some((token, request)) = self.requests.pop_front() {
            let answer = self.carry_out(token, request, poller);
            self.answers.extend(answer);
        }
    }

    /// What is to be told now, if anything.
    fn carry_out(&mut self, token: Token, request: RouteRequest, poller: &Poller) -> Option<Event> {
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
        answer.map(|result| Event::RoutesAnswered { token, result })
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
        self.tell(token, result, events);
    }

    /// Tells what the kernel says by itself, behind what was answered before.
    fn tell(
        &mut self,
        token: Token,
        result: Result<RouteReply, String>,
        events: &mut VecDeque<Event>,
    ) {
        events.extend(self.take_answers());
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
        self.tell(token, result, events);
    }
}
