//! Figures 2 to 5: the quality curves. Nothing is simulated; the formulas are checked against the paper's numbers.

use cutline_quality::Class;
use cutline_report::curves;
use cutline_report::report::Section;
use cutline_study::FigureText;
use cutline_units::{Duration, Rate};

pub(super) fn section(figure: &FigureText) -> Section {
    let drawn = match figure.number {
        2 => curves::audio_delay(),
        3 => curves::audio_throughput(),
        4 => curves::video_throughput(),
        _ => curves::file_throughput(),
    };
    Section {
        we_see: "The formulas give the paper's numbers, within the rounding of its text.".into(),
        figures: vec![(format!("figure-{}", figure.number), drawn)],
        claims: figure.judge_values("curves", value),
        notes: notes(figure.number),
        ..Section::default()
    }
}

/// The classes that the paper leaves to future work, and the E-model as a second measure of audio.
pub(super) fn beyond() -> Section {
    Section {
        id: "further-classes".into(),
        heading: "Beyond the paper: web, games, and the E-model".into(),
        paper_says: "Other applications have other requirements, and there may be other ways to measure quality. The paper \
                     leaves them to future work (section 6)."
            .into(),
        we_see: "Web pages (ITU-T G.1030 between Nielsen's limits) and networked games (Claypool and Claypool 2006) compared with \
                 the paper's three classes, and the E-model (ITU-T G.107) compared with its audio curve. Both audio curves are flat \
                 up to about 150 ms and fall beyond. The E-model begins lower, because it includes the impairment by the codec, \
                 and falls less steeply. It also depends on loss, which the paper's curves do not."
            .into(),
        figures: vec![("classes".into(), curves::classes()), ("voice".into(), curves::voice())],
        ..Section::default()
    }
}

/// The value of the formula for which the text gives a number.
fn value(id: &str) -> Option<f64> {
    let delay = |ms| Class::Audio.delay_quality(Duration::from_millis(ms)).get();
    let throughput = |class: Class, kbps| class.throughput_quality(Rate::from_kbps(kbps)).get();
    let file = |size_kbit| Class::FileTransfer { size_kbit };
    Some(match id {
        "delay-150" => delay(150),
        "delay-300" => delay(300),
        "delay-400" => delay(400),
        "delay-525" => delay(525),
        "throughput-128" => throughput(Class::Audio, 128),
        "throughput-64" => throughput(Class::Audio, 64),
        "throughput-32" => throughput(Class::Audio, 32),
        "throughput-2" => throughput(Class::Audio, 2),
        "video-1500" => throughput(Class::Video, 1500),
        "video-768" => throughput(Class::Video, 768),
        "video-512" => throughput(Class::Video, 512),
        "video-384" => throughput(Class::Video, 384),
        "video-160" => throughput(Class::Video, 160),
        "file-10m" => throughput(file(10_000), 10_000),
        "file-10k" => throughput(file(10), 10),
        "file-half" => throughput(file(10_000), 5_000),
        _ => return None,
    })
}

fn notes(figure: u32) -> Vec<String> {
    let note = match figure {
        2 => {
            "The printed slope of the first segment is 0.00133. It would give 0.8 at 150 ms, but the text gives 0.98."
        }
        3 => {
            "The formula gives 0.163 at 4 kbit/s, and the text gives 0 below, so the curve has a step there."
        }
        4 => "Video has the delay quality of audio (section 2.2.1).",
        _ => {
            "The paper says that delays of tens of seconds would matter. We let Qd fall linearly from 1 s to 10 s. No \
             experiment here has delays above one second."
        }
    };
    vec![note.to_owned()]
}
