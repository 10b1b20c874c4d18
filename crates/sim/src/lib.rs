//! calendar
pub mod calendar;
pub mod measure;
