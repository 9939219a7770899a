//! Without the feature `cluster`: no address of a cluster can be opened.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use super::location::unsupported;
use super::{Done, Keys, Revision, Whole, Work};
use crate::model::{Pet, PetCounts, PetQuery};
use crate::store::{ImportNote, StoreError};
use petstore_base::error::Error;

/// There is none.
#[derive(Debug)]
pub enum Cluster {}

impl Cluster {
    pub fn open(_: &Path) -> Result<Self, Error> {
        Err(unsupported())
    }

    pub fn open_existing(_: &Path) -> Result<Self, Error> {
        Err(unsupported())
    }

    pub fn describe(&self) -> Result<String, Error> {
        match *self {}
    }

    pub fn set_patience(&mut self, _: Option<Duration>) {
        match *self {}
    }

    pub fn begin(&mut self) -> Result<Revision, StoreError> {
        match *self {}
    }

    pub fn pets(&self, _: &[i64]) -> Result<HashMap<i64, Pet<'static>>, StoreError> {
        match *self {}
    }

    pub fn list(&self, _: &PetQuery) -> Result<Vec<Pet<'static>>, StoreError> {
        match *self {}
    }

    pub fn counts(&self) -> Result<PetCounts, StoreError> {
        match *self {}
    }

    pub fn keys(&self) -> Result<Keys, StoreError> {
        match *self {}
    }

    pub fn imported(&self, _: &[u8]) -> Result<(Option<ImportNote>, i64), StoreError> {
        match *self {}
    }

    pub fn commit(&mut self, _: &[Work]) -> Result<Vec<Result<Done, StoreError>>, StoreError> {
        match *self {}
    }

    pub fn commit_all(&mut self, _: &[Work]) -> Result<Vec<Done>, StoreError> {
        match *self {}
    }

    pub fn probe(&mut self) -> Result<(), StoreError> {
        match *self {}
    }
}

pub fn fetch(_: &Path) -> Result<Whole, Error> {
    Err(unsupported())
}

pub fn load(_: &Path, _: &Path) -> Result<(), Error> {
    Err(unsupported())
}

pub fn compare(_: &Path) -> Result<Vec<String>, Error> {
    Err(unsupported())
}

pub fn meters(_: &Path) -> Vec<HostMeter> {
    Vec::new()
}

/// The requests to one host of a cluster.
#[derive(Clone, Debug)]
pub struct HostMeter {
    /// Such as `one:4001`.
    pub host: String,
    /// Requests to it.
    pub requests: u64,
    /// Requests that failed, rejected ones included.
    pub failures: u64,
    /// The time that all of them took.
    pub duration: Duration,
}
