//! `weir-lab bench`: the command line. `cargo xtask bench` finds the programs and starts it.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};
use tokio::task::block_in_place;

use super::{envoys, fleet, outage, rows::Modules, scripts, soak, stores::Servers};

/// What to measure.
#[derive(Subcommand)]
pub enum Bench {
    /// The scripts for Redis, beside those of others
    Scripts(Scripts),
    /// Ways of limiting in Envoy, beside one another
    Redis(Envoys),
    /// Fleets of one to eight Envoys that share one Redis
    Fleet(Fleet),
    /// Latencies while a shared store fails
    Outage(Outage),
    /// Minutes of load while Redis is killed again and again
    Soak(Soak),
}

/// The programs and folders that the scripts are measured with.
#[derive(Args)]
pub struct Scripts {
    /// The Redis server
    #[arg(long)]
    redis: PathBuf,
    /// Node
    #[arg(long)]
    node: PathBuf,
    /// The folder that the other limiters are installed in
    #[arg(long)]
    packages: PathBuf,
    /// Callers to measure for; each script has a sixteenth of them
    #[arg(long)]
    keys: u64,
    /// See only whether it works
    #[arg(long)]
    quick: bool,
}

/// The programs that Envoy is measured with.
#[derive(Args)]
pub struct Envoys {
    /// A module that does nothing
    #[arg(long)]
    empty_filter: PathBuf,
    #[command(flatten)]
    programs: Programs,
    /// See only whether it works
    #[arg(long)]
    quick: bool,
}

/// The programs that fleets are measured with.
#[derive(Args)]
pub struct Fleet {
    #[command(flatten)]
    programs: Programs,
    /// See only whether it works
    #[arg(long)]
    quick: bool,
}

/// The programs that outages are measured with.
#[derive(Args)]
pub struct Outage {
    #[command(flatten)]
    programs: Programs,
    /// See only whether it works
    #[arg(long)]
    quick: bool,
}

/// The programs for long load.
#[derive(Args)]
pub struct Soak {
    #[command(flatten)]
    programs: Programs,
    /// For how long
    #[arg(long)]
    minutes: u32,
}

/// Envoy, what it loads and what stands behind it.
#[derive(Args)]
pub struct Programs {
    /// The Envoy program
    #[arg(long)]
    envoy: PathBuf,
    /// Weir's module
    #[arg(long)]
    filter: PathBuf,
    /// The Redis server
    #[arg(long)]
    redis: PathBuf,
    /// The webdis server
    #[arg(long)]
    webdis: PathBuf,
}

impl Programs {
    fn servers(&self) -> Servers<'_> {
        Servers { redis: &self.redis, webdis: &self.webdis }
    }
}

impl Bench {
    /// Measures and prints.
    ///
    /// # Errors
    /// When something does not work.
    pub async fn run(&self) -> Result<()> {
        match self {
            Self::Scripts(flags) => block_in_place(|| scripts::run(&flags.options())),
            Self::Redis(flags) => envoys::run(&flags.options()).await,
            Self::Fleet(flags) => fleet::run(&flags.options()).await,
            Self::Outage(flags) => outage::run(&flags.options()).await,
            Self::Soak(flags) => soak::run(&flags.options()).await,
        }
    }
}

impl Scripts {
    fn options(&self) -> scripts::Options<'_> {
        let Self { redis, node, packages, keys, quick } = self;
        scripts::Options { redis, node, packages, keys: *keys, quick: *quick }
    }
}

impl Envoys {
    fn options(&self) -> envoys::Options<'_> {
        let Self { programs, empty_filter, quick } = self;
        let Programs { envoy, filter, .. } = programs;
        let modules = Modules { weir: filter, empty: empty_filter };
        envoys::Options { envoy, modules, servers: programs.servers(), quick: *quick }
    }
}

impl Fleet {
    fn options(&self) -> fleet::Options<'_> {
        let Self { programs, quick } = self;
        let Programs { envoy, filter, .. } = programs;
        fleet::Options { envoy, filter, servers: programs.servers(), quick: *quick }
    }
}

impl Outage {
    fn options(&self) -> outage::Options<'_> {
        let Self { programs, quick } = self;
        let Programs { envoy, filter, .. } = programs;
        outage::Options { envoy, filter, servers: programs.servers(), quick: *quick }
    }
}

impl Soak {
    fn options(&self) -> soak::Options<'_> {
        let Self { programs, minutes } = self;
        let Programs { envoy, filter, .. } = programs;
        soak::Options { envoy, filter, servers: programs.servers(), minutes: *minutes }
    }
}
