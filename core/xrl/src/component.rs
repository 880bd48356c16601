//! Components that call and can be called.
//!
//! As everywhere, a call is an output and its reply an input; see
//! [`Component`](weft_runtime::Component). [`Host`](crate::Host) makes a process of such components.

use std::borrow::Cow;
use std::time::Duration;

use weft_base::{Buffer, Handle, Instant};
use weft_runtime::{Action, Event, Level};

use crate::XrlError;
use crate::codec::{Arguments, Decoder, Encoder};
use crate::interface::{Calls, Interface, Request};
use crate::text::Xrl;

/// How long a call may take unless it says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// What happens to a component.
#[derive(Debug)]
pub enum Input {
    /// Something of the world, as for any process.
    World(Event),
    /// Somebody calls one of its methods. It must [`Output::Answer`], now or later.
    Called(Called),
    /// A call of its own is over.
    Replied {
        /// The number it gave the call.
        token: u64,
        /// What came of it.
        result: Result<Reply, XrlError>,
    },
    /// Its registration is known to the Finder: it can be called, and can call others. Told again when
    /// the Finder has come back.
    Registered,
    /// The Finder did not register it, or is another one's: why, in one sentence. It is tried again.
    NotRegistered(String),
    /// A caller's connection has ended, or it is gone without ever having had one to this process.
    Left {
        /// The session that its calls had.
        session: u64,
        /// The node does not want its process any more: it will not come back. This may be said after the end of its
        /// connection was.
        removed: bool,
    },
    /// A component that it watches was registered.
    Born {
        /// Its class.
        class: String,
        /// Its name.
        instance: String,
    },
    /// A component that it watches is gone.
    Died {
        /// Its class.
        class: String,
        /// Its name.
        instance: String,
    },
}

/// What a component does.
#[derive(Debug)]
pub enum Output {
    /// Something in the world, as any process.
    World(Action),
    /// Calls a method.
    Call(Call),
    /// Answers a call.
    Answer {
        /// Which.
        id: CallId,
        /// The return arguments, or why there are none.
        result: Result<Encoded, XrlError>,
    },
    /// Asks to be told of births and deaths of a class, or of all; those that are there are told.
    Watch {
        /// The class.
        class: Option<String>,
    },
    /// Keeps a record in the log of this process for somebody who writes none that can be asked for, and has
    /// written it to standard error already.
    Record {
        /// When.
        time: Instant,
        /// How serious it is.
        level: Level,
        /// What happened.
        text: String,
    },
    /// Says the secret that shows the Finder who this process is, if that was not known when it was
    /// started; see [`Identity`](crate::Identity).
    Join {
        /// The secret.
        secret: crate::frame::Secret,
    },
}

/// Arguments, ready for the wire.
#[derive(Debug, Default)]
pub struct Encoded {
    /// Their bytes.
    pub args: Buffer,
    /// What comes with them.
    pub handles: Vec<Handle>,
}

impl Encoded {
    /// Encodes arguments.
    #[must_use]
    pub fn new(arguments: impl Arguments) -> Self {
        let mut to = Encoder::new();
        arguments.encode(&mut to);
        to.into()
    }
}

impl From<Buffer> for Encoded {
    fn from(args: Buffer) -> Self {
        Self { args, handles: Vec::new() }
    }
}

impl From<Encoder> for Encoded {
    fn from(encoder: Encoder) -> Self {
        let (args, handles) = encoder.finish();
        Self { args, handles }
    }
}

/// A method, as its caller knows it.
#[derive(Clone, Debug)]
pub enum Method {
    /// By its number in an interface that this program knows.
    Known(&'static Interface, u16),
    /// By its path `interface/version/method`. Its arguments are text.
    Path(String),
}

/// A call that a component makes.
#[derive(Debug)]
pub struct Call {
    /// Comes back with the reply.
    pub token: u64,
    /// The class or instance that is called.
    pub target: Cow<'static, str>,
    /// The method.
    pub method: Method,
    /// Its arguments.
    pub arguments: Encoded,
    /// When it is given up, after it was made.
    pub timeout: Duration,
}

impl Call {
    /// A call of a method that this program knows.
    #[must_use]
    pub fn new<R: Request>(token: u64, target: impl Into<Cow<'static, str>>, request: R) -> Self {
        Self {
            token,
            target: target.into(),
            method: Method::Known(R::INTERFACE, R::METHOD),
            arguments: Encoded::new(request),
            timeout: DEFAULT_TIMEOUT,
        }
    }

    /// A call from text; its arguments are checked by the target.
    #[must_use]
    pub fn from_text(token: u64, xrl: &Xrl) -> Self {
        let text: Vec<_> = xrl.args.iter().map(ToString::to_string).collect();
        Self {
            token,
            target: xrl.target.clone().into(),
            method: Method::Path(xrl.path()),
            arguments: Encoded {
                args: Buffer::from_slice(text.join("&").as_bytes()),
                handles: Vec::new(),
            },
            timeout: DEFAULT_TIMEOUT,
        }
    }

    /// The call with another timeout.
    #[must_use]
    pub fn within(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

impl From<Call> for Output {
    fn from(call: Call) -> Self {
        Self::Call(call)
    }
}

/// Names a call that was received until it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub(crate) u64);

/// A call that somebody made.
#[derive(Debug)]
pub struct Called {
    /// Its name for the answer.
    pub id: CallId,
    /// Who calls, for the log.
    pub caller: std::rc::Rc<str>,
    /// The session of the caller's connection; 0 for a component of this process.
    pub session: u64,
    /// The user of the caller, as the kernel says; `None` for a component of this process, and for one
    /// of another machine.
    pub uid: Option<u32>,
    /// The process of the caller, as the kernel says; `None` where `uid` is.
    pub pid: Option<u32>,
    /// The interface.
    pub interface: &'static Interface,
    /// The method's number in it.
    pub method: u16,
    /// The arguments.
    pub arguments: Encoded,
}

impl Called {
    /// A call of a component that has no host, by whoever has made it: it answers by an [`Output::Answer`].
    #[must_use]
    pub fn directly<R: Request>(request: R) -> Self {
        Self {
            id: CallId(0),
            caller: "".into(),
            session: 0,
            uid: None,
            pid: None,
            interface: R::INTERFACE,
            method: R::METHOD,
            arguments: Encoded::new(request),
        }
    }

    /// Reads the call as one of an interface.
    ///
    /// # Errors
    /// It is not one, or its arguments are wrong: the answer to give.
    pub fn read<C: Calls>(&mut self) -> Result<C, XrlError> {
        let handles = std::mem::take(&mut self.arguments.handles);
        let mut from = Decoder::new(self.arguments.args.bytes(), handles);
        let call = C::decode(self.method, &mut from)?;
        from.finish()?;
        Ok(call)
    }

    /// The answer to it.
    #[must_use]
    pub fn answer(&self, result: Result<impl Arguments, XrlError>) -> Output {
        Output::Answer { id: self.id, result: result.map(Encoded::new) }
    }

    /// The answer that it failed.
    #[must_use]
    pub fn fail(&self, error: XrlError) -> Output {
        Output::Answer { id: self.id, result: Err(error) }
    }
}

/// The return arguments of a call.
#[derive(Debug)]
pub enum Reply {
    /// Of a method that this program knows.
    Arguments(Encoded),
    /// As text, of a call that was made as text.
    Text(String),
}

impl Reply {
    /// Reads the return arguments of a request.
    ///
    /// # Errors
    /// They are not those of the request.
    pub fn read<R: Request>(self) -> Result<R::Reply, XrlError> {
        match self {
            // What a newer version has added behind the known arguments is left alone.
            Self::Arguments(Encoded { args, handles }) => {
                Ok(R::Reply::decode(&mut Decoder::new(args.bytes(), handles))?)
            }
            Self::Text(_) => Err(XrlError::bad_args("a text came where arguments were expected")),
        }
    }
}
