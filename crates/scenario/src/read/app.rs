//! Applications: `app = { kind = "bulk" | "cbr" | "poisson" | "on-off" | "files" | "request-response" | "talk-spurt", ... }`.

use super::distribution;
use crate::lower;
use crate::spec::{AppSpec, Distribution};
use cutline_config::{Kind, TableReader, kind};
use cutline_units::{Bytes, Duration, Rate};

const EXPECTED: &str = "a table such as { kind = \"bulk\" }";

const KINDS: [&str; 7] = ["bulk", "cbr", "on-off", "files", "request-response", "talk-spurt", "poisson"];

/// Mean talk spurt and pause of a speaker in conversation, ITU-T P.59 table 1.
const TALK: Duration = Duration::from_millis(1004);
const SILENCE: Duration = Duration::from_millis(1587);

pub(super) fn read(flow: &TableReader<'_>) -> Option<AppSpec> {
    if !flow.has("app") {
        flow.lacks("app", EXPECTED);
    }
    let reader = flow.table("app", EXPECTED)?;
    let kinds = kind::one_of("a kind of application", &KINDS.map(|kind| (kind, kind)));
    let Some(kind) = reader.required("kind", &kinds) else {
        reader.report_missing();
        return None;
    };
    let app = match kind {
        "cbr" => messages(&reader).map(|(rate, size)| AppSpec::Cbr { rate, size }),
        "poisson" => poisson(&reader),
        "on-off" => on_off(&reader),
        "files" => files(&reader),
        "request-response" => request_response(&reader),
        "talk-spurt" => talk_spurt(&reader),
        _ => Some(AppSpec::Bulk),
    };
    reader.finish();
    app
}

/// The word for an application in the file.
pub(super) fn kind_name(app: &AppSpec) -> &'static str {
    match app {
        AppSpec::Bulk => KINDS[0],
        AppSpec::Cbr { .. } => KINDS[1],
        AppSpec::OnOff { .. } => KINDS[2],
        AppSpec::Files { .. } => KINDS[3],
        AppSpec::RequestResponse { .. } => KINDS[4],
        AppSpec::TalkSpurt { .. } => KINDS[5],
        AppSpec::Poisson { .. } => KINDS[6],
    }
}

/// The size of the messages of an application that sends in messages.
pub(super) fn message_size(app: &AppSpec) -> Option<Bytes> {
    match app {
        AppSpec::Cbr { size, .. } | AppSpec::OnOff { size, .. } | AppSpec::TalkSpurt { size, .. } => {
            Some(*size)
        }
        AppSpec::Poisson { size: Distribution::Fixed(size), .. } => Some(*size),
        _ => None,
    }
}

/// Rate and size of messages at regular intervals.
fn messages(reader: &TableReader<'_>) -> Option<(Rate, Bytes)> {
    let rate = reader.required("rate", &kind::rate());
    let size = reader.required("size", &kind::packet_size());
    let (rate, size) = (rate?, size?);
    if rate.transmission_time(size).is_zero() {
        let why = format!("at this rate messages of {size} would be less than 1 ns apart");
        reader.refuse("rate", &why);
        return None;
    }
    Some((rate, size))
}

fn poisson(reader: &TableReader<'_>) -> Option<AppSpec> {
    let rate = reader.required("rate", &kind::rate());
    let size = distribution::required(reader, "size", kind::packet_size);
    let app = AppSpec::Poisson { rate: rate?, size: size? };
    if let Err(error) = lower::application(&app).validate() {
        reader.refuse(&error.parameter, &error.allowed);
    }
    Some(app)
}

fn on_off(reader: &TableReader<'_>) -> Option<AppSpec> {
    let messages = messages(reader);
    let on = distribution::required(reader, "on", kind::positive_duration);
    let off = distribution::required(reader, "off", kind::positive_duration);
    let (rate, size) = messages?;
    Some(AppSpec::OnOff { rate, size, on: on?, off: off? })
}

fn files(reader: &TableReader<'_>) -> Option<AppSpec> {
    let size = distribution::required(reader, "size", kind::positive_size);
    let think_time = distribution::or(reader, "think-time", kind::duration, Duration::ZERO);
    Some(AppSpec::Files { size: size?, think_time: think_time? })
}

fn request_response(reader: &TableReader<'_>) -> Option<AppSpec> {
    let object = distribution::required(reader, "object", kind::positive_size);
    let embedded = distribution::or(reader, "embedded", not_negative, 0.0);
    let think_time = distribution::or(reader, "think-time", kind::duration, Duration::ZERO);
    let request_delay = reader.or("request-delay", &kind::duration(), Duration::ZERO);
    Some(AppSpec::RequestResponse {
        object: object?,
        embedded: embedded?,
        think_time: think_time?,
        request_delay,
    })
}

fn not_negative() -> Kind<f64> {
    kind::number().only("at least 0", |number| *number >= 0.0)
}

fn talk_spurt(reader: &TableReader<'_>) -> Option<AppSpec> {
    let messages = messages(reader);
    let talk = reader.or("talk", &kind::positive_duration(), TALK);
    let silence = reader.or("silence", &kind::positive_duration(), SILENCE);
    let (rate, size) = messages?;
    Some(AppSpec::TalkSpurt { rate, size, talk, silence })
}
