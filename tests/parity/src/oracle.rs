//! The real Karpenter, in a process of its own that answers line by line.

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result, bail};
use mortise_problem::{Answer, Problem};

/// Answers asked for per problem: Karpenter's own vary with the order of Go's maps.
pub const RUNS: usize = 5;

/// The running program. It ends with this value.
#[derive(Debug)]
pub struct Oracle {
    process: Child,
    input: BufWriter<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Oracle {
    /// Starts the program.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(program: &Path) -> Result<Self> {
        let mut process = Command::new(program)
            .args(["--repeat", &RUNS.to_string(), "--workers", "1"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let input = BufWriter::new(process.stdin.take().context("the oracle has no input")?);
        let output = BufReader::new(process.stdout.take().context("the oracle has no output")?);
        Ok(Self { process, input, output })
    }

    /// Hands over a problem; the answers come from [`Self::answers`], in the order of the questions.
    ///
    /// # Errors
    /// The program has ended.
    pub fn ask(&mut self, problem: &Problem) -> Result<()> {
        serde_json::to_writer(&mut self.input, problem).context("asking the oracle")?;
        self.input.write_all(b"\n")?;
        self.input.flush().context("asking the oracle")
    }

    /// The answers to the oldest question that has none yet, or the words in which it could not be answered.
    ///
    /// # Errors
    /// The program has ended, or writes something else.
    pub fn answers(&mut self) -> Result<Result<Vec<Answer>, String>> {
        let mut answers = Vec::with_capacity(RUNS);
        let mut fault = None;
        for _ in 0..RUNS {
            let mut line = String::new();
            if self.output.read_line(&mut line).context("reading the oracle")? == 0 {
                bail!("the oracle ended: {:?}", self.process.wait());
            }
            let answer = Answer::read(&line).with_context(|| format!("the oracle wrote {line}"))?;
            fault = fault.or_else(|| answer.error.clone());
            answers.push(answer);
        }
        Ok(fault.map_or(Ok(answers), Err))
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Builds a program of `tests/tools.sh parity`, or finds it built: `oracle`, or `oracle-v1.14` of the release before.
///
/// # Errors
/// It cannot be built; the messages are those of the script.
pub fn program(name: &str) -> Result<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools.sh");
    let output = Command::new("bash")
        .arg(&script)
        .arg("parity")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("running {}", script.display()))?;
    if !output.status.success() {
        bail!("{} parity failed ({}): its messages above say what is missing", script.display(), output.status);
    }
    let text = String::from_utf8(output.stdout).context("tools.sh printed something that is not text")?;
    let cache = text.lines().last().context("tools.sh printed no cache directory")?;
    Ok(Path::new(cache).join("bin").join(name))
}
