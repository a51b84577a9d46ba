//! The fields of one object: each taken once, by name; what is left over is a fault.

use super::{
    fault::{Gathering, hint},
    shape::{Node, quoted},
};
use crate::bounds::Bound;
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

/// An object's fields, with the path to it.
pub(super) struct Fields<'a> {
    path: String,
    fields: &'a [(String, Node)],
    /// Names that were asked for: the known ones.
    known: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// The fields of an object; anything else is a fault.
    pub(super) fn of(path: &str, node: &'a Node, faults: &mut Gathering) -> Option<Self> {
        let Node::Object(fields) = node else {
            faults.add(path, format!("must be an object; found {}", node.describe()));
            return None;
        };
        Some(Self { path: path.to_string(), fields, known: Vec::new() })
    }

    /// The path of a field.
    pub(super) fn path(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_string() } else { format!("{}.{name}", self.path) }
    }

    /// The value of a field, if it is there.
    pub(super) fn take(&mut self, name: &'static str) -> Option<&'a Node> {
        self.known.push(name);
        self.fields.iter().find(|(field, _)| field == name).map(|(_, node)| node)
    }

    /// The value of a field that must be there.
    pub(super) fn need(&mut self, name: &'static str, faults: &mut Gathering) -> Option<&'a Node> {
        let value = self.take(name);
        if value.is_none() {
            faults.add(&self.path(name), "is missing");
        }
        value
    }

    /// One of a few words, or the default where the field is absent.
    pub(super) fn choice<T: Copy + Default>(
        &mut self,
        name: &'static str,
        words: &[(&'static str, T)],
        faults: &mut Gathering,
    ) -> Option<T> {
        let Some(node) = self.take(name) else {
            return Some(T::default());
        };
        faults.keep(&self.path(name), choose(node, words))
    }

    /// A field that may be absent: its default then, and `None` only where it is faulty.
    pub(super) fn optional<T>(
        &mut self,
        name: &'static str,
        default: T,
        faults: &mut Gathering,
        read: impl FnOnce(&Node) -> Result<T, String>,
    ) -> Option<T> {
        let Some(node) = self.take(name) else { return Some(default) };
        faults.keep(&self.path(name), read(node))
    }

    /// A field that must be there.
    pub(super) fn required<T>(
        &mut self,
        name: &'static str,
        faults: &mut Gathering,
        read: impl FnOnce(&Node) -> Result<T, String>,
    ) -> Option<T> {
        let node = self.need(name, faults)?;
        faults.keep(&self.path(name), read(node))
    }

    /// Refuses a field that means nothing where it stands.
    pub(super) fn refuse(&mut self, name: &'static str, why: &str, faults: &mut Gathering) {
        if self.take(name).is_some() {
            faults.add(&self.path(name), why);
        }
    }

    /// Faults for the fields that nobody asked for and for those that come twice.
    pub(super) fn finish(self, faults: &mut Gathering) {
        for (i, (name, _)) in self.fields.iter().enumerate() {
            if !self.known.contains(&name.as_str()) {
                let path = self.path(&quoted(name));
                faults.add(&path, format!("is not known here{}", hint(name, &self.known)));
            } else if self.fields.iter().take(i).any(|(earlier, _)| earlier == name) {
                faults.add(&self.path(name), "is given twice");
            }
        }
    }
}

/// A whole number within a bound.
pub(super) fn number(bound: &Bound) -> impl FnOnce(&Node) -> Result<u64, String> {
    move |node| match node {
        Node::Number(value) if bound.contains(*value) => Ok(*value),
        _ => Err(format!("must be {bound}, a whole number; found {}", node.describe())),
    }
}

/// A text.
pub(super) fn text(node: &Node) -> Result<&str, String> {
    match node {
        Node::Text(text) => Ok(text),
        _ => Err(format!("must be a text; found {}", node.describe())),
    }
}

/// The meaning of one of a few words.
pub(super) fn choose<T: Copy>(node: &Node, words: &[(&'static str, T)]) -> Result<T, String> {
    let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let text = match node {
        Node::Text(text) => text.as_str(),
        _ => "",
    };
    let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
    found.ok_or_else(|| {
        let allowed = names.join(", ");
        format!("must be one of {allowed}; found {}{}", node.describe(), hint(text, &names))
    })
}
