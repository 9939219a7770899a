//! Virtual hosts: accepts the project's names, rejects others (RFC 9110, section 7.4), and redirects names with a
//! redirect.

use std::collections::HashMap;
use std::sync::Arc;

use crate::config::Hosting;
use crate::database::Reads;
use crate::model::{DomainState, Redirect};
use crate::statements::ProjectReads;
use petstore_base::clock::unix_time;
use petstore_base::error::Error;
use petstore_base::http::host::{is_address, without_port};
use petstore_base::http::{Request, Response, elements};

/// The header field with the host of the request.
pub const HOST: &str = "Host";
/// The header field with the scheme of the client's request to a proxy. The gate forwards it only from a trusted proxy.
pub const FORWARDED_PROTO: &str = "X-Forwarded-Proto";

/// Called with the name of a domain when a trusted proxy forwards an HTTPS request for it. Must not block.
pub type OnServed = Arc<dyn Fn(&str) + Send + Sync>;

/// The project's names. Without a hosting platform, every name is accepted.
#[derive(Clone, Default)]
pub struct Hosts {
    /// The names that are not custom domains: the one on the platform, and the hosts of the base URL and the staging
    /// URL. Empty: every name is accepted.
    platform_names: Arc<[String]>,
    /// A cache of domains, valid for one version of the database.
    known: HashMap<Box<str>, KnownDomain>,
    /// The primary domain, valid for that version.
    primary: Option<Arc<str>>,
    version: i64,
    served: Option<OnServed>,
}

/// A remembered domain.
#[derive(Clone)]
struct KnownDomain {
    state: DomainState,
    /// The redirect from it, if its target is served.
    redirect: Option<Redirect>,
}

/// An accepted host.
pub enum Admitted {
    /// The project is served at the host. `canonical` is the canonical host, which is the primary domain, if the
    /// request is for another name; pages link to it.
    Served {
        /// The primary domain.
        canonical: Option<Arc<str>>,
    },
    /// The host redirects to another one.
    Redirected(Redirect),
    /// The host is not the project's.
    Misdirected,
}

impl Hosts {
    /// Creates the hosts of a project. `own` are further names of it, beside the one on the platform. `served` is called when
    /// a trusted proxy forwards an HTTPS request for a domain that waits for its certificate.
    pub fn new(
        hosting: &Hosting,
        own: impl Iterator<Item = String>,
        served: Option<OnServed>,
    ) -> Self {
        let Some(address) = hosting.address() else {
            return Self::default();
        };
        Self {
            platform_names: std::iter::once(address).chain(own).collect(),
            served,
            ..Self::default()
        }
    }

    /// Accepts or rejects the host of a request.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn admit(&mut self, request: &Request, database: &impl Reads) -> Result<Admitted, Error> {
        let Self {
            platform_names,
            known,
            primary,
            version,
            served,
        } = self;
        if platform_names.is_empty() {
            return Ok(Admitted::Served { canonical: None });
        }
        // The gate rejects requests with more than one Host.
        let host = request
            .header_values(HOST)
            .next()
            .map(without_port)
            .unwrap_or_default();
        let host = host.strip_suffix('.').unwrap_or(host);
        if host.is_empty() || is_address(host) {
            return Ok(Admitted::Served { canonical: None });
        }
        if *version != database.version() {
            known.clear();
            *primary = database.primary()?.map(Arc::from);
            *version = database.version();
        }
        let host = host.to_ascii_lowercase();
        let canonical = primary.clone().filter(|primary| **primary != *host);
        if platform_names.contains(&host) {
            return Ok(Admitted::Served { canonical });
        }
        let found =
            find(known, platform_names, &host, database)?.filter(|known| known.state.is_served());
        let Some(KnownDomain { state, redirect }) = found else {
            return Ok(Admitted::Misdirected);
        };
        let is_waiting = matches!(
            state,
            DomainState::Verified | DomainState::CertificateDelayed
        );
        // Of several proxies, the first one has written the scheme of the client.
        let mut schemes = request
            .header_values(FORWARDED_PROTO)
            .flat_map(|value| elements(value.as_bytes()));
        let is_https = |scheme: &[u8]| scheme.eq_ignore_ascii_case(b"https");
        if is_waiting
            && schemes.next().is_some_and(is_https)
            && let Some(served) = served
        {
            served(&host);
        }
        match redirect {
            // `OPTIONS *` concerns the server, so it is not redirected.
            Some(redirect) if request.target != "*" => Ok(Admitted::Redirected(redirect.clone())),
            _ => Ok(Admitted::Served { canonical }),
        }
    }
}

/// Adds a link to the primary domain (RFC 6596) to a response, if it is a page.
pub fn link_canonical(domain: &str, request: &Request, response: Response) -> Response {
    let is_page = response
        .field("Content-Type")
        .is_some_and(|kind| kind.starts_with("text/html"));
    if response.status != 200 || !is_page {
        return response;
    }
    let path = request.target.split('?').next().unwrap_or_default();
    response.header(
        "Link",
        format!("<https://{domain}{path}>; rel=\"canonical\""),
    )
}

/// Looks up a domain, and its redirect if the target is served. Only existing domains enter the cache, so guesses
/// cannot fill the memory.
fn find<'k>(
    known: &'k mut HashMap<Box<str>, KnownDomain>,
    platform_names: &[String],
    host: &str,
    database: &impl Reads,
) -> Result<Option<&'k KnownDomain>, Error> {
    if !known.contains_key(host) {
        let Some(domain) = database.domain(host)? else {
            return Ok(None);
        };
        let is_served = |name: &str| -> Result<bool, Error> {
            Ok(platform_names.iter().any(|own| own == name)
                || database
                    .domain(name)?
                    .is_some_and(|target| target.state.is_served()))
        };
        let redirect = match database.redirect(host)? {
            Some(redirect) if is_served(&redirect.to)? => Some(redirect),
            _ => None,
        };
        let state = domain.at(unix_time()).state;
        known.insert(host.into(), KnownDomain { state, redirect });
    }
    Ok(known.get(host))
}

#[cfg(feature = "project")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Domain, DomainEvent};
    use crate::project::testing::{Database, change, pair};
    use crate::statements::ProjectWrites;

    fn hosts() -> Hosts {
        let hosting = Hosting {
            platform_host: Some("sites.test".to_owned()),
            ..Hosting::default()
        };
        let own = ["api.example".to_owned()].into_iter();
        Hosts::new(&hosting, own, None)
    }

    /// Where a redirect leads; `Err`: the host is not the project's.
    fn ask(hosts: &mut Hosts, reader: &Database, host: &str) -> Result<Option<String>, ()> {
        let headers = vec![("Host", host)];
        let request = Request {
            id: "-",
            method: "GET",
            target: "/a?b=1",
            headers,
            body: b"",
        };
        match hosts.admit(&request, reader).unwrap() {
            Admitted::Served { .. } => Ok(None),
            Admitted::Redirected(redirect) => Ok(Some(redirect.to)),
            Admitted::Misdirected => Err(()),
        }
    }

    #[test]
    fn names_of_the_project_are_served_and_no_others() {
        let (_folder, mut writer, reader) = pair();
        let added = |name: &str| Domain::new(name.to_owned(), 0);
        let verified = |name: &str| added(name).after(DomainEvent::Right, None, 1);
        change(&mut writer, |project| {
            project.put_domain(&added("new.test"))?;
            project.put_domain(&verified("pets.test"))?;
            project.put_domain(&verified("old.test").after(DomainEvent::Wrong, None, 2))?;
            project.put_domain(&verified("from.test"))?;
            project.put_domain(&verified("early.test"))?;
            for (from, to) in [("from.test", "pets.test"), ("early.test", "new.test")] {
                project.put_redirect(&Redirect {
                    from: from.into(),
                    to: to.into(),
                    status: 308,
                })?;
            }
            Ok(())
        });
        let mut hosts = hosts();
        let mut ask = |host: &str| ask(&mut hosts, &reader, host);
        for host in [
            "",
            "127.0.0.1",
            "127.0.0.1:8080",
            "[::1]:80",
            "localhost",
            "petstore.sites.test",
            "PETSTORE.Sites.test.:80",
            "api.example",
            "api.example:8443",
            "pets.test",
            "Pets.TEST:443",
            "old.test",
        ] {
            assert_eq!(ask(host), Ok(None), "{host}");
        }
        for host in [
            "new.test",
            "sites.test",
            "other.sites.test",
            "x.test",
            "localhost.x.test",
            "pets.test:x",
            "[pets.test]",
        ] {
            assert_eq!(ask(host), Err(()), "{host}");
        }
        assert_eq!(ask("from.test"), Ok(Some("pets.test".to_owned())));
        assert_eq!(
            ask("early.test"),
            Ok(None),
            "the target of its redirect is not served yet"
        );
    }

    #[test]
    fn page_of_another_domain_names_the_primary_one() {
        let (_folder, mut writer, reader) = pair();
        let verified =
            |name: &str| Domain::new(name.to_owned(), 0).after(DomainEvent::Right, None, 1);
        change(&mut writer, |project| {
            project.put_domain(&verified("a.test"))?;
            project.put_domain(&verified("b.test"))?;
            project.set_primary("a.test")
        });
        let mut hosts = hosts();
        let mut link = |host: &str, status, kind: &'static str| {
            let request = Request {
                id: "-",
                method: "GET",
                target: "/a?b=1",
                headers: vec![("Host", host)],
                body: b"",
            };
            let admitted = hosts.admit(&request, &reader).unwrap();
            let response = Response::new(status, b"").header("Content-Type", kind);
            let Admitted::Served {
                canonical: Some(canonical),
            } = admitted
            else {
                return None;
            };
            let linked = link_canonical(&canonical, &request, response);
            linked.field("Link").map(str::to_owned)
        };
        let canonical = Some("<https://a.test/a>; rel=\"canonical\"".to_owned());
        for host in ["b.test", "B.test:80", "petstore.sites.test", "api.example"] {
            assert_eq!(
                link(host, 200, "text/html; charset=utf-8"),
                canonical,
                "{host}"
            );
        }
        assert_eq!(link("a.test", 200, "text/html"), None);
        assert_eq!(link("b.test", 404, "text/html"), None);
        assert_eq!(link("b.test", 200, "application/json"), None);
        assert_eq!(link("localhost", 200, "text/html"), None);
    }

    #[test]
    fn https_for_a_domain_that_waits_for_its_certificate_is_noted_and_nothing_else() {
        let (_folder, mut writer, reader) = pair();
        let verified =
            |name: &str| Domain::new(name.to_owned(), 0).after(DomainEvent::Right, None, 1);
        change(&mut writer, |project| {
            project.put_domain(&verified("waits.test"))?;
            project.put_domain(&verified("active.test").after(DomainEvent::Served, None, 2))?;
            project.put_domain(&verified("from.test"))?;
            let (from, to) = ("from.test".to_owned(), "active.test".to_owned());
            project.put_redirect(&Redirect {
                from,
                to,
                status: 308,
            })
        });
        let noted = Arc::new(std::sync::Mutex::new(Vec::new()));
        let notes = Arc::clone(&noted);
        let served: OnServed = Arc::new(move |name| notes.lock().unwrap().push(name.to_owned()));
        let mut hosts = Hosts {
            served: Some(served),
            ..hosts()
        };
        let mut ask = |host: &'static str, proto: &'static str, target: &str| {
            let headers = vec![("Host", host), (FORWARDED_PROTO, proto)];
            let request = Request {
                id: "-",
                method: "OPTIONS",
                target,
                headers,
                body: b"",
            };
            let admitted = hosts.admit(&request, &reader);
            matches!(admitted, Ok(Admitted::Redirected(_)))
        };
        assert!(!ask("waits.test", "http", "/"));
        assert!(!ask("active.test", "https", "/"));
        assert!(noted.lock().unwrap().is_empty());
        assert!(!ask("waits.test", "http, https", "/"));
        assert!(noted.lock().unwrap().is_empty());
        assert!(!ask("waits.test", "HTTPS, http", "/"));
        assert_eq!(*noted.lock().unwrap(), ["waits.test"]);
        assert!(ask("from.test", "http", "/"));
        assert!(!ask("from.test", "http", "*"), "it concerns the server");
    }
}
