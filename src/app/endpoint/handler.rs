//! The handler of an operation, the request that it reads, and the contexts in which it runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::Failure;
use super::entity_tag::{ETAG, tagged, unless_known};
use super::list_cache::ListCache;
use super::operation::{Operation, message_of_media_types};
use super::parameter::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderParameter, IF_MATCH, IF_NONE_MATCH,
    PathParameter, QueryParameter,
};
use crate::app::endpoint::{ApiError, Code};
use crate::app::settings::ApiSettings;
use crate::model::{Caller, KeyScope};
use crate::store::{BUSY_TIMEOUT, BatchWriter, Cause, Counts, Damage, Reader, StoreError, Writer};
use petstore_base::http::{
    AssetFields, LazyAssets, Request, Response, Target, matches_tag, percent,
};
use petstore_base::json::Schema;

/// A response that waits for the commit. An error waits too: an earlier request of the batch may be its cause, such as
/// the deletion of a pet that is then not found.
pub type Staged = Result<Response, ApiError>;

/// The writer's part of a health check.
pub type WriterCheck = fn(&mut WriteContext) -> Result<Response, Failure>;

/// The handler of an operation. Its variant decides the lane and the key scope, so that they cannot disagree.
#[derive(Clone, Copy, Debug)]
pub enum Handler {
    /// GET and HEAD: reads, in a read lane.
    Get(for<'r> fn(&mut ReadContext, &Call<'r>) -> Result<Response, Failure>),
    /// Any other method, such as POST: writes, in the write lane. A read-only key may not call it. If the batch is
    /// undone, it runs again, so it must have no effect outside the store.
    Write(
        &'static str,
        for<'r> fn(&mut BatchWriter, &Call<'r>) -> Result<Staged, Failure>,
    ),
    /// GET and HEAD: a health check. `read` runs in a read lane and, if it succeeds, `write` runs in the write lane
    /// after a commit. Neither may change data. A read-only service sends `read_only_body` instead of calling `write`.
    Health {
        read: fn(&mut ReadContext) -> Result<(), Failure>,
        write: WriterCheck,
        read_only_body: &'static str,
    },
}

impl Handler {
    /// The method; GET stands for HEAD as well.
    pub fn method(&self) -> &'static str {
        match self {
            Handler::Get(_) | Handler::Health { .. } => "GET",
            Handler::Write(method, _) => method,
        }
    }
}

/// The context of a handler that reads.
pub struct ReadContext {
    pub store: Reader,
    /// The damage to the database that the service has found.
    pub damage: Damage,
    /// Finished lists, for repeated requests.
    pub lists: ListCache,
    /// The last count of the pets.
    pub counts: Counts,
    pub assets: Arc<LazyAssets>,
    pub settings: Arc<ApiSettings>,
}

impl ReadContext {
    /// Creates the context of a reading worker.
    pub fn new(
        store: Reader,
        damage: Damage,
        assets: Arc<LazyAssets>,
        settings: Arc<ApiSettings>,
    ) -> Self {
        Self {
            store,
            damage,
            lists: ListCache::default(),
            counts: Counts::default(),
            assets,
            settings,
        }
    }
}

/// The context of the writing worker.
pub struct WriteContext {
    pub store: Writer,
    /// The time and the result of the last write or probe.
    last_write: Option<(Instant, Result<(), StoreError>)>,
}

/// How long the result of the last write is reused, so that a flood of health checks does not occupy the writer.
const LAST_WRITE_COUNTS: Duration = Duration::from_millis(100);

impl WriteContext {
    /// Creates the context of the writing worker.
    pub fn new(store: Writer) -> Self {
        Self {
            store,
            last_write: None,
        }
    }

    /// Notes the result of the last write. If a lock prevented it, the disk was not tried, so an earlier failure still counts.
    pub fn written(&mut self, mut written: Result<(), StoreError>) {
        // A rejection by a rule of another program, such as a deferred reference, says nothing of the disk either.
        if matches!(written, Err(StoreError::Rejected(_))) {
            return;
        }
        if is_locked(&written)
            && let Some((_, Err(known))) = &self.last_write
        {
            written = Err(known.clone());
        }
        self.last_write = Some((Instant::now(), written));
    }

    /// Checks that the store can write. Uses the result of the last write if it is recent, and otherwise probes the
    /// store. Call it between batches only.
    ///
    /// # Errors
    /// The [`StoreError`] of the last write or probe.
    pub fn takes_writes(&mut self) -> Result<(), StoreError> {
        match &self.last_write {
            Some((at, written)) if at.elapsed() < LAST_WRITE_COUNTS => written.clone(),
            _ => {
                // A lock of another process is no failure, and need not be waited for.
                self.store.set_busy_timeout(Duration::ZERO);
                let written = self.store.probe();
                self.store.set_busy_timeout(BUSY_TIMEOUT);
                self.written(written);
                self.last_write
                    .as_ref()
                    .map_or(Ok(()), |(_, written)| written.clone())
            }
        }
    }

    /// Fixes the result of the last write for the rest of a test.
    #[cfg(test)]
    pub fn hold(&mut self, written: Result<(), StoreError>) {
        self.last_write = Some((Instant::now() + Duration::from_secs(3600), written));
    }
}

fn is_locked(written: &Result<(), StoreError>) -> bool {
    matches!(written, Err(StoreError::Unavailable(Cause::Locked, _)))
}

/// A request, as its handler reads it. It is authenticated if its path is under `/v1`.
pub struct Call<'r> {
    /// The operation of the request.
    pub operation: &'static Operation,
    /// Its header fields are read by [`Call::header_values`], and its body by [`Call::json_body`].
    pub request: &'r Request<'r>,
    /// The whole path, and the query as sent.
    pub target: Target<'r>,
    /// The owner of the request's API key; `None` if the request needs no key.
    pub caller: Option<Caller>,
    /// The name of that key.
    pub key_name: Option<Arc<str>>,
    /// The scope of that key.
    pub scope: Option<KeyScope>,
}

impl<'r> Call<'r> {
    /// Returns whether only the head of the response is sent.
    pub fn is_head(&self) -> bool {
        self.request.method == "HEAD"
    }

    /// The value of a path parameter; `None` if the segment is not such a value.
    pub fn path<S: Schema>(&self, parameter: &PathParameter<S>) -> Option<S::Value<'static>> {
        self.check_declared(parameter.name);
        let segment = self.operation.segment(parameter.name, &self.target.path);
        debug_assert!(
            segment.is_some(),
            "{} has no {{{}}}",
            self.operation.path,
            parameter.name
        );
        let segment = segment?;
        if segment.as_bytes().contains(&b'%') {
            return parameter
                .schema
                .of_text(&String::from_utf8_lossy(&percent::decode(segment)));
        }
        parameter.schema.of_text(segment)
    }

    /// The value of a query parameter; `None` if it is absent.
    ///
    /// # Errors
    /// 400, if it is given twice or has a wrong value.
    pub fn query<S: Schema>(
        &self,
        parameter: &QueryParameter<S>,
    ) -> Result<Option<S::Value<'static>>, ApiError> {
        self.check_declared(parameter.name);
        parameter.read(self.target.query)
    }

    /// Panics in a debug build if the row does not declare the parameter: it would be missing from the interface
    /// description, and the gate would not forward it.
    fn check_declared(&self, parameter: &str) {
        if cfg!(debug_assertions) {
            let mut declared = self.operation.described();
            let is_declared = declared.any(|declared| *declared["name"] == *parameter);
            assert!(
                is_declared,
                "{} does not declare the parameter {parameter}",
                self.operation.id
            );
        }
    }

    /// All values of a header field that the operation's row declares, in the order sent.
    pub fn header_values(&self, parameter: &HeaderParameter) -> impl Iterator<Item = &'r str> {
        self.check_declared(parameter.name);
        self.request.header_values(parameter.name)
    }

    /// Returns the header fields that select the form of a static document.
    pub fn asset_fields(&self) -> AssetFields<'r> {
        AssetFields {
            accept_encoding: self.header_values(&ACCEPT_ENCODING).collect(),
            if_none_match: self.header_values(&IF_NONE_MATCH).collect(),
        }
    }

    /// Returns the response, or 304 if the client already has it: If-None-Match has its tag.
    pub fn unless_known(&self, response: Response) -> Response {
        unless_known(response, self.header_values(&IF_NONE_MATCH))
    }

    /// Checks the preconditions of a change: the tag of the resource must be in If-Match, and not in If-None-Match, if the
    /// request has them (RFC 9110, section 13.2.2).
    ///
    /// # Errors
    /// 412, if one of them is false.
    pub fn check_match(&self, resource: &impl Serialize) -> Result<(), ApiError> {
        if self.header_values(&IF_MATCH).next().is_none()
            && self.header_values(&IF_NONE_MATCH).next().is_none()
        {
            return Ok(());
        }
        let current = tagged(Response::json(200, resource), None);
        let tag = current.field(ETAG.name).unwrap_or_default();
        let lines: Vec<&str> = self.header_values(&IF_MATCH).collect();
        // Several lines are one list (RFC 9110, section 5.3), in which `*` stands for nothing.
        let tags = lines.join(",");
        if lines.is_empty() || matches_tag(&tags, tag.as_bytes()) {
            return match self.unless_known(current).status {
                304 => Err(ApiError::new(Code::PreconditionFailed)),
                _ => Ok(()),
            };
        }
        // A proxy that compresses makes W/"…" or "…-gzip" of it.
        Err(if tags.contains(tag.trim_matches('"')) {
            let message = format!(
                "The pet is unchanged, but a proxy or the client has altered the ETag in If-Match. Send it as it is, with its \
                 quotes: {tag}."
            );
            ApiError::with_message(Code::PreconditionFailed, message)
        } else {
            ApiError::new(Code::PreconditionFailed)
        })
    }

    /// Returns the body, which has no transfer coding.
    ///
    /// # Errors
    /// 415, if the header fields declare a media type that the row does not have, or a content coding (RFC 9110,
    /// sections 8.3 and 8.4).
    pub fn json_body(&self) -> Result<&'r [u8], ApiError> {
        debug_assert!(
            self.operation.body.is_some(),
            "{} does not declare a body",
            self.operation.id
        );
        let (name, _) = self.operation.accept();
        read_body(self.request, self.operation.media_types, name)
    }
}

/// Returns the body of a request. `accept` is the header field of a 415 with the accepted media type, the first.
///
/// # Errors
/// 415, if the header fields declare a media type that is not accepted, or a content coding (RFC 9110, sections 8.3 and
/// 8.4).
pub fn read_body<'r>(
    request: &Request<'r>,
    media_types: &[&'static str],
    accept: &'static str,
) -> Result<&'r [u8], ApiError> {
    for coding in request
        .header_values(CONTENT_ENCODING)
        .flat_map(|value| value.split(','))
    {
        // An empty element is none (RFC 9110, section 5.6.1.2).
        if !["", "identity"].contains(&&*coding.trim().to_ascii_lowercase()) {
            return Err(ApiError::new(Code::UnsupportedContentEncoding)
                .header("Accept-Encoding", "identity"));
        }
    }
    for value in request.header_values(CONTENT_TYPE) {
        let media_type = value.split(';').next().unwrap_or("").trim();
        if !media_types
            .iter()
            .any(|accepted| accepted.eq_ignore_ascii_case(media_type))
        {
            let message = message_of_media_types(media_types);
            let refused = ApiError::with_message(Code::UnsupportedMediaType, message);
            return Err(refused.header(accept, media_types[0]));
        }
    }
    Ok(request.body)
}

#[cfg(test)]
mod call_tests;
#[cfg(test)]
mod tests;
