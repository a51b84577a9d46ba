//! A real Redis on a free port of 127.0.0.1, without persistence: started, frozen, killed, and
//! started again empty on the same port. A Redis Cluster is made of several.

mod client;
pub mod cluster;
mod migration;
mod role;
mod tls;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

pub(crate) use self::client::connection_info;
use self::tls::Certificates;
pub use self::{
    client::{Client, Expiry, Observed, ScriptCall},
    cluster::Cluster,
    migration::Migration,
    tls::Tls,
};
use crate::{
    eventually::blocking,
    processes::{Process, free_port},
};

/// How long a server may take to answer for the first time.
const START: Duration = Duration::from_secs(20);

/// How long one answer may take while it is not known that Redis is there.
const FIRST_ANSWER: Duration = Duration::from_millis(500);

/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(30);

/// Ports tried: between finding a free one and the server's taking it, another may come first.
const TRIES: u32 = 10;

/// How a server is started.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The password that every connection must give.
    pub password: Option<String>,
    /// Whether it speaks TLS too, on a port beside the plain one: see [`Redis::tls`].
    pub tls: bool,
    /// Whether it is to be a node of a Redis Cluster, on whose bus it listens on a port of its own.
    pub node: bool,
    /// Further arguments, as in `["--maxmemory", "2mb"]`.
    pub args: Vec<String>,
}

/// A server; it is stopped when the value is dropped.
pub struct Redis {
    // Before the folder that its log is in.
    process: Process,
    plan: Plan,
}

/// All that it takes to start it, once or again.
struct Plan {
    program: PathBuf,
    options: Options,
    address: SocketAddr,
    tls: Option<Tls>,
    /// Where it listens for other nodes of its cluster.
    bus: Option<SocketAddr>,
    folder: TempDir,
}

impl Redis {
    /// Starts a `redis-server`.
    ///
    /// # Errors
    /// When there is none, or it does not answer.
    pub fn start(program: &Path) -> Result<Self> {
        Self::start_with(program, Options::default())
    }

    /// Starts a `redis-server` with options.
    ///
    /// # Errors
    /// When there is none, or it does not answer.
    pub fn start_with(program: &Path, options: Options) -> Result<Self> {
        Self::start_as(program, &options, None)
    }

    /// Starts it with certificates that are there already.
    fn start_as(
        program: &Path,
        options: &Options,
        certificates: Option<&Certificates>,
    ) -> Result<Self> {
        for _ in 0..TRIES {
            let plan = Plan::new(program, options.clone(), certificates)?;
            if let Some(process) = plan.start()? {
                return Ok(Self { process, plan });
            }
        }
        bail!("no port of {TRIES} was still free when Redis started on it")
    }

    /// Stops it, and starts it again on the same port. It is empty then: of keys, scripts and
    /// statistics.
    ///
    /// # Errors
    /// When it does not answer, or another has taken the port meanwhile.
    pub fn restart(&mut self) -> Result<()> {
        self.process.stop();
        let process = self.plan.start()?;
        self.process = process.context("another has taken the port of Redis")?;
        Ok(())
    }

    /// Kills it, as a crash would. It stays down until [`Redis::restart`].
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Stops it where it is. Connections stay open and new ones are taken by the system, but
    /// nobody answers on them until [`Redis::thaw`].
    ///
    /// # Errors
    /// When it does not run.
    pub fn freeze(&mut self) -> Result<()> {
        self.process.freeze()
    }

    /// Lets it go on. It then answers what was sent meanwhile.
    pub fn thaw(&mut self) {
        self.process.thaw();
    }

    /// The number of its process, which a restart changes.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Where it listens for plain connections.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.plan.address
    }

    /// Where it listens for TLS, if it was started so.
    #[must_use]
    pub const fn tls(&self) -> Option<&Tls> {
        self.plan.tls.as_ref()
    }

    /// Where other nodes of its cluster and clients of that find it: at its TLS port if it has one.
    fn announced(&self) -> SocketAddr {
        self.tls().map_or_else(|| self.address(), Tls::address)
    }

    /// The password that it was started with.
    #[must_use]
    pub fn password(&self) -> Option<&str> {
        self.plan.options.password.as_deref()
    }

    /// A new connection.
    ///
    /// # Errors
    /// When it is refused.
    pub fn client(&self) -> Result<Client> {
        self.client_within(ANSWER)
    }

    /// A new connection on which no answer may take longer than this.
    ///
    /// # Errors
    /// When it is refused or takes longer.
    pub fn client_within(&self, answer: Duration) -> Result<Client> {
        self.plan.client(answer)
    }
}

impl Plan {
    fn new(program: &Path, options: Options, certificates: Option<&Certificates>) -> Result<Self> {
        let folder = if options.node { folder_in_memory()? } else { tempfile::tempdir()? };
        let certificates = match certificates {
            Some(certificates) => Some(certificates.clone()),
            None if options.tls => Some(Certificates::create(folder.path())?),
            None => None,
        };
        let tls = certificates.map(|files| Ok::<_, anyhow::Error>(Tls::new(free_port()?, files)));
        let tls = tls.transpose()?;
        let bus = if options.node { Some(free_port()?) } else { None };
        Ok(Self { program: program.to_owned(), options, address: free_port()?, tls, bus, folder })
    }

    /// `None` if another has taken a port.
    fn start(&self) -> Result<Option<Process>> {
        let mut process = Process::start("redis", self.command(), self.folder.path())?;
        let mut ready = false;
        let mut ended = None;
        blocking(START, || {
            ended = process.exited().ok().flatten();
            ready = ended.is_none() && self.is_served_by(&process);
            ready || ended.is_some()
        });
        match ended {
            Some(_) if process.log().contains("Address already in use") => Ok(None),
            None if ready => Ok(Some(process)),
            _ => bail!("redis-server did not start:\n{}", process.log()),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        let (ip, port) = (self.address.ip().to_string(), self.address.port().to_string());
        command.args(["--bind", &ip, "--port", &port]);
        command.args(["--save", "", "--appendonly", "no", "--daemonize", "no"]);
        command.arg("--dir").arg(self.folder.path());
        if let Some(password) = &self.options.password {
            command.args(["--requirepass", password]);
        }
        if let Some(tls) = &self.tls {
            tls.add_to(&mut command);
        }
        if let Some(bus) = &self.bus {
            command.args(["--cluster-enabled", "yes"]);
            command.args(["--cluster-port", &bus.port().to_string()]);
        }
        command.args(&self.options.args);
        command
    }

    /// Whether what answers is this process and no other that has the port.
    fn is_served_by(&self, process: &Process) -> bool {
        let client = self.client(FIRST_ANSWER);
        let number = client.and_then(|mut client| client.info("server", "process_id"));
        number.is_ok_and(|number| number == process.id().to_string())
    }

    fn client(&self, answer: Duration) -> Result<Client> {
        Client::connect(self.address, self.options.password.as_deref(), answer)
    }
}

/// A folder for a node of a cluster. With every change in the cluster a node writes what it knows,
/// and serves nobody until the disk has it: on one that is busy that can take a second.
fn folder_in_memory() -> Result<TempDir> {
    const MEMORY: &str = "/dev/shm";
    let memory = Path::new(MEMORY);
    Ok(if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }?)
}
