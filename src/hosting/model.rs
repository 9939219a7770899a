//! The published project: its [`Plan`], its [`Deploy`]s, and the [`Domain`]s that serve it.

use serde::{Serialize, Serializer};

use petstore_base::clock::past;
use petstore_base::words;

words! {
    /// The plan that the project has. Domains need more than [`Plan::Free`].
    Plan {
        /// The plan of a new database: no domains may be added.
        Free = "free",
        /// Domains may be added.
        Pro = "pro",
        /// Domains may be added.
        Enterprise = "enterprise",
    }
}

words! {
    /// The state of a domain on its way to being served over HTTPS.
    DomainState {
        /// No check has found a correct DNS record yet. The name is not served.
        PendingDns = "pending_dns",
        /// The DNS record is correct. The certificate is issued at the first HTTPS request.
        Verified = "verified",
        /// It has been requested over HTTPS.
        Active = "active",
        /// No HTTPS request came within 30 minutes of verification, or CAA records forbid the certificate.
        CertificateDelayed = "certificate_delayed",
        /// The DNS record was correct before, and is not any more.
        DnsChanged = "dns_changed",
    }
}

/// An event in the life of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DomainEvent {
    /// The DNS record is correct.
    Right,
    /// The DNS record is correct, but CAA records forbid the certificate.
    Blocked,
    /// The DNS record is missing or wrong.
    Wrong,
    /// The DNS servers gave no usable response.
    Unknown,
    /// A trusted proxy has forwarded an HTTPS request for the name.
    Served,
}

/// The time after which a missing certificate counts as delayed, in seconds: 30 minutes.
pub const CERTIFICATE_WAIT: i64 = 30 * 60;

#[cfg(test)]
impl DomainEvent {
    /// Every event.
    pub const ALL: [Self; 5] = [
        Self::Right,
        Self::Blocked,
        Self::Wrong,
        Self::Unknown,
        Self::Served,
    ];
}

impl DomainState {
    /// The state after an event: the one table of transitions.
    pub const fn after(self, event: DomainEvent) -> Self {
        use DomainEvent as E;
        match (event, self) {
            (E::Right | E::Blocked, Self::Active) => Self::Active,
            (E::Right, _) => Self::Verified,
            (E::Blocked, _) => Self::CertificateDelayed,
            (E::Wrong, Self::PendingDns) => Self::PendingDns,
            (E::Wrong, _) => Self::DnsChanged,
            (E::Served, Self::Verified | Self::CertificateDelayed) => Self::Active,
            (E::Served | E::Unknown, _) => self,
        }
    }

    /// Returns whether a certificate may be issued for the name.
    pub const fn may_have_certificate(self) -> bool {
        matches!(
            self,
            Self::Verified | Self::Active | Self::CertificateDelayed
        )
    }

    /// Returns whether requests for the name are served.
    pub const fn is_served(self) -> bool {
        !matches!(self, Self::PendingDns)
    }
}

/// The reason for the result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// For programs, such as `wrong_target`.
    pub code: String,
    /// For people: one or two sentences.
    pub message: String,
}

/// A domain of the project. Times are Unix time in seconds. In JSON they have the form of RFC 3339, or are null if they
/// are later than now: the clock was wrong when they were noted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Domain {
    /// The name in A-labels and lower case (RFC 5890, section 2.3.2.1).
    pub name: String,
    /// Its state on the way to HTTPS.
    pub state: DomainState,
    /// The time at which it entered this state.
    #[serde(serialize_with = "serialize_time")]
    pub since: i64,
    /// The code of the reason for the state, such as `wrong_target`, or of a remark; `None` if there is neither.
    pub reason: Option<String>,
    /// The reason in one or two sentences.
    pub message: Option<String>,
    /// When it was added.
    #[serde(serialize_with = "serialize_time")]
    pub added_at: i64,
    /// When its DNS was last checked; `None` if it never was.
    #[serde(serialize_with = "serialize_time")]
    pub checked_at: Option<i64>,
    /// True for the primary domain.
    pub is_primary: bool,
}

impl Domain {
    /// A domain that was just added.
    pub fn new(name: String, now: i64) -> Self {
        Self {
            name,
            state: DomainState::PendingDns,
            since: now,
            reason: None,
            message: None,
            added_at: now,
            checked_at: None,
            is_primary: false,
        }
    }

    /// Returns the stored domain after an event at this Unix time, in seconds. `reason` replaces the earlier one. A state
    /// that stays began when it did, so that the wait for a certificate ends.
    pub fn after(mut self, event: DomainEvent, reason: Option<Reason>, now: i64) -> Self {
        let state = self.state.after(event);
        let is_changed = state != self.state;
        self.since = if is_changed { now } else { self.since.min(now) };
        self.state = state;
        let is_check = event != DomainEvent::Served;
        // A request that changes nothing does not answer what the last check has found.
        if is_check || is_changed {
            (self.reason, self.message) =
                reason.map(|reason| (reason.code, reason.message)).unzip();
        }
        if is_check {
            self.checked_at = Some(now);
        }
        self
    }

    /// Begins the wait for the certificate again, since somebody asked for a check and the record is correct.
    pub fn wait_again(&mut self, now: i64) {
        if self.state == DomainState::Verified {
            self.since = now;
        }
    }

    /// Returns the stored domain as it is at this Unix time, in seconds. A delay depends on time alone, so it is not
    /// stored. If the clock was wrong, stored times may be later than now: such a check is ignored, and such a state
    /// begins now.
    pub fn at(mut self, now: i64) -> Self {
        self.since = self.since.min(now);
        self.checked_at = self.checked_at.filter(|at| *at <= now);
        let until = self.since.saturating_add(CERTIFICATE_WAIT);
        if self.state == DomainState::Verified && now >= until {
            (self.state, self.since) = (DomainState::CertificateDelayed, until);
        }
        self
    }
}

/// A redirect from a domain of the project to another name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Redirect {
    /// The domain that redirects.
    pub from: String,
    /// The name to which it redirects, with the path and the query of the request.
    pub to: String,
    /// 301, 302, 307 or 308 (RFC 9110, section 15.4).
    pub status: u16,
}

/// The statuses that a redirect may have. With 307 and 308 the client keeps the method.
pub const REDIRECT_STATUSES: [u16; 4] = [301, 302, 307, 308];

/// A stored deploy of the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Deploy {
    /// The number of the deploy. Numbers ascend and are never used again.
    pub id: i64,
    /// When the deploy first went live, in seconds of Unix time; in JSON in the form of RFC 3339.
    #[serde(serialize_with = "serialize_time")]
    pub deployed_at: i64,
    /// The number of static files, without the built-in site.
    pub files: i64,
    /// The size of the static files together, in bytes.
    #[serde(skip)]
    pub bytes: i64,
    /// True for the deploy that is served.
    #[serde(skip)]
    pub is_live: bool,
}

fn serialize_time<S: Serializer>(
    unix_time: &(impl Copy + Into<Option<i64>>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    Into::<Option<i64>>::into(*unix_time)
        .and_then(past)
        .serialize(serializer)
}

/// A static file of a deploy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteFile {
    /// The path as in a request, without percent-encoding, such as `/guide/first.html`.
    pub path: String,
    /// The media type (RFC 9110, section 8.3).
    pub content_type: String,
    /// The bytes of the file.
    pub content: Vec<u8>,
    /// The content compressed with gzip; `None` if that is not smaller.
    pub gzip: Option<Vec<u8>>,
    /// The entity tag without its quotes.
    pub tag: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every transition in words: a row for each state, a column for each event.
    #[test]
    fn every_event_leads_to_the_state_of_the_table() {
        let table = "
            pending_dns          verified certificate_delayed  pending_dns pending_dns          pending_dns
            verified             verified certificate_delayed  dns_changed verified             active
            active               active   active               dns_changed active               active
            certificate_delayed  verified certificate_delayed  dns_changed certificate_delayed  active
            dns_changed          verified certificate_delayed  dns_changed dns_changed          dns_changed";
        let rows: Vec<Vec<&str>> = table
            .trim()
            .lines()
            .map(|row| row.split_whitespace().collect())
            .collect();
        assert_eq!(rows.len(), DomainState::ALL.len());
        for (state, row) in DomainState::ALL.iter().zip(&rows) {
            assert_eq!(state.as_str(), row[0]);
            for (event, after) in DomainEvent::ALL.iter().zip(&row[1..]) {
                assert_eq!(
                    state.after(*event).as_str(),
                    *after,
                    "{state:?} after {event:?}"
                );
            }
        }
    }

    #[test]
    fn words_are_parsed_as_they_are_written() {
        for state in DomainState::ALL {
            assert_eq!(state.as_str().parse(), Ok(*state));
        }
        assert_eq!("pro".parse(), Ok(Plan::Pro));
        assert_eq!(
            "Pro".parse::<Plan>().unwrap_err().to_string(),
            "'free', 'pro' or 'enterprise'"
        );
    }

    #[test]
    fn certificate_is_delayed_after_half_an_hour_and_only_who_asks_waits_again() {
        let added = Domain::new("a.test".to_owned(), 0);
        let mut verified = added.after(DomainEvent::Right, None, 100);
        let delayed_at = |domain: &Domain| {
            let before = domain.clone().at(domain.since + CERTIFICATE_WAIT - 1);
            assert_eq!(
                (before.state, before.since),
                (DomainState::Verified, domain.since)
            );
            let delayed = domain.clone().at(domain.since + 2 * CERTIFICATE_WAIT);
            assert_eq!(delayed.state, DomainState::CertificateDelayed);
            delayed.since
        };
        assert_eq!(delayed_at(&verified), 100 + CERTIFICATE_WAIT);
        for event in [DomainEvent::Right, DomainEvent::Unknown] {
            let checked = verified.clone().after(event, None, 200);
            assert_eq!(
                (checked.checked_at, delayed_at(&checked)),
                (Some(200), 100 + CERTIFICATE_WAIT)
            );
        }
        verified.wait_again(9_000);
        assert_eq!(delayed_at(&verified), 9_000 + CERTIFICATE_WAIT);
    }

    #[test]
    fn wait_that_began_in_the_future_begins_at_the_next_check() {
        let verified =
            Domain::new("a.test".to_owned(), 0).after(DomainEvent::Right, None, 1_000_000);
        let checked = verified.after(DomainEvent::Right, None, 100);
        assert_eq!(
            checked.at(100 + CERTIFICATE_WAIT).state,
            DomainState::CertificateDelayed
        );
    }

    #[test]
    fn reason_stays_until_a_later_event_replaces_it() {
        let reason = || {
            Some(Reason {
                code: "caa".to_owned(),
                message: "no".to_owned(),
            })
        };
        let domain = Domain::new("a.test".to_owned(), 0).after(DomainEvent::Right, None, 1);
        let blocked = domain.after(DomainEvent::Blocked, reason(), 2);
        assert_eq!(
            (blocked.reason.as_deref(), blocked.checked_at),
            (Some("caa"), Some(2))
        );
        assert_eq!(
            blocked.clone().after(DomainEvent::Served, None, 3).reason,
            None
        );
        let right = blocked.after(DomainEvent::Right, None, 3);
        assert_eq!(right.reason, None);
        let wrong = right.after(DomainEvent::Wrong, reason(), 4);
        let asked = wrong.clone().after(DomainEvent::Served, None, 5);
        assert_eq!(asked, wrong, "a request does not make the record right");
    }
}
