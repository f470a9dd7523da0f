//! Runs cases in order and reports as the usual test runner does.

use crate::world::World;
use anyhow::Result;
use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A test.
pub(crate) struct Case {
    pub name: &'static str,
    pub run: for<'a> fn(&'a mut World) -> LocalBoxFuture<'a, Result<()>>,
}

/// Names a case after its path.
macro_rules! case {
    ($module:ident :: $name:ident) => {
        $crate::runner::Case {
            name: concat!(stringify!($module), "::", stringify!($name)),
            run: |world| Box::pin($crate::$module::$name(world)),
        }
    };
}
pub(crate) use case;

/// No case may take longer. The longest waits out the three minutes for which an offering counts as sold out.
const LIMIT: Duration = Duration::from_secs(420);

struct Arguments {
    filters: Vec<String>,
    skip: Vec<String>,
    exact: bool,
    list: bool,
}

impl Arguments {
    fn parse() -> Self {
        let mut parsed = Self { filters: Vec::new(), skip: Vec::new(), exact: false, list: false };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--exact" => parsed.exact = true,
                "--list" => parsed.list = true,
                "--skip" => parsed.skip.extend(arguments.next()),
                "--test-threads" | "--format" | "--color" => drop(arguments.next()),
                other if other.starts_with('-') => {}
                filter => parsed.filters.push(filter.to_owned()),
            }
        }
        parsed
    }

    fn wants(&self, name: &str) -> bool {
        let matches = |filter: &String| if self.exact { name == filter } else { name.contains(filter.as_str()) };
        (self.filters.is_empty() || self.filters.iter().any(matches)) && !self.skip.iter().any(matches)
    }
}

pub(crate) async fn run(cases: &[Case]) -> ExitCode {
    let arguments = Arguments::parse();
    let wanted: Vec<&Case> = cases.iter().filter(|case| arguments.wants(case.name)).collect();
    if arguments.list {
        for case in &wanted {
            println!("{}: test", case.name);
        }
        return ExitCode::SUCCESS;
    }
    let begun = Instant::now();
    println!("\nrunning {} tests", wanted.len());
    if wanted.is_empty() {
        println!("\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; {} filtered out", cases.len());
        return ExitCode::SUCCESS;
    }
    let mut failures: Vec<(&str, String)> = Vec::new();
    match World::start().await {
        Ok(mut world) => {
            for case in &wanted {
                let started = Instant::now();
                let outcome = attempt(case, &mut world).await;
                let seconds = started.elapsed().as_secs_f64();
                match outcome {
                    Ok(()) => println!("test {} ... ok ({seconds:.1} s)", case.name),
                    Err(error) => {
                        println!("test {} ... FAILED ({seconds:.1} s)", case.name);
                        println!("{error:#}");
                        failures.push((case.name, format!("{error:#}")));
                        world.cluster.workspace.keep();
                    }
                }
            }
            if wanted.len() == cases.len() {
                println!("{}", world.closing_words());
            }
        }
        Err(error) => {
            failures.extend(wanted.iter().map(|case| (case.name, format!("the cluster does not start: {error:#}"))))
        }
    }
    report(wanted.len(), cases.len() - wanted.len(), &failures, begun.elapsed())
}

async fn attempt(case: &Case, world: &mut World) -> Result<()> {
    world.cluster.check()?;
    let guarded = AssertUnwindSafe((case.run)(world)).catch_unwind();
    match tokio::time::timeout(LIMIT, guarded).await {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => {
            let text = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                .unwrap_or_default();
            Err(anyhow::anyhow!("panicked: {text}"))
        }
        Err(_) => Err(anyhow::anyhow!("not done after {} s", LIMIT.as_secs())),
    }
}

fn report(run: usize, filtered: usize, failures: &[(&str, String)], took: Duration) -> ExitCode {
    if !failures.is_empty() {
        println!("\nfailures:\n");
        for (name, message) in failures {
            println!("---- {name} ----\n{message}\n");
        }
        println!("failures:");
        for (name, _) in failures {
            println!("    {name}");
        }
    }
    println!(
        "\ntest result: {}. {} passed; {} failed; 0 ignored; 0 measured; {filtered} filtered out; finished in {:.2}s\n",
        if failures.is_empty() { "ok" } else { "FAILED" },
        run - failures.len(),
        failures.len(),
        took.as_secs_f64()
    );
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(101) }
}
