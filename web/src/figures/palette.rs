//! The colours of a scene, read from the style sheet's tokens, so page and canvas never differ.

use web_sys::{CssStyleDeclaration, Element};

use super::scene::Ink;

/// One colour per meaning, and the font, as the style sheet has them now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Palette {
    paper: String,
    ink: String,
    muted: String,
    rule: String,
    allowed: String,
    refused: String,
    water: String,
    shallow: String,
    font: String,
}

impl Palette {
    /// The tokens in force at an element.
    #[must_use]
    pub fn read(element: &Element) -> Option<Self> {
        let style = web_sys::window()?.get_computed_style(element).ok()??;
        Some(Self {
            paper: token(&style, "--paper"),
            ink: token(&style, "--ink"),
            muted: token(&style, "--muted"),
            rule: token(&style, "--rule"),
            allowed: token(&style, "--allowed"),
            refused: token(&style, "--refused"),
            water: token(&style, "--water"),
            shallow: token(&style, "--shallow"),
            font: token(&style, "font-family"),
        })
    }

    /// The colour of a meaning.
    #[must_use]
    pub fn color(&self, ink: Ink) -> &str {
        match ink {
            Ink::Paper => &self.paper,
            Ink::Ink => &self.ink,
            Ink::Muted => &self.muted,
            Ink::Rule => &self.rule,
            Ink::Allowed => &self.allowed,
            Ink::Refused => &self.refused,
            Ink::Water => &self.water,
            Ink::Shallow => &self.shallow,
        }
    }

    /// The font family.
    #[must_use]
    pub fn font(&self) -> &str {
        &self.font
    }
}

fn token(style: &CssStyleDeclaration, name: &str) -> String {
    style.get_property_value(name).unwrap_or_default().trim().to_owned()
}
