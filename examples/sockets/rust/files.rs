//! A file server: a client sends a name and a newline, the server answers with the file and closes.
//!
//! ```text
//! files serve 0.0.0.0:5005 /srv/files
//! files get 192.0.2.1:5005 NAME > copy
//! ```

use cutline_quality::spec::Preset;
use cutline_socket::{QosOptions, QosTcpListener, QosTcpStream};
use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::time::Duration;
use std::{env, thread};

const PATIENCE: Option<Duration> = Some(Duration::from_secs(10));

/// Reads the name and sends the file. A name with a slash is refused: it could lead out of the folder.
fn answer(mut stream: QosTcpStream, folder: &Path) -> io::Result<()> {
    stream.set_read_timeout(PATIENCE)?;
    stream.set_write_timeout(PATIENCE)?;
    let mut name = String::new();
    BufReader::new(stream.clone().take(256)).read_line(&mut name)?;
    let name = name.trim();
    let is_plain = !name.contains('/') && !name.starts_with('.');
    match File::open(folder.join(name)).ok().filter(|_| is_plain) {
        Some(mut file) => io::copy(&mut file, &mut stream).map(|_| ()),
        None => stream.write_all(b"no such file\n"),
    }
}

fn serve(address: &str, folder: &Path) -> Result<(), Box<dyn Error>> {
    let listener = QosTcpListener::bind(address, &QosOptions::sending(Preset::File.specification()))?;
    println!("port {}", listener.local_addr()?.port());
    thread::scope(|scope| {
        loop {
            let (stream, from) = listener.accept()?;
            scope.spawn(move || {
                if let Err(error) = answer(stream, folder) {
                    eprintln!("{from}: {error}");
                }
            });
        }
    })
}

fn get(address: &str, name: &str) -> Result<(), Box<dyn Error>> {
    let options = QosOptions::receiving(Preset::File.specification());
    let mut stream = QosTcpStream::connect(address, &options)?;
    stream.write_all(format!("{name}\n").as_bytes())?;
    let bytes = io::copy(&mut stream, &mut io::stdout())?;
    let rtt = stream.mib().tcp.map_or(0.0, |tcp| tcp.rtt.as_millis_f64());
    eprintln!("{bytes} bytes, round-trip time {rtt:.3} ms");
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", address, folder] => serve(address, Path::new(folder)),
        ["get", address, name] => get(address, name),
        _ => Err("files serve ADDRESS FOLDER | files get ADDRESS NAME".into()),
    }
}
