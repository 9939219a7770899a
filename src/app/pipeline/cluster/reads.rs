//! The service of a reading worker: a batch shares the question for the revision.

use std::sync::Arc;
use std::time::Duration;

use super::{Batch, KeyCopy, failure};
use crate::app::api::pets::{List, no_pet, pet_id, shown};
use crate::app::api::store_inventory;
use crate::app::endpoint::{Call, Handler, ReadContext};
use crate::app::pipeline::reading::ENOUGH_BYTES;
use crate::app::pipeline::{Entered, Handled, Pipeline, RequestInfo, SharedState, run, wrong_lane};
use crate::store::Reader;
use crate::store::cluster::{Cluster, Version};
use petstore_base::clock::unix_time;
use petstore_base::http::response::Disposition;
use petstore_base::http::{Request, Response};
use petstore_gate::Service;

/// Answers the requests of a read lane.
pub struct ClusterReads {
    cluster: Cluster,
    copy: KeyCopy,
    /// Its store is the private database.
    context: ReadContext,
    pub(super) pipeline: Pipeline,
    versions: Version,
    /// The version of the batch.
    version: i64,
}

impl ClusterReads {
    /// `database` is the private one.
    pub fn new(cluster: Cluster, copy: KeyCopy, database: Reader, shared: SharedState) -> Self {
        let (assets, settings) = (Arc::clone(&shared.assets), Arc::clone(&shared.settings));
        Self {
            cluster,
            copy,
            context: ReadContext::new(database, shared.damage.clone(), assets, settings),
            pipeline: Pipeline::new(shared),
            versions: Version::default(),
            version: 0,
        }
    }

    fn handle(
        &mut self,
        request: &Request,
        batch: &mut Batch,
        now: i64,
        entry: &mut RequestInfo,
    ) -> Handled {
        batch.check(request)?;
        let store = &self.context.store;
        match self.pipeline.enter(request, store, now, entry)? {
            Entered::Call(call) => run(|| self.respond(&call, batch)),
            Entered::Answered(response) => Ok(response),
        }
    }

    fn respond(&mut self, call: &Call, batch: &mut Batch) -> Handled {
        let Self {
            cluster, context, ..
        } = self;
        let version = self.version;
        match (call.operation.id, call.operation.handler) {
            ("listPets", _) => {
                if let Some(list) = context.lists.get(call.request.target, version) {
                    return Ok(call.unless_known(list));
                }
                let mut list = List::on_cluster(call)?;
                let mut query = list.query;
                loop {
                    let pets = cluster.list(&query).map_err(failure)?;
                    let is_complete = pets.iter().any(|pet| list.take(pet).is_break());
                    query.page.after = pets.last().map(|pet| pet.id);
                    if is_complete || !list.is_search() || pets.is_empty() {
                        break;
                    }
                }
                let response = list.respond(&context.settings);
                Ok(call.unless_known(context.lists.insert(call.request.target, response)))
            }
            ("getPet", _) => {
                let id = pet_id(call).ok_or_else(no_pet)?;
                let found = batch.pets(cluster, id)?.get(&id);
                Ok(found.map(|pet| shown(pet, call)).ok_or_else(no_pet)?)
            }
            ("getInventory", _) => {
                let counted = context.counts.current(version, || cluster.counts());
                Ok(store_inventory::respond(call, counted.map_err(failure)?))
            }
            (_, Handler::Get(handler)) => handler(context, call),
            (id, Handler::Health { .. }) => {
                if id == "checkReadiness" {
                    batch.begun.clone().map_err(failure)?;
                    cluster.pets(&[0]).map_err(failure)?;
                }
                Ok(Response::only(Disposition::RetryOnWriter))
            }
            (_, Handler::Write(..)) => Err(wrong_lane()),
        }
    }
}

impl Service for ClusterReads {
    fn answer(&mut self, requests: &[Request], responses: &mut Vec<Response>) -> Duration {
        let mut batch = Batch::new(&mut self.cluster, &self.copy, requests);
        self.version = self.versions.of(batch.begun.as_ref().ok());
        if let Err(error) = self.context.store.begin() {
            self.pipeline.trouble("", "cannot begin to read", &error);
        }
        let now = unix_time();
        let mut bytes = 0;
        for request in requests {
            let mut entry = RequestInfo::default();
            let done = self.handle(request, &mut batch, now, &mut entry);
            let response = self.pipeline.finish(request, entry, done);
            bytes += response.body().len();
            responses.push(response);
            if bytes >= ENOUGH_BYTES {
                break;
            }
        }
        if let Err(error) = self.context.store.end() {
            self.pipeline.trouble("", "cannot end a snapshot", &error);
        }
        Duration::ZERO
    }
}
