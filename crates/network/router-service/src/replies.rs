//! Replies of a router's socket: lines of JSON.

use crate::configuration::Configuration;
use crate::statistics::{ReloadStatus, ReservationStatistics, Statistics, StatisticsError, json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A router's reply to a request that it refuses.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Refusal")]
pub struct ErrorReply {
    /// `error`.
    #[schemars(extend("const" = "error"))]
    event: String,
    /// Reason of the refusal.
    error: String,
}

/// A router's reply to `config`.
#[derive(Serialize, JsonSchema)]
pub struct ConfigurationReply {
    /// `config`.
    #[schemars(extend("const" = "config"))]
    event: &'static str,
    /// The router's configuration.
    config: Configuration,
}

/// A router's reply to `reload status`.
#[derive(Serialize, JsonSchema)]
pub struct ReloadReply<'s> {
    /// `reload`.
    #[schemars(extend("const" = "reload"))]
    event: &'static str,
    /// The status of reloads; null for a router without a file.
    reload: Option<&'s ReloadStatus>,
}

/// A router's reply to a request that has changed the reservations.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ReservationDone {
    /// `done`.
    #[schemars(extend("const" = "done"))]
    event: String,
    /// The number of the reservation.
    reservation: u64,
}

/// The last line of a router's reply to `reservations`.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ReservationsEnd {
    /// `reservations`.
    #[schemars(extend("const" = "reservations"))]
    event: String,
    /// The number of reservations in both directions.
    pub reservations: u64,
}

/// A line that a router's socket answers with.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub enum SocketReply {
    /// To `stats` and `watch`.
    Statistics(Box<Statistics>),
    /// To `config`.
    Configuration(Box<ConfigurationReply>),
    /// To `reload status`.
    Reload(ReloadReply<'static>),
    /// To `reservations`, for each of them.
    Reservation(Box<ReservationStatistics>),
    /// To `reservations`, at the end.
    ReservationsEnd(ReservationsEnd),
    /// To a JSON object that reserves.
    ReservationDone(ReservationDone),
    /// To anything else.
    Error(ErrorReply),
}

impl ErrorReply {
    /// Returns an error if the line is a refusal.
    pub fn check(line: &str) -> Result<(), StatisticsError> {
        match serde_json::from_str(line) {
            Ok(Self { error, .. }) => Err(StatisticsError::Refused(error)),
            Err(_) => Ok(()),
        }
    }

    pub fn new(error: &impl ToString) -> Self {
        Self { event: "error".to_owned(), error: error.to_string() }
    }

    pub fn json(&self) -> String {
        json(self)
    }
}

impl ConfigurationReply {
    pub fn new(config: Configuration) -> Self {
        Self { event: "config", config }
    }

    pub fn json(&self) -> String {
        json(self)
    }
}

impl<'s> ReloadReply<'s> {
    pub fn new(reload: Option<&'s ReloadStatus>) -> Self {
        Self { event: "reload", reload }
    }

    pub fn json(&self) -> String {
        json(self)
    }
}

impl ReservationDone {
    pub fn new(reservation: u64) -> Self {
        Self { event: "done".to_owned(), reservation }
    }

    pub fn json(&self) -> String {
        json(self)
    }
}

impl ReservationsEnd {
    pub fn new(reservations: u64) -> Self {
        Self { event: "reservations".to_owned(), reservations }
    }

    pub fn json(&self) -> String {
        json(self)
    }
}
