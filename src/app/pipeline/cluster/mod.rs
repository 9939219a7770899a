//! The services of a cluster. They read and change its pets. Everything else comes from a private database of this process,
//! which holds only a copy of the cluster's keys, so that requests are authenticated, routed and answered as with a file.

mod reads;
#[cfg(all(test, feature = "cluster"))]
mod tests;
mod writes;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use crate::app::endpoint::Failure;
use crate::app::pipeline::authentication::AUTHORIZATION;
use crate::app::pipeline::is_protected;
use crate::model::{ApiKey, Pet};
use crate::store::cluster::{Cluster, Revision};
use crate::store::{StoreError, Writer};
use petstore_base::http::{Request, Target};
use petstore_base::threads::lock;

pub use reads::ClusterReads;
pub use writes::ClusterWrites;

/// The most pets that are asked for at once.
const GETS_AT_ONCE: usize = 64;

/// The keys of the cluster in the private database. All workers share it.
#[derive(Clone)]
pub struct KeyCopy(Arc<Mutex<Copied>>);

struct Copied {
    database: Writer,
    /// Its keys, without the times of their last use.
    keys: Vec<ApiKey>,
    /// The keys are no older than in this revision.
    revision: Option<Revision>,
}

impl KeyCopy {
    /// A copy without keys, in an empty database.
    pub fn new(database: Writer) -> Self {
        Self(Arc::new(Mutex::new(Copied {
            database,
            keys: Vec::new(),
            revision: None,
        })))
    }

    /// Begins a batch of the cluster, and brings the copy up to date.
    ///
    /// # Errors
    /// If the cluster does not answer. The copy is then as it was.
    pub fn begin(&self, cluster: &mut Cluster) -> Result<Revision, StoreError> {
        let revision = cluster.begin()?;
        if lock(&self.0).is_current(&revision) {
            return Ok(revision);
        }
        // Without the lock: the node that is asked may hang.
        let mut keys = cluster.keys()?.all;
        keys.iter_mut().for_each(|key| key.last_used_at = None);
        let mut copied = lock(&self.0);
        if !copied.is_current(&revision) {
            if keys != copied.keys {
                let database = &mut copied.database;
                let replaced = database.transact(|database| database.replace_keys(&keys));
                replaced.map_err(|error| match error {
                    StoreError::Unavailable(cause, detail) => {
                        let detail = format!("the copy of the keys in TMPDIR: {detail}");
                        StoreError::Unavailable(cause, detail)
                    }
                    error => error,
                })?;
                copied.keys = keys;
            }
            copied.revision = Some(revision.clone());
        }
        Ok(revision)
    }
}

impl Copied {
    /// Returns `true` if the keys are no older than in a revision.
    fn is_current(&self, revision: &Revision) -> bool {
        let is_it = |own: &Revision| own.has_keys_of(revision) || own.has_all_of(revision);
        self.revision.as_ref().is_some_and(is_it)
    }
}

/// What the requests of a batch share.
struct Batch {
    /// The revision at its beginning, or why it could not begin.
    begun: Result<Revision, StoreError>,
    /// The ids of pets that its requests name, which are asked for together with one that is needed.
    named: Vec<i64>,
    asked: HashSet<i64>,
    /// Those of the pets that were asked for and that there are.
    pets: HashMap<i64, Pet<'static>>,
    /// Why they could not be asked for.
    failed: Option<StoreError>,
}

impl Batch {
    fn new(cluster: &mut Cluster, copy: &KeyCopy, requests: &[Request]) -> Self {
        Self {
            begun: copy.begin(cluster),
            named: requests.iter().filter_map(named_pet).collect(),
            asked: HashSet::new(),
            pets: HashMap::new(),
            failed: None,
        }
    }

    /// Fails a request whose key cannot be looked up, if the batch could not begin.
    fn check(&self, request: &Request) -> Result<(), Failure> {
        let has_key = || {
            request.method != "OPTIONS"
                && is_protected(&Target::parse(request.target))
                && request.header_values(AUTHORIZATION).next().is_some()
        };
        match &self.begun {
            Err(error) if has_key() => Err(error.clone().into()),
            _ => Ok(()),
        }
    }

    /// The pets, among them the one with this id, if there is one.
    fn pets(
        &mut self,
        cluster: &Cluster,
        id: i64,
    ) -> Result<&mut HashMap<i64, Pet<'static>>, Failure> {
        if self.failed.is_none() && self.asked.insert(id) {
            let count = self.named.len().min(GETS_AT_ONCE - 1);
            let asked = &mut self.asked;
            let others = self
                .named
                .drain(..count)
                .filter(|other| asked.insert(*other));
            let ids: Vec<i64> = [id].into_iter().chain(others).collect();
            match cluster.pets(&ids) {
                Ok(pets) => self.pets.extend(pets),
                Err(error) => self.failed = Some(error),
            }
        }
        match &self.failed {
            Some(error) => Err(error.clone().into()),
            None => Ok(&mut self.pets),
        }
    }
}

/// The id of the pet that a request is about, if its path is written as usual.
fn named_pet(request: &Request) -> Option<i64> {
    let path = request.target.split('?').next()?;
    path.strip_prefix("/v1/pets/")?.parse().ok()
}
