//! A child process that is never left behind: stopped and waited for when its value is dropped,
//! and by the kernel if this program dies first.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result};

use crate::eventually::blocking;

/// How long a process may take to end by itself once asked.
const GRACE: Duration = Duration::from_secs(5);

/// A running process, its output in a file.
///
/// Start it on a thread that lives at least as long as the value: on Linux the kernel ends the
/// process together with the thread that started it.
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a command with its output in `<folder>/<name>.log`.
    ///
    /// # Errors
    /// When the program cannot be run or the file cannot be written.
    pub fn start(name: &str, mut command: Command, folder: &Path) -> Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let output = File::create(&log).with_context(|| log.display().to_string())?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        bind_to_this_process(&mut command);
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().with_context(|| format!("cannot run {program}"))?;
        Ok(Self { name: name.to_owned(), child, log })
    }

    /// The process's number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The file that holds what it has printed.
    #[must_use]
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// What it has printed so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read(&self.log).map_or_else(
            |error| format!("({error})"),
            |bytes| String::from_utf8_lossy(&bytes).into_owned(),
        )
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// When the system cannot say.
    pub fn exited(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().with_context(|| self.name.clone())
    }

    /// Asks it to end, ends it if it does not, and waits for it.
    pub fn stop(&mut self) {
        let child = &mut self.child;
        ask_to_end(child);
        if !blocking(GRACE, || !matches!(child.try_wait(), Ok(None))) {
            let _ = child.kill();
        }
        let _ = child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Sends SIGTERM. A child that has been waited for is left alone: its number may be another's.
fn ask_to_end(child: &mut Child) {
    use rustix::process::{Pid, Signal, kill_process};

    if !matches!(child.try_wait(), Ok(None)) {
        return;
    }
    let Ok(number) = i32::try_from(child.id()) else { return };
    if let Some(pid) = Pid::from_raw(number) {
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// Its own process group, so that Ctrl-C reaches this program alone, which then stops things in
/// order; and an end with this program, should that be killed.
#[cfg(target_os = "linux")]
fn bind_to_this_process(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;

    use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

    let parent = getpid();
    command.process_group(0);
    let bind = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have ended before the line above; then nobody would send the signal.
        if getppid() != Some(parent) {
            return Err(std::io::Error::other("the starting process has ended"));
        }
        Ok(())
    };
    // SAFETY: between fork and exec only two system calls are made; nothing allocates or locks.
    unsafe { command.pre_exec(bind) };
}

#[cfg(not(target_os = "linux"))]
fn bind_to_this_process(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;
    command.process_group(0);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::Instant;

    use super::*;

    fn shell(script: &str) -> (Process, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        (Process::start("shell", command, folder.path()).unwrap(), folder)
    }

    fn is_running(id: u32) -> bool {
        Path::new(&format!("/proc/{id}")).exists()
    }

    fn logged(process: &Process, text: &str) -> bool {
        blocking(Duration::from_secs(10), || process.log().contains(text))
    }

    #[test]
    fn a_dropped_process_is_gone() {
        let (process, _folder) = shell("exec sleep 600");
        let id = process.id();
        assert!(is_running(id));
        drop(process);
        assert!(!is_running(id));
    }

    #[test]
    fn it_is_asked_before_it_is_killed() {
        let (mut process, _folder) =
            shell("trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.01; done");
        assert!(logged(&process, "ready"));
        let start = Instant::now();
        process.stop();
        assert!(process.log().contains("asked"), "{}", process.log());
        assert!(start.elapsed() < GRACE);
    }

    #[test]
    fn its_output_and_its_end_are_known() {
        let (mut process, _folder) = shell("echo out; echo err >&2; exit 3");
        let mut status = None;
        assert!(blocking(Duration::from_secs(10), || {
            status = process.exited().unwrap();
            status.is_some()
        }));
        assert_eq!(status.unwrap().code(), Some(3));
        assert_eq!(process.log(), "out\nerr\n");
    }

    #[test]
    fn it_ends_with_the_thread_that_started_it() {
        let (process, _folder) = std::thread::spawn(|| shell("exec sleep 600")).join().unwrap();
        let mut process = process;
        assert!(blocking(Duration::from_secs(10), || process.exited().unwrap().is_some()));
    }
}
