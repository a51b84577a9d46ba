//! What a process has used, processor time and memory, and what nobody has used.

use std::{fs, time::Duration};

use anyhow::{Context as _, Result};

/// Time in user and kernel mode, of all its threads, since the process started.
pub(super) fn cpu(process: u32) -> Result<Duration> {
    let path = format!("/proc/{process}/stat");
    let text = fs::read_to_string(&path).with_context(|| path.clone())?;
    Ok(time(ticks(&text).with_context(|| format!("{path}: {text}"))?))
}

/// Time that the machine's processors have been idle, in sum, since it started.
pub(super) fn idle() -> Result<Duration> {
    let path = "/proc/stat";
    let text = fs::read_to_string(path).context(path)?;
    Ok(time(idle_ticks(&text).with_context(|| format!("{path}: {text}"))?))
}

fn time(ticks: u64) -> Duration {
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_micros(ticks.saturating_mul(1_000_000) / per_second)
}

/// Kilobytes of it that are in memory now.
pub(super) fn memory(process: u32) -> Result<u64> {
    let path = format!("/proc/{process}/status");
    let text = fs::read_to_string(&path).with_context(|| path.clone())?;
    resident(&text).with_context(|| format!("{path}: {text}"))
}

/// The fields `utime` and `stime` of `/proc/<pid>/stat`: the 12th and 13th after the name, which is
/// in parentheses and may hold anything.
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut number = || fields.next()?.parse::<u64>().ok();
    number()?.checked_add(number()?)
}

/// The fields `idle` and `iowait` of the first line of `/proc/stat`, `cpu`: the 4th and 5th numbers.
fn idle_ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.strip_prefix("cpu ")?.split_whitespace().skip(3);
    let mut number = || fields.next()?.parse::<u64>().ok();
    number()?.checked_add(number()?)
}

/// The line `VmRSS` of `/proc/<pid>/status`.
fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_are_found_after_any_name() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 30 12 0 0 20 0";
        assert_eq!(ticks(stat), Some(42));
        assert_eq!(ticks("7 (a"), None);
    }

    #[test]
    fn idle_time_is_that_of_all_processors() {
        assert_eq!(idle_ticks("cpu  1 2 3 40 5 6 7 8 0 0\ncpu0 1 1 1 20 2 3 3 4 0 0\n"), Some(45));
        assert_eq!(idle_ticks("cpu0 1 2 3 4 5"), None);
    }

    #[test]
    fn the_memory_is_found_by_its_name() {
        assert_eq!(resident("Name:\ta\nVmRSS:\t   4321 kB\nVmData:\t 9 kB\n"), Some(4321));
        assert_eq!(resident("Name:\ta\n"), None);
    }
}
