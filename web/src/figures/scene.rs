//! A picture as plain data: marks in CSS pixels, in the order they are drawn.

/// A point in CSS pixels from the top left corner.
pub type Point = (f64, f64);

/// What a colour means. The palette gives it a value per theme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// The paper.
    Paper,
    /// Lines and text that matter.
    Ink,
    /// Labels.
    Muted,
    /// Guides.
    Rule,
    /// A request that passed.
    Allowed,
    /// A request that got 429.
    Refused,
    /// A whole token.
    Water,
    /// A token that is not yet whole.
    Shallow,
}

/// The size of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A label.
    Small,
    /// A statement.
    Body,
    /// A number that is read first.
    Large,
}

/// Which point of a text its position is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// The left end of the baseline.
    Start,
    /// The middle of the baseline.
    Middle,
    /// The right end of the baseline.
    End,
}

/// One thing to draw.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// A line through points.
    Line {
        /// The points, in order.
        points: Vec<Point>,
        /// Its colour.
        ink: Ink,
        /// Its width.
        width: f64,
        /// Whether it is dashed.
        dashed: bool,
    },
    /// A filled area with straight edges.
    Area {
        /// The corners, in order.
        points: Vec<Point>,
        /// Its colour.
        ink: Ink,
    },
    /// A circle: filled for a request that passed, hollow for one on its way.
    Disc {
        /// The centre.
        at: Point,
        /// The radius.
        radius: f64,
        /// Its colour.
        ink: Ink,
        /// Whether it is filled.
        filled: bool,
    },
    /// A cross: a request that got 429.
    Cross {
        /// The centre.
        at: Point,
        /// Half the width of the cross.
        radius: f64,
        /// Its colour.
        ink: Ink,
    },
    /// A line of text.
    Text {
        /// Where.
        at: Point,
        /// What.
        text: String,
        /// Its colour.
        ink: Ink,
        /// Its size.
        size: Size,
        /// Which point `at` is.
        align: Align,
        /// Whether it is bold.
        bold: bool,
    },
}

/// A picture of a given size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scene {
    /// Width in CSS pixels.
    pub width: f64,
    /// Height in CSS pixels.
    pub height: f64,
    /// What to draw, the lowest first.
    pub marks: Vec<Mark>,
}

impl Scene {
    /// Adds a solid line.
    pub fn line(&mut self, points: &[Point], ink: Ink, width: f64) {
        self.marks.push(Mark::Line { points: points.to_vec(), ink, width, dashed: false });
    }

    /// Adds a dashed line.
    pub fn dashes(&mut self, points: &[Point], ink: Ink, width: f64) {
        self.marks.push(Mark::Line { points: points.to_vec(), ink, width, dashed: true });
    }

    /// Adds a filled rectangle between two corners.
    pub fn block(&mut self, from: Point, to: Point, ink: Ink) {
        let points = vec![from, (to.0, from.1), to, (from.0, to.1)];
        self.marks.push(Mark::Area { points, ink });
    }

    /// Adds a text in the regular weight.
    pub fn text(&mut self, at: Point, text: impl Into<String>, ink: Ink, size: Size, align: Align) {
        self.marks.push(Mark::Text { at, text: text.into(), ink, size, align, bold: false });
    }

    /// Adds a bold text.
    pub fn bold(&mut self, at: Point, text: impl Into<String>, ink: Ink, size: Size, align: Align) {
        self.marks.push(Mark::Text { at, text: text.into(), ink, size, align, bold: true });
    }

    /// Adds the sign of a decided request: a blue disc or an orange cross.
    pub fn verdict(&mut self, at: Point, radius: f64, allowed: bool) {
        self.marks.push(if allowed {
            Mark::Disc { at, radius, ink: Ink::Allowed, filled: true }
        } else {
            Mark::Cross { at, radius, ink: Ink::Refused }
        });
    }
}
