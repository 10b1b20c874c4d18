//! The page of the guide about translation, written from the translators.
//!
//! `make bless` writes it again; review the diff.

use cutline_params::{Parameter, Parameters as _};
use cutline_quality::spec::CapacityProfile;
use cutline_testbed::pages::check_page;
use cutline_testbed::repository::root;
use cutline_translate::{
    ApplicationProfile, Path, Protocol, Service, Translation, TranslationRequest, code_point, selection,
    translate,
};
use cutline_units::Duration;
use std::fmt::Write as _;

const HEAD: &str = "<!-- Written by crates/core/translate/tests/guide_pages.rs from the code. -->
# Translation

An application states its needs in its own words: a codec, frames per second, a file by noon. A host
has sockets with buffers and options, and a network has code points and reservations. Translation
derives settings from needs in two steps (QUANTA section 3):

1. the words of a class of applications become a generic [specification](specification.md): rates, delays, losses;
2. the specification becomes settings of the host for one protocol, and marks or requests for one service of the network.

So a new class needs no knowledge of protocols, and a new protocol none of classes. `cutline translate` shows every value with its
reason, and changes nothing:

```
cutline translate audio --rtt 300ms                 a class with its defaults
cutline translate video --set bit-rate=\"4 Mbit/s\"   with other parameters
cutline translate mine.toml --set send.loss=2       a specification (docs/guide/specification.md)
cutline translate game --protocol r-udp --json      another protocol; as JSON
```

`--protocol` and `--service` choose the cases that are described below. `--rtt`, `--rate`, `--mtu`, `--loss` and `--ipv6` describe the path.
Demands that no setting can meet, such as a shorter delay than the path has, are listed at the end.

`--baseline FILE` replaces rules by measurements of this host and the path ([baseline.md](baseline.md)): the block of TCP, the receive buffer
of datagrams, the bandwidth to request, and the largest rate.

**A setting is left as it is unless something is demanded.** The kernel tunes TCP's buffers better than any fixed value would be,
and a buffer that is set by hand is no longer tuned.

## Classes

Each class has its own parameters. With the defaults its specification is the one in [specification.md](specification.md). An
application sends and receives alike.
";

const PATH: &str = "
## The path

A value that is not known is assumed only where one is necessary. A value that is only assumed never limits a throughput.

| option | meaning | allowed |
| --- | --- | --- |
";

const SELECTION: &str = "
## Protocol

If the application leaves it open, the first rule that applies chooses:

| when | protocol | why |
| --- | --- | --- |
";

const AFTER_SELECTION: &str = "
With `--service reservation` it is the reserved form, `r-tcp` or `r-udp`. `direct` is never chosen: it must be stated.

| protocol | |
| --- | --- |
";

const END_SYSTEM: &str = "
## Settings of the host

The delay that the path leaves, `max-delay` less half the round-trip time, is divided into eight **shares**. The sender's buffer, a
queue of the path, and the spreading of a message get one each. The other five are for further queues, the codec, the play-out
buffer and the receiving host.

| setting | TCP | UDP and frames |
| --- | --- | --- |
| `send-buffer` (`SO_SNDBUF`) | the data of a round trip and `max-delay`, if both and the rate are known and a host allows it (212,992 B); else the kernel's tuning | the data of a share, at least two messages; without `max-delay` the default |
| `receive-buffer` (`SO_RCVBUF`) | the kernel's tuning | the data of 100 ms, if that is more than the default |
| `block`: one write | a message, up to 64 KiB; 8 KiB if its size is open; 64 KiB without `max-delay` | a message that fits a packet, or several datagrams that leave together |
| `no-delay` (`TCP_NODELAY`) | on if delay, gap or jitter are bounded | |
| `not-sent-lowat` (`TCP_NOTSENT_LOWAT`) | the data of a share, at least a segment; ten segments if the rate is open | |
| `mss` (`TCP_MAXSEG`) | the path's, if its MTU is known to be below 1500 B; less if a packet takes longer than a share on the path, at least 536 B (1220 B with IPv6) | |
| `congestion-control` | `bbr` if the path's known loss would keep others below `min-rate`; never with a reservation | |
| `pacing` | the peak and a tenth, by the kernel (`SO_MAX_PACING_RATE`) | the peak, by the sender: the kernel ignores the option of UDP sockets |
| `gso-segment` (`UDP_SEGMENT`) | | the datagram, if those of a message (at most ten) or of a millisecond are more than one |

A share is at least 2 ms in the sender, which a host may take to wake it. A message of several packets is paced faster than the peak
if it would not leave within a share otherwise. Nothing is paced faster than the path. The kernel doubles the values of `SO_SNDBUF`
and `SO_RCVBUF` and uses one half for bookkeeping; the values here are those before.

UDP has no congestion control. An application must send less when its messages are lost.

## Services of the network

| service | |
| --- | --- |
";

const HINT: &str = "
### Delay hints

A level stands for 5 ms in a queue. The level is the largest whose delay is within one share, within `jitter`, and within what
`max-gap` leaves between two messages; at least 1, at most 16. Routers with TSQ charge cutting in line with drops: level 1 up to 7.1
times those of level 16, level 6 up to 2.9 times. The level is therefore not so low that more is lost than the specification accepts
(1 % of the packets where nothing may be lost, since TCP repeats them). If both contradict each other, loss decides. Level 16 is
that of unmarked packets, so they stay unmarked. The code point of the other levels is `(level - 1) * 4 + 3`.

Without known loss, over a round-trip time of:

| class | 10 ms | 50 ms | 300 ms |
| --- | --- | --- | --- |
";

const DIFFSERV: &str = "
### Standard code points

A constant rate of up to 128 kbit/s with a delay of up to 400 ms is a telephone call: EF (RFC 4594 section 4.1). Otherwise the
capacity profile decides (RFC 9622 section 8.1.6): the one that the file states, or the one that fits.

| capacity profile | code point | from |
| --- | --- | --- |
";

const RESERVATION: &str = "
### Reservation

A token bucket for controlled load (RFC 2211, RFC 2215 section 3.6), for each direction whose rate and size are known. Bytes count
from the IP header on.

| | | |
| --- | --- | --- |
| `bandwidth` | r | the useful rate (`max-rate`, else `min-rate`) with headers, and a tenth more: QUANTA table 2 shows losses and a round trip of a second where exactly the load was reserved |
| `bucket` | b | the longest message, and the excess of a second at `peak-rate` over the useful rate; at least a packet |
| `peak` | p | the peak with headers, or the pace if that is faster |
| `min-policed` | m | the last packet of the longest message; with TCP a header, for acknowledgements |
| `max-packet` | M | the longest packet |

With `r-tcp`, a direction also has an acknowledgement for each packet of the other one: a reserved TCP loses its rate if its
acknowledgements are not reserved (QoSockets section IV). Worked, for a video of 60, 80 and at most 100 messages/s of 1280 B over
UDP: a packet has 1308 B, so the bandwidth is 80 x 1308 B x 8 x 1.1 = 920,832 bit/s and the bucket 21 x 1308 B = 27,468 B.

## In a program

`cutline_translate::translate` takes two specifications, a protocol, a service and a path, and returns `EndSystemSettings` and
`NetworkSettings`, each value with its reason. It opens no socket and measures nothing.
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    for class in ApplicationProfile::NAMES {
        let application = ApplicationProfile::from_values(class, []).unwrap();
        let _ = write!(page, "\n### {class}: {}\n\n", application.title());
        page += "| key | meaning | allowed | default | default from |\n| --- | --- | --- | --- | --- |\n";
        for about in ApplicationProfile::describe(class).unwrap() {
            let Parameter { name, doc, source, .. } = about;
            let default = about.with_unit(&about.default);
            let _ = writeln!(page, "| `{name}` | {doc} | {} | {default} | {source} |", about.allowed());
        }
    }
    page += PATH;
    for about in Path::describe().into_iter().filter(|about| about.name != "ip") {
        let _ = writeln!(page, "| `--{}` | {} | {} |", about.name, about.doc, about.allowed());
    }
    page += "| `--ipv6` | The path has IPv6, whose headers are 20 B longer than those of IPv4 | |\n";
    page += SELECTION;
    for rule in selection::RULES {
        let _ = writeln!(page, "| {} | `{}` | {} |", rule.when, rule.protocol, rule.reason);
    }
    page += AFTER_SELECTION;
    for protocol in Protocol::ALL {
        let _ = writeln!(page, "| `{protocol}` | {} |", protocol.title());
    }
    page += END_SYSTEM;
    for service in Service::ALL {
        let _ = writeln!(page, "| `{service}` | {} |", service.title());
    }
    page += HINT;
    for class in ApplicationProfile::NAMES {
        let levels = [10, 50, 300].map(|rtt| level(class, Duration::from_millis(rtt)).to_string());
        let _ = writeln!(page, "| {class} | {} |", levels.join(" | "));
    }
    page += DIFFSERV;
    for profile in CapacityProfile::ALL {
        let (name, source) = code_point(profile).map_or_else(
            || ("unmarked".to_owned(), "RFC 2474 section 4.1"),
            |(dscp, source)| (dscp.to_string(), source),
        );
        let _ = writeln!(page, "| {profile} | {name} | {source} |");
    }
    page + RESERVATION
}

/// The level of the hint of a class over a path.
fn level(class: &str, rtt: Duration) -> u16 {
    let application = ApplicationProfile::from_values(class, []).unwrap();
    let path = Path { rtt: Some(rtt), ..Path::default() };
    let request = TranslationRequest { path, ..TranslationRequest::from_application(&application).unwrap() };
    let Translation { network, .. } = translate(&request).unwrap();
    network.hint.unwrap().level()
}

#[test]
fn the_page_of_translation_matches_the_code() {
    check_page(&root().join("docs/guide/translation.md"), &page());
}
