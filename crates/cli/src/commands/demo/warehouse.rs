// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The server of the demonstration, started by the hidden command `lat demo-warehouse`.
//!
//! One thread per connection reads orders into a queue; workers take them from there, fetch the pieces from a
//! shelf protected by a lock, and answer. The clients are a C program ([`crate::embedded::DEMO_CLIENT`]) that
//! this process starts. One command thus covers several processes, two languages, threads, a queue, locks,
//! messages and signals.
//!
//! Its work is deterministic: the number of every event follows from
//! [`Size`]. Only times and the interleaving differ from run to run.

use super::events::SCHEMA;
use super::events::warehouse::{self as events, StateState};
use crate::error::CliError;
use crate::exit::ExitStatus;
use clap::Args;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Items on the shelf; the client uses the same number.
const ITEMS: usize = 64;
/// Pieces of each item after a refill.
const PIECES: u32 = 40;

/// Size of the demonstration.
#[derive(Clone, Copy, Debug, Args)]
pub struct Size {
    /// Client processes
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub clients: u32,
    /// Threads in each client
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads: u32,
    /// Orders of each thread
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub orders: u32,
    /// Worker threads of the server
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub workers: u32,
}

/// Options of the hidden command.
#[derive(Debug, Args)]
pub struct WarehouseArgs {
    /// The client program
    pub client: PathBuf,
    #[command(flatten)]
    pub size: Size,
}

struct Order {
    id: u32,
    item: u32,
    answer_to: Arc<Mutex<UnixStream>>,
}

#[derive(Default)]
struct Queue {
    orders: VecDeque<Order>,
    closed: bool,
}

/// State shared by all threads.
struct Warehouse {
    queue: Mutex<Queue>,
    arrived: Condvar,
    shelf: Mutex<[u32; ITEMS]>,
}

/// Ignores poisoning: a panic is reported where it happens, and the data stay usable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves until every client has disconnected.
pub fn run(args: WarehouseArgs) -> Result<ExitStatus, CliError> {
    // Registered before threads start: events written while another thread registers are not recorded.
    SCHEMA.register();
    let failed = |what: &str, cause: io::Error| CliError::new(what, "demo", cause.to_string());
    let name = format!("lateralis-demo-{}", std::process::id());
    let listener = SocketAddr::from_abstract_name(&name)
        .and_then(|address| UnixListener::bind_addr(&address))
        .map_err(|cause| failed("cannot listen", cause))?;
    let warehouse = Arc::new(Warehouse {
        queue: Mutex::default(),
        arrived: Condvar::new(),
        shelf: Mutex::new([PIECES; ITEMS]),
    });
    let workers: Vec<_> = (0..args.size.workers)
        .map(|number| {
            let warehouse = Arc::clone(&warehouse);
            spawn(&format!("worker-{number}"), move || work(&warehouse, number))
        })
        .collect::<io::Result<_>>()
        .map_err(|cause| failed("cannot start a thread", cause))?;
    let clients: Vec<Child> = (0..args.size.clients)
        .map(|number| start_client(&args, &name, number))
        .collect::<io::Result<_>>()
        .map_err(|cause| failed("cannot start a client", cause))?;

    let mut readers = Vec::new();
    for _ in 0..args.size.clients * args.size.threads {
        let stream = listener.accept().map_err(|cause| failed("cannot accept", cause))?.0;
        let warehouse = Arc::clone(&warehouse);
        readers.push(
            spawn("reader", move || read_orders(&warehouse, stream))
                .map_err(|cause| failed("cannot start a thread", cause))?,
        );
    }
    let mut all_well = readers.into_iter().all(|reader| matches!(reader.join(), Ok(Ok(()))));
    lock(&warehouse.queue).closed = true;
    warehouse.arrived.notify_all();
    all_well &= workers.into_iter().all(|worker| matches!(worker.join(), Ok(Ok(()))));
    for mut client in clients {
        all_well &= client.wait().is_ok_and(|status| status.success());
    }
    Ok(if all_well { ExitStatus::Fine } else { ExitStatus::Problems })
}

fn spawn<F>(name: &str, body: F) -> io::Result<thread::JoinHandle<io::Result<()>>>
where
    F: FnOnce() -> io::Result<()> + Send + 'static,
{
    thread::Builder::new().name(name.into()).spawn(body)
}

fn start_client(args: &WarehouseArgs, socket: &str, number: u32) -> io::Result<Child> {
    let size = args.size;
    Command::new(&args.client)
        .arg(socket)
        .arg((number * size.threads * size.orders).to_string())
        .arg(size.threads.to_string())
        .arg(size.orders.to_string())
        .spawn()
}

/// Reads orders of one connection until the client closes it.
fn read_orders(warehouse: &Warehouse, mut stream: UnixStream) -> io::Result<()> {
    let answer_to = Arc::new(Mutex::new(stream.try_clone()?));
    let mut message = [0; 8];
    loop {
        match stream.read_exact(&mut message) {
            Ok(()) => {}
            Err(end) if end.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
        let [id, item] = words(message);
        events::receive(id, message.len() as u32);
        let mut queue = lock(&warehouse.queue);
        queue.orders.push_back(Order { id, item, answer_to: Arc::clone(&answer_to) });
        events::queue(queue.orders.len() as u32);
        drop(queue);
        warehouse.arrived.notify_one();
    }
}

/// Takes orders from the queue until it is closed and empty.
fn work(warehouse: &Warehouse, worker: u32) -> io::Result<()> {
    while let Some(order) = next(warehouse) {
        events::state(StateState::BUSY);
        events::work(order.id);
        let pieces = fetch(warehouse, worker, order.item);
        let mut answer = [0; 8];
        answer[..4].copy_from_slice(&order.id.to_ne_bytes());
        answer[4..].copy_from_slice(&pieces.to_ne_bytes());
        events::send(order.id, answer.len() as u32);
        lock(&order.answer_to).write_all(&answer)?;
        events::worked(order.id);
        events::state(StateState::IDLE);
    }
    Ok(())
}

fn next(warehouse: &Warehouse) -> Option<Order> {
    let mut queue = lock(&warehouse.queue);
    loop {
        if let Some(order) = queue.orders.pop_front() {
            events::queue(queue.orders.len() as u32);
            return Some(order);
        }
        if queue.closed {
            return None;
        }
        queue = warehouse.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Takes one piece of an item and returns the number left. A refill takes longer and holds the lock: these
/// are the slow orders in the trace.
fn fetch(warehouse: &Warehouse, worker: u32, item: u32) -> u32 {
    events::wait(worker);
    let mut shelf = lock(&warehouse.shelf);
    events::locked(worker);
    events::take(worker);
    let pieces = &mut shelf[item as usize % ITEMS];
    if *pieces == 0 {
        walk(u64::from(worker), 40_000);
        *pieces = PIECES;
        events::refill(item, PIECES);
    }
    *pieces -= 1;
    walk(u64::from(item), 500);
    let left = *pieces;
    drop(shelf);
    events::release(worker);
    left
}

/// Performs a known number of steps that no compiler removes.
fn walk(seed: u64, steps: u32) {
    let end = (0..steps).fold(seed, |state, _| {
        std::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1))
    });
    std::hint::black_box(end);
}

fn words(message: [u8; 8]) -> [u32; 2] {
    let word = |at: usize| {
        u32::from_ne_bytes([message[at], message[at + 1], message[at + 2], message[at + 3]])
    };
    [word(0), word(4)]
}
