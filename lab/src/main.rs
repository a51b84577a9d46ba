//! `weir-lab`: runs the demo and the measurements. `cargo xtask` builds what they need and starts it.

use std::{io::Write as _, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, Result};
use clap::{Args, Parser, Subcommand, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};
use weir_lab::{
    bench::command::Bench,
    demo::{Demo, Parts, Port, Store},
};

/// Starts and stops the running parts of Weir.
#[derive(Parser)]
struct Flags {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run an Envoy with Weir before a small API, and the playground, on one port
    Demo(DemoFlags),
    /// Measure, beside what it is compared with
    #[command(subcommand)]
    Bench(Bench),
}

#[derive(Args)]
struct DemoFlags {
    /// The Envoy program
    #[arg(long)]
    envoy: PathBuf,
    /// The module
    #[arg(long)]
    filter: PathBuf,
    /// The folder of the page
    #[arg(long)]
    page: PathBuf,
    /// Send requests, print what was answered, stop; fail if an answer is not the policy's
    #[arg(long)]
    check: bool,
    /// Envoy's port: 10000 if that is free, else any
    #[arg(long)]
    port: Option<u16>,
    /// Where the counts are kept; to check, all of them in turn if none is named
    #[arg(long)]
    store: Option<StoreKind>,
    /// The Redis server, for a shared store
    #[arg(long)]
    redis: Option<PathBuf>,
    /// The webdis server, for that store
    #[arg(long)]
    webdis: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum StoreKind {
    /// In Envoy's shared data
    Local,
    /// In Redis, through Envoy
    Redis,
    /// In a Redis Cluster with a password and TLS, through Envoy
    Cluster,
    /// In Redis, by callouts to webdis
    Webdis,
}

impl DemoFlags {
    fn port(&self) -> Port {
        match self.port {
            Some(port) => Port::Given(port),
            None if self.check => Port::Free,
            None => Port::Usual,
        }
    }

    fn store(&self, kind: StoreKind) -> Result<Store<'_>> {
        let redis = || self.redis.as_deref().context("--redis is missing");
        Ok(match kind {
            StoreKind::Local => Store::Local,
            StoreKind::Redis => Store::Redis { redis: redis()? },
            StoreKind::Cluster => Store::Cluster { redis: redis()? },
            StoreKind::Webdis => {
                let webdis = self.webdis.as_deref().context("--webdis is missing")?;
                Store::Webdis { redis: redis()?, webdis }
            }
        })
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let command = Flags::parse().command;
    let result = tokio::select! {
        result = run(&command) => result,
        result = stopped() => {
            // The terminal may be gone.
            let _ = writeln!(std::io::stdout(), "\nEverything is stopped.");
            result
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(command: &Command) -> Result<()> {
    match command {
        Command::Demo(flags) => demo(flags).await,
        Command::Bench(bench) => bench.run().await,
    }
}

async fn demo(flags: &DemoFlags) -> Result<()> {
    let DemoFlags { envoy, filter, page, check, .. } = flags;
    let start = async |kind| {
        let (store, port) = (flags.store(kind)?, flags.port());
        Demo::start(&Parts { envoy, filter, page, store, port }).await
    };
    if *check {
        let one = flags.store.as_ref().map(core::slice::from_ref);
        for kind in one.unwrap_or(StoreKind::value_variants()) {
            start(*kind).await?.check().await?;
        }
        return Ok(());
    }
    let mut demo = start(flags.store.unwrap_or(StoreKind::Local)).await?;
    demo.describe()?;
    demo.watch().await
}

/// Waits for Ctrl-C, for `kill`, or for the terminal to close. Then the demo is dropped, which
/// stops all it has started.
async fn stopped() -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
    Ok(())
}
