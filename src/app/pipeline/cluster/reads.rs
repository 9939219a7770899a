//! The service of a reading worker: a batch shares the question for the revision.

use std::time::Duration;

use super::{Batch, KeyCopy};
use crate::app::api::pets::{List, no_pet, pet_id, shown};
use crate::app::api::store_inventory;
use crate::app::endpoint::{Call, Handler, ReadContext};
use crate::app::pipeline::{Entered, Handled, ReadService, SharedState, run, wrong_lane};
use crate::store::Reader;
use crate::store::cluster::{Cluster, Version};
use petstore_base::http::response::Disposition;
use petstore_base::http::{Request, Response};
use petstore_gate::Service;

/// Answers the requests of a read lane.
pub struct ClusterReads {
    cluster: Cluster,
    copy: KeyCopy,
    /// Its store is the private database.
    pub(super) own: ReadService,
    versions: Version,
}

impl ClusterReads {
    /// `database` is the private one.
    pub fn new(cluster: Cluster, copy: KeyCopy, database: Reader, shared: SharedState) -> Self {
        Self {
            cluster,
            copy,
            own: ReadService::new(database, shared),
            versions: Version::default(),
        }
    }
}

impl Service for ClusterReads {
    fn answer(&mut self, requests: &[Request], responses: &mut Vec<Response>) -> Duration {
        let cluster = &mut self.cluster;
        let mut batch = Batch::new(cluster, &self.copy, requests);
        let version = self.versions.of(batch.begun.as_ref().ok());
        let own = &mut self.own;
        own.answer_with(requests, responses, |own, request, now, entry| {
            batch.check(request)?;
            let (pipeline, context) = (&mut own.pipeline, &mut own.context);
            match pipeline.enter(request, &context.store, now, entry)? {
                Entered::Call(call) => {
                    run(|| respond(&call, context, cluster, version, &mut batch))
                }
                Entered::Answered(response) => Ok(response),
            }
        })
    }
}

/// Responds to a call with what the cluster has at this version.
fn respond(
    call: &Call,
    context: &mut ReadContext,
    cluster: &Cluster,
    version: i64,
    batch: &mut Batch,
) -> Handled {
    match (call.operation.id, call.operation.handler) {
        ("listPets", _) => {
            if let Some(list) = context.lists.get(call.request.target, version) {
                return Ok(call.unless_known(list));
            }
            let mut list = List::on_cluster(call)?;
            let mut query = list.query;
            loop {
                let pets = cluster.list(&query)?;
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
            Ok(store_inventory::respond(call, counted?))
        }
        (_, Handler::Get(handler)) => handler(context, call),
        (id, Handler::Health { .. }) => {
            if id == "checkReadiness" {
                batch.begun.clone()?;
                cluster.pets(&[0])?;
            }
            Ok(Response::only(Disposition::RetryOnWriter))
        }
        (_, Handler::Write(..)) => Err(wrong_lane()),
    }
}
