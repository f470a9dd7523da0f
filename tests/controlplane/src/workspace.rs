//! A directory per cluster for configuration, data and logs, and loopback ports.

use anyhow::{Context, Result, bail};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

static COUNTER: AtomicU32 = AtomicU32::new(0);

/// A directory that is removed on drop unless something went wrong, in which case its path is printed.
#[derive(Debug)]
pub struct Workspace {
    path: PathBuf,
    keep: bool,
}

impl Workspace {
    /// Makes `<temporary directory>/mortise-controlplane/<name>-<pid>-<counter>`.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn create(name: &str) -> Result<Self> {
        let root = std::env::temp_dir().join("mortise-controlplane");
        sweep(&root);
        let path = root.join(format!("{name}-{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed)));
        std::fs::create_dir_all(&path).with_context(|| format!("making {}", path.display()))?;
        Ok(Self { path, keep: false })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file in the directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file and returns its path.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Result<PathBuf> {
        let path = self.file(name);
        std::fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }

    /// Keeps the directory on drop.
    pub fn keep(&mut self) {
        self.keep = true;
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // The store is large and says nothing that the logs do not.
        std::fs::remove_dir_all(self.path.join("etcd")).ok();
        if self.keep || std::thread::panicking() {
            eprintln!("logs are kept in {}", self.path.display());
        } else {
            std::fs::remove_dir_all(&self.path).ok();
        }
    }
}

/// Removes what earlier runs left behind: directories of processes that are gone, a day after their last change.
fn sweep(root: &Path) {
    let Ok(entries) = std::fs::read_dir(root) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.rsplit('-').nth(1).unwrap_or_default();
        let alive = Path::new("/proc").join(pid).exists();
        let old = entry
            .metadata()
            .and_then(|meta| meta.modified())
            .ok()
            .and_then(|at| at.elapsed().ok())
            .is_some_and(|age| age.as_secs() > 86_400);
        if !alive {
            std::fs::remove_dir_all(entry.path().join("etcd")).ok();
            if old {
                std::fs::remove_dir_all(entry.path()).ok();
            }
        }
    }
}

/// A loopback port that nothing listens on, outside the range from which the kernel takes ports for outgoing connections
/// (so that none of those can take it before its owner binds it). Process id and counter keep parallel runs apart.
///
/// # Errors
/// No port is free.
pub fn free_port() -> Result<u16> {
    const FIRST: u32 = 12_000;
    const SPAN: u32 = 20_000;
    for _ in 0..SPAN {
        let step = COUNTER.fetch_add(1, Ordering::Relaxed);
        let offset = std::process::id().wrapping_mul(97).wrapping_add(step) % SPAN;
        let port = u16::try_from(FIRST + offset).context("port out of range")?;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no free loopback port between {FIRST} and {}", FIRST + SPAN)
}
