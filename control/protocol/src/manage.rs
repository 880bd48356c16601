//! What the manager asks of a component that has one statement of the configuration.

use weft_base::Instant;
use weft_config::Errors;
use weft_xrl::configurable::{Call, Check, Configure, SchemaReply, StatusReply};
use weft_xrl::{Called, Encoded, Output, XrlError};

/// A component that takes its configuration at once.
pub trait Manage {
    /// What the configuration says.
    type Config;

    /// What may be configured.
    fn schema(&self) -> &'static str;

    /// Reads the statement.
    ///
    /// # Errors
    /// Every mistake with its place.
    fn read(&self, source: &str, text: &str) -> Result<Self::Config, Errors>;

    /// Takes a configuration in place of the one before.
    fn configure(&mut self, now: Instant, config: Self::Config, out: &mut Vec<Output>);

    /// Whether it has taken a configuration and works, and more for people.
    fn status(&self) -> (bool, String);
}

/// Answers a call of the manager.
pub fn manage(
    component: &mut impl Manage,
    now: Instant,
    mut called: Called,
    out: &mut Vec<Output>,
) {
    let result = called.read().and_then(|call| answer(component, now, call, out));
    out.push(Output::Answer { id: called.id, result });
}

fn answer(
    component: &mut impl Manage,
    now: Instant,
    call: Call,
    out: &mut Vec<Output>,
) -> Result<Encoded, XrlError> {
    let wrong = |errors: Errors| XrlError::failed(errors.to_string());
    Ok(match call {
        Call::Check(Check { source, text, .. }) => {
            component.read(&source, &text).map_err(wrong)?;
            Encoded::default()
        }
        Call::Configure(Configure { source, text, .. }) => {
            let config = component.read(&source, &text).map_err(wrong)?;
            component.configure(now, config, out);
            Encoded::default()
        }
        Call::Schema(_) => Encoded::new(SchemaReply { text: component.schema().to_owned() }),
        Call::Status(_) => {
            let (ready, detail) = component.status();
            Encoded::new(StatusReply { ready, detail })
        }
    })
}
