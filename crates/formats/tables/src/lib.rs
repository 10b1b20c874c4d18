//! Tables that several kinds of TOML file have in common.
//!
//! [`queue`] reads the table of a queue, which scenarios and the router's file share; its lengths in packets or bytes are in
//! `lengths`. [`specification`] reads the requirements of a connection's directions, and [`application`] the parameters of a class of
//! applications.

pub mod application;
mod lengths;
pub mod queue;
pub mod specification;
