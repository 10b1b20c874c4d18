//! Tests of the service with real clients.

mod admission;
mod common;
mod hostile;
mod hosts;
mod kernel_classes;
mod many_clients;
mod pages;
mod processes;
mod restart;
