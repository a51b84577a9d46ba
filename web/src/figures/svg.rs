//! A scene as SVG text, for the picture in the page's shell. Colours come from the style sheet.

use super::scene::{Align, Ink, Mark, Point, Scene, Size};

/// The scene as one SVG element.
#[must_use]
pub fn svg(scene: &Scene, label: &str) -> String {
    let marks: String = scene.marks.iter().map(element).collect();
    let (width, height) = (scene.width, scene.height);
    format!(
        "<svg class=\"still\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">\
         \n{marks}</svg>"
    )
}

fn element(mark: &Mark) -> String {
    match mark {
        Mark::Line { points, ink, width, dashed } => {
            let dash = if *dashed { " stroke-dasharray=\"6\"" } else { "" };
            let (class, points) = (class(*ink), list(points));
            format!(
                "<polyline class=\"s-{class}\" stroke-width=\"{width}\"{dash} points=\"{points}\"/>\n"
            )
        }
        Mark::Area { points, ink } => {
            format!("<polygon class=\"f-{}\" points=\"{}\"/>\n", class(*ink), list(points))
        }
        Mark::Disc { at: (x, y), radius, ink, filled } => {
            let class = class(*ink);
            let class = if *filled { format!("f-{class}") } else { format!("h-{class}") };
            format!("<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"/>\n")
        }
        Mark::Cross { at: (x, y), radius: r, ink } => {
            let path = format!("M{:.1} {:.1}l{d} {d}m-{d} 0l{d} -{d}", x - r, y - r, d = r * 2.0);
            let width = r / 2.0;
            format!("<path class=\"s-{}\" stroke-width=\"{width}\" d=\"{path}\"/>\n", class(*ink))
        }
        Mark::Text { at: (x, y), text, ink, size, align, bold } => {
            let anchor = match align {
                Align::Start => "start",
                Align::Middle => "middle",
                Align::End => "end",
            };
            let size = match size {
                Size::Small => "small",
                Size::Body => "body",
                Size::Large => "large",
            };
            let bold = if *bold { " t-bold" } else { "" };
            let class = class(*ink);
            format!(
                "<text class=\"f-{class} t-{size}{bold}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" \
                 y=\"{y:.1}\">{text}</text>\n"
            )
        }
    }
}

fn list(points: &[Point]) -> String {
    let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    points.join(" ")
}

fn class(ink: Ink) -> &'static str {
    match ink {
        Ink::Paper => "paper",
        Ink::Ink => "ink",
        Ink::Muted => "muted",
        Ink::Rule => "rule",
        Ink::Allowed => "allowed",
        Ink::Refused => "refused",
        Ink::Water => "water",
        Ink::Shallow => "shallow",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        figures::bucket::scene,
        state::{
            caption::caption,
            scenario::{Action, Scenario},
            settings::Settings,
        },
    };

    const SHELL: &str = include_str!("../../../index.html");

    fn start() -> Scenario {
        Scenario::new(Settings::default()).unwrap()
    }

    #[test]
    fn the_still_picture_of_the_shell_is_the_figure_after_seven_seconds() {
        let mut scenario = start();
        scenario.apply(Action::Advance(7_080_000));
        let label = "Token bucket after 7 seconds at 6 requests a second on 4 tokens a second: the \
                     bucket is nearly empty, blue circles leave as 200, orange crosses as 429.";
        let picture = svg(&scene(&scenario, 872.0, 528.0, true), label);
        assert!(SHELL.contains(&picture), "index.html needs this picture:\n{picture}");
    }

    #[test]
    fn the_caption_of_the_shell_is_the_first_caption() {
        let caption = caption(&start());
        assert!(SHELL.contains(&caption), "index.html needs this caption:\n{caption}");
    }
}
