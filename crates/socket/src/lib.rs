//! QoS sockets.
mod keeper;
