//! Writes the quality curves as SVG and PNG: `cargo run -p cutline-report --example curves -- DIRECTORY`.

use cutline_report::chart::Theme;
use cutline_report::curves;
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| "curves".into()));
    std::fs::create_dir_all(&directory)?;
    for curves::NamedFigure { id, figure } in curves::all() {
        std::fs::write(directory.join(format!("{id}.svg")), figure.svg(id, Theme::Paper))?;
        std::fs::write(directory.join(format!("{id}.png")), figure.png()?)?;
        println!("{}", directory.join(format!("{id}.png")).display());
    }
    Ok(())
}
