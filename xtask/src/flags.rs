//! The command line.

use clap::{Parser, Subcommand, ValueEnum};

/// Builds, shows and checks Weir. What a machine lacks is fetched into one cache folder.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
pub(crate) struct Flags {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Build the module for Envoy and the playground, into target/weir/
    Build,
    /// Run an Envoy with Weir before a small API, and the playground, on one port
    Demo {
        /// Send requests, print what was answered, stop; fail if an answer is not the policy's
        #[arg(long)]
        check: bool,
        /// Envoy's port: 10000 if that is free, else any
        #[arg(long)]
        port: Option<u16>,
        /// Where the counts are kept: in Envoy if nothing is said, and to check, each in turn
        #[arg(long)]
        store: Option<Store>,
    },
    /// Run every test and every check, or those of one part
    Test {
        /// Only this part
        part: Option<Part>,
    },
    /// Measure, both sides in one run, and print the ratio
    Bench {
        #[command(subcommand)]
        subject: Subject,
    },
    /// Write the files that are generated from the code
    Codegen {
        /// Write nothing, and fail if a file is not as generated
        #[arg(long)]
        check: bool,
    },
    /// Check what compilers do not: layout, imports, lengths, paths named in the documents
    Tidy,
}

/// Where the demo keeps its counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Store {
    /// In Envoy's shared data
    Local,
    /// In Redis, through Envoy
    Redis,
    /// In a Redis Cluster with a password and TLS, through Envoy
    Cluster,
    /// In Redis, by callouts to webdis
    Webdis,
}

impl Store {
    /// The store as it is written on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Redis => "redis",
            Self::Cluster => "cluster",
            Self::Webdis => "webdis",
        }
    }
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Subcommand)]
pub(crate) enum Subject {
    /// One check of a token bucket, beside the crate governor
    Core,
    /// One call of each script on a real Redis, in time and memory, beside those of others
    Scripts {
        /// Measure as for this number of callers; each script has a sixteenth of them
        #[arg(long, default_value_t = 2_000_000)]
        keys: u64,
        /// See only whether it works
        #[arg(long)]
        quick: bool,
    },
    /// One request through a real Envoy, by each way of limiting it
    Redis {
        /// See only whether it works
        #[arg(long)]
        quick: bool,
    },
    /// One to eight Envoys that share one Redis, as fast as it goes, and what limits them
    Fleet {
        /// See only whether it works
        #[arg(long)]
        quick: bool,
    },
    /// Requests while a shared store fails, by each way to it
    Outage {
        /// See only whether it works
        #[arg(long)]
        quick: bool,
    },
    /// Minutes of load while Redis is killed again and again; fail if it counts wrongly
    Soak {
        /// For how long
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
        minutes: u32,
    },
}

/// A part of the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Formatting, lints and `cargo xtask tidy`
    Tidy,
    /// The limiters, natively, and their build for a bare target
    Core,
    /// The filter's logic, the lab and the commands, natively
    Filter,
    /// The playground, natively and in a headless browser
    Web,
    /// Everything on a real Envoy and in a real browser
    E2e,
}

impl Part {
    /// Every part, in the order in which faults show soonest.
    pub(crate) const ALL: [Self; 5] = [Self::Tidy, Self::Core, Self::Filter, Self::Web, Self::E2e];

    /// The part as it is written on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tidy => "tidy",
            Self::Core => "core",
            Self::Filter => "filter",
            Self::Web => "web",
            Self::E2e => "e2e",
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Flags::command().debug_assert();
    }

    #[test]
    fn a_part_is_named_as_it_is_written() {
        for part in Part::ALL {
            assert_eq!(Part::from_str(part.name(), false), Ok(part));
        }
    }
}
