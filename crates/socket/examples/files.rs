//! A file server, and its client. A client sends a name and a newline; the server answers with the length, 8 bytes, and the file.
//!
//! ```text
//! cargo run -p cutline-socket --example files -- serve 0.0.0.0:5008 FOLDER
//! cargo run -p cutline-socket --example files -- fetch 192.0.2.1:5008 NAME > COPY
//! ```
//!
//! It works with plain clients and servers as well: `printf 'NAME\n' | nc 192.0.2.1 5008`.

use cutline_quality::spec::Preset;
use cutline_socket::{QosOptions, QosTcpListener, QosTcpStream};
use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::thread;

/// The length that stands for a file that there is not.
const NONE: u64 = u64::MAX;
/// The longest name, bytes.
const LONGEST: u64 = 255;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", address, folder] => serve(address, Path::new(folder)),
        ["fetch", address, name] => fetch(address, name),
        _ => Err("files serve ADDRESS FOLDER | files fetch ADDRESS NAME".into()),
    }
}

/// A file is to arrive complete and in order, at any rate.
fn options() -> QosOptions {
    QosOptions::both(Preset::File.specification())
}

fn serve(address: &str, folder: &Path) -> Result<(), Box<dyn Error>> {
    let listener = QosTcpListener::bind(address, &options())?;
    eprintln!("serving at {}", listener.local_addr()?);
    thread::scope(|scope| {
        loop {
            let (client, from) = listener.accept()?;
            scope.spawn(move || {
                if let Err(error) = give(&client, folder) {
                    eprintln!("{from}: {error}");
                }
            });
        }
    })
}

fn give(mut client: &QosTcpStream, folder: &Path) -> io::Result<()> {
    let mut name = String::new();
    BufReader::new(client.take(LONGEST + 1)).read_line(&mut name)?;
    let name = name.trim_end();
    // Only files of the folder itself.
    let is_plain = Path::new(name).file_name().is_some_and(|file| file == name);
    let file = File::open(folder.join(name)).ok().filter(|_| is_plain);
    let Some(mut file) = file else {
        return client.write_all(&NONE.to_be_bytes());
    };
    client.write_all(&file.metadata()?.len().to_be_bytes())?;
    io::copy(&mut file, &mut client)?;
    let mib = client.mib();
    eprintln!(
        "{name}: {} B sent, {} segments again",
        mib.send.sent.bytes,
        mib.tcp.unwrap_or_default().retransmissions
    );
    Ok(())
}

fn fetch(address: &str, name: &str) -> Result<(), Box<dyn Error>> {
    let mut server = QosTcpStream::connect(address, &options())?;
    writeln!(server, "{name}")?;
    let mut length = [0; 8];
    server.read_exact(&mut length)?;
    let length = u64::from_be_bytes(length);
    if length == NONE {
        return Err(format!("there is no file {name:?}").into());
    }
    let copied = io::copy(&mut (&server).take(length), &mut io::stdout().lock())?;
    if copied < length {
        return Err(format!("the connection ended after {copied} of {length} B").into());
    }
    let mib = server.mib();
    eprintln!(
        "{copied} B in {} messages, peer is a QoS socket: {}",
        mib.receive.received.messages,
        server.has_qos_peer()?
    );
    Ok(())
}
