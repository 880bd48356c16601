//! Routes of the machine's IP, changed and read over rtnetlink, by `weft_netlink`.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use weft_base::Token;
use weft_netlink::{RouteDump, RouteSpace, RouteWriter, RoutesTold};

use super::poller::{Interest, Poller, Source};
use crate::{Event, RouteReply, RouteRequest};

/// What of it this process uses.
#[derive(Default)]
pub(super) struct Routes {
    writer: Option<RouteWriter>,
    /// The dumps that are under way, by numbers of their own.
    dumps: BTreeMap<u32, (Token, RouteDump)>,
    last_dump: u32,
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
        };
        let answer = result.transpose();
        events.extend(answer.map(|result| Event::RoutesAnswered { token, result }));
    }

    fn change(
        &mut self,
        space: &RouteSpace,
        changes: &[weft_netlink::RouteChange],
    ) -> io::Result<RouteReply> {
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => RouteWriter::open()?,
        };
        // Behind an error the socket is opened anew: nobody knows which answers still wait in it.
        let refused = writer.change(space, changes)?;
        self.writer = Some(writer);
        let refused = refused.into_iter().map(|(place, why)| (place, why.to_string()));
        Ok(RouteReply::Changed { refused: refused.collect() })
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
