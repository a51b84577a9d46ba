//! The only file that draws: a scene onto a canvas, sharp at any pixel ratio.

use std::f64::consts::TAU;

use js_sys::Array;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement};

use super::{
    palette::Palette,
    scene::{Align, Mark, Point, Scene, Size},
};

/// Draws a scene; the buffer becomes the scene's size times the pixel ratio.
///
/// # Errors
/// What the browser reports, such as a canvas without a 2D context.
pub fn paint(
    canvas: &HtmlCanvasElement,
    scene: &Scene,
    palette: &Palette,
    ratio: f64,
) -> Result<(), JsValue> {
    let (width, height) = (device(scene.width, ratio), device(scene.height, ratio));
    // Setting a size clears and reallocates the buffer, even to the same size.
    if (canvas.width(), canvas.height()) != (width, height) {
        canvas.set_width(width);
        canvas.set_height(height);
    }
    let context = canvas
        .get_context("2d")?
        .ok_or("no 2D context")?
        .dyn_into::<CanvasRenderingContext2d>()
        .map_err(JsValue::from)?;
    context.set_transform(ratio, 0.0, 0.0, ratio, 0.0, 0.0)?;
    context.clear_rect(0.0, 0.0, scene.width, scene.height);
    context.set_line_cap("butt");
    context.set_line_join("round");
    let brush = Brush { context: &context, palette };
    scene.marks.iter().try_for_each(|mark| brush.mark(mark))
}

/// CSS pixels in device pixels.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to the range of sizes a browser allows"
)]
fn device(length: f64, ratio: f64) -> u32 {
    (length * ratio).round().clamp(1.0, 16_384.0) as u32
}

struct Brush<'a> {
    context: &'a CanvasRenderingContext2d,
    palette: &'a Palette,
}

impl Brush<'_> {
    fn mark(&self, mark: &Mark) -> Result<(), JsValue> {
        match mark {
            Mark::Line { points, ink, width, dashed } => {
                self.context.set_stroke_style_str(self.palette.color(*ink));
                self.dash(*dashed)?;
                self.path(points);
                self.stroke(*width);
            }
            Mark::Area { points, ink } => {
                self.context.set_fill_style_str(self.palette.color(*ink));
                self.path(points);
                self.context.close_path();
                self.context.fill();
            }
            Mark::Disc { at, radius, ink, filled } => {
                self.disc(*at, *radius, self.palette.color(*ink), *filled)?;
            }
            Mark::Cross { at: (x, y), radius, ink } => {
                self.context.set_stroke_style_str(self.palette.color(*ink));
                self.dash(false)?;
                self.path(&[(x - radius, y - radius), (x + radius, y + radius)]);
                self.stroke(radius / 2.0);
                self.path(&[(x - radius, y + radius), (x + radius, y - radius)]);
                self.stroke(radius / 2.0);
            }
            Mark::Text { at, text, ink, size, align, bold } => {
                self.context.set_fill_style_str(self.palette.color(*ink));
                self.text(*at, text, *size, *align, *bold)?;
            }
        }
        Ok(())
    }

    fn path(&self, points: &[Point]) {
        self.context.begin_path();
        for (x, y) in points {
            self.context.line_to(*x, *y);
        }
    }

    fn stroke(&self, width: f64) {
        self.context.set_line_width(width);
        self.context.stroke();
    }

    fn dash(&self, dashed: bool) -> Result<(), JsValue> {
        let pattern = Array::new();
        if dashed {
            pattern.push(&JsValue::from_f64(6.0));
            pattern.push(&JsValue::from_f64(6.0));
        }
        self.context.set_line_dash(&pattern)
    }

    fn disc(&self, (x, y): Point, radius: f64, color: &str, filled: bool) -> Result<(), JsValue> {
        self.context.begin_path();
        self.context.arc(x, y, radius, 0.0, TAU)?;
        if filled {
            self.context.set_fill_style_str(color);
            self.context.fill();
            return Ok(());
        }
        // A hollow circle hides the lane behind it.
        self.context.set_fill_style_str(self.palette.color(super::scene::Ink::Paper));
        self.context.fill();
        self.context.set_stroke_style_str(color);
        self.dash(false)?;
        self.stroke(1.5);
        Ok(())
    }

    fn text(
        &self,
        (x, y): Point,
        text: &str,
        size: Size,
        align: Align,
        bold: bool,
    ) -> Result<(), JsValue> {
        let pixels = match size {
            Size::Small => 13,
            Size::Body => 15,
            Size::Large => 19,
        };
        let weight = if bold { 600 } else { 400 };
        self.context.set_font(&format!("{weight} {pixels}px {}", self.palette.font()));
        self.context.set_text_align(match align {
            Align::Start => "left",
            Align::Middle => "center",
            Align::End => "right",
        });
        self.context.fill_text(text, x, y)
    }
}
