//! The page docs/guide/congestion-controls.md: its tables are simulated here. `CUTLINE_BLESS=1` writes the page.

use cutline_results::RunResult;
use cutline_scenario::{Scenario, ScenarioFile};
use cutline_testbed::pages::check_page;
use cutline_testbed::repository::root;
use cutline_transport::tcp;
use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

const PAGE: &str = "<!-- Written by crates/research/scenario/tests/congestion_controls.rs, which simulates the tables. -->
# Congestion controls

`transport = { protocol = \"tcp\", congestion-control = \"bbr\" }` chooses one of these, and those that are registered by programs
([extensions](extend.md)). Only `ledbat` has parameters, `ledbat-target` and `ledbat-gain`. The other keys of TCP are in [transports.md](transports.md), and
`cutline transport show tcp` prints them.

CONTROLS

## Window or model

NewReno, CUBIC and DCTCP grow a window until there is a loss or a mark. Segments leave when an acknowledgement makes room.

`prague` grows a window as DCTCP does, with a pacing rate of the window in a round trip. Acknowledgements have the count of marked segments
for it (accurate ECN), and growth and reductions are those of a flow with a round trip of 25 ms if its own is shorter.

`bbr` and `bbr3` *model the path*: its rate by the delivery rate of each flight, and its round trip by the least one. The model sets the
window, and a *pacing rate* at which segments leave one by one. A paced control needs the departure time of each segment and knowledge of its loss, so it turns on `sack` and `rack` (RFC 8985); `rack = false` beside it is an error. The sender marks samples in which the
application had too little to send. They do not lower the estimate, and raise it if they are higher.

Losses do not reduce the rate of `bbr`. `bbr3` bounds the flight when a round trip loses more than 2 % while it probes, and lowers its
rate when it does not. It takes an ECN mark as such a round trip, as its draft requires; `bbr` ignores marks, as Linux does.

## One flow

A link of 10 Mbit/s with a round trip of 40 ms, so a product of 50 kB; `defaults = \"linux\"`; 30 s without the first 5 s. A cell has
the utilisation of the link and the mean wait in its queue, as means of seeds 1 to 5 with the half width of the interval of 95 %.

ONE

With 1 % of random losses, CUBIC treats every loss as congestion. CUBIC fills a buffer of four
products. The window of two products keeps `bbr` at one product in the buffer.

## Two flows

The same link with a buffer of two products; the second flow starts 5 s after the first; 60 s without the first 20 s. A cell has the
share of the second flow in the goodput of both, with seeds as above.

TWO

## Against Linux

[The comparison with Linux's BBR](../validation/linux-bbr.md) has the same scenarios with `bbr` in the simulator and with the kernel's BBR
in the laboratory: one flow over three buffers, one beside CUBIC, four flows, and FQ-CoDel. Of 125 measures 96 agree and 29 are unclear.
Other programs kept the machine busy, so a difference is called unclear there as well. Two intervals are outside of their tolerance. Over a
buffer of four packets Linux loses 5.3 % and the simulation 3.8 %; without quanta Linux loses 4.0 %. Four flows over a buffer of one product
at 50 Mbit/s share more equally with Linux (Jain's index 0.85 and 0.71), which is not explained.

## Scalable senders

DualPI2 with its defaults at a link of 40 Mbit/s with the same round trip; `ecn = \"ect-1\"` for DCTCP and Prague, and `ecn = true` for CUBIC, which starts 5 s earlier.
The first row has the utilisation and the wait of the flow; the second the share of the scalable flow in the goodput of both. Times and seeds
are those of the tables above.

SCALABLE

Slow start of both ends with the first mark. Prague is paced at twice its window in slow start, so the mark comes at about half the product,
and its first reduction is to the half. On a long path, growth by a segment in each round trip then takes a while.

## Media

`transport = { protocol = \"nada\" }` is a video call whose encoder follows the network: NADA (RFC 8698). Ten reports in a second have the
queuing delay, the losses, the marks and the received rate. From them the sender computes a rate between `min-rate` and `max-rate`, and
with `app = { kind = \"bulk\" }` its encoder makes 30 frames in a second of that rate. Losses and marks count as delay.
[ADR 87](../adr/0087-media-sender.md) lists the choices where the RFC is silent, and the additions to it.

`cutline run examples/media.toml`: the link has 2.5 Mbit/s, from 40 s to 70 s 0.8 Mbit/s, and a round trip of 44 ms. The video has at most
1.5 Mbit/s. A cell has the goodput, the loss and the mean one-way delay of the video, of seeds 1 to 5.

MEDIA

Beside a transfer in the same queue, a sender that answers delay gets little: NADA counts a long wait less while packets are lost, and
still gets a fifth of the transfer's rate. Queues that serve flows in turn give it a share. With Sieve it loses less than with FQ-CoDel,
and waits longer.

## Background transfers

`ledbat` (RFC 6817) is for transfers that give way to others. It adds a queuing delay of `ledbat-target`, 100 ms by default, to the least round
trip of the last ten minutes. Below it the window grows as NewReno's does, and above it the window falls. Beside flows that fill a
buffer of more than the target, two segments are left. It yields slowly: at a delay of 2.4 targets, it gives up 1.4 segments in a round
trip. In `ledbat_yields_to_cubic_where_newreno_does_not`, a flow of `ledbat` that has a link of 10 Mbit/s with a buffer of 240 ms alone is down to
0.7 % of it 65 seconds after CUBIC has started; NewReno keeps 13 %. It yields to a CUBIC without RACK in 80 seconds, and CUBIC
then loses time to timeouts.

An AQM, or a queue for each flow, that keeps the delay below the target hides the other flows: the window then grows until there is a loss, and
`ledbat` gets a share. RFC 7928 section 5.4 tests queues for this, with `ledbat-target = \"5 ms\"` and `ledbat-gain = 10`. The
[suites](../studies/suites.md#background-transfers) have these cells.

## Not implemented

- *One-way delays.* RFC 6817 measures the delay of one way. Acknowledgements have no time of the receiver here, so `ledbat` measures round trips,
  which include a queue of acknowledgements.
- *Quanta.* Linux sends several segments together, up to 1 ms of its rate. Here each segment leaves by itself. The windows still have room
  for three quanta.
- *The handshake.* The first window leaves before the first round-trip time is known, at ten segments per millisecond times the gain.
- *ECN of Google's version 3* for data centres, which answers the share of marks: the draft does not have it, and `bbr3` is not scalable.
  It sends ECT(0) with `ecn = true`.
- *Packet conservation in `bbr3`.* The draft has none in recovery; `bbr` has it, and the detection of policers, as in Linux.
- *Reordering windows that grow*, and undoing a fast recovery: spurious losses are detected only after a timeout.
- *Pacing of the other controls.* Linux can pace them; here they are not paced.
- *Prague with windows below two segments*, which the draft has, and its fall-back at queues that mark all flows alike. Marks are counted
  in segments with 32 bits; the header of RFC 9768 has three bits, and an option counts bytes.
- *The variation of a real encoder* (RFC 8593): each frame of `nada` has the size of the target rate.

The laboratory requests the control of the same name from the kernel. Most kernels have `bbr` as a module (`modprobe tcp_bbr`). `bbr3` and `prague` need the kernels of their developers, and Linux has no `ledbat`.
";

const CONTROLS: [&str; 3] = ["cubic", "bbr", "bbr3"];

/// Quantile of Student's t for 5 replications and 95 %.
const T_OF_FOUR: f64 = 2.776;

/// Returns mean and half width of five values.
fn estimate(values: [f64; 5]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / 5.0;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, T_OF_FOUR * (squares / 20.0).sqrt())
}

fn simulate(text: &str) -> [RunResult; 5] {
    let scenario =
        Scenario::parse(text, "controls.toml").unwrap_or_else(|errors| panic!("{}", errors.render()));
    [1, 2, 3, 4, 5].map(|seed| scenario.simulate(seed, &AtomicBool::new(false)).unwrap())
}

fn flow(name: &str, control: &str, from: u32, more: &str) -> String {
    format!(
        "\n[[flow]]\nname = \"{name}\"\nstart = {{ from = \"{from} s\", to = \"{from}.2 s\" }}\n{more}\n\
         transport = {{ protocol = \"tcp\", defaults = \"linux\", congestion-control = \"{control}\" }}\n\
         app = {{ kind = \"bulk\" }}\n"
    )
}

fn link(mbit: u32, duration: u32, warm_up: u32, queue: &str, more: &str) -> String {
    format!(
        "name = \"controls\"\nduration = \"{duration} s\"\nwarm-up = \"{warm_up} s\"\n[dumbbell]\nrate = \"{mbit} Mbit/s\"\n\
         delay = \"15 ms\"\naccess-rate = \"1 Gbit/s\"\naccess-delay = \"2.5 ms\"\nqueue = {queue}\n{more}\n"
    )
}

fn of_all(cell: impl Fn(&str) -> String) -> String {
    CONTROLS.map(cell).join(" | ")
}

fn one() -> String {
    let product = |bytes| format!("{{ aqm = \"drop-tail\", limit = \"{bytes} KB\" }}");
    let codel = "{ aqm = \"codel\", limit = \"200 packets\", ecn = true }".to_owned();
    let cases = [
        ("a buffer of a quarter of the product", product("12.5"), "", ""),
        ("a buffer of one product", product("50"), "", ""),
        ("a buffer of four products", product("200"), "", ""),
        ("one product, 1 % of random losses", product("50"), "impairment = { loss = 0.01 }", ""),
        ("CoDel that marks (`ecn = true`)", codel, "", "ecn = true"),
    ];
    let mut table = String::from("| path | CUBIC | BBR | BBRv3 |\n| --- | --- | --- | --- |\n");
    for (name, queue, of_link, of_flow) in cases {
        let cell = |control: &str| {
            let runs = simulate(&(link(10, 30, 5, &queue, of_link) + &flow("bulk", control, 0, of_flow)));
            let queue = |run: &RunResult| run.queues.iter().find(|row| &*row.link == "r1->r2").cloned();
            let rows = runs.map(|run| queue(&run).unwrap());
            let (used, used_half) = estimate(rows.clone().map(|row| row.utilisation * 100.0));
            let (wait, wait_half) = estimate(rows.map(|row| row.delay_mean_ms.unwrap()));
            format!("{used:.1} ± {used_half:.1} %, {wait:.1} ± {wait_half:.1} ms")
        };
        let _ = writeln!(table, "| {name} | {} |", of_all(cell));
    }
    table
}

fn two() -> String {
    let mut table = String::from("| second flow | CUBIC | BBR | BBRv3 |\n| --- | --- | --- | --- |\n");
    for (name, first) in [("beside one of its kind", None), ("beside CUBIC", Some("cubic"))] {
        let cell = |control: &str| {
            let queue = "{ aqm = \"drop-tail\", limit = \"100 KB\" }";
            let flows = flow("first", first.unwrap_or(control), 0, "") + &flow("second", control, 5, "");
            share(simulate(&(link(10, 60, 20, queue, "") + &flows)))
        };
        let _ = writeln!(table, "| {name} | {} |", of_all(cell));
    }
    table
}

/// Returns the share of the second flow in the goodput of both.
fn share(runs: [RunResult; 5]) -> String {
    let share = |run: RunResult| {
        let goodput =
            |name: &str| run.flows.iter().find(|row| &*row.group == name).map_or(0.0, |row| row.goodput_bps);
        goodput("second") / (goodput("first") + goodput("second")) * 100.0
    };
    let (share, half) = estimate(runs.map(share));
    format!("{share:.0} ± {half:.0} %")
}

fn scalable() -> String {
    let queue = "{ aqm = \"dual-pi2\", limit = \"1 MB\" }";
    let controls = ["dctcp", "prague"];
    let alone = controls.map(|control| {
        let runs = simulate(&(link(40, 30, 5, queue, "") + &flow("bulk", control, 0, "ecn = \"ect-1\"")));
        let (used, used_half) = estimate(runs.clone().map(|run| {
            run.queues.iter().find(|row| &*row.link == "r1->r2").map_or(0.0, |row| row.utilisation * 100.0)
        }));
        let (wait, wait_half) = estimate(runs.map(|run| run.flows[0].queuing_mean_ms.unwrap()));
        format!("{used:.1} ± {used_half:.1} %, {wait:.1} ± {wait_half:.1} ms")
    });
    let beside = controls.map(|control| {
        let flows = flow("first", "cubic", 0, "ecn = true") + &flow("second", control, 5, "ecn = \"ect-1\"");
        share(simulate(&(link(40, 60, 20, queue, "") + &flows)))
    });
    format!(
        "| | DCTCP | Prague |\n| --- | --- | --- |\n| alone | {} |\n| beside CUBIC | {} |\n",
        alone.join(" | "),
        beside.join(" | ")
    )
}

fn media() -> String {
    let text = std::fs::read_to_string(root().join("examples/media.toml")).unwrap();
    let points = ScenarioFile::parse(&text, "media.toml").unwrap().expand().unwrap();
    let mut table = String::from("| queue | alone | beside a transfer |\n| --- | --- | --- |\n");
    for (aqm, name) in
        [("drop-tail", "drop-tail, 60 packets"), ("pie", "PIE"), ("fq-codel", "FQ-CoDel"), ("sieve", "Sieve")]
    {
        let cell = |transfers: u32| {
            let label = format!("dumbbell.queue.aqm={aqm},flow.transfer.count={transfers}");
            let point = points.iter().find(|point| point.label() == label).expect("it is in the sweep");
            let runs = [1, 2, 3, 4, 5].map(|seed| {
                let run = point.scenario.simulate(seed, &AtomicBool::new(false)).unwrap();
                run.flows.into_iter().find(|row| &*row.group == "video").unwrap()
            });
            let (goodput, half) = estimate(runs.clone().map(|row| row.goodput_bps / 1e3));
            let (loss, _) = estimate(runs.clone().map(|row| row.loss_ratio.unwrap() * 100.0));
            let (delay, _) = estimate(runs.map(|row| row.one_way_mean_ms.unwrap()));
            format!("{goodput:.0} ± {half:.0} kbit/s, {loss:.1} %, {delay:.0} ms")
        };
        let _ = writeln!(table, "| {name} | {} | {} |", cell(0), cell(1));
    }
    table
}

fn controls() -> String {
    let mut table = String::from(
        "| `congestion-control` | title | source | scalable | paced |\n| --- | --- | --- | --- | --- |\n",
    );
    for about in tcp::congestion_controls() {
        let yes = |flag| if flag { "yes" } else { "" };
        let (scalable, paced) = (yes(about.scalable), yes(about.paced));
        let _ = writeln!(
            table,
            "| `{}` | {} | {} | {scalable} | {paced} |",
            about.name, about.title, about.source
        );
    }
    table
}

#[test]
fn the_page_of_congestion_controls_has_the_simulated_values() {
    let page = PAGE
        .replace("CONTROLS\n", &controls())
        .replace("ONE\n", &one())
        .replace("TWO\n", &two())
        .replace("SCALABLE\n", &scalable())
        .replace("MEDIA\n", &media());
    check_page(&root().join("docs/guide/congestion-controls.md"), &page);
}
