//! The `mortise` binary.

fn main() -> std::process::ExitCode {
    mortise::cli::run()
}
