//! Parts that every service needs around its work.
//!
//! ```text
//! socket_file   the file of a local socket, which replaces that of a process that has ended
//! sd_notify     messages to the service manager
//! sighup        SIGHUP as a flag
//! regular_file  reading its file, if that is a regular file that is not too long
//! output_queue  output that never blocks
//! lines         lines over a local stream socket: found in received bytes, and the client's end
//! accepter      connections of a listener, also when no descriptor is left
//! line_server   the clients of a service, whose requests and answers are lines
//! json_lines    the client of a service whose lines are documents in JSON
//! ```

mod accepter;
mod json_lines;
mod line_server;
mod lines;
mod output_queue;
pub mod regular_file;
mod sd_notify;
mod sighup;
mod socket_file;

pub use accepter::{AcceptedStream, Accepter};
pub use json_lines::{JsonLineClient, JsonLineError, LocalService};
pub use line_server::{ClientNumber, ClientProcess, LineServer, LineServerOptions};
pub use lines::{ExchangeError, LineBuffer, LineClient, LineTooLong};
pub use output_queue::{FlushResult, OutputQueue, OutputSender};
pub use sd_notify::SdNotify;
pub use sighup::SighupWatcher;
pub use socket_file::SocketFile;
