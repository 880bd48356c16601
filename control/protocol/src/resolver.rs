//! How next hops are reached, by the RIB: it is asked, and says when an answer holds no longer.
//!
//! Reference: Handley et al. (XORP), §5.2.1 (interest registration). An answer holds for a block of addresses. While
//! the RIB is away, what it has said last is believed.

use std::net::IpAddr;

use ipnet::IpNet;
use weft_base::Instant;
use weft_xrl::{Input, Output, Reply, XrlError};

use crate::dialogue::{Client, Dialogue};
use crate::rib;

/// How long the RIB may have nothing to tell, in milliseconds.
const QUIET: u32 = 20_000;

/// Who wants to know how next hops are reached, and keeps the answers.
pub trait Resolve {
    /// Another RIB is there: everything is to be asked again.
    fn ask_again(&mut self);

    /// Takes the addresses that are to be asked for.
    fn take_wanted(&mut self) -> Vec<IpAddr>;

    /// How these addresses are reached, in their order.
    fn told(&mut self, addresses: &[IpAddr], ways: Vec<rib::Way>);

    /// What was said of these blocks holds no longer.
    fn invalid(&mut self, blocks: &[IpNet]);
}

/// What a call was about.
#[derive(Debug)]
enum About {
    Register(Vec<IpAddr>),
    Invalid,
}

/// The questions to the RIB.
#[derive(Debug)]
pub struct Resolver {
    dialogue: Dialogue<About>,
    /// Questions under way.
    under_way: usize,
}

impl Resolver {
    /// No questions, and the number of their [`Dialogue`].
    #[must_use]
    pub fn new(number: u8) -> Self {
        Self { dialogue: Dialogue::new(rib::CLASS, number), under_way: 0 }
    }

    /// When something is to be done at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.dialogue.deadline()
    }

    /// Asks what is to be asked. Returns whether everything that was asked is answered.
    pub fn ask(&mut self, next_hops: &mut impl Resolve, out: &mut Vec<Output>) -> bool {
        if !self.dialogue.is_there() {
            return false;
        }
        let addresses = next_hops.take_wanted();
        if !addresses.is_empty() {
            self.under_way += 1;
            let request = rib::Register { addresses: addresses.clone() };
            self.dialogue.call(About::Register(addresses), request, out);
        }
        self.under_way == 0
    }

    /// Hears an input; gives it back if it is not for this alone.
    pub fn hear(
        &mut self,
        now: Instant,
        input: Input,
        next_hops: &mut impl Resolve,
        out: &mut Vec<Output>,
    ) -> Option<Input> {
        Both { resolver: self, next_hops }.hear(now, input, out)
    }
}

/// Questions, and who wants to know.
struct Both<'a, N> {
    resolver: &'a mut Resolver,
    next_hops: &'a mut N,
}

impl<N: Resolve> Client<About> for Both<'_, N> {
    fn dialogue(&mut self) -> &mut Dialogue<About> {
        &mut self.resolver.dialogue
    }

    fn began(&mut self, out: &mut Vec<Output>) {
        self.resolver.under_way = 0;
        self.next_hops.ask_again();
        self.resolver.dialogue.call(About::Invalid, rib::Invalid { wait: QUIET }, out);
    }

    fn answered(
        &mut self,
        about: &About,
        reply: Reply,
        out: &mut Vec<Output>,
    ) -> Result<(), XrlError> {
        match about {
            About::Register(addresses) => {
                let ways = reply.read::<rib::Register>()?.ways;
                self.resolver.under_way -= 1;
                self.next_hops.told(addresses, ways);
            }
            About::Invalid => {
                self.next_hops.invalid(&reply.read::<rib::Invalid>()?.blocks);
                self.resolver.dialogue.call(About::Invalid, rib::Invalid { wait: QUIET }, out);
            }
        }
        Ok(())
    }
}
