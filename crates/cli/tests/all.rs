//! The tests of this crate that use it from outside, in one program: it is linked once, and its tests run beside each other.

mod common;

mod baseline;
mod cli;
mod doctor;
mod exec;
mod exec_ordinary;
mod exec_peers;
mod explain;
mod foreign_text;
mod gateway;
mod lab;
mod monitor;
mod output_files;
mod plot;
mod qdisc;
mod router;
mod router_attacks;
mod router_autorate;
mod router_check;
mod router_faults;
mod router_reservations;
mod router_service;
mod router_tun;
mod router_xdp;
mod schemas;
mod snmp;
mod stored_results;
mod tg;
mod traces;
mod tutorials;
mod unread_outputs;
mod zones;
