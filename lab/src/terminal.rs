//! Text for a terminal: colour only where one is looking at it.

use std::{env, fmt::Display, io::IsTerminal as _};

/// How text is marked.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    colour: bool,
}

impl Terminal {
    /// Standard output as it is: with colour on a terminal, unless `NO_COLOR` is set.
    #[must_use]
    pub fn stdout() -> Self {
        let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { colour: !refused && std::io::stdout().is_terminal() }
    }

    /// What matters most.
    #[must_use]
    pub fn strong(self, text: impl Display) -> String {
        self.marked("1", text)
    }

    /// What matters least.
    #[must_use]
    pub fn faint(self, text: impl Display) -> String {
        self.marked("2", text)
    }

    /// What is as it should be.
    #[must_use]
    pub fn good(self, text: impl Display) -> String {
        self.marked("32", text)
    }

    /// What is not.
    #[must_use]
    pub fn bad(self, text: impl Display) -> String {
        self.marked("31", text)
    }

    fn marked(self, code: &str, text: impl Display) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_plain_without_colour_and_marked_with_it() {
        assert_eq!(Terminal { colour: false }.good(7), "7");
        assert_eq!(Terminal { colour: true }.good(7), "\x1b[32m7\x1b[0m");
    }
}
