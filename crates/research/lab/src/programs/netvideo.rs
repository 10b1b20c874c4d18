//! NetVideo: live video over UDP (QoSockets section III.B). ffmpeg draws moving test pictures, encodes them at a constant bit rate as they are
//! shown, and sends messages of 1280 B; another ffmpeg receives and decodes them. Both know nothing of QoS sockets.
//!
//! The viewer's frames are compared with the pictures as they were drawn, and as the encoder left them. Frames are
//! matched by their presentation times: the sender writes the stream also to a file, whose frames have the same times
//! as those on the network. A frame
//! that was not received is the one before it on the screen, and before the first one the screen is grey. How late a frame came is not
//! judged here: the delay is measured between the gateways.

use super::child::{Child, ProgramError, of_file};
use cutline_sys::namespace::Namespace;
use cutline_units::Rate;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The film.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Film {
    /// Width, pixels.
    pub width: u32,
    /// Height, pixels.
    pub height: u32,
    /// Frames each second.
    pub rate: u32,
    /// Number of frames.
    pub frames: u32,
    /// The constant bit rate of the messages.
    pub throughput: Rate,
    /// The length of a message, bytes.
    pub message: u32,
}

impl Film {
    /// The paper's NetVideo: 640 kbit/s in messages of 1280 B, 62.5 of them each second, with 20 small pictures.
    pub const fn paper(seconds: u32) -> Self {
        Self {
            width: 320,
            height: 240,
            rate: 20,
            frames: 20 * seconds,
            throughput: Rate::from_kbps(640),
            message: 1280,
        }
    }

    fn duration(&self) -> Duration {
        Duration::from_secs_f64(f64::from(self.frames) / f64::from(self.rate))
    }

    /// A frame's bytes: a byte of brightness for each pixel, and two of colour for four.
    fn frame_bytes(&self) -> usize {
        (self.width * self.height * 3 / 2) as usize
    }

    fn source(&self) -> String {
        let Self { width, height, rate, frames, .. } = self;
        let seconds = f64::from(*frames) / f64::from(*rate);
        format!("testsrc2=size={width}x{height}:rate={rate}:duration={seconds}")
    }
}

/// Time beyond the length of its film that a program may take.
const GRACE: Duration = Duration::from_secs(30);
/// Time that comparing or decoding may take for each frame.
const PER_FRAME: Duration = Duration::from_millis(200);
/// The share of the constant rate that the pictures have; the rest is for headers and padding.
const PICTURES: f64 = 0.75;
/// Messages leave this much faster than they are made, so that none is late.
const DEPARTURES: f64 = 1.05;

const SENT: &str = "sent.ts";
const SEEN: &str = "seen.yuv";
const SENT_PICTURES: &str = "sent.yuv";
const SOURCE_PICTURES: &str = "source.yuv";
const VIEWED: &str = "viewed.yuv";

fn ffmpeg(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("ffmpeg");
    command.current_dir(folder).args(["-hide_banner", "-nostdin", "-nostats", "-y"]).args(arguments);
    command
}

/// A program that sends a film.
#[derive(Debug)]
pub struct Sender {
    child: Child,
    film: Film,
}

impl Sender {
    /// Starts it. Its files are put into the folder.
    ///
    /// # Errors
    /// When ffmpeg does not start.
    pub fn start(
        film: &Film,
        to: SocketAddr,
        namespace: Option<&Namespace>,
        folder: &Path,
    ) -> Result<Self, ProgramError> {
        let bps = film.throughput.as_bps();
        let pictures = (bps as f64 * PICTURES) as u64;
        let departures = (bps as f64 * DEPARTURES) as u64;
        let mux = format!("f=mpegts:muxrate={bps}:max_delay=500000");
        let (message, burst) = (film.message, 8 * film.message);
        let outputs = format!(
            "[{mux}:flush_packets=0]udp://{to}?pkt_size={message}&bitrate={departures}&burst_bits={burst}|[{mux}]{SENT}"
        );
        let slices = format!("slice-max-size={}", film.message * 4 / 5);
        let (source, interval) = (film.source(), film.rate.to_string());
        let (mean, buffer) = (pictures.to_string(), (pictures / 4).to_string());
        // In the time of the pictures, as they would come from a camera.
        let input = ["-re", "-f", "lavfi", "-i", &source];
        let codec = ["-c:v", "libx264", "-preset", "veryfast", "-tune", "zerolatency", "-threads", "1"];
        let rate = ["-g", &interval, "-b:v", &mean, "-maxrate", &mean, "-bufsize", &buffer];
        // A part of a picture fits into a message, so that one that is lost damages that part alone.
        let output = ["-x264-params", &slices, "-map", "0:v", "-f", "tee", &outputs];
        let arguments = [&input[..], &codec[..], &rate[..], &output[..]];
        let child = Child::start(&mut ffmpeg(folder, &arguments.concat()), namespace, &folder.join("send"))?;
        Ok(Self { child, film: *film })
    }

    /// Waits until the film is over.
    ///
    /// # Errors
    /// When ffmpeg fails or takes too long.
    pub fn finish(mut self) -> Result<(), ProgramError> {
        self.child.succeed(self.film.duration() + GRACE)
    }
}

/// A program that receives a film, and decodes it as it comes.
#[derive(Debug)]
pub struct Receiver {
    child: Child,
    folder: PathBuf,
    limit: Duration,
}

impl Receiver {
    /// Starts it. Its files are put into the folder. It ends when nothing has come for `patience`, also at the beginning: ended by a signal,
    /// ffmpeg would leave out frames that have come.
    ///
    /// # Errors
    /// When ffmpeg does not start.
    pub fn start(
        at: SocketAddr,
        patience: Duration,
        namespace: Option<&Namespace>,
        folder: &Path,
    ) -> Result<Self, ProgramError> {
        let from = format!("udp://{at}?fifo_size=5000&overrun_nonfatal=1&timeout={}", patience.as_micros());
        let arguments = [
            ["-copyts", "-probesize", "200000", "-analyzeduration", "1000000", "-flags", "+output_corrupt"]
                .as_slice(),
            &["-threads", "1", "-i", &from, "-map", "0:v", "-fps_mode", "passthrough", "-vf", "showinfo"],
            &["-pix_fmt", "yuv420p", "-f", "rawvideo", SEEN],
        ];
        let child =
            Child::start(&mut ffmpeg(folder, &arguments.concat()), namespace, &folder.join("receive"))?;
        Ok(Self { child, folder: folder.to_owned(), limit: patience + GRACE })
    }

    /// Waits until it has ended, after the last message.
    ///
    /// # Errors
    /// When messages come all the time, or ffmpeg does not end.
    pub fn finish(mut self) -> Result<(), ProgramError> {
        // Of a stream that has never begun, or was cut, it reports a failure; the frames show the received part.
        self.child.wait(self.limit)?;
        let seen = self.folder.join(SEEN);
        if !seen.exists() {
            File::create(&seen).map_err(of_file(&seen))?;
        }
        Ok(())
    }
}

/// Likeness of two series of pictures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Likeness {
    /// The mean structural similarity, 0 to 1.
    pub ssim: f64,
    /// The peak signal-to-noise ratio of the mean squared error, dB; `None` if there is no error.
    pub psnr_db: Option<f64>,
}

/// A frame of the film, as the viewer saw it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VideoFrame {
    /// True if the frame was received; otherwise the viewer saw an earlier one.
    pub is_shown: bool,
    /// Likeness to the picture as it was drawn.
    pub source: Likeness,
    /// Likeness to the picture as the encoder left it.
    pub sent: Likeness,
}

/// The film as the viewer saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct Viewing {
    /// The frames in order.
    pub frames: Vec<VideoFrame>,
    /// Number of frames shown.
    pub shown: u32,
    /// The most frames in a row that were not.
    pub longest_freeze: u32,
    /// Likeness of all frames to the pictures as they were drawn.
    pub source: Likeness,
    /// Likeness of all frames to the pictures as the encoder left them.
    pub sent: Likeness,
}

/// Compares the pictures in the receiver's folder with those in the sender's. The two may be one.
///
/// # Errors
/// When ffmpeg fails, or a file is missing.
pub fn compare(film: &Film, sender: &Path, receiver: &Path) -> Result<Viewing, ProgramError> {
    let limit = GRACE + PER_FRAME * film.frames;
    let decoded = ["-copyts", "-i", SENT, "-map", "0:v", "-fps_mode", "passthrough", "-vf", "showinfo"];
    let raw = ["-pix_fmt", "yuv420p", "-f", "rawvideo"];
    let mut decode = ffmpeg(sender, &[&decoded[..], &raw[..], &[SENT_PICTURES]].concat());
    let decode = Child::run(&mut decode, &sender.join("decode"), limit)?;
    let frames = film.frames.to_string();
    let source = film.source();
    let drawn = ["-f", "lavfi", "-i", &source, "-frames:v", &frames];
    let mut draw = ffmpeg(sender, &[&drawn[..], &raw[..], &[SOURCE_PICTURES]].concat());
    Child::run(&mut draw, &sender.join("draw"), limit)?;

    let sent = times(&decode.errors()?);
    if sent.len() != film.frames as usize {
        let what = format!("{} frames were sent, {frames} drawn", sent.len());
        return Err(ProgramError::Output { program: "ffmpeg".to_owned(), what });
    }
    let log = receiver.join("receive.err");
    let log = fs::read(&log).map_err(of_file(&log))?;
    let seen = times(&String::from_utf8_lossy(&log));
    let places = places(&sent, &seen);
    view(film, receiver, &places)?;

    let absolute = |path: PathBuf| path.canonicalize().map_err(of_file(&path));
    let source = likenesses(film, receiver, &absolute(sender.join(SOURCE_PICTURES))?, limit)?;
    let sent = likenesses(film, receiver, &absolute(sender.join(SENT_PICTURES))?, limit)?;
    Ok(viewing(&places, &source, &sent))
}

/// Writes the viewer's picture at a frame of the film, or the drawn one, as a PNG picture.
///
/// # Errors
/// When ffmpeg fails, or [`compare`] was not called before.
pub fn picture(film: &Film, folder: &Path, of: Pictures, frame: u32, to: &Path) -> Result<(), ProgramError> {
    let number = format!("select=eq(n\\,{frame})");
    let size = format!("{}x{}", film.width, film.height);
    let to = to.to_string_lossy();
    let name = match of {
        Pictures::Source => SOURCE_PICTURES,
        Pictures::Sent => SENT_PICTURES,
        Pictures::Viewed => VIEWED,
    };
    let arguments = ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", &size, "-i", name];
    let out = ["-vf", &number, "-frames:v", "1", &to];
    let mut command = ffmpeg(folder, &[&arguments[..], &out[..]].concat());
    Child::run(&mut command, &folder.join("picture"), GRACE).map(drop)
}

/// Pictures of a film.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pictures {
    /// As they were drawn; in the sender's folder.
    Source,
    /// As the encoder left them; in the sender's folder.
    Sent,
    /// As the viewer saw them; in the receiver's folder.
    Viewed,
}

/// The presentation times of the frames that ffmpeg has decoded, in order, from the output of its filter `showinfo`.
fn times(log: &str) -> Vec<i64> {
    let time = |line: &str| {
        let (_, rest) = line.split_once("showinfo")?.1.split_once(" pts:")?;
        rest.split_whitespace().next()?.parse().ok()
    };
    log.lines().filter_map(time).collect()
}

/// Returns the index in the receiver's file of each frame of the film; `None` for frames that were not
/// received. Of several with the same time, the last one counts; one with a time that no frame has is none.
fn places(sent: &[i64], seen: &[i64]) -> Vec<Option<usize>> {
    let found: BTreeMap<i64, usize> = seen.iter().enumerate().map(|(place, time)| (*time, place)).collect();
    sent.iter().map(|time| found.get(time).copied()).collect()
}

/// Writes the picture on the screen at each frame of the film.
fn view(film: &Film, folder: &Path, places: &[Option<usize>]) -> Result<(), ProgramError> {
    let (from, to) = (folder.join(SEEN), folder.join(VIEWED));
    let mut seen = File::open(&from).map_err(of_file(&from))?;
    let mut viewed = BufWriter::new(File::create(&to).map_err(of_file(&to))?);
    let bytes = film.frame_bytes();
    let mut screen = vec![128; bytes];
    let mut frame = vec![0; bytes];
    for place in places {
        if let Some(place) = place {
            let read =
                seen.seek(SeekFrom::Start((place * bytes) as u64)).and_then(|_| seen.read_exact(&mut frame));
            // The last frame may be cut where the program was ended.
            if read.is_ok() {
                screen.copy_from_slice(&frame);
            }
        }
        viewed.write_all(&screen).map_err(of_file(&to))?;
    }
    viewed.flush().map_err(of_file(&to))
}

/// Returns the likeness of the viewer's film to other pictures, frame by frame: structural similarity and
/// mean squared error.
fn likenesses(
    film: &Film,
    folder: &Path,
    other: &Path,
    limit: Duration,
) -> Result<Vec<(f64, f64)>, ProgramError> {
    let size = format!("{}x{}", film.width, film.height);
    let raw = ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", &size, "-i"];
    let graph = "[0:v][1:v]ssim=stats_file=ssim.log;[0:v][1:v]psnr=stats_file=psnr.log";
    let other = other.to_string_lossy();
    let arguments =
        [&raw[..], &[VIEWED], &raw[..], &[&other], &["-lavfi", graph, "-f", "null", "-"]].concat();
    Child::run(&mut ffmpeg(folder, &arguments), &folder.join("compare"), limit)?;
    let values = |file: &str, key: &str| -> Result<Vec<f64>, ProgramError> {
        let path = folder.join(file);
        let text = fs::read_to_string(&path).map_err(of_file(&path))?;
        Ok(text.lines().filter_map(|line| value(line, key)).collect())
    };
    let found: Vec<_> =
        values("ssim.log", "All:")?.into_iter().zip(values("psnr.log", "mse_avg:")?).collect();
    if found.len() != film.frames as usize {
        let what = format!("{} frames of {} were compared", found.len(), film.frames);
        return Err(ProgramError::Output { program: "ffmpeg".to_owned(), what });
    }
    Ok(found)
}

/// The number behind a key in a line of ffmpeg's statistics.
fn value(line: &str, key: &str) -> Option<f64> {
    let word = line.split_whitespace().find_map(|word| word.strip_prefix(key))?;
    word.parse().ok().filter(|value: &f64| value.is_finite())
}

fn viewing(places: &[Option<usize>], source: &[(f64, f64)], sent: &[(f64, f64)]) -> Viewing {
    let frames: Vec<_> = (places.iter().zip(source).zip(sent))
        .map(|((place, source), sent)| VideoFrame {
            is_shown: place.is_some(),
            source: likeness(&[*source]),
            sent: likeness(&[*sent]),
        })
        .collect();
    let freezes = frames.split(|frame| frame.is_shown).map(<[VideoFrame]>::len);
    Viewing {
        shown: frames.iter().filter(|frame| frame.is_shown).count() as u32,
        longest_freeze: freezes.max().unwrap_or(0) as u32,
        source: likeness(source),
        sent: likeness(sent),
        frames,
    }
}

/// The likeness of several frames.
fn likeness(frames: &[(f64, f64)]) -> Likeness {
    let mean = |value: fn(&(f64, f64)) -> f64| {
        if frames.is_empty() { 0.0 } else { frames.iter().map(value).sum::<f64>() / frames.len() as f64 }
    };
    let error = mean(|(_, error)| *error);
    let psnr_db = (error > 0.0).then(|| 10.0 * (255.0 * 255.0 / error).log10());
    Likeness { ssim: mean(|(ssim, _)| *ssim), psnr_db }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
[Parsed_showinfo_0 @ 0x55] config in time_base: 1/90000, frame_rate: 20/1
[Parsed_showinfo_0 @ 0x55] n:   0 pts: 171000 pts_time:1.9     pos:    564 fmt:yuv420p
[Parsed_showinfo_0 @ 0x55] color_range:unknown color_space:unknown
[h264 @ 0x66] error while decoding MB 3 7
[Parsed_showinfo_0 @ 0x55] n:   1 pts: 180000 pts_time:2       pos:   1564 fmt:yuv420p
[Parsed_showinfo_0 @ 0x55] n:   2 pts: NOPTS pts_time:NOPTS    pos:   1564 fmt:yuv420p
frame=  2 fps= 11";

    #[test]
    fn frames_are_found_by_their_times() {
        assert_eq!(times(LOG), [171_000, 180_000]);
        let sent = [166_500, 171_000, 175_500, 180_000];
        assert_eq!(places(&sent, &times(LOG)), [None, Some(0), None, Some(1)]);
        assert_eq!(places(&sent, &[171_000, 9, 171_000]), [None, Some(2), None, None]);
    }

    #[test]
    fn a_frame_that_did_not_come_is_the_one_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let film = Film { width: 2, height: 2, frames: 4, ..Film::paper(1) };
        // The second frame is cut.
        fs::write(folder.path().join(SEEN), [[7; 6].as_slice(), &[9; 3]].concat()).unwrap();
        view(&film, folder.path(), &[None, Some(0), None, Some(1)]).unwrap();
        let viewed = fs::read(folder.path().join(VIEWED)).unwrap();
        assert_eq!(viewed, [[128; 6], [7; 6], [7; 6], [7; 6]].concat());
    }

    #[test]
    fn statistics_of_frames_become_those_of_the_film() {
        assert_eq!(value("n:1 Y:0.9 U:1.0 V:1.0 All:0.950000 (13.0)", "All:"), Some(0.95));
        assert_eq!(value("n:1 mse_avg:0.00 mse_y:0.00 psnr_avg:inf", "mse_avg:"), Some(0.0));
        let all = viewing(
            &[Some(0), None, None, Some(3)],
            &[(1.0, 0.0), (0.5, 65.025), (0.5, 65.025), (1.0, 0.0)],
            &[(1.0, 0.0); 4],
        );
        assert_eq!((all.shown, all.longest_freeze, all.source.ssim), (2, 2, 0.75));
        // A mean squared error of 32.5125 is 10 log10(65025 / 32.5125) = 33.01 dB.
        assert!((all.source.psnr_db.unwrap() - 33.0103).abs() < 1e-3);
        assert_eq!(
            (all.sent, all.frames[1].source.psnr_db),
            (Likeness { ssim: 1.0, psnr_db: None }, Some(30.0))
        );
    }
}
