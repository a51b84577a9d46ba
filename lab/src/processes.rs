//! A child process that is never left behind: stopped and waited for when its value is dropped,
//! and by the kernel if this program dies first.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

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

    /// Ends it at once, whatever it is doing, and waits for it.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Stops it where it is: its connections stay open, and nobody answers on them. Returns when
    /// it stands still.
    ///
    /// # Errors
    /// When it has ended.
    pub fn freeze(&mut self) -> Result<()> {
        let id = running(&mut self.child).with_context(|| format!("{} has ended", self.name))?;
        kill_process(id, Signal::STOP)?;
        let stopped = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        let stands = blocking(GRACE, || matches!(waitid(WaitId::Pid(id), stopped), Ok(Some(_))));
        ensure!(stands, "{} does not stand still", self.name);
        Ok(())
    }

    /// Lets it go on after [`Process::freeze`].
    pub fn thaw(&mut self) {
        if let Some(id) = running(&mut self.child) {
            let _ = kill_process(id, Signal::CONT);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Sends SIGTERM, which a process that stands still receives when it goes on.
fn ask_to_end(child: &mut Child) {
    if let Some(id) = running(child) {
        let _ = kill_process(id, Signal::TERM);
        let _ = kill_process(id, Signal::CONT);
    }
}

/// The number of a child that runs. One that has been waited for has none: it may be another's.
fn running(child: &mut Child) -> Option<Pid> {
    if !matches!(child.try_wait(), Ok(None)) {
        return None;
    }
    Pid::from_raw(i32::try_from(child.id()).ok()?)
}

/// An address of 127.0.0.1 that nobody listens on. Another may take it before it is used, so
/// whoever starts a program there checks that it is that program which answers.
pub(crate) fn free_port() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// Its own process group, so that Ctrl-C reaches this program alone, which then stops things in
/// order; and an end with this program, should that be killed.
#[cfg(target_os = "linux")]
fn bind_to_this_process(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;

    use rustix::process::{getpid, getppid, set_parent_process_death_signal};

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
    fn a_frozen_one_stands_still_until_it_is_thawed() {
        let (mut process, _folder) = shell("while :; do echo tick; sleep 0.001; done");
        assert!(logged(&process, "tick"));
        process.freeze().unwrap();
        let length = process.log().len();
        let grows = |within| blocking(within, || process.log().len() > length);
        assert!(!grows(Duration::from_millis(50)));
        process.thaw();
        let grows = |within| blocking(within, || process.log().len() > length);
        assert!(grows(Duration::from_secs(10)));
    }

    #[test]
    fn a_frozen_one_is_dropped_at_once() {
        let (mut process, _folder) = shell("exec sleep 600");
        let id = process.id();
        process.freeze().unwrap();
        let start = Instant::now();
        drop(process);
        assert!(!is_running(id) && start.elapsed() < GRACE);
    }

    #[test]
    fn a_killed_one_is_not_asked() {
        let (mut process, _folder) =
            shell("trap 'echo asked' TERM; echo ready; while :; do sleep 0.01; done");
        assert!(logged(&process, "ready"));
        process.kill();
        assert!(process.exited().unwrap().is_some_and(|status| !status.success()));
        assert!(!process.log().contains("asked"));
        assert!(process.freeze().is_err());
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
