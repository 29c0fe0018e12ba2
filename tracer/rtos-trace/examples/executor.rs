// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Embassy's executor on the boards of `tracer/c/ports/cortex-m`: a producer and a consumer of 1000 items,
//! and a task that an interrupt wakes. Counts what it does by itself, and prints it in the end:
//!
//! ```text
//! C WHAT COUNT       what was done so often
//! P NAME COUNT       a task was polled so often
//! ```
//!
//! The last line is `done`.

#![no_std]

use core::cell::RefCell;
use core::future::Future;
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use core::task::{Context, Poll, Waker};

// Has the critical sections of a machine with one core.
use cortex_m as _;
use critical_section::Mutex;
use embassy_executor::{Executor, Spawner};
use lateralis_rtos_trace::{Lateralis, Setup, begin};
use rtos_trace::trace;

rtos_trace::global_trace! {Lateralis}

const ITEMS: u32 = 1000;
const ROOM: usize = 8;
const INTERRUPTS: u32 = 20;
const SENT: u32 = 1;
const RECEIVED: u32 = 2;
const USED: u32 = 3;

// board.h
unsafe extern "C" {
    safe fn board_put(c: u8);
    safe fn board_stop() -> !;
    safe fn board_arm(level: u32, ticks: u32);
    safe static board_area_bytes: u32;
}

/// The machine's counter of microseconds, for the times that `rtos_trace` asks for.
struct Clock;

impl embassy_time_driver::Driver for Clock {
    fn now(&self) -> u64 {
        // FPGAIO COUNTER, 25 MHz [AN385].
        // SAFETY: a register that can be read at any time.
        u64::from(unsafe { core::ptr::read_volatile(0x4002_8018 as *const u32) } / 25)
    }

    fn schedule_wake(&self, _at: u64, _waker: &Waker) {
        fault("no task of this example waits for a time");
    }
}

embassy_time_driver::time_driver_impl!(static CLOCK: Clock = Clock);

fn print(text: &str) {
    text.bytes().for_each(|byte| board_put(byte));
}

fn print_count(kind: &str, what: &str, count: u32) {
    print(kind);
    print(what);
    print(" ");
    let (mut digits, mut left, mut length) = ([0_u8; 10], count, 0);
    loop {
        digits[length] = b'0' + (left % 10) as u8;
        (left, length) = (left / 10, length + 1);
        if left == 0 {
            break;
        }
    }
    digits[..length].iter().rev().for_each(|digit| board_put(*digit));
    print("\n");
}

fn fault(why: &str) -> ! {
    print("fault ");
    print(why);
    print("\n");
    board_stop()
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    fault("panic")
}

/// A bounded queue, and the task that waits at either end of it.
#[derive(Default)]
struct Queue {
    items: [u32; ROOM],
    first: usize,
    length: usize,
    sender: Option<Waker>,
    receiver: Option<Waker>,
}

static QUEUE: Mutex<RefCell<Queue>> = Mutex::new(RefCell::new(Queue {
    items: [0; ROOM],
    first: 0,
    length: 0,
    sender: None,
    receiver: None,
}));
static INTERRUPTED: Mutex<RefCell<Option<Waker>>> = Mutex::new(RefCell::new(None));
static INTERRUPT_COUNT: AtomicU32 = AtomicU32::new(0);
static RUNNING: AtomicU32 = AtomicU32::new(3);

/// Counts how often a future is polled.
struct Counted<'a, F> {
    future: Pin<&'a mut F>,
    polls: &'static AtomicU32,
}

impl<F: Future> Future for Counted<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.polls.fetch_add(1, Relaxed);
        self.future.as_mut().poll(context)
    }
}

async fn counted<F: Future>(future: F, polls: &'static AtomicU32) -> F::Output {
    Counted { future: pin!(future), polls }.await
}

fn send(item: u32) -> impl Future<Output = ()> {
    core::future::poll_fn(move |context| {
        critical_section::with(|token| {
            let mut queue = QUEUE.borrow_ref_mut(token);
            if queue.length == ROOM {
                queue.sender = Some(context.waker().clone());
                return Poll::Pending;
            }
            let place = (queue.first + queue.length) % ROOM;
            queue.items[place] = item;
            queue.length += 1;
            trace::marker(SENT);
            if let Some(waker) = queue.receiver.take() {
                waker.wake();
            }
            Poll::Ready(())
        })
    })
}

fn receive() -> impl Future<Output = u32> {
    core::future::poll_fn(|context| {
        critical_section::with(|token| {
            let mut queue = QUEUE.borrow_ref_mut(token);
            if queue.length == 0 {
                queue.receiver = Some(context.waker().clone());
                return Poll::Pending;
            }
            let item = queue.items[queue.first];
            queue.first = (queue.first + 1) % ROOM;
            queue.length -= 1;
            trace::marker(RECEIVED);
            if let Some(waker) = queue.sender.take() {
                waker.wake();
            }
            Poll::Ready(item)
        })
    })
}

static PRODUCER_POLLS: AtomicU32 = AtomicU32::new(0);
static CONSUMER_POLLS: AtomicU32 = AtomicU32::new(0);
static TICKER_POLLS: AtomicU32 = AtomicU32::new(0);

/// The last of the tasks that ends prints.
fn finish() {
    if RUNNING.fetch_sub(1, Relaxed) != 1 {
        return;
    }
    trace::stop();
    print_count("C ", "interrupts", INTERRUPT_COUNT.load(Relaxed));
    print_count("P ", "producer", PRODUCER_POLLS.load(Relaxed));
    print_count("P ", "consumer", CONSUMER_POLLS.load(Relaxed));
    print_count("P ", "ticker", TICKER_POLLS.load(Relaxed));
    print("done\n");
    board_stop();
}

#[embassy_executor::task]
async fn producer() {
    let produce = async {
        for item in 0..ITEMS {
            send(item).await;
        }
    };
    counted(produce, &PRODUCER_POLLS).await;
    finish();
}

#[embassy_executor::task]
async fn consumer() {
    let consume = async {
        for expected in 0..ITEMS {
            let item = receive().await;
            trace::marker_begin(USED);
            if item != expected {
                fault("an item is out of order");
            }
            trace::marker_end(USED);
        }
    };
    counted(consume, &CONSUMER_POLLS).await;
    finish();
}

#[embassy_executor::task]
async fn ticker() {
    let wait = async {
        for count in 1..=INTERRUPTS {
            board_arm(0, 500);
            core::future::poll_fn(|context| {
                critical_section::with(|token| {
                    if INTERRUPT_COUNT.load(Relaxed) >= count {
                        return Poll::Ready(());
                    }
                    *INTERRUPTED.borrow_ref_mut(token) = Some(context.waker().clone());
                    Poll::Pending
                })
            })
            .await;
        }
    };
    counted(wait, &TICKER_POLLS).await;
    finish();
}

/// The board's, in its interrupt.
#[unsafe(no_mangle)]
extern "C" fn on_timer(_level: u32, _pc: usize) {
    trace::isr_enter();
    INTERRUPT_COUNT.fetch_add(1, Relaxed);
    let waker = critical_section::with(|token| INTERRUPTED.borrow_ref_mut(token).take());
    if let Some(waker) = waker {
        waker.wake();
    }
    trace::isr_exit();
}

fn spawn(spawner: Spawner) {
    let (Ok(producer), Ok(consumer), Ok(ticker)) = (producer(), consumer(), ticker()) else {
        fault("no room for a task");
    };
    producer.metadata().set_name("producer");
    consumer.metadata().set_name("consumer");
    ticker.metadata().set_name("ticker");
    spawner.spawn(producer);
    spawner.spawn(consumer);
    spawner.spawn(ticker);
}

/// The board's, after reset.
#[unsafe(no_mangle)]
extern "C" fn program() -> ! {
    let setup = Setup {
        area_bytes: board_area_bytes,
        packet_bytes: 4096,
        packets: 64,
        is_overwritten: false,
    };
    if begin(&setup).is_err() {
        fault("no area");
    }
    trace::start();
    trace::name_marker(SENT, "sent");
    trace::name_marker(RECEIVED, "received");
    trace::name_marker(USED, "used");
    let mut executor = Executor::new();
    // SAFETY: this function never returns, so what it has lives for ever, and nothing else names it.
    let executor = unsafe { &mut *core::ptr::from_mut(&mut executor) };
    executor.run(spawn)
}
