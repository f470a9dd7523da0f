//! Child processes that never outlive the test run, however it ends.

use crate::wait::Final;
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A shell that reads process group ids from its standard input and, once that closes, kills those still listed.
///
/// It closes when this process ends in any way, SIGKILL included, which no `Drop` could cover.
static REAPER: Mutex<Option<ChildStdin>> = Mutex::new(None);

const REAPER_SCRIPT: &str = r#"
trap '' INT TERM HUP
groups=" "
while read -r sign group; do
  case $sign in
    +) groups="$groups$group " ;;
    -) case $groups in *" $group "*) groups="${groups%% $group *} ${groups#* $group }" ;; esac ;;
  esac
done
for group in $groups; do kill -KILL "-$group" 2>/dev/null; done
"#;

fn tell_reaper(sign: char, group: u32) -> Result<()> {
    let mut reaper = REAPER.lock().unwrap_or_else(PoisonError::into_inner);
    if reaper.is_none() {
        let mut child = Command::new("sh")
            .args(["-c", REAPER_SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("starting the shell that cleans up after the test run")?;
        *reaper = child.stdin.take();
    }
    if let Some(input) = reaper.as_mut() {
        writeln!(input, "{sign} {group}").context("registering a process with the cleaning shell")?;
        input.flush()?;
    }
    Ok(())
}

/// A program in a process group of its own, its output in a log file; killed with its children on drop.
#[derive(Debug)]
pub struct Daemon {
    name: String,
    child: Child,
    log: PathBuf,
    status: Option<ExitStatus>,
}

impl Daemon {
    /// Starts `command`, appending both outputs to `log`.
    ///
    /// # Errors
    /// The log file cannot be written or the program cannot be started.
    pub fn spawn(name: &str, mut command: Command, log: &Path) -> Result<Self> {
        let out = open_log(log)?;
        let err = out.try_clone()?;
        let child = command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .process_group(0)
            .spawn()
            .with_context(|| format!("starting {name} ({})", command.get_program().display()))?;
        tell_reaper('+', child.id())?;
        Ok(Self { name: name.to_owned(), child, log: log.to_owned(), status: None })
    }

    /// Process id, which is also the id of its process group.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where its output goes.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The exit status, if it has ended.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        if self.status.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.status = Some(status);
            tell_reaper('-', self.child.id()).ok();
        }
        self.status
    }

    /// Fails with the end of the log if the program has ended.
    ///
    /// # Errors
    /// The program has ended.
    pub fn check(&mut self) -> Result<()> {
        if let Some(status) = self.exited() {
            let (log, tail) = (self.log.display(), self.log_tail(30));
            return Err(Final(format!("{} ended with {status}; the end of {log}:\n{tail}", self.name)).into());
        }
        Ok(())
    }

    /// Sends a signal to the whole group; an ended program is left alone.
    pub fn signal(&mut self, signal: Signal) {
        if self.exited().is_none()
            && let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
        {
            kill_process_group(group, signal).ok();
        }
    }

    /// SIGKILL, then waits for the end.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        if self.status.is_none() {
            self.status = self.child.wait().ok();
            tell_reaper('-', self.child.id()).ok();
        }
    }

    /// SIGTERM, and SIGKILL if it is still there after `grace`. Returns the status and how long the end took.
    pub async fn terminate(&mut self, grace: Duration) -> (Option<ExitStatus>, Duration) {
        let begun = Instant::now();
        self.signal(Signal::TERM);
        while self.exited().is_none() && begun.elapsed() < grace {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.kill();
        (self.status, begun.elapsed())
    }

    /// The last `lines` lines of the log.
    pub fn log_tail(&self, lines: usize) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let all: Vec<&str> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
    }
}

fn open_log(path: &Path) -> Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("opening the log file {}", path.display()))
}

/// Runs a program to its end and returns its standard output.
///
/// # Errors
/// It cannot be started, or it ends with a failure; the message carries both of its outputs.
pub async fn run(command: Command) -> Result<String> {
    let output = output(command, None).await?;
    if !output.success {
        bail!("{} failed:\n{}{}", output.program, output.stdout, output.stderr);
    }
    Ok(output.stdout)
}

/// What a program that ran to its end left behind.
#[derive(Debug, Clone)]
pub struct Output {
    /// Program and arguments, for messages.
    pub program: String,
    /// Whether it exited with 0.
    pub success: bool,
    /// Exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Runs a program to its end, feeding it `input`; failure of the program is not an error here.
///
/// # Errors
/// It cannot be started or its pipes break.
pub async fn output(command: Command, input: Option<&str>) -> Result<Output> {
    use tokio::io::AsyncWriteExt;
    let program = format!("{command:?}");
    let mut command = tokio::process::Command::from(command);
    command.kill_on_drop(true).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    let mut child = command.spawn().with_context(|| format!("starting {program}"))?;
    if let (Some(mut pipe), Some(text)) = (child.stdin.take(), input) {
        // A program that ends without reading its input closes the pipe: its status tells more than this error.
        pipe.write_all(text.as_bytes()).await.ok();
    }
    let out = child.wait_with_output().await.with_context(|| format!("waiting for {program}"))?;
    Ok(Output {
        program,
        success: out.status.success(),
        code: out.status.code(),
        stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
    })
}
