//! The pages of the guide that are generated from the code: docs/guide/transports.md lists the parameters of transports and
//! of adaptive hints, docs/guide/applications.md lists the parameters of applications, docs/guide/impairments.md those of
//! links that lose, reorder and delay, and docs/guide/specification.md those of QoS specifications and the specifications of the
//! classes.
//!
//! `make bless` regenerates them; review the diff.

use cutline_params::Choice as _;
use cutline_params::{Parameter, Parameters};
use cutline_quality::HintParams;
use cutline_quality::spec::{CapacityProfile, Preset, Specification};
use cutline_sim::{Aal5Params, ImpairmentParams};
use cutline_tables::specification;
use cutline_testbed::pages::check_page;
use cutline_testbed::repository::root;
use cutline_transport::app;
use cutline_transport::endpoint::{Defaults, TransportParams};
use std::fmt::Write as _;

const WRITTEN_BY: &str =
    "<!-- Written by crates/research/scenario/tests/guide_pages.rs from the parameters in the code. -->\n";

const TRANSPORTS: &str = "# Transports

`transport = { protocol = \"tcp\", ... }` accepts the keys below. With `defaults = \"ns-2\"`, keys that are not set have the values
of ns-2.35, and with `\"linux\"` those of Linux 6 (`cutline transport show tcp` has all three beside each other). `\"off\"` (or `\"none\"`) turns off parameters that can be turned off. `congestion-control = \"bbr\"` and
`\"bbr3\"` turn on `sack` and `rack` ([congestion controls](congestion-controls.md)).
";

const APPLICATIONS: &str = "# Applications

`app = { kind = \"cbr\", ... }` accepts the keys below. Required keys have no default. A value that may be a distribution is a
fixed quantity (`\"58 KB\"`, `\"2 s\"`, `3`) or one of

- `{ distribution = \"exponential\", mean = \"58 KB\" }`,
- `{ distribution = \"lognormal\", median = \"12 KB\", sigma = 1.3 }`: sigma is the standard deviation of the logarithm, up to 10,
- `{ distribution = \"pareto\", minimum = \"4 KB\", shape = 1.2, maximum = \"1 MB\" }`: without `maximum` the values are unbounded,
- `{ distribution = \"fixed\", value = \"58 KB\" }`.

Random times are at most one day.
";

const IMPAIRMENTS: &str = "# Links that lose, reorder and delay

`impairment = { loss = 0.01, jitter = \"2 ms\" }` of a link accepts the keys below. It applies to one direction:

| network | key | direction |
| --- | --- | --- |
| `[dumbbell]` | `impairment` | r1 to r2 |
| | `reverse-impairment` | r2 to r1 |
| | `access-impairment` | every access link, both directions |
| `[[link]]` | `impairment` | `from` to `to` |
| | `reverse-impairment` | `to` to `from`, if the link goes both ways |

The impairment acts on the wire, behind the queue. A packet that is lost has waited in the queue and has occupied the link for its
transmission time. The queue and its AQM do not see the loss: `dropped` of a queue does not count it, `lost` does.

- **Loss.** `loss` is the probability of each packet (Bernoulli). Bursts are the Gilbert-Elliott model: `to-bad` and the keys with it, in
  the place of `loss`. The mean loss is then B `loss-in-bad` + (1 - B) `loss-in-good`, where B = `to-bad` / (`to-bad` + `to-good`) is the
  share of packets that find the link in the bad state. Without losses in the good state, the mean burst is
  1 / (1 - (1 - `to-good`) `loss-in-bad`) packets. `{ to-bad = 0.004, to-good = 0.25 }` loses 1.6 %, in bursts of 4.
- **Jitter.** The propagation delay of each packet is the link's `delay` and a random part. The link stays a FIFO: a packet that would overtake
  arrives together with the one before it. That makes the mean delay longer than `delay` if packets follow each other within the jitter.
  `jitter-reorders = true` lets them overtake, and the mean is `delay`.
- **Reordering.** A packet is held back with the probability `reorder`, and arrives `reorder-delay` later than it would. The packets behind it
  overtake it, also if `jitter-reorders` is off. If nothing follows within `reorder-delay`, it is late but not reordered.

Random numbers come from streams of the link's own, one each for loss, reordering and jitter. An impairment changes no other draw, and the
same seed loses the same packets, in the simulator and in the [laboratory](lab.md), which has the same code. The laboratory with routers refuses
impairments.

In `queues.parquet` and `--json`, `lost` and `reordered` count the packets that the wire has lost and reordered, and
`lost_ratio` and `reordered_ratio` are their shares.
A packet is reordered if one that was sent later arrives earlier (RFC 4737). These columns are null for links without an impairment. `loss_ratio` and
`packets_dropped` of a flow count the packets that queues have dropped and those that links have lost.

## Cells

`aal5 = {}` of a `[[link]]` carries packets in cells of ATM, in both directions: 48 B of payload in 53 B, with a trailer of 8 B and
padding for each CSPDU. The link's `rate` is that of cells, and its queue counts packets. With `impairment = { loss = 1e-5, unit =
\"cell\" }` each cell is lost independently, and with it the CSPDU and the packet; with `to-bad` cells are lost in bursts. A packet of n
cells is lost with the probability 1 - (1 - `loss`)^n: one of 9148 B has 191 cells.

A connection with a constant bit rate (CBR) is a link of that rate in front of the shared one: its queue drops the packets that exceed
the rate. A \"direct\" connection (QUANTA section 2) is UDP with `header = \"0 B\"` over links with `aal5 = { encapsulation = \"0 B\" }`.

A connection with an available bit rate (ABR) is a flow with `transport = { protocol = \"abr\", pcr = \"50 Mbit/s\" }`
([its keys](transports.md)). A link with `aal5 = { encapsulation = \"0 B\", efci = 100 }` marks the cells that find more than 100 cells of
payload in its queue. RM cells carry the marks back to the source, and raise its rate up to `pcr`, or lower it down to `mcr`. If they do
not come back, the rate falls after `crm` of them. All ECN-capable traffic is marked, and no other. Beside traffic that fills the queue
and does not respond, such as TCP without ECN, a connection therefore falls to `mcr`. Explicit rates of switches are not modelled.

KEYS
## Beside netem

| netem | here |
| --- | --- |
| `loss 1%` | `loss = 0.01` |
| `loss gemodel p r 1-h 1-k` | `to-bad`, `to-good`, `loss-in-bad`, `loss-in-good`; the first state is drawn, netem begins in the good one |
| `delay 50ms 5ms` | `delay = \"50 ms\"` of the link and `jitter = \"5 ms\"`, with `jitter-reorders = true` |
| `distribution normal` | `jitter-distribution = \"normal\"` |
| `reorder 1%` | none: netem lets a packet pass the delay, `reorder` holds one back |
| correlations, `gap`, `loss state`, `pareto`, `paretonormal`, `duplicate`, `corrupt` | none |

## Keys

";

const SPECIFICATION: &str = "# QoS specifications

A specification states the requirements of an application on a connection: the acceptable rates of
messages, delays, jitter and losses of each direction. It is a class of application, or a file:

```toml
class = \"video\"              # where both directions start; without a class they demand nothing

[send]
min-rate = 60                # messages/s
size = \"1280 B\"
max-delay = \"100 ms\"
min-delay = \"off\"            # leaves it open
coerce = [\"min-rate\"]        # true: all; false: none

[receive]
class = \"telemetry\"
```

Every parameter may be left open, which demands nothing. A file whose name ends with `.json` has the
same as JSON:
`{\"class\": \"video\", \"send\": {\"max-delay\": \"100 ms\"}}`.

```
cutline spec list                             the classes
cutline spec show video --toml > mine.toml    a file to start from
cutline spec show mine.toml --figure region.svg
cutline spec agree mine.toml theirs.toml      what two ends agree on
```

## Parameters

A rate times the size is a throughput (QoSockets eq. 1). Limits go together: `min-rate` is at most `max-rate`, which is at most
`peak-rate`; `min-delay` is at most `max-delay`.

";

const AFTER_PARAMETERS: &str = "
The names of QoSockets are understood, too: `min_rate`, `max_rate`, `peak_rate`, `min_delay`, `max_delay`, `int_delay` (`max-gap`),
`rec_time` (`recovery`), `permt` (`reordering`). So are properties of TAPS (RFC 9622): `minSendRate` and `maxSendRate` in `[send]`,
`minRecvRate` and `maxRecvRate` in `[receive]` (bit rates, which become rates of messages by `size`), `reliability` (true is a loss of
0), `preserveOrder`, `connTimeout` (`recovery`), and, above the tables, `connCapacityProfile`. TAPS has no properties for delay, jitter, gaps, and losses between none and all.

## Two ends

Each end of a connection has a specification. Where they differ, the weaker value holds: the smaller rate or size, the longer delay, gap,
jitter and recovery, the larger loss, reordering rather than order. `coerce` names the parameters that an end is willing to weaken. If
an end would have to weaken another one, the two do not agree, and the parameter is named. An end whose value is the weaker one need not
coerce it. Limits of different ends can contradict each other, such as a `min-rate` of 50 and a `max-rate` of 40. Then the stronger demand,
which is the lower limit of a rate or the upper limit of a delay, is weakened, if its end coerces it.

`cutline spec agree` shows three values of each parameter: the offer of the first end, the request of the other end, and the value in effect.

## Region of operation

The acceptable values of each measure form the region of operation (QUANTA section 4). The rate goes from `max-rate`, the best, to
`min-rate`, the worst; delay from `min-delay` (0 if it is open) to `max-delay`; gap, jitter, loss and recovery from 0 to their limits. A
measure without a limit has no axis. `--figure` draws the region as a radar chart: an axis for each measure, from the worst value on
the inner ring to the best on the outer one. One or two axes are drawn as bars.

## Classes

Delays, jitter and losses are those of ITU-T G.1010 and Y.1541: `min-delay` is the one that users prefer, `max-delay` the longest that they accept. Rates and
sizes are typical; an application that knows better sets its own. All parameters are coerced. The capacity profile is the one of RFC
9622 that fits.

";

fn specifications() -> String {
    let mut page = format!("{WRITTEN_BY}{SPECIFICATION}");
    page += "| key | meaning | allowed |\n| --- | --- | --- |\n";
    for about in Specification::describe() {
        let _ = writeln!(page, "| `{}` | {} | {} |", about.name, about.doc, about.allowed());
    }
    page += AFTER_PARAMETERS;
    page += "| class | specification | capacity profile |\n| --- | --- | --- |\n";
    for preset in Preset::ALL {
        let spec = preset.specification();
        let set =
            specification::written(&spec).into_iter().map(|(name, value)| format!("`{name} = {value}`"));
        let profile = CapacityProfile::from_specification(&spec);
        let _ = writeln!(page, "| {} | {} | {profile} |", preset.name(), set.collect::<Vec<_>>().join(", "));
    }
    page
}

fn transports() -> String {
    let mut page = format!("{WRITTEN_BY}{TRANSPORTS}");
    for name in TransportParams::NAMES {
        let transport = TransportParams::from_values(name, Defaults::Rfc, []).unwrap();
        let _ = write!(page, "\n## {} (`{name}`)\n\n", transport.title());
        table(&mut page, &TransportParams::describe(name).unwrap());
    }
    page += "\n## Adaptive hints\n\n`hint = { adaptive = { ... } }` accepts the keys below, and `report`, the interval between two reports of the receiver.\n\n";
    table(&mut page, &HintParams::describe());
    page
}

fn impairments() -> String {
    let mut page = format!("{WRITTEN_BY}{IMPAIRMENTS}");
    table(&mut page, &ImpairmentParams::describe());
    let mut keys = String::new();
    table(&mut keys, &Aal5Params::describe());
    page.replace("KEYS\n", &format!("{keys}\n"))
}

fn applications() -> String {
    let mut page = format!("{WRITTEN_BY}{APPLICATIONS}");
    for about in app::describe() {
        let _ = write!(page, "\n## {} (`{}`)\n\nSource: {}.", about.title, about.name, about.source);
        if about.waits_for_delivery {
            page += " It waits for every byte to arrive, so it needs a reliable transport.";
        }
        if about.endless {
            page += " It needs a transport that adapts its rate.";
        }
        page += "\n\n";
        if about.parameters.is_empty() {
            page += "It has no parameters.\n";
        } else {
            table(&mut page, &about.parameters);
        }
    }
    page
}

fn table(page: &mut String, parameters: &[&Parameter]) {
    *page += "| key | meaning | allowed | default | default from |\n| --- | --- | --- | --- | --- |\n";
    for parameter in parameters {
        let Parameter { name, doc, source, .. } = parameter;
        let (allowed, default) = (parameter.allowed(), parameter.default_text());
        let _ = writeln!(page, "| `{name}` | {doc} | {allowed} | {default} | {source} |");
    }
}

fn check(name: &str, page: &str) {
    check_page(&root().join("docs/guide").join(name), page);
}

#[test]
fn the_page_of_transports_matches_the_parameters() {
    check("transports.md", &transports());
}

#[test]
fn the_page_of_impairments_matches_the_parameters() {
    check("impairments.md", &impairments());
}

#[test]
fn the_page_of_applications_matches_the_parameters() {
    check("applications.md", &applications());
}

#[test]
fn the_page_of_specifications_matches_the_parameters_and_classes() {
    check("specification.md", &specifications());
}

#[test]
fn the_defaults_of_every_transport_are_allowed() {
    for name in TransportParams::NAMES {
        for parameter in TransportParams::describe(name).unwrap() {
            assert_eq!(parameter.check(&parameter.default), Ok(()), "{name}: {}", parameter.name);
            assert!(!parameter.doc.is_empty() && !parameter.source.is_empty(), "{name}: {}", parameter.name);
        }
    }
}
