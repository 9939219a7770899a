//! Starts the threads of a service, and stops them in order.

use std::path::Path;
use std::sync::{Arc, Mutex};

use super::admin::{Admin, AdminData};
use super::opened::{OpenCluster, Opened};
use super::private_folder::PrivateFolder;
use super::workers::ServiceWorkers;
use super::{SERVER, project};
use crate::admin::{Count, Reset};
use crate::app::pipeline::{
    self, Authenticator, ClusterReads, ClusterWrites, Draws, Faults, KeyCopy, ReadService,
    SharedState, WriteService,
};
use crate::config::Config;
use crate::site;
use crate::store::cluster::Version;
use crate::store::{self, Claim, Counts, Damage, OpenStore, Reader, StoreError, WriteAccess};
use petstore_base::error::{Error, ErrorKind};
use petstore_base::http::ACCESS_LOG;
use petstore_base::http::limits::MAX_BODY_BYTES;
use petstore_base::metrics::Metrics;
use petstore_base::threads::{check_threads, lock};
use petstore_gate::{
    Delay, Gate, GateConfig, LaneKind, Limits, OpenLane, Stopper, THREADS, TrustedProxies,
};

/// The most requests in a read lane at once. They share a snapshot, which costs little: with more, none is answered sooner.
const READS_AT_ONCE: usize = 64;
/// The same for a cluster: they share a question, which takes as long as sixty cached lists.
const CLUSTER_READS_AT_ONCE: usize = 256;
/// The most requests in the write lane at once, which share a flush of the disk.
const WRITES_AT_ONCE: usize = 512;

/// The parts of a running service. The order of the fields is the order of their drops: the gate before the workers
/// that it sends requests to, and the claim on the database after the last connection to it.
pub struct Running {
    gate: Gate,
    _workers: petstore_gate::Workers,
    _admin: Option<Admin>,
    _folder: Option<PrivateFolder>,
    _claim: Option<Claim>,
}

impl Running {
    /// Starts the workers, the admin address and the gate.
    ///
    /// # Errors
    /// If there are too few threads or descriptors, or the project cannot be opened.
    pub fn start(opened: Opened, stopper: &Stopper) -> Result<Self, Error> {
        let Opened {
            config,
            max_connections,
            listening,
            admin,
            mut store,
            file,
            folder,
            cluster,
        } = opened;
        // tiny_http panics if it cannot start a thread. The threads that serve no lane count as one more lane.
        let lanes = config.workers + 1 + if admin.is_some() { 2 } else { 0 };
        check_threads((lanes + 1) * THREADS)?;
        let guide = config
            .root()
            .map_or_else(|| listening.address.local_url(), str::to_owned);
        let (hosts, settings) = project::start(&config, &guide)?;
        let when_lost = stopper.clone();
        let shared = SharedState {
            settings: Arc::new(config.api()),
            assets: site::lazy_assets(&config, &listening.address),
            authenticator: Authenticator::new(config.api_key.as_deref()),
            lost: Arc::new(move |error| when_lost.stop_because(Error::from(error.clone()))),
            damage: Damage::default(),
            metrics: metrics(&config),
            hosts,
        };
        let draws = Draws::default();
        let claim = store.claim.take();
        let mut workers = ServiceWorkers::new(&config.database, stopper, faults(&config, &draws));
        let data = match cluster {
            Some(cluster) => start_cluster_workers(cluster, store, &file, &shared, &mut workers)?,
            None => {
                start_workers(store, &shared, &mut workers)?;
                admin_data(&file)
            }
        };
        let mut workers = workers.started;
        let lanes = workers.take_lanes();
        let admin = admin.zip(settings).map(|(listening, settings)| {
            Admin::start(
                &config,
                &shared,
                listening,
                &settings,
                data,
                reset(&config, &draws),
                stopper.clone(),
            )
        });
        let admin = admin.transpose()?;
        let gate_config = gate_config(&config, &shared.metrics, max_connections, lanes, draws);
        let gate = Gate::new(listening, gate_config, stopper.clone())?;
        Ok(Self {
            gate,
            _workers: workers,
            _admin: admin,
            _folder: folder,
            _claim: claim,
        })
    }

    /// Serves until the service is stopped, and then drops its parts in order.
    ///
    /// # Errors
    /// The reason, if the service ended because of a failure.
    pub fn serve(self) -> Result<(), Error> {
        // The gate is dropped here, and the other fields at the end of this function.
        self.gate.run()
    }
}

/// Creates the counters; none without an admin address, where nobody could read them.
fn metrics(config: &Config) -> Metrics {
    let is_watched = config.admin.is_some();
    let mut metrics = if is_watched {
        Metrics::watched(config.client_memory)
    } else {
        Metrics::default()
    };
    pipeline::announce(&mut metrics, config.experimental);
    metrics
}

/// The faults that an ephemeral service injects.
fn faults(config: &Config, draws: &Draws) -> Option<Faults> {
    Some(Faults {
        rate: config.ephemeral.as_ref()?.fail?,
        is_experimental: config.experimental,
        draws: draws.clone(),
    })
}

/// Starts a worker for each reader, and one for the write lane.
fn start_workers(
    store: OpenStore,
    shared: &SharedState,
    workers: &mut ServiceWorkers,
) -> Result<(), Error> {
    let mut of_readers = shared.clone();
    if matches!(store.writer, WriteAccess::Writes(_)) {
        // The writer notices a lost database too, and can save it.
        of_readers.lost = Arc::new(|_| {});
    }
    for (i, reader) in store.readers.into_iter().enumerate() {
        let service = ReadService::new(reader, of_readers.clone());
        workers.start(
            LaneKind::Read,
            READS_AT_ONCE,
            &format!("reader-{i}"),
            service,
        )?;
    }
    let name = "writer";
    match store.writer {
        WriteAccess::Writes(writer) => {
            let service = WriteService::new(writer, shared.clone());
            workers.start(LaneKind::Write, WRITES_AT_ONCE, name, service)
        }
        WriteAccess::Refused(reader) => {
            let service = ReadService::refusing(reader, shared.clone());
            workers.start(LaneKind::Write, WRITES_AT_ONCE, name, service)
        }
    }
}

/// Starts the same workers for a cluster. Returns what the admin address needs of it.
fn start_cluster_workers(
    cluster: OpenCluster,
    store: OpenStore,
    file: &Path,
    shared: &SharedState,
    workers: &mut ServiceWorkers,
) -> Result<AdminData, Error> {
    let database = Reader::open(file)?;
    let WriteAccess::Writes(writer) = store.writer else {
        return Err(Error::new(
            ErrorKind::Internal,
            "the private database cannot be written",
        ));
    };
    let copy = KeyCopy::new(writer);
    let readers = cluster.readers.into_iter().zip(store.readers);
    for (i, (cluster, reader)) in readers.enumerate() {
        let service = ClusterReads::new(cluster, copy.clone(), reader, shared.clone());
        let name = format!("reader-{i}");
        workers.start(LaneKind::Read, CLUSTER_READS_AT_ONCE, &name, service)?;
    }
    let service = ClusterWrites::new(cluster.writer, copy.clone(), database, shared.clone());
    workers.start(LaneKind::Write, WRITES_AT_ONCE, "writer", service)?;
    let (mut counter, refresher) = (cluster.counter, Mutex::new(cluster.refresher));
    let (mut counts, mut versions) = (Counts::default(), Version::default());
    let count: Count = Box::new(move |_| {
        let counted = counter
            .begin()
            .and_then(|revision| counts.current(versions.of(Some(&revision)), || counter.counts()));
        counted.map_err(|error| StoreError::Internal(error.to_string()))
    });
    Ok(AdminData {
        file: file.to_owned(),
        count,
        // If it cannot be brought up to date, /readyz reports the cause.
        refresh: Arc::new(move || _ = copy.begin(&mut lock(&refresher))),
    })
}

/// What the admin address needs of a database in a file.
fn admin_data(file: &Path) -> AdminData {
    let mut counts = Counts::default();
    let count: Count = Box::new(move |store| {
        let begun = store.begin();
        let counted =
            begun.and_then(|()| counts.current(store.data_version(), || store.count_pets()));
        store.end()?;
        counted
    });
    AdminData {
        file: file.to_owned(),
        count,
        refresh: Arc::new(|| {}),
    }
}

/// The configuration of the gate for clients.
fn gate_config(
    config: &Config,
    metrics: &Metrics,
    max_connections: usize,
    lanes: Vec<OpenLane>,
    draws: Draws,
) -> GateConfig {
    let has_domains = config.hosting.platform_host.is_some();
    let delay = config
        .ephemeral
        .as_ref()
        .and_then(|ephemeral| ephemeral.delay.clone());
    let mut forwarded = pipeline::header_fields(config.experimental, has_domains);
    let fails = config
        .ephemeral
        .as_ref()
        .is_some_and(|own| own.fail.is_some());
    forwarded.extend(fails.then_some(pipeline::PREFER));
    GateConfig {
        limits: Limits {
            connections: max_connections,
            memory: config.client_memory,
            body: MAX_BODY_BYTES,
            deadlines: config.deadlines.clone(),
        },
        lanes,
        forwarded,
        trusted: TrustedProxies(config.trusted_proxies.clone()),
        cors: pipeline::cors(&config.allow_origins),
        server: SERVER,
        access_log: ACCESS_LOG,
        logs_details: config.ephemeral.is_some(),
        size: pipeline::size,
        delay: delay.map(|delay| Box::new(pipeline::delays(delay, draws)) as Delay),
        refuse: pipeline::refuse(metrics.clone()),
        metrics: metrics.clone(),
    }
}

/// Creates the function that resets an ephemeral service; `None` for other services. The lists that workers cache are valid
/// for one version of the database only, so they need no reset.
fn reset(config: &Config, draws: &Draws) -> Option<Reset> {
    let sample = config.ephemeral.as_ref()?.sample;
    let database = config.database.clone();
    let draws = draws.clone();
    Some(Arc::new(move || {
        store::reset_ephemeral(&database, sample)?;
        draws.restart();
        Ok(())
    }))
}
