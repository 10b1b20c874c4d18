//! The table of a baseline as text.

use crate::table::{Table, cells, number, titles};
use cutline_baseline::{BaselineDocument, BaselineRow};
use cutline_translate::Protocol;
use cutline_units::Rate;
use std::fmt::Write as _;

/// Test whether a row belongs to a step.
type IsOf = fn(&BaselineRow) -> bool;

/// Returns host, path, measurements and their results.
pub fn show(document: &BaselineDocument) -> String {
    let host = &document.host;
    let mut text = format!(
        "{} ({}, {} processors) to {}, packets of up to {} B; {}\n",
        host.name,
        host.kernel,
        host.processors,
        document.path.receiver,
        document.path.mtu,
        times(document)
    );
    let steps: [(&str, IsOf); 3] = [
        ("Without a limit: as fast as the socket takes the blocks", |row| row.load_bps.is_none()),
        ("At a load", |row| row.load_bps.is_some() && row.requested_percent.is_none()),
        ("At a load, into a requested bandwidth, per cent of the load with headers", |row| {
            row.requested_percent.is_some()
        }),
    ];
    for (title, is_of) in steps {
        let mut table = Table::new(2, &titles::<BaselineRow>());
        for row in document.rows.iter().filter(|row| is_of(row)) {
            table.add(cells(row));
        }
        if !table.is_empty() {
            let _ = write!(text, "\n{title}:\n\n{}", table.render());
        }
    }
    text + &results(document)
}

fn times(document: &BaselineDocument) -> String {
    let day = |seconds: u64| {
        let at = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
        at.map_or_else(|| "-".to_owned(), |at| at.strftime("%Y-%m-%d %H:%M UTC").to_string())
    };
    if document.rows.is_empty() {
        return "no measurements".to_owned();
    }
    format!("{} measurements until {}", document.rows.len(), day(document.ended_s))
}

/// Returns the conclusions of the translators for each protocol.
fn results(document: &BaselineDocument) -> String {
    let baseline = document.baseline();
    let mut text = String::new();
    for protocol in [Protocol::Tcp, Protocol::Udp, Protocol::Direct] {
        if let Some(most) = baseline.ceiling(protocol) {
            let _ = writeln!(
                text,
                "{protocol} carried up to {} Mbit/s with at most 0.1 % lost.",
                number(most.as_bps() as f64 * 1e-6)
            );
        }
        let mut loads: Vec<u64> = document
            .rows
            .iter()
            .filter(|row| row.requested_percent.is_some())
            .filter_map(|row| row.load_bps)
            .collect();
        loads.sort_unstable();
        loads.dedup();
        for load in loads.into_iter().map(Rate::from_bps) {
            match baseline.margin(protocol, load).filter(|margin| margin.load == load) {
                Some(margin) => {
                    let _ = writeln!(
                        text,
                        "{protocol} at {load}: {:.0} % of the load with headers is enough for no loss and no queue.",
                        margin.ratio * 100.0
                    );
                }
                None if has_margins(document, protocol, load) => {
                    let _ = writeln!(
                        text,
                        "{protocol} at {load}: with every requested bandwidth something was lost."
                    );
                }
                None => {}
            }
        }
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

fn has_margins(document: &BaselineDocument, protocol: Protocol, load: Rate) -> bool {
    document.rows.iter().any(|row| {
        row.requested_percent.is_some()
            && row.protocol == protocol.name()
            && row.load_bps == Some(load.as_bps())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_measured_protocol_has_its_results() {
        let row = |protocol: &str, requested_percent| BaselineRow {
            protocol: protocol.to_owned(),
            block: 8192,
            load_bps: Some(10_000_000),
            requested_percent,
            throughput_bps: 1e7,
            loss_ratio: Some(0.0),
            delay_ms: Some(1.0),
            ..BaselineRow::default()
        };
        let rows = vec![row("udp", None), row("direct", None), row("direct", Some(120))];
        let text = results(&BaselineDocument { rows, ..BaselineDocument::default() });
        for says in
            ["udp carried up to 10", "direct carried up to 10", "direct at 10 Mbit/s: 120 % of the load"]
        {
            assert!(text.contains(says), "{text}");
        }
        assert!(!text.contains("tcp") && !text.contains("udp at"), "{text}");
    }
}
