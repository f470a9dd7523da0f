//! The Wasm engine: how it is set up, what guests may import, and the clock that stops them.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use wasmtime::component::{HasSelf, Linker};
use wasmtime::{Config, Engine};

use crate::bindings::v0_1::mortise::policy::{host_log, host_metrics, types};
use crate::guest::GuestState;

/// Length of an epoch: how precisely deadlines are kept.
const TICK: Duration = Duration::from_millis(5);
/// Address space reserved for a linear memory: all that a 32-bit guest can name, so that compiled code needs no bounds
/// checks. Address space is not memory: only what a guest touches is resident, and that is metered.
const MEMORY_RESERVATION: u64 = 4 << 30;
/// Behind it, for the offsets in instructions.
const MEMORY_GUARD: u64 = 32 << 20;

/// Engine and linker, shared by all plugins.
pub(crate) struct Sandbox {
    pub engine: Engine,
    pub linker: Linker<GuestState>,
    ticker: Arc<Ticker>,
}

/// One engine for the whole process: engines are expensive, and components compiled for one run in no other.
static SHARED: Mutex<Option<Arc<Sandbox>>> = Mutex::new(None);

impl Sandbox {
    /// The sandbox of this process, set up at first use.
    pub(crate) fn shared() -> wasmtime::Result<Arc<Self>> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sandbox) = &*shared {
            return Ok(Arc::clone(sandbox));
        }
        let sandbox = Arc::new(Self::new()?);
        *shared = Some(Arc::clone(&sandbox));
        Ok(sandbox)
    }

    fn new() -> wasmtime::Result<Self> {
        let engine = Engine::new(&config())?;
        let mut linker = Linker::new(&engine);
        types::add_to_linker::<_, HasSelf<GuestState>>(&mut linker, |state| state)?;
        host_log::add_to_linker::<_, HasSelf<GuestState>>(&mut linker, |state| state)?;
        host_metrics::add_to_linker::<_, HasSelf<GuestState>>(&mut linker, |state| state)?;
        let ticker = Ticker::start(&engine)?;
        Ok(Self { engine, linker, ticker })
    }

    /// Epochs that a deadline takes. One more, because the current one has begun already.
    pub(crate) fn ticks(deadline: Duration) -> u64 {
        u64::try_from(deadline.as_nanos().div_ceil(TICK.as_nanos())).unwrap_or(u64::MAX).saturating_add(1)
    }

    /// Epochs pass while this is held.
    pub(crate) fn run_clock(&self) -> ClockGuard {
        self.ticker.change(|running| running + 1);
        ClockGuard(Arc::clone(&self.ticker))
    }
}

fn config() -> Config {
    let mut config = Config::new();
    // Limits.
    config.consume_fuel(true).epoch_interruption(true).max_wasm_stack(512 * 1024);
    // One or two plugins at a time need no pool of memories.
    config.memory_reservation(MEMORY_RESERVATION).memory_guard_size(MEMORY_GUARD).memory_may_move(false);
    // Determinism: results may not depend on the CPU. Fewer proposals also means less for hostile code to try.
    config.relaxed_simd_deterministic(true).wasm_relaxed_simd(false).cranelift_nan_canonicalization(true);
    config.wasm_memory64(false).wasm_multi_memory(false);
    // Hooks are plain calls; this makes them three times cheaper.
    config.concurrency_support(false);
    config
}

/// Advances the engine's epoch while plugins run, and sleeps otherwise.
struct Ticker {
    /// Instances alive.
    running: Mutex<usize>,
    started: Condvar,
}

impl Ticker {
    fn start(engine: &Engine) -> wasmtime::Result<Arc<Self>> {
        let ticker = Arc::new(Self { running: Mutex::default(), started: Condvar::new() });
        let (own, engine) = (Arc::clone(&ticker), engine.weak());
        let spawned = std::thread::Builder::new().name("policy-clock".into()).spawn(move || {
            loop {
                own.wait();
                std::thread::sleep(TICK);
                let Some(engine) = engine.upgrade() else { return };
                engine.increment_epoch();
            }
        });
        spawned.map(|_| ticker).map_err(wasmtime::Error::from)
    }

    /// Waits until a plugin runs.
    fn wait(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.started.wait_while(running, |running| *running == 0));
    }

    fn change(&self, change: impl FnOnce(usize) -> usize) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let before = *running;
        *running = change(before);
        if before == 0 {
            self.started.notify_one();
        }
    }
}

/// Keeps the clock running.
pub(crate) struct ClockGuard(Arc<Ticker>);

impl Drop for ClockGuard {
    fn drop(&mut self) {
        self.0.change(|running| running.saturating_sub(1));
    }
}
