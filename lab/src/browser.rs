//! A real browser, driven through WebDriver: started with a profile of its own, stopped with its
//! value.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::Path,
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow, bail};
use fantoccini::{Client, ClientBuilder, wd::WebDriverCompatibleCommand};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{eventually::eventually, processes::Process};

/// How long a start, or an end, may take.
const START: Duration = Duration::from_secs(60);
const END: Duration = Duration::from_secs(10);

/// No window, no sandbox (the tests may run as root), nothing that calls home.
const FLAGS: [&str; 9] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

/// The programs.
#[derive(Clone, Copy, Debug)]
pub struct Programs<'a> {
    /// The driver, of the browser's version.
    pub chromedriver: &'a Path,
    /// The browser.
    pub chromium: &'a Path,
}

/// What the page finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Width in CSS pixels.
    pub width: u32,
    /// Height in CSS pixels.
    pub height: u32,
    /// Whether the reader prefers a dark page.
    pub dark: bool,
    /// Whether the reader prefers less motion.
    pub still: bool,
}

impl Default for Screen {
    /// A desktop, light, with motion.
    fn default() -> Self {
        Self { width: 1280, height: 960, dark: false, still: false }
    }
}

/// A running browser. Dropping it ends its session, then the driver, and removes the profile.
pub struct Browser {
    client: Client,
    session: String,
    driver: SocketAddr,
    // In this order: the driver ends before its folder goes.
    _process: Process,
    _folder: TempDir,
}

impl Browser {
    /// Starts a driver on a free port and a browser with an empty profile.
    ///
    /// # Errors
    /// When one of them does not start in time: the error holds the driver's log.
    pub async fn start(programs: Programs<'_>) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("weir-browser-").tempdir()?;
        let mut command = Command::new(programs.chromedriver);
        command.args(["--port=0", "--allowed-ips=127.0.0.1"]);
        let mut process = Process::start("chromedriver", command, folder.path())?;
        let port = eventually("the driver to listen", START, async || {
            if let Some(status) = process.exited()? {
                bail!("the driver ended at its start ({status}): {}", process.log());
            }
            Ok(port(&process.log()))
        });
        let driver = SocketAddr::from((Ipv4Addr::LOCALHOST, port.await?));
        let client = connect(driver, programs.chromium, &folder.path().join("profile"))
            .await
            .map_err(|error| anyhow!("{error:#}\n{}", process.log()))?;
        let session = client.session_id().await?.context("the driver opened no session")?;
        Ok(Self { client, session, driver, _process: process, _folder: folder })
    }

    /// The WebDriver client.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Makes the page find this screen, whatever the window's real size.
    ///
    /// # Errors
    /// When the browser does not obey.
    pub async fn show(&self, screen: Screen) -> Result<()> {
        let Screen { width, height, dark, still } = screen;
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
        });
        self.devtools("Emulation.setDeviceMetricsOverride", size).await?;
        let scheme = if dark { "dark" } else { "light" };
        let motion = if still { "reduce" } else { "no-preference" };
        let media = json!({ "features": [
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "prefers-reduced-motion", "value": motion },
        ]});
        self.devtools("Emulation.setEmulatedMedia", media).await?;
        Ok(())
    }

    /// What the browser has logged since the last call: the page's console, failed loads,
    /// violations of its content security policy.
    ///
    /// # Errors
    /// When the browser does not answer.
    pub async fn log(&self) -> Result<Vec<String>> {
        let entries = self.command("se/log", json!({ "type": "browser" })).await?;
        let entries = entries.as_array().context("a log that is no list")?;
        let line = |entry: &Value| {
            let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
            format!("{}: {}", text("level"), text("message"))
        };
        Ok(entries.iter().map(line).collect())
    }

    async fn devtools(&self, method: &str, parameters: Value) -> Result<Value> {
        self.command("goog/cdp/execute", json!({ "cmd": method, "params": parameters })).await
    }

    async fn command(&self, path: &'static str, body: Value) -> Result<Value> {
        Ok(self.client.issue_cmd(Extension { path, body }).await?)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Without this the browser would outlive its driver.
        let _ = end_session(self.driver, &self.session);
    }
}

/// A command that only Chromium's driver knows.
#[derive(Debug)]
struct Extension {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for Extension {
    fn endpoint(
        &self,
        base: &url::Url,
        session: Option<&str>,
    ) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.body.to_string()))
    }
}

async fn connect(driver: SocketAddr, chromium: &Path, profile: &Path) -> Result<Client> {
    let mut flags: Vec<String> = FLAGS.map(str::to_owned).to_vec();
    flags.push(format!("--user-data-dir={}", profile.display()));
    let capabilities = json!({
        "goog:chromeOptions": { "binary": chromium, "args": flags },
        "goog:loggingPrefs": { "browser": "ALL" },
    });
    let Value::Object(capabilities) = capabilities else { bail!("capabilities are an object") };
    let mut builder = ClientBuilder::new(HttpConnector::new());
    builder.capabilities(capabilities);
    Ok(builder.connect(&format!("http://{driver}")).await?)
}

/// The port in the driver's greeting.
fn port(log: &str) -> Option<u16> {
    let (_, rest) = log.split_once("started successfully on port ")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    // The greeting ends with a full stop; before that the number may be half written.
    rest.get(digits.len()..)?.starts_with('.').then(|| digits.parse().ok())?
}

/// Ends a session from a destructor, which cannot wait for a task.
fn end_session(driver: SocketAddr, session: &str) -> std::io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&driver, END)?;
    stream.set_read_timeout(Some(END))?;
    let request = format!(
        "DELETE /session/{session} HTTP/1.1\r\nHost: {driver}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    // The answer begins once the browser has ended; the driver then keeps the connection open.
    stream.read(&mut [0; 64]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_read_once_it_is_whole() {
        assert_eq!(port("ChromeDriver was started successfully on port 41235.\n"), Some(41235));
        assert_eq!(port("ChromeDriver was started successfully on port 412"), None);
        assert_eq!(port("Starting ChromeDriver"), None);
    }
}
