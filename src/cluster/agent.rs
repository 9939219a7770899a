//! The HTTP client under the client: its time limits, its certificate authorities, and the addresses of its hosts.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::crypto::CryptoProvider;
use ureq::config::Config;
use ureq::http::header::AUTHORIZATION;
use ureq::http::{HeaderValue, Request, Uri};
use ureq::middleware::MiddlewareNext;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Error as HttpError, SendBody};

use crate::ClusterAddress;
use petstore_base::error::{Error, ErrorKind};

/// The time limit for resolving a name, and again for connecting.
const CONNECT: Duration = Duration::from_secs(1);
/// The time limit for a whole exchange, from resolving the name to the last byte.
pub const ANSWER: Duration = Duration::from_secs(2);
/// The time limits for the tries after the first one. If the leader hangs, the nodes that forward to it hang as well,
/// until another leader is elected.
pub const NEXT: [Duration; 5] = [Duration::from_millis(500); 5];
/// The most idle connections to a host: one for each thread that may send requests.
const MOST_IDLE: usize = 66;

/// Makes the agent for a cluster.
///
/// # Errors
/// If the certificate authorities cannot be read.
pub fn agent(
    address: &ClusterAddress,
    authorization: Option<HeaderValue>,
    names: Names,
) -> Result<Agent, Error> {
    let authorize = move |mut request: Request<SendBody>, next: MiddlewareNext| {
        request
            .headers_mut()
            .extend(authorization.clone().map(|value| (AUTHORIZATION, value)));
        next.handle(request)
    };
    let config = Config::builder()
        // Proxies in the environment are not meant for a database.
        .proxy(None)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .https_only(address.is_tls)
        .timeout_resolve(Some(CONNECT))
        .timeout_connect(Some(CONNECT))
        .timeout_global(Some(ANSWER))
        .max_idle_connections(usize::MAX)
        .max_idle_connections_per_host(MOST_IDLE)
        .user_agent(concat!("petstore/", env!("CARGO_PKG_VERSION")))
        .middleware(authorize);
    let config = if address.is_tls {
        config.tls_config(tls(address.ca.as_deref())?)
    } else {
        config
    };
    Ok(Agent::with_parts(
        config.build(),
        DefaultConnector::default(),
        names,
    ))
}

fn tls(ca: Option<&Path>) -> Result<TlsConfig, Error> {
    let file = match ca {
        Some(file) => file.to_owned(),
        None => openssl_probe::probe().cert_file.ok_or_else(|| {
            Error::new(
                ErrorKind::FileMissing,
                "this system has no file with certificate authorities",
            )
        })?,
    };
    let what = || {
        format!(
            "cannot read the certificate authorities in {}",
            file.display()
        )
    };
    let pem = std::fs::read(&file).map_err(|error| Error::io(what(), error))?;
    let roots: Vec<Certificate<'static>> = parse_pem(&pem)
        .filter_map(|item| {
            if let Ok(PemItem::Certificate(certificate)) = item {
                Some(certificate)
            } else {
                None
            }
        })
        .collect();
    if roots.is_empty() {
        let message = format!("{}: it has no certificate in PEM", what());
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::from(roots))
        .unversioned_rustls_crypto_provider(provider()?)
        .build())
}

/// The cryptography of the program, or else that of the executable.
fn provider() -> Result<Arc<CryptoProvider>, Error> {
    let chosen = CryptoProvider::get_default().cloned().or_else(own_provider);
    chosen.ok_or_else(|| {
        let message = "rqlites:// needs cryptography: call rustls::crypto::CryptoProvider::install_default() first";
        Error::new(ErrorKind::Config("database"), message)
    })
}

#[cfg(feature = "ring")]
fn own_provider() -> Option<Arc<CryptoProvider>> {
    Some(Arc::new(rustls::crypto::ring::default_provider()))
}

#[cfg(not(feature = "ring"))]
fn own_provider() -> Option<Arc<CryptoProvider>> {
    None
}

/// The addresses of the hosts. Without them, ureq asks DNS before each request, on a thread of its own, even if it
/// has a connection.
#[derive(Clone, Debug, Default)]
pub struct Names {
    known: Arc<Mutex<HashMap<String, Vec<std::net::SocketAddr>>>>,
}

impl Names {
    /// Forgets all addresses, so that DNS is asked again.
    pub fn forget(&self) {
        self.known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

impl Resolver for Names {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, HttpError> {
        let host = uri.authority().map(ToString::to_string).unwrap_or_default();
        let mut addresses = self.empty();
        if let Some(known) = self
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&host)
        {
            known.iter().for_each(|address| addresses.push(*address));
            return Ok(addresses);
        }
        addresses = DefaultResolver::default()
            .resolve(uri, config, timeout)
            .map_err(|error| match error {
                HttpError::Io(_) => HttpError::HostNotFound,
                other => other,
            })?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(host, addresses.iter().copied().collect());
        Ok(addresses)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;
    use crate::{ANY_NODE, Client, ClusterAddress};

    #[test]
    fn host_that_has_another_address_now_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = format!("localhost:{}", listener.local_addr().unwrap().port());
        let client = Client::new(
            ClusterAddress::parse(&format!("rqlite://{host}")).unwrap(),
            None,
        )
        .unwrap();
        // Nobody listens there.
        let old = "127.255.255.254:1".parse().unwrap();
        client.names.known.lock().unwrap().insert(host, vec![old]);
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]).unwrap();
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{\"results\":[]}")
                .unwrap();
        });
        assert_eq!(client.read(&[], ANY_NODE, CONNECT), Ok(vec![]));
        assert_eq!(client.meters()[0].requests, 2);
    }
}
