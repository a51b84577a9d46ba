//! The page in a real browser, driven through its controls as a reader would.

mod support;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use fantoccini::{Locator, key::Key};
use support::artefact;
use weir_lab::{
    browser::{Browser, Programs, Screen},
    eventually::eventually,
    serve::Server,
};

/// How long the page may take for anything it does.
const PATIENCE: Duration = Duration::from_secs(30);

/// The page, open in a browser of its own.
struct Page {
    browser: Browser,
    _server: Server,
}

impl Page {
    /// Opens the page and waits until the figure runs.
    async fn open(screen: Screen) -> Result<Self> {
        let server = Server::start(Some(&artefact("WEIR_PLAYGROUND"))).await?;
        let (chromedriver, chromium) = (artefact("WEIR_CHROMEDRIVER"), artefact("WEIR_CHROMIUM"));
        let programs = Programs { chromedriver: &chromedriver, chromium: &chromium };
        let browser = Browser::start(programs).await?;
        browser.show(screen).await?;
        let address = format!("http://{}/", server.address());
        let page = Self { browser, _server: server };
        page.browser.client().goto(&address).await?;
        page.until("the figure to start", "#app[data-state=ready] [data-press=play]", |_| true)
            .await?;
        Ok(page)
    }

    /// Opens the page, pauses the figure and resets it.
    async fn paused() -> Result<Self> {
        let page = Self::open(Screen::default()).await?;
        page.press("play").await?;
        page.until("a pause", "[data-press=play]", |text| text == "Play").await?;
        page.press("reset").await?;
        page.reads("clock", "0.000").await?;
        Ok(page)
    }

    async fn press(&self, name: &str) -> Result<()> {
        self.click(&format!("[data-press={name}]")).await
    }

    async fn click(&self, selector: &str) -> Result<()> {
        let found = self.browser.client().find(Locator::Css(selector)).await;
        found.with_context(|| selector.to_owned())?.click().await?;
        Ok(())
    }

    /// Types a value into a number field, over the old one.
    async fn enter(&self, setting: &str, value: &str) -> Result<()> {
        let field = format!("[data-setting={setting}] input[type=number]");
        let field = self.browser.client().find(Locator::Css(&field)).await?;
        let all = char::from(Key::Control);
        field.send_keys(&format!("{all}a{all}{value}")).await?;
        let slider = format!("[data-setting={setting}] input[type=range]");
        eventually("the slider to follow", PATIENCE, async || {
            let slider = self.browser.client().find(Locator::Css(&slider)).await?;
            Ok((slider.prop("value").await?.as_deref() == Some(value)).then_some(()))
        })
        .await
    }

    /// Sends a key to whatever has the focus.
    async fn key(&self, key: &str) -> Result<()> {
        self.browser.client().active_element().await?.send_keys(key).await?;
        Ok(())
    }

    /// Waits until a readout shows a value.
    async fn reads(&self, readout: &str, value: &str) -> Result<()> {
        let selector = format!("[data-readout={readout}]");
        let what = format!("{readout} to read {value}");
        self.until(&what, &selector, |text| text == value).await
    }

    /// Waits until the caption says something.
    async fn says(&self, words: &str) -> Result<()> {
        let what = format!("the caption to say {words:?}");
        self.until(&what, "[data-caption]", |text| text.contains(words)).await
    }

    async fn until(&self, what: &str, selector: &str, holds: impl Fn(&str) -> bool) -> Result<()> {
        let mut seen = String::from("nothing");
        let waited = eventually(what, PATIENCE, async || {
            let mut found = self.browser.client().find_all(Locator::Css(selector)).await?;
            let Some(element) = found.pop() else { return Ok(None) };
            seen = element.text().await?;
            Ok(holds(seen.trim()).then_some(()))
        });
        waited.await.with_context(|| format!("{selector} shows {seen:?}"))
    }

    async fn number(&self, script: &str) -> Result<f64> {
        let value = self.browser.client().execute(script, Vec::new()).await?;
        value.as_f64().with_context(|| format!("{script}: {value}"))
    }

    /// The page has neither failed nor broken its own policy.
    async fn is_clean(&self) -> Result<()> {
        let log = self.browser.log().await?;
        ensure!(log.is_empty(), "the browser logged {log:#?}");
        Ok(())
    }
}

#[tokio::test]
async fn a_minute_at_the_defaults_allows_249_and_refuses_111() -> Result<()> {
    let page = Page::paused().await?;
    for _ in 0..6 {
        page.press("skip").await?;
    }
    page.reads("clock", "60.000").await?;
    page.reads("allowed", "249").await?;
    page.reads("refused", "111").await?;
    page.reads("refused-recent", "33").await?;
    page.reads("retry-after", "1").await?;
    page.says("about 33% of requests get 429").await?;
    page.is_clean().await
}

#[tokio::test]
async fn the_29th_request_is_the_first_to_get_429() -> Result<()> {
    let page = Page::paused().await?;
    page.says("Empty in about 5 s").await?;
    for _ in 0..28 {
        page.press("step").await?;
    }
    page.reads("allowed", "28").await?;
    page.reads("refused", "0").await?;
    page.press("step").await?;
    page.reads("refused", "1").await?;
    page.reads("clock", "4.667").await?;
    page.is_clean().await
}

#[tokio::test]
async fn a_burst_of_12_passes_as_many_as_the_bucket_holds() -> Result<()> {
    let page = Page::paused().await?;
    page.enter("traffic", "3").await?;
    for (capacity, passed, refused) in [("10", "10", "2"), ("3", "3", "9")] {
        page.enter("capacity", capacity).await?;
        page.press("reset").await?;
        page.reads("allowed", "0").await?;
        page.press("burst").await?;
        page.reads("allowed", passed).await?;
        page.reads("refused", refused).await?;
        page.says(&format!("Burst of 12: {passed} passed, {refused} got 429.")).await?;
    }
    page.is_clean().await
}

#[tokio::test]
async fn an_experiment_sets_itself_up() -> Result<()> {
    let page = Page::open(Screen::default()).await?;
    page.click("[data-show=small-burst]").await?;
    page.says("Burst of 12: 3 passed, 9 got 429.").await?;
    page.until("time to run", "[data-readout=clock]", |text| text > "0.500").await?;
    page.is_clean().await
}

#[tokio::test]
async fn the_figure_obeys_the_keyboard_alone() -> Result<()> {
    let page = Page::open(Screen::default()).await?;
    // The skip link leads to the figure; the next stop is the figure itself.
    let tab = String::from(char::from(Key::Tab));
    page.key(&tab).await?;
    page.key(&String::from(char::from(Key::Enter))).await?;
    page.key(&tab).await?;
    let stage = "return document.activeElement.hasAttribute('data-stage') ? 1 : 0";
    eventually("the focus to reach the figure", PATIENCE, async || {
        Ok((page.number(stage).await? > 0.0).then_some(()))
    })
    .await?;
    page.key(" ").await?;
    page.until("a pause", "[data-press=play]", |text| text == "Play").await?;
    page.key(&String::from(char::from(Key::Home))).await?;
    page.reads("clock", "0.000").await?;
    for _ in 0..3 {
        page.key(&String::from(char::from(Key::Right))).await?;
    }
    page.reads("allowed", "3").await?;
    page.key("b").await?;
    page.until("a burst", "[data-caption]", |text| text.starts_with("Burst of 12:")).await?;
    page.is_clean().await
}

#[tokio::test]
async fn the_page_fits_every_screen_in_both_themes() -> Result<()> {
    for (width, dark) in [(320, false), (320, true), (1280, false), (1280, true)] {
        let page = Page::open(Screen { width, dark, ..Screen::default() }).await?;
        let spare = "return innerWidth - document.documentElement.scrollWidth";
        ensure!(page.number(spare).await? >= 0.0, "the page scrolls sideways at {width} px");
        let small = "return [...document.querySelectorAll('button, input, summary')]\
                     .filter(it => it.getBoundingClientRect().height < 24).length";
        ensure!(page.number(small).await? == 0.0, "a target is lower than 24 px at {width} px");
        let light = "return Number(getComputedStyle(document.documentElement)\
                     .backgroundColor.match(/[0-9]+/)[0])";
        ensure!((page.number(light).await? < 128.0) == dark, "the theme is not the system's");
        page.is_clean().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_chosen_theme_outlives_a_reload() -> Result<()> {
    let page = Page::open(Screen::default()).await?;
    page.press("theme").await?;
    page.until("the other choice", "[data-press=theme]", |text| text == "Light theme").await?;
    page.browser.client().refresh().await?;
    page.until("the choice again", "[data-press=theme]", |text| text == "Light theme").await?;
    page.is_clean().await
}

#[tokio::test]
async fn with_reduced_motion_the_figure_stands_still_and_finished() -> Result<()> {
    let page = Page::open(Screen { still: true, ..Screen::default() }).await?;
    page.until("a pause", "[data-press=play]", |text| text == "Play").await?;
    page.reads("clock", "10.000").await?;
    page.reads("refused", "11").await?;
    page.is_clean().await
}
