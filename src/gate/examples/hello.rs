//! Greets each client at 127.0.0.1:8080, or at the address in `LISTEN`.

use petstore_gate::{
    Error, ErrorKind, Gate, GateConfig, LaneKind, Listen, Listening, Request, Response, Stopper,
    Workers,
};

fn hello(request: &Request) -> Response {
    let greeting = format!("Hello, {} {}!\n", request.method, request.target);
    Response::new(200, greeting.into_bytes()).header("Content-Type", "text/plain")
}

/// Serves until something fails.
pub fn main() -> Result<(), Error> {
    let address = std::env::var("LISTEN").unwrap_or("127.0.0.1:8080".to_owned());
    let listen = Listen::parse(&address).ok_or_else(|| {
        let message = format!("LISTEN: {address:?} is no address");
        Error::new(ErrorKind::AddressUnavailable, message)
    })?;
    let listening = Listening::bind(&listen)?;
    eprintln!("{}", listening.address);
    let stopper = Stopper::default();
    let mut workers = Workers::new(&stopper);
    workers.start(LaneKind::Read, "reader", hello)?;
    workers.start(LaneKind::Write, "writer", hello)?;
    let lanes = workers.take_lanes();
    Gate::new(listening, GateConfig::with(lanes), stopper)?.run()
}
