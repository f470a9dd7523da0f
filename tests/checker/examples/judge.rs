//! Judges an answer to a problem, both files of the format: `judge PROBLEM ANSWER`. Prints what is wrong, what each
//! pod left pending could have had, and the cost; exits with 1 if anything is wrong.

use std::error::Error;
use std::process::ExitCode;

use mortise_checker::{can_place, check, cost};
use mortise_problem::{Answer, Problem};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut files = std::env::args().skip(1);
    let mut next = || files.next().ok_or("usage: judge PROBLEM ANSWER");
    let problem = Problem::read(&std::fs::read_to_string(next()?)?)?;
    let answer = Answer::read(&std::fs::read_to_string(next()?)?)?;
    let violations = check(&problem, &answer);
    for violation in &violations {
        println!("{violation}");
    }
    for pod in answer.errors.keys().chain(&answer.unplaced_buffers) {
        if let Some(place) = can_place(&problem, &answer, pod) {
            println!("{pod} could go: {place:?}");
        }
    }
    println!("{} violations, {} USD per hour", violations.len(), cost(&problem, &answer));
    Ok(if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
