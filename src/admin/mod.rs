//! What the admin address serves: metrics, for whoever watches the service, and the settings of the project.
//! Knows no SQL and no sockets.

#[cfg(feature = "site")]
mod settings;
#[cfg(not(feature = "site"))]
#[path = "no_settings.rs"]
mod settings;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::clock::unix_time;
use crate::http::{ApiError, Code, Request, Response, Target};
use crate::metrics::{Metrics, Now};
use crate::quiet_log::QuietLog;
use crate::store::{Reader, log_of};
use crate::worker::Service;

/// The text format of Prometheus (`prometheus.io/docs/instrumenting/exposition_formats`).
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";
const METRICS: &str = "/metrics";

pub use settings::{Settings, header_fields};

/// Answers the requests to the admin address.
pub struct AdminService {
    pub metrics: Metrics,
    pub store: Reader,
    pub database: PathBuf,
    pub failures: QuietLog,
    pub settings: Settings,
}

impl AdminService {
    fn respond(&mut self, request: &Request) -> Result<Response, ApiError> {
        let target = Target::parse(request.target);
        if self.settings.has(&target.path) {
            return self.settings.respond(request, &target, &mut self.store);
        }
        let allow = "GET, HEAD, OPTIONS";
        match (target.path.as_ref(), request.method) {
            (METRICS, "GET" | "HEAD") => {
                let text = self.metrics.print(self.now());
                Ok(Response::new(200, text).header("Content-Type", TEXT_FORMAT))
            }
            (METRICS | "*", "OPTIONS") => Ok(Response::new(204, b"").header("Allow", allow)),
            (METRICS, _) => Err(ApiError::new(Code::MethodNotAllowed).header("Allow", allow)),
            _ => Err(ApiError::new(Code::NotFound)),
        }
    }

    fn refuse(&mut self, error: ApiError, request: &Request) -> Response {
        if let Some(detail) = error.private_detail() {
            self.failures.say(&format!("request {}", request.id), &format!("admin address: {detail}"));
        }
        error.into_response()
    }

    fn now(&self) -> Now {
        let bytes = |path: PathBuf| fs::metadata(path).map_or(0, |file| file.len());
        let disk = rustix::fs::statvfs(&self.database);
        let seconds = unix_time();
        // Where the keys cannot be read, /readyz says why.
        let keys = self.store.keys().unwrap_or_default();
        let valid = keys.iter().filter_map(|key| key.expires_at).filter(|at| *at > seconds);
        Now {
            database: bytes(self.database.clone()),
            log: bytes(log_of(&self.database)),
            free: disk.map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize)),
            key_expiry: valid.min(),
        }
    }
}

impl Service for AdminService {
    fn answer(&mut self, requests: &[Request], responses: &mut Vec<Response>) -> Duration {
        for request in requests {
            let response = self.respond(request).unwrap_or_else(|error| self.refuse(error, request));
            responses.push(response);
        }
        Duration::ZERO
    }

    fn rest(&mut self) -> Option<Duration> {
        let now = Instant::now();
        self.failures.settle(now);
        self.failures.due(now)
    }

    fn stop(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{ApiKey, KeyScope};
    use crate::testing::Folder;

    #[test]
    fn metrics_are_served_and_nothing_else() {
        let folder = Folder::new();
        let mut writer = crate::store::Writer::open(&folder.database()).unwrap();
        let key = |digest, expires_at| ApiKey {
            digest: [digest; 32],
            name: "ci".to_owned(),
            scope: KeyScope::Full,
            created_at: 1,
            last_used_at: None,
            expires_at,
        };
        for key in [key(1, None), key(2, Some(5)), key(3, Some(4_100_000_000)), key(4, Some(4_000_000_000))] {
            writer.insert_key(&key).unwrap();
        }
        let store = Reader::open(&folder.database()).unwrap();
        let mut service = AdminService {
            metrics: Metrics::watched(1),
            store,
            database: folder.database(),
            failures: QuietLog::new("test"),
            settings: Settings::for_tests(&folder.database()),
        };
        let mut ask = |method, target| {
            let request = Request { id: "-", method, target, headers: Vec::new(), body: b"" };
            service.respond(&request).unwrap_or_else(ApiError::into_response)
        };
        let text = String::from_utf8(ask("GET", "/metrics?x").body().to_vec()).unwrap();
        assert!(text.contains("earliest_key_expiry_timestamp_seconds 4000000000\n"), "{text}");
        assert!(!text.contains("disk_free_bytes 0\n") && !text.contains("{file=\"wal\"} 0\n"), "{text}");
        assert_eq!(ask("OPTIONS", "*").status(), 204);
        assert_eq!(ask("POST", "/metrics").status(), 405);
        assert_eq!(ask("GET", "/v1/pets").status(), 404);
    }
}
