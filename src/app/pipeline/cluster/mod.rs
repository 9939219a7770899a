//! The services of a cluster. They ask it for pets, and a private database of this process, which has only the keys of the
//! cluster, for everything else. So requests are authenticated, routed and answered as with a file.

mod reads;
#[cfg(all(test, feature = "cluster"))]
mod tests;
mod writes;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use crate::app::endpoint::Failure;
use crate::app::pipeline::is_protected;
use crate::base::http::{ApiError, Code, Request, Target};
use crate::base::threads::lock;
use crate::cluster::{Cluster, ClusterError, Revision};
use crate::model::{ApiKey, Pet};
use crate::store::Writer;

pub use reads::ClusterReads;
pub use writes::ClusterWrites;

/// The keys of the cluster in the private database. All workers share it.
#[derive(Clone)]
pub struct KeyCopy(Arc<Mutex<Copied>>);

struct Copied {
    database: Writer,
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
    pub fn begin(&self, cluster: &mut Cluster) -> Result<Revision, ClusterError> {
        let revision = cluster.begin()?;
        let mut copied = lock(&self.0);
        let is_current = |own: &Revision| own.has_keys_of(&revision) || own.has_all_of(&revision);
        if !copied.revision.as_ref().is_some_and(is_current) {
            let keys = cluster.keys()?.all;
            if keys != copied.keys {
                let database = &mut copied.database;
                database.transact(|database| database.replace_keys(&keys))?;
                copied.keys = keys;
            }
            copied.revision = Some(revision.clone());
        }
        Ok(revision)
    }
}

/// What a batch knows before its requests are handled.
struct Batch {
    /// The revision at its beginning, or why it could not begin.
    begun: Result<Revision, ClusterError>,
    /// The ids of the pets that were asked for.
    asked: HashSet<i64>,
    /// Those of the pets that there are.
    pets: Result<HashMap<i64, Pet<'static>>, ClusterError>,
}

impl Batch {
    fn new(cluster: &mut Cluster, copy: &KeyCopy, requests: &[Request]) -> Self {
        let begun = copy.begin(cluster);
        let asked: HashSet<i64> = requests.iter().filter_map(named_pet).collect();
        let ids: Vec<i64> = asked.iter().copied().collect();
        let pets = begun.clone().and_then(|_| cluster.pets(&ids));
        Self { begun, asked, pets }
    }

    /// Fails a request that needs the cluster, if the batch could not begin.
    fn check(&self, request: &Request) -> Result<(), Failure> {
        match &self.begun {
            Err(error) if is_protected(&Target::parse(request.target)) => {
                Err(failure(error.clone()))
            }
            _ => Ok(()),
        }
    }

    /// The pets, among them the one with this id, if there is one.
    fn pets(
        &mut self,
        cluster: &Cluster,
        id: i64,
    ) -> Result<&mut HashMap<i64, Pet<'static>>, Failure> {
        let pets = self.pets.as_mut().map_err(|error| failure(error.clone()))?;
        if self.asked.insert(id) {
            pets.extend(cluster.pets(&[id]).map_err(failure)?);
        }
        Ok(pets)
    }
}

/// The id of the pet that a request is about, if its path is written as usual.
fn named_pet(request: &Request) -> Option<i64> {
    let path = request.target.split('?').next()?;
    path.strip_prefix("/v1/pets/")?.parse().ok()
}

fn failure(error: ClusterError) -> Failure {
    let passes = error.passes();
    match error.parts() {
        Err(of_store) => Failure::Store(of_store),
        Ok((words, detail)) => {
            let what_next = if passes {
                "Try again in a moment."
            } else {
                "Tell the operator."
            };
            let message = format!("The database {words}; nothing was changed. {what_next}");
            let error = ApiError::with_message(Code::StorageUnavailable, message);
            Failure::Unavailable { error, detail }
        }
    }
}
