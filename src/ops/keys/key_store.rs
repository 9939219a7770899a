//! Where the API keys of a database are: in its file, or in a cluster.

use std::cell::RefCell;
use std::path::Path;

use crate::model::{ApiKey, Digest};
use crate::store::Writer;
use crate::store::cluster::{Cluster, Keys, Work};
use petstore_base::error::Error;

/// The keys of a database.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a command has one")]
pub enum KeyStore {
    File(Writer),
    Cluster(RefCell<Cluster>),
}

/// A change of keys, in the order of its fields.
#[derive(Default)]
pub struct KeyChange {
    /// Keys that expire at this Unix time at the latest.
    pub expired: Vec<(Digest, i64)>,
    pub added: Option<ApiKey>,
    pub deleted: Vec<Digest>,
}

impl KeyStore {
    /// Opens the keys of a database, and creates a file that does not exist.
    ///
    /// # Errors
    /// The kinds of a database that cannot be opened or created.
    pub fn open(database: &Path) -> Result<Self, Error> {
        Ok(match Cluster::at(database)? {
            Some(cluster) => Self::Cluster(cluster.into()),
            None => Self::File(Writer::open(database)?),
        })
    }

    /// The keys.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn keys(&self) -> Result<Keys, Error> {
        Ok(match self {
            Self::File(store) => Keys {
                all: store.keys()?,
                has_ever_had_one: store.has_had_keys()?,
            },
            Self::Cluster(cluster) => {
                let mut cluster = cluster.borrow_mut();
                cluster.begin()?;
                cluster.keys()?
            }
        })
    }

    /// Passes the keys (by name, the newest of a name last) to `decide`, and makes the change that it returns. In a file, no
    /// other process can write meanwhile.
    ///
    /// # Errors
    /// Those of `decide`, or if the database cannot be written; then nothing is changed. On a cluster
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict), if somebody has just changed keys with the same name.
    pub fn change(
        &mut self,
        decide: impl FnOnce(&[ApiKey]) -> Result<KeyChange, Error>,
    ) -> Result<(), Error> {
        match self {
            Self::File(store) => store.transact(|store| {
                let change = decide(&store.keys()?)?;
                for (digest, at) in &change.expired {
                    store.expire_key(digest, *at)?;
                }
                if let Some(key) = &change.added {
                    store.insert_key(key)?;
                }
                for digest in &change.deleted {
                    store.delete_key(digest)?;
                }
                Ok(())
            }),
            Self::Cluster(cluster) => {
                let cluster = cluster.get_mut();
                cluster.begin()?;
                let keys = cluster.keys()?.all;
                let KeyChange {
                    expired,
                    added,
                    deleted,
                } = decide(&keys)?;
                let newest = |name: &str| {
                    let newest = keys.iter().rfind(|key| key.name == name);
                    newest.map(|key| key.digest)
                };
                let add = |key: ApiKey| Work::AddKey {
                    newest: newest(&key.name),
                    key,
                };
                let delete = |digest| {
                    let deleted = keys.iter().find(|key| key.digest == digest);
                    let newest = deleted.and_then(|key| newest(&key.name)).unwrap_or(digest);
                    Work::DeleteKey { digest, newest }
                };
                let expired = expired
                    .into_iter()
                    .map(|(digest, at)| Work::ExpireKey(digest, at));
                let deleted = deleted.into_iter().map(delete);
                let work: Vec<Work> = expired.chain(added.map(add)).chain(deleted).collect();
                cluster.commit_all(&work)?;
                Ok(())
            }
        }
    }

    /// Checks that the database takes writes.
    ///
    /// # Errors
    /// If it does not.
    pub fn probe(&mut self) -> Result<(), Error> {
        match self {
            Self::File(store) => Ok(store.probe()?),
            Self::Cluster(cluster) => Ok(cluster.get_mut().probe()?),
        }
    }
}
