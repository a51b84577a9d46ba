//! Assembles the page: from what the compiler made and what is in the repository to a folder that
//! any static host can serve.
//!
//! The module is built first, from the workspace's root, with
//!
//! ```text
//! wasm-pack build web --target web --profile page --mode no-install --no-pack --no-typescript --out-dir DIR
//! ```
//!
//! where `--profile page` is the profile of that name in the workspace's manifest, `DIR` is
//! relative to `web` (or absolute), and `--mode no-install` makes a missing `wasm-opt` a smaller
//! saving instead of a download. `wasm-bindgen` of exactly the locked version must be on `PATH`.
//!
//! Every file gets the first 16 hex digits of its SHA-256 in its name, so it may be cached for
//! ever; every reference is rewritten, and scripts, style sheets and the module are loaded with an
//! integrity checksum. `index.html` alone keeps its name.

use std::{
    collections::BTreeSet,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail, ensure};
use flate2::{Compression, write::GzEncoder};
use sha2::{Digest as _, Sha256};

/// What a first visit may load, compressed.
const BUDGET: usize = 250 * 1024;

/// The style sheet and, beside it in `web/fonts`, the fonts that it names.
const STYLE: &str = "web/styles/page.css";
const FONTS: [&str; 2] =
    ["ibm-plex-sans-latin-400-normal.woff2", "ibm-plex-sans-latin-600-normal.woff2"];
/// The licence that must go wherever the fonts go.
const FONT_LICENCE: &str = "OFL.txt";

/// Writes the page into `out`: `pkg` is the folder that wasm-pack wrote.
///
/// # Errors
/// If a file is missing, a reference that must be rewritten is not there exactly once, or the page
/// is over its budget.
pub(crate) fn assemble(root: &Path, pkg: &Path, out: &Path) -> anyhow::Result<()> {
    let mut page = Page::new(out)?;
    let mut style = text(&root.join(STYLE))?;
    let mut shell = text(&root.join("index.html"))?;
    for font in FONTS {
        let placed = page.place("fonts", font, &read(&root.join("web/fonts").join(font))?)?;
        replace(&mut style, &format!("../fonts/{font}"), &format!("../{}", placed.path))?;
        if shell.contains(font) {
            replace(&mut shell, &format!("fonts/{font}"), &placed.path)?;
        }
    }
    page.keep("fonts", FONT_LICENCE, &read(&root.join("web/fonts").join(FONT_LICENCE))?)?;

    let glue = page.place("", "weir_web.js", &read(&pkg.join("weir_web.js"))?)?;
    let module = page.place("", "weir_web_bg.wasm", &read(&pkg.join("weir_web_bg.wasm"))?)?;
    let mut boot = text(&root.join("web/boot.js"))?;
    replace(&mut boot, "\"./weir_web.js\"", &format!("\"./{}\"", glue.path))?;
    let source = "{ url: \"./weir_web_bg.wasm\", integrity: \"\" }";
    let target = format!("{{ url: \"./{}\", integrity: \"{}\" }}", module.path, module.integrity);
    replace(&mut boot, source, &target)?;
    let boot = page.place("", "boot.js", boot.as_bytes())?;
    let style = page.place("styles", "page.css", style.as_bytes())?;

    let sheet = "<link rel=\"stylesheet\" href=\"styles/page.css\">";
    replace(&mut shell, sheet, &style_tag(&style))?;
    let script = "<script type=\"module\" src=\"boot.js\"></script>";
    replace(&mut shell, script, &script_tags(&boot, &glue))?;
    page.keep("", "index.html", shell.as_bytes())?;
    page.finish()
}

fn style_tag(style: &Placed) -> String {
    let Placed { path, integrity } = style;
    format!("<link rel=\"stylesheet\" href=\"{path}\" integrity=\"{integrity}\">")
}

/// The boot script, with the glue fetched beside it rather than after it.
fn script_tags(boot: &Placed, glue: &Placed) -> String {
    format!(
        "<link rel=\"modulepreload\" href=\"{}\" integrity=\"{}\">\n\
         <script type=\"module\" src=\"{}\" integrity=\"{}\"></script>",
        glue.path, glue.integrity, boot.path, boot.integrity
    )
}

/// A file of the finished page.
struct Placed {
    /// Its path from the page's root, with slashes.
    path: String,
    /// Its checksum as an `integrity` attribute has it.
    integrity: String,
}

/// The folder being written.
struct Page {
    out: PathBuf,
    written: BTreeSet<PathBuf>,
    lines: Vec<String>,
    packed: usize,
}

impl Page {
    fn new(out: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
        let (written, lines) = (BTreeSet::new(), Vec::new());
        Ok(Self { out: out.to_owned(), written, lines, packed: 0 })
    }

    /// Writes a file under a name that carries its hash.
    fn place(&mut self, folder: &str, name: &str, bytes: &[u8]) -> anyhow::Result<Placed> {
        let digest = Sha256::digest(bytes);
        let hash: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let (stem, extension) = name.rsplit_once('.').context("a file without an extension")?;
        let path = self.keep(folder, &format!("{stem}.{hash}.{extension}"), bytes)?;
        Ok(Placed { path, integrity: format!("sha256-{}", base64(&digest)) })
    }

    /// Writes a file under its own name.
    fn keep(&mut self, folder: &str, name: &str, bytes: &[u8]) -> anyhow::Result<String> {
        let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
        let target = self.out.join(&path);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&target, bytes).with_context(|| format!("cannot write {}", target.display()))?;
        // A visit does not load the licence.
        if name != FONT_LICENCE {
            let packed = gzip(bytes)?;
            self.lines.push(format!("{:>9} {packed:>9}  {path}", bytes.len()));
            self.packed = self.packed.saturating_add(packed);
        }
        self.written.insert(target);
        Ok(path)
    }

    /// Deletes what an earlier build left, reports the sizes and holds the budget.
    fn finish(self) -> anyhow::Result<()> {
        for stale in files(&self.out)?.difference(&self.written) {
            fs::remove_file(stale).with_context(|| format!("cannot delete {}", stale.display()))?;
        }
        println!("    bytes      gzip  file");
        for line in &self.lines {
            println!("{line}");
        }
        println!("{:>19}  in all, of at most {BUDGET}", self.packed);
        ensure!(
            self.packed <= BUDGET,
            "the page loads {} bytes compressed; the budget is {BUDGET}",
            self.packed
        );
        Ok(())
    }
}

/// Replaces the one place where `from` stands.
fn replace(text: &mut String, from: &str, to: &str) -> anyhow::Result<()> {
    match text.matches(from).count() {
        1 => *text = text.replacen(from, to, 1),
        count => bail!("expected `{from}` once, found it {count} times"),
    }
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn text(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// All files below a folder.
fn files(folder: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.insert(path);
        }
    }
    Ok(found)
}

/// The size after gzip at its best level.
fn gzip(bytes: &[u8]) -> anyhow::Result<usize> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len())
}

/// Base64 with padding (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0; 4];
        for (slot, byte) in group.iter_mut().skip(1).zip(chunk) {
            *slot = *byte;
        }
        let bits = u32::from_be_bytes(group);
        for place in 0..4_usize {
            let digit = usize::try_from((bits >> (18 - 6 * place)) & 63).unwrap_or(0);
            let padding = place > chunk.len();
            text.push(if padding {
                '='
            } else {
                char::from(DIGITS.get(digit).copied().unwrap_or(b'='))
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads_as_the_standard_has_it() {
        let cases =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (bytes, expected) in cases {
            assert_eq!(base64(bytes.as_bytes()), expected);
        }
    }

    #[test]
    fn a_reference_must_stand_exactly_once() {
        let mut text = "a b a".to_owned();
        assert!(replace(&mut text, "a", "c").is_err());
        assert!(replace(&mut text, "x", "c").is_err());
        replace(&mut text, "b", "c").unwrap();
        assert_eq!(text, "a c a");
    }
}
