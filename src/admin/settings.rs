//! The settings of the project: the page, and its JSON interface. Every request to the interface needs an admin key.

use std::sync::Arc;

use serde::Serialize;
use serde_json::json;

use super::{AdminContext, GET, POST, Route, forbidden};
use crate::app::endpoint::parameter::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, IF_NONE_MATCH,
};
use crate::app::endpoint::{ApiError, Code, Failure, JSON, query, read_body};
use crate::app::pipeline::Authenticator;
use crate::model::KeyScope;
use crate::site::html::SETTINGS_PAGE;
use crate::store::Writer;
use crate::store::cluster::require_file;
use petstore_base::clock::unix_time;
use petstore_base::http::{AssetFields, Assets, Request, Response, Target, percent};
use petstore_base::json::{AnyString, Integer, JsonObject, Optional, Required, object};
use petstore_hosting::{ProjectReads, Refusal, RefusalCode, Upkeep};

/// A longer name is cut off in the log, at the length of the longest name in DNS, in characters.
const MAX_NAME: usize = 253;
/// The prefix of the interface's paths.
const API: &str = "/settings/api/";

const DELETE: &str = "DELETE, OPTIONS";
/// The methods that the admin address has together with the settings.
pub const ALL_METHODS: &str = "GET, HEAD, POST, DELETE, OPTIONS";

/// The header fields that the settings read.
pub const HEADER_FIELDS: &[&str] = &[
    "Accept",
    "Authorization",
    ACCEPT_ENCODING.name,
    IF_NONE_MATCH.name,
    CONTENT_TYPE,
    CONTENT_ENCODING,
];

/// Finds what is served at a path.
pub fn route(path: &str) -> Option<Route> {
    let segments: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
    if segments.contains(&"") {
        return None;
    }
    Some(match segments[..] {
        _ if path == SETTINGS_PAGE => (GET, get_asset),
        ["assets", _, _] => (GET, get_asset),
        ["internal", "tls-allowed"] => (GET, check_certificate),
        ["settings", "api", "project"] => (GET, get_project),
        ["settings", "api", "domains"] => (POST, |context, request, _| {
            let name = body(request, "with 'name'")?.required(&NAME)?;
            let added = context.upkeep()?.project().add(&name, false);
            answer(201, added.map(|domains| domains.into_iter().next()))
        }),
        // A domain and the one with `www.` before it, which redirects to it.
        ["settings", "api", "pairs"] => (POST, |context, request, _| {
            let name = body(request, "with 'name'")?.required(&NAME)?;
            answer(201, context.upkeep()?.project().add(&name, true))
        }),
        ["settings", "api", "domains", _] => (DELETE, |context, _, target| {
            answer(200, context.upkeep()?.project().remove(&name(target)))
        }),
        ["settings", "api", "domains", _, "primary"] => (POST, |context, _, target| {
            answer(204, context.upkeep()?.project().set_primary(&name(target)))
        }),
        // Begins a check. In the overview, `isChecking` turns false at its end.
        ["settings", "api", "domains", _, "verify"] => (POST, |context, _, target| {
            let begun = context.upkeep()?.begin_check(&name(target));
            answer(
                202,
                begun.map(|name| object! { "name": &*name, "isChecking": true }),
            )
        }),
        ["settings", "api", "redirects"] => (POST, add_redirect),
        ["settings", "api", "redirects", _] => (DELETE, |context, _, target| {
            answer(
                204,
                context.upkeep()?.project().remove_redirect(&name(target)),
            )
        }),
        _ => return None,
    })
}

const NAME: Required<AnyString> = text("name");
const FROM: Required<AnyString> = text("from");
const TO: Required<AnyString> = text("to");
const STATUS: Optional<Integer> = Optional {
    name: "status",
    about: "",
    schema: Integer::between(301, 308),
};

/// A text in a body, which no page describes.
const fn text(name: &'static str) -> Required<AnyString> {
    Required {
        name,
        about: "",
        schema: AnyString,
    }
}

/// The context of the settings' handlers.
#[derive(Clone)]
pub struct ProjectSettings {
    /// `None`: the service is read-only, or its database is a cluster.
    pub upkeep: Option<Arc<Upkeep<Writer>>>,
    pub assets: Arc<Assets>,
    pub authenticator: Authenticator,
}

impl AdminContext {
    /// Returns the project of the service; fails if the service is read-only, or has none because of its cluster.
    fn upkeep(&self) -> Result<&Arc<Upkeep<Writer>>, Failure> {
        self.settings.upkeep.as_ref().ok_or_else(|| {
            let message = match require_file(&self.database) {
                Ok(()) => "This service is read-only. Use the settings of the service that writes."
                    .to_owned(),
                Err(error) => format!("There are no settings here: {error}."),
            };
            ApiError::with_message(Code::ReadOnly, message).into()
        })
    }
}

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
    if target.path == "/"
        && request
            .header_values("Accept")
            .any(|value| value.contains("text/html"))
    {
        return Ok(Some(
            Response::new(302, b"").header("Location", SETTINGS_PAGE),
        ));
    }
    if !target.path.starts_with(API) {
        return Ok(None);
    }
    let AdminContext {
        settings: ProjectSettings { authenticator, .. },
        store,
        ..
    } = context;
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
    let message = "The settings need an API key with the admin scope; 'petstore key add NAME --admin' creates one.";
    Err(forbidden(message).into())
}

/// The page, or a file that it loads.
fn get_asset(
    context: &mut AdminContext,
    request: &Request,
    target: &Target,
) -> Result<Response, Failure> {
    let asset = context
        .settings
        .assets
        .get(&*target.path)
        .ok_or_else(|| ApiError::new(Code::NotFound))?;
    Ok(asset.respond(&AssetFields {
        accept_encoding: request.header_values(ACCEPT_ENCODING.name).collect(),
        if_none_match: request.header_values(IF_NONE_MATCH.name).collect(),
    }))
}

/// Called by a proxy before it requests a certificate: 200 if the name may have one, 404 if not.
fn check_certificate(
    context: &mut AdminContext,
    request: &Request,
    target: &Target,
) -> Result<Response, Failure> {
    let missing = "The query parameter 'domain' is missing; it must be the name of a domain.";
    let name = query::parameter(target.query, "domain")?;
    let name = name.ok_or_else(|| ApiError::with_message(Code::InvalidParameter, missing))?;
    let name = name.strip_suffix('.').unwrap_or(&name).to_ascii_lowercase();
    let allowed = context
        .store
        .domain(&name)?
        .filter(|domain| domain.state.may_have_certificate());
    let shown: String = name
        .chars()
        .take(MAX_NAME)
        .flat_map(char::escape_default)
        .collect();
    let may = if allowed.is_some() { "may" } else { "may not" };
    log::info!("request {}: {shown} {may} have a certificate", request.id);
    let message = "The name is not a verified domain of the project.";
    let domain = allowed.ok_or_else(|| ApiError::with_message(Code::NotFound, message))?;
    Ok(Response::json(200, &json!({ "domain": domain.name })))
}

/// Returns the overview. It does not read on the project's own connection, which may be waiting for a lock.
fn get_project(context: &mut AdminContext, _: &Request, _: &Target) -> Result<Response, Failure> {
    let upkeep = context.upkeep()?;
    let overview = upkeep.overview(&context.store).map(|mut overview| {
        for view in &mut overview.domains {
            view.is_checking = Some(upkeep.is_checking(&view.domain.name));
        }
        overview
    });
    answer(200, overview)
}

fn add_redirect(
    context: &mut AdminContext,
    request: &Request,
    _: &Target,
) -> Result<Response, Failure> {
    let object = body(request, "with 'from', 'to' and 'status'")?;
    let status = object
        .optional(&STATUS)?
        .and_then(|status| u16::try_from(status).ok());
    let (from, to) = (object.required(&FROM)?, object.required(&TO)?);
    let added = context
        .upkeep()?
        .project()
        .add_redirect(&from, &to, status.unwrap_or(301));
    answer(201, added)
}

/// The name in the path of a domain or a redirect.
fn name(target: &Target) -> String {
    let segment = target.path.split('/').nth(4).unwrap_or_default();
    String::from_utf8_lossy(&percent::decode(segment)).into_owned()
}

fn body<'r>(request: &Request<'r>, expected: &str) -> Result<JsonObject<'r>, Failure> {
    let body = read_body(request, JSON, "Accept")?;
    Ok(JsonObject::parse(body, expected)?)
}

/// The response with a result of the project, or with its refusal, which has a code of its own.
fn answer(status: u16, done: Result<impl Serialize, Refusal>) -> Result<Response, Failure> {
    Ok(match done {
        Ok(_) if status == 204 => Response::new(204, b""),
        Ok(result) => Response::json(status, &result),
        Err(refusal) => {
            let RefusalCode { name, status, .. } = refusal.code;
            let body = json!({ "code": name, "message": refusal.message, "status": status });
            Response::json(status, &body)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin;
    use crate::config::Config;

    fn allow(path: &str) -> Option<&'static str> {
        admin::route(path).map(|(allow, _)| allow)
    }

    #[test]
    fn every_file_of_the_page_is_served() {
        for path in crate::site::html::settings(&Config::default(), "").keys() {
            assert_eq!(allow(path), Some(GET), "{path}");
        }
    }

    #[test]
    fn segments_decide_and_none_is_empty() {
        for path in [
            "/settings",
            "/settings/api/pairs/a",
            "/settings/api/domains/",
            "/settings/api/domains//verify",
            "/settings/api/domains/a/verify/",
            "/settings/api/domains/a/b",
            "/assets//a.js",
            "/assets/1/",
            "/assets/1/a/b",
            "settings/api/pairs",
        ] {
            assert_eq!(allow(path), None, "{path}");
        }
        let path = "/settings/api/domains/a%2Fb.example";
        assert_eq!(allow(path), Some(DELETE));
        assert_eq!(name(&Target::parse(path)), "a/b.example");
    }
}
