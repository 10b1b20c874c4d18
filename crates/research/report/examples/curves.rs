//! Writes the quality curves as SVG, PNG and PDF: `cargo run -p cutline-report --example curves -- DIRECTORY`.

use cutline_report::chart::Format;
use cutline_report::curves;
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| "curves".into()));
    std::fs::create_dir_all(&directory)?;
    for curves::NamedFigure { id, figure } in curves::all() {
        for format in Format::ALL {
            let file = directory.join(format!("{id}.{}", format.extension()));
            std::fs::write(&file, figure.file(id, format)?)?;
            println!("{}", file.display());
        }
    }
    Ok(())
}
