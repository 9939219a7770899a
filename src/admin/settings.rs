//! The settings of the project: the page, and its JSON interface. Every request to the interface needs an admin key.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::json;

use super::{AdminCall, AdminContext, AdminHandler, AdminOperation, forbidden};
use crate::app::endpoint::parameter::{
    ACCEPT_ENCODING, IF_NONE_MATCH, Parameter, PathParameter, QueryParameter,
};
use crate::app::endpoint::{Failure, UNDESCRIBED};
use crate::app::pipeline::Authenticator;
use crate::base::clock::unix_time;
use crate::base::http::{ApiError, Assets, Code, Request, Response, Target};
use crate::base::json::{AnyString, Integer, JsonObject, Optional, Required, object};
use crate::model::KeyScope;
use crate::site::html::SETTINGS_PAGE;
use crate::site::project::{Refusal, RefusalCode, Upkeep};

/// A longer name is cut off in the log, at the length of the longest name in DNS, in characters.
const MAX_NAME: usize = 253;
/// The prefix of the interface's paths.
const API: &str = "/settings/api/";

pub static OPERATIONS: &[AdminOperation] = &[
    asset(SETTINGS_PAGE, "getSettings"),
    asset("/assets/{digest}/{file}", "getSettingsAsset"),
    AdminOperation {
        parameters: &[&DOMAIN],
        ..AdminOperation::new(
            "/internal/tls-allowed",
            "checkCertificate",
            AdminHandler("GET", check_certificate),
        )
    },
    AdminOperation::new("/settings/api/project", "getProject", AdminHandler("GET", get_project)),
    with_body("/settings/api/domains", "addDomain", AdminHandler("POST", add_domain)),
    with_body("/settings/api/pairs", "addPair", AdminHandler("POST", add_pair)),
    named("/settings/api/domains/{name}", "removeDomain", AdminHandler("DELETE", remove_domain)),
    named("/settings/api/domains/{name}/primary", "setPrimary", AdminHandler("POST", set_primary)),
    named("/settings/api/domains/{name}/verify", "verifyDomain", AdminHandler("POST", verify)),
    with_body("/settings/api/redirects", "addRedirect", AdminHandler("POST", add_redirect)),
    named("/settings/api/redirects/{name}", "removeRedirect", AdminHandler("DELETE", remove_redirect)),
];

/// A row for a file of the settings page.
const fn asset(path: &'static str, id: &'static str) -> AdminOperation {
    const PARAMETERS: &[&dyn Parameter] = &[&ACCEPT_ENCODING, &IF_NONE_MATCH];
    AdminOperation { parameters: PARAMETERS, ..AdminOperation::new(path, id, AdminHandler("GET", get_asset)) }
}

/// A row for a request with a JSON body.
const fn with_body(path: &'static str, id: &'static str, handler: AdminHandler) -> AdminOperation {
    AdminOperation { body: Some(UNDESCRIBED), ..AdminOperation::new(path, id, handler) }
}

/// A row for a domain of the project, whose name is in the path.
const fn named(path: &'static str, id: &'static str, handler: AdminHandler) -> AdminOperation {
    const PARAMETERS: &[&dyn Parameter] = &[&NAME_IN_PATH];
    AdminOperation { parameters: PARAMETERS, ..AdminOperation::new(path, id, handler) }
}

static DOMAIN: QueryParameter<AnyString> =
    QueryParameter { name: "domain", about: "The name of a domain.", schema: AnyString };
static NAME_IN_PATH: PathParameter<AnyString> =
    PathParameter { name: "name", about: "The name of a domain.", schema: AnyString };
const NAME: Required<AnyString> =
    Required { name: "name", about: "The name of a domain.", schema: AnyString };
const FROM: Required<AnyString> =
    Required { name: "from", about: "A domain of the project.", schema: AnyString };
const TO: Required<AnyString> =
    Required { name: "to", about: "Where its requests are sent.", schema: AnyString };
const STATUS: Optional<Integer> =
    Optional { name: "status", about: "301, 302, 307 or 308.", schema: Integer::between(301, 308) };

/// The context of the settings' handlers.
#[derive(Clone)]
pub struct ProjectSettings {
    /// `None`: the service is read-only.
    pub upkeep: Option<Arc<Upkeep>>,
    pub assets: Arc<Assets>,
    pub authenticator: Authenticator,
}

impl AdminContext {
    /// Returns the project of the service; fails if the service is read-only.
    fn upkeep(&self) -> Result<&Arc<Upkeep>, Failure> {
        let message = "This service is read-only. Use the settings of the service that writes.";
        let refusal = || ApiError::with_message(Code::ReadOnly, message).into();
        self.settings.upkeep.as_ref().ok_or_else(refusal)
    }
}

/// The header fields that [`guard`] reads.
pub const GUARD_FIELDS: &[&str] = &["Accept", "Authorization"];

/// Rejects requests to the interface without an admin key, and notes the name of the key for the access log. For a
/// browser at `/`, returns the redirect to the page.
///
/// # Errors
/// 401 or 403; the store's failure, if it cannot be read.
pub fn guard(
    context: &mut AdminContext,
    request: &Request,
    target: &Target,
    key_name: &mut Option<String>,
) -> Result<Option<Response>, Failure> {
    if target.path == "/" && request.header_values("Accept").any(|value| value.contains("text/html")) {
        return Ok(Some(Response::new(302, b"").header("Location", SETTINGS_PAGE)));
    }
    if !target.path.starts_with(API) {
        return Ok(None);
    }
    let AdminContext { settings: ProjectSettings { authenticator, .. }, store, .. } = context;
    // A new snapshot, so that a revoked key is no longer found.
    let begun = store.begin().map_err(Failure::from);
    let known = begun.and_then(|()| authenticator.authenticate(request, store, unix_time()));
    let known = known.map(|known| (known.key.name.clone(), known.key.scope));
    // Also if `begin` or the check failed, so that the next request can begin one.
    store.end()?;
    *key_name = match &known {
        Ok((name, _)) => Some(name.clone()),
        Err(_) => authenticator.refused(request),
    };
    let (_, scope) = known?;
    if scope == KeyScope::Admin {
        return Ok(None);
    }
    let message =
        "The settings need an API key with the admin scope; 'petstore key add NAME --admin' creates one.";
    Err(forbidden(message).into())
}

/// The page, or a file that it loads.
fn get_asset(context: &mut AdminContext, call: &AdminCall) -> Result<Response, Failure> {
    let asset =
        context.settings.assets.get(&*call.target.path).ok_or_else(|| ApiError::new(Code::NotFound))?;
    Ok(asset.respond(&call.asset_fields()))
}

/// Called by a proxy before it requests a certificate: 200 if the name may have one, 404 if not.
fn check_certificate(context: &mut AdminContext, call: &AdminCall) -> Result<Response, Failure> {
    let missing = "The query parameter 'domain' is missing; it must be the name of a domain.";
    let name = call.query(&DOMAIN)?;
    let name = name.ok_or_else(|| ApiError::with_message(Code::InvalidParameter, missing))?;
    let name = name.strip_suffix('.').unwrap_or(&name).to_ascii_lowercase();
    let allowed = context.store.domain(&name)?.filter(|domain| domain.state.may_have_certificate());
    let shown: String = name.chars().take(MAX_NAME).flat_map(char::escape_default).collect();
    let may = if allowed.is_some() { "may" } else { "may not" };
    log::info!("request {}: {shown} {may} have a certificate", call.request.id);
    let message = "The name is not a verified domain of the project.";
    let domain = allowed.ok_or_else(|| ApiError::with_message(Code::NotFound, message))?;
    Ok(Response::json(200, &json!({ "domain": domain.name })))
}

/// Returns the overview. It does not read on the project's own connection, which may be waiting for a lock.
fn get_project(context: &mut AdminContext, _: &AdminCall) -> Result<Response, Failure> {
    let upkeep = context.upkeep()?;
    answer(upkeep.overview(&context.store).map(|mut overview| {
        for view in &mut overview.domains {
            view.is_checking = Some(upkeep.is_checking(&view.domain.name));
        }
        Response::json(200, &overview)
    }))
}

fn add_domain(context: &mut AdminContext, call: &AdminCall) -> Result<Response, Failure> {
    let name = body(call, "with 'name'")?.required(&NAME)?;
    let added = context.upkeep()?.project().add(&name, false);
    answer(added.map(|domains| Response::json(201, &domains.first())))
}

/// Adds a domain and the one with `www.` before it, which redirects to it.
fn add_pair(context: &mut AdminContext, call: &AdminCall) -> Result<Response, Failure> {
    let name = body(call, "with 'name'")?.required(&NAME)?;
    let added = context.upkeep()?.project().add(&name, true);
    answer(added.map(|domains| Response::json(201, &domains)))
}

fn remove_domain(context: &mut AdminContext, call: &AdminCall) -> Result<Response, Failure> {
    let removed = context.upkeep()?.project().remove(&name(call));
    answer(removed.map(|removed| Response::json(200, &removed)))
}

fn set_primary(context: &mut AdminContext, call: &AdminCall) -> Result<Response, Failure> {
    let set = context.upkeep()?.project().set_primary(&name(call));
    answer(set.map(|()| Response::new(204, b"")))
}

/// Begins a check of a domain of the project. In the overview, `isChecking` turns false at its end.
fn verify(context: &mut AdminContext, call: &AdminCall) -> Result<Response, Failure> {
    let upkeep = context.upkeep()?;
    let found = upkeep.project().find(&name(call));
    answer(found.and_then(|name| {
        upkeep.begin_check(&name)?;
        Ok(Response::json(202, &object! { "name": &*name, "isChecking": true }))
    }))
}

fn add_redirect(context: &mut AdminContext, call: &AdminCall) -> Result<Response, Failure> {
    let object = body(call, "with 'from', 'to' and 'status'")?;
    let status = object.optional(&STATUS)?.and_then(|status| u16::try_from(status).ok());
    let (from, to) = (object.required(&FROM)?, object.required(&TO)?);
    let added = context.upkeep()?.project().add_redirect(&from, &to, status.unwrap_or(301));
    answer(added.map(|redirect| Response::json(201, &redirect)))
}

fn remove_redirect(context: &mut AdminContext, call: &AdminCall) -> Result<Response, Failure> {
    let removed = context.upkeep()?.project().remove_redirect(&name(call));
    answer(removed.map(|()| Response::new(204, b"")))
}

fn name(call: &AdminCall) -> Cow<'static, str> {
    call.path(&NAME_IN_PATH).unwrap_or_default()
}

fn body<'r>(call: &AdminCall<'r>, expected: &str) -> Result<JsonObject<'r>, Failure> {
    Ok(JsonObject::parse(call.json_body()?, expected)?)
}

/// Turns a refusal of the project into a response with its own code.
fn answer(done: Result<Response, Refusal>) -> Result<Response, Failure> {
    Ok(done.unwrap_or_else(|refusal| {
        let RefusalCode { name, status, .. } = refusal.code;
        Response::json(status, &json!({ "code": name, "message": refusal.message, "status": status }))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::ROUTER;
    use crate::base::config::Config;

    #[test]
    fn every_file_of_the_page_has_a_row() {
        for path in crate::site::html::settings(&Config::default(), "").keys() {
            let routed = ROUTER.route("GET", &Target::parse(path));
            assert!(routed.is_ok_and(|operation| operation.headers().count() == 2), "{path}");
        }
    }
}
