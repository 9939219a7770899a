//! The admin address: metrics for monitoring, and the settings of the project. Knows no SQL and no sockets.

mod metrics;
mod reset;
#[cfg_attr(not(feature = "site"), path = "no_settings.rs", warn(dead_code, unused_imports))]
mod settings;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::endpoint::{self, Failure, Router};
use crate::error::Error;
use crate::http::{Request, Response, Target};
use crate::metrics::Metrics;
use crate::quiet_log::QuietLog;
use crate::store::{Damage, Reader};
use crate::worker::Service;

pub use settings::ProjectSettings;

/// The rows of the admin address.
static ROUTER: Router<Handler> = Router(&[metrics::OPERATIONS, reset::OPERATIONS, settings::OPERATIONS]);

type Operation = endpoint::Operation<Handler>;
type Call<'r> = endpoint::Call<'r, Handler>;

/// The method of an operation on the admin address, and its function. GET stands for HEAD as well.
struct Handler(&'static str, for<'r> fn(&mut AdminContext, &Call<'r>) -> Result<Response, Failure>);

impl endpoint::Handler for Handler {
    fn method(&self) -> &'static str {
        self.0
    }
}

/// The context of the handlers on the admin address.
pub struct AdminContext {
    pub metrics: Metrics,
    pub store: Box<Reader>,
    /// What the service has met of it.
    pub damage: Damage,
    /// The path of the database.
    pub database: PathBuf,
    /// Whether the service only reads.
    pub read_only: bool,
    pub settings: ProjectSettings,
    /// `None`: the service is not ephemeral.
    pub reset: Option<Reset>,
}

/// Returns the service to its first state.
pub type Reset = Arc<dyn Fn() -> Result<(), Error> + Send + Sync>;

/// Answers requests to the admin address.
pub struct AdminService {
    context: AdminContext,
    failures: QuietLog,
}

impl AdminService {
    pub fn new(context: AdminContext) -> Self {
        Self { context, failures: QuietLog::new("petstore::admin") }
    }

    /// Answers a request, and notes the name of its key.
    fn respond(&mut self, request: &Request, key_name: &mut Option<String>) -> Result<Response, Failure> {
        let target = Target::parse(request.target);
        if request.method == "OPTIONS" {
            return Ok(ROUTER.options(&target)?);
        }
        settings::guard(&mut self.context, request, &target, key_name)?;
        let operation = ROUTER.route(request.method, &target)?;
        let call = Call::new(operation, request, target);
        let Handler(method, handler) = operation.handler;
        if method != "GET" {
            self.context.damage.found()?;
        }
        handler(&mut self.context, &call)
    }
}

impl Service for AdminService {
    fn answer(&mut self, requests: &[Request], responses: &mut Vec<Response>) -> Duration {
        for request in requests {
            let mut key_name = None;
            let response = self.respond(request, &mut key_name).unwrap_or_else(|failure| {
                let is_noted = matches!(&failure, Failure::Store(error) if self.context.damage.note(error));
                if !is_noted && let Some(detail) = failure.detail() {
                    self.failures
                        .say(&format!("request {}", request.id), &format!("admin address: {detail}"));
                }
                failure.into_response()
            });
            responses.push(key_name.iter().fold(response, |response, name| response.for_key(name)));
        }
        Duration::ZERO
    }
}

/// The header fields that the admin address reads.
pub fn header_fields() -> Vec<&'static str> {
    ROUTER.header_fields(settings::GUARD_FIELDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::flaw;

    #[test]
    fn table_is_sound() {
        assert_eq!(flaw(&ROUTER.operations().collect::<Vec<_>>()), None);
    }
}
