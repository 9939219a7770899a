//! `GET /healthz` and `GET /readyz`: liveness and readiness. Both go through a read lane and the write lane, as
//! ordinary requests do.

use std::ops::ControlFlow;

use crate::app::endpoint::{
    ApiError, Code, Failure, Handler, Operation, ReadContext, WriteContext,
};
use crate::model::{Page, PetQuery};
use crate::store::{Cause, StoreError};
use petstore_base::http::Response;

pub static OPERATIONS: &[Operation] = &[
    Operation {
        rows: Some(0),
        ..Operation::new("/healthz", "checkHealth", HEALTH)
    },
    Operation {
        rows: Some(1),
        ..Operation::new("/readyz", "checkReadiness", READINESS)
    },
];

/// The body of a service that is alive.
pub const ALIVE: &[u8] = OK.as_bytes();
/// The body of a service that takes writes.
pub const READY: &[u8] = br#"{"status":"ready"}"#;
const OK: &str = r#"{"status":"ok"}"#;
const HEALTH: Handler = Handler::Health {
    read: |_| Ok(()),
    write: is_alive,
    read_only_body: OK,
};
const READINESS: Handler = Handler::Health {
    read: can_read,
    write: can_write,
    read_only_body: r#"{"status":"ready","readOnly":true}"#,
};

/// Liveness: the writer has received the request, which is the proof.
fn is_alive(_: &mut WriteContext) -> Result<Response, Failure> {
    Ok(Response::json_bytes(200, ALIVE))
}

fn can_read(context: &mut ReadContext) -> Result<(), Failure> {
    context.damage.found()?;
    let any = PetQuery::all(Page::ascending(1, None));
    Ok(context.store.visit_pets(&any, |_| ControlFlow::Break(()))?)
}

/// Readiness: 503 as soon as a batch has failed, and 200 again only after a write has succeeded. A lock alone is no
/// failure.
fn can_write(context: &mut WriteContext) -> Result<Response, Failure> {
    match context.takes_writes() {
        // A check has no outcome that could be unknown.
        Err(error) if error.is_unknown() => Err(ApiError::new(Code::StorageUnavailable))?,
        // Another process writes, such as an import: the disk takes writes, and creates wait for it.
        Err(StoreError::Unavailable(Cause::Locked, _)) => {}
        written => written?,
    }
    Ok(Response::json_bytes(200, READY))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::settings::ApiSettings;
    use crate::store::Damage;
    use crate::store::tests::{lose_pets, pair};
    use std::sync::Arc;

    #[test]
    fn unreadable_pets_are_noticed() {
        let (_folder, writer, reader) = pair();
        let mut context = ReadContext::new(
            reader,
            Damage::default(),
            std::sync::Arc::new(petstore_base::http::LazyAssets::new(Box::new(
                petstore_base::http::Assets::default,
            ))),
            Arc::new(ApiSettings::default()),
        );
        assert_eq!(can_read(&mut context), Ok(()));
        lose_pets(&writer);
        assert!(can_read(&mut context).is_err());
    }
}
