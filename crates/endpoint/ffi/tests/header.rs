//! `include/cutline.h` is written from the functions and structs that C sees, with the comments above them. `make bless` writes it
//! again. The compiler of C checks whether its structs are laid out as ours are, and the linker whether every function is there.

use crate::c;

use cutline_bindings::{
    Axis, ConnectionReservation, Details, DirectionMib, DirectionReservation, HistogramSummary, Interval,
    MEASURES, Mib, NAME, Negotiation, Refusal, Requirements, ReservationEvent, SchedulingStats, SentInterval,
    SessionEvent, TEXT, Tcp, Tfrc, TokenBucket, Totals,
};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use syn::{
    Attribute, Expr, Fields, File, FnArg, ForeignItem, Item, Lit, Meta, PointerMutability, ReturnType, Type,
};

const SOURCES: [&str; 4] =
    ["ffi/src/options.rs", "ffi/src/socket.rs", "ffi/src/observe.rs", "ffi/src/thread.rs"];
/// Files with enums that become constants.
const ENUMS: [&str; 4] = [
    "bindings/src/event.rs",
    "bindings/src/reservation.rs",
    "bindings/src/protection.rs",
    "ffi/src/error.rs",
];

/// Types with another name in C than in Rust, where a name without its subject would be that of several things.
const C_NAMES: [(&str, &str); 5] = [
    ("ConnectionReservation", "reservation"),
    ("DirectionMib", "direction"),
    ("HistogramSummary", "distribution"),
    ("RefusalReason", "reason"),
    ("SessionEvent", "event"),
];

/// Head of the header file, above the declarations.
const HEAD: &str = r#"/*
 * QoS sockets: an application states its requirements on a connection, and gets reports of the delivery.
 *
 * A call that fails returns -1, or a null pointer, and sets errno; cutline_error() returns the reason as text. Several threads
 * may use a socket at the same time, and one thread at a time may use options. See cutline_socket(3).
 *
 * Written by crates/endpoint/ffi/tests/header.rs: do not edit.
 */
#ifndef CUTLINE_H
#define CUTLINE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A connected or listening socket. */
typedef struct cutline_socket cutline_socket;
/* The requirements of an application on a socket. */
typedef struct cutline_options cutline_options;
"#;

const TAIL: &str = "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn parse(path: &str) -> File {
    let text = fs::read_to_string(crates().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    syn::parse_file(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_header_has_the_declarations_of_the_library() {
    let header = header();
    let path = crates().join("ffi/include/cutline.h");
    if std::env::var_os("CUTLINE_BLESS").is_some() {
        fs::write(&path, &header).unwrap();
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    assert!(there == header, "{} is not current: run `make bless`", path.display());
}

fn header() -> String {
    let mut out = HEAD.to_owned();
    for path in ENUMS {
        parse(path).items.iter().for_each(|item| constants(item, &mut out));
    }
    out.push_str("\n/* Measures, in the order that structs have. */\n");
    for (place, name) in ["RATE", "DELAY", "GAP", "JITTER", "LOSS", "RECOVERY"].iter().enumerate() {
        writeln!(out, "#define CUTLINE_MEASURE_{name} {place}").unwrap();
    }
    writeln!(out, "#define CUTLINE_MEASURES {MEASURES}").unwrap();
    out.push_str("\n/* The sizes of fields for texts, and for names and addresses, bytes. */\n");
    writeln!(out, "#define CUTLINE_TEXT {TEXT}\n#define CUTLINE_NAME {NAME}").unwrap();
    for path in ["bindings/src/event.rs", "bindings/src/reservation.rs", "bindings/src/mib.rs"] {
        parse(path).items.iter().for_each(|item| structure(item, &mut out));
    }
    out.push_str("\n/* Event handler, and the data that it was set with. */\n");
    out.push_str("typedef void (*cutline_handler)(const cutline_event *event, void *data);\n");
    for path in SOURCES.into_iter().chain(["ffi/src/error.rs"]) {
        parse(path).items.iter().for_each(|item| function(item, &mut out));
    }
    out + TAIL
}

/// An enum with numbers becomes constants.
fn constants(item: &Item, out: &mut String) {
    let Item::Enum(item) = item else { return };
    if item.variants.iter().all(|variant| variant.discriminant.is_none()) {
        return;
    }
    let prefix = item.ident.to_string();
    let prefix = c_name(prefix.trim_end_matches("Kind").trim_end_matches("Code")).to_uppercase();
    comment(&item.attrs, "", out);
    for variant in &item.variants {
        let Some((_, Expr::Lit(value))) = &variant.discriminant else {
            panic!("{} has no number", variant.ident)
        };
        let Lit::Int(value) = &value.lit else { panic!("{} has no number", variant.ident) };
        let about: String = variant.attrs.iter().filter_map(line).collect();
        let name = snake(&variant.ident.to_string()).to_uppercase();
        writeln!(out, "#define CUTLINE_{prefix}_{name} {value} /*{about} */").unwrap();
    }
}

fn structure(item: &Item, out: &mut String) {
    let Item::Struct(item) = item else { return };
    let Fields::Named(fields) = &item.fields else { return };
    comment(&item.attrs, "", out);
    let name = format!("cutline_{}", c_name(&item.ident.to_string()));
    writeln!(out, "typedef struct {name} {{").unwrap();
    for field in &fields.named {
        comment(&field.attrs, "    ", out);
        let name = field.ident.as_ref().unwrap().to_string();
        writeln!(out, "    {};", declare(&field.ty, &name)).unwrap();
    }
    writeln!(out, "}} {name};").unwrap();
}

fn function(item: &Item, out: &mut String) {
    let Item::Fn(item) = item else { return };
    if item.sig.abi.is_none() {
        return;
    }
    comment(&item.attrs, "", out);
    let parameter = |input: &FnArg| {
        let FnArg::Typed(input) = input else { panic!("a function of C has no self") };
        let syn::Pat::Ident(name) = &*input.pat else { panic!("a parameter has a name") };
        declare(&input.ty, name.ident.to_string().trim_start_matches("r#"))
    };
    let parameters: Vec<String> = item.sig.inputs.iter().map(parameter).collect();
    let parameters = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
    let name = format!("{}({parameters})", item.sig.ident);
    let declared = match &item.sig.output {
        ReturnType::Default => format!("void {name}"),
        ReturnType::Type(_, ty) => declare(ty, &name),
    };
    writeln!(out, "{declared};").unwrap();
}

/// A comment of Rust as one of C.
fn comment(attributes: &[Attribute], indent: &str, out: &mut String) {
    let lines: Vec<String> = attributes.iter().filter_map(line).collect();
    let lead = if indent.is_empty() { "\n" } else { "" };
    match lines.as_slice() {
        [] => panic!("what C sees has a comment"),
        [line] => writeln!(out, "{lead}{indent}/*{line} */").unwrap(),
        [first, rest @ ..] => {
            write!(out, "{lead}{indent}/*{first}").unwrap();
            for line in rest {
                write!(out, "\n{indent} *{line}").unwrap();
            }
            writeln!(out, " */").unwrap();
        }
    }
}

fn line(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(meta) = &attribute.meta else { return None };
    let Expr::Lit(text) = &meta.value else { return None };
    let Lit::Str(text) = &text.lit else { return None };
    meta.path.is_ident("doc").then(|| text.value().replace('`', ""))
}

/// A declaration in C of a name of this type.
fn declare(ty: &Type, name: &str) -> String {
    match ty {
        Type::Ptr(pointer) => {
            let constant =
                if matches!(pointer.mutability, PointerMutability::Const(_)) { "const " } else { "" };
            format!("{constant}{}", declare(&pointer.elem, &format!("*{name}")))
        }
        Type::Array(array) => {
            let Expr::Path(length) = &array.len else { panic!("the length of {name} has no name") };
            let ty = match declare(&array.elem, "").trim() {
                "uint8_t" => "char".to_owned(),
                ty => ty.to_owned(),
            };
            format!("{ty} {name}[CUTLINE_{}]", length.path.segments.last().unwrap().ident)
        }
        Type::Path(path) => {
            let ty = path.path.segments.last().unwrap().ident.to_string();
            let ty = match ty.as_str() {
                "c_int" => "int",
                "c_char" => "char",
                "c_void" => "void",
                "usize" => "size_t",
                "isize" => "ssize_t",
                "i32" => "int32_t",
                "i64" => "int64_t",
                "u8" => "uint8_t",
                "f64" => "double",
                "sockaddr" => "struct sockaddr",
                "socklen_t" => "socklen_t",
                other => return format!("cutline_{} {name}", c_name(other)),
            };
            format!("{ty} {name}")
        }
        _ => panic!("{name} has a type that C has not"),
    }
}

/// Returns the name of a type in C.
fn c_name(name: &str) -> String {
    let named = C_NAMES.iter().find(|(rust, _)| *rust == name);
    named.map_or_else(|| snake(name), |(_, c)| (*c).to_owned())
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

/// The names of all functions that C sees.
fn functions() -> Vec<String> {
    let files = SOURCES.into_iter().chain(["ffi/src/error.rs"]).map(parse);
    let items: Vec<Item> = files.flat_map(|file| file.items).collect();
    let name = |item: &Item| match item {
        Item::Fn(item) if item.sig.abi.is_some() => Some(item.sig.ident.to_string()),
        Item::ForeignMod(block) => block.items.iter().find_map(|item| match item {
            ForeignItem::Fn(item) => Some(item.sig.ident.to_string()),
            _ => None,
        }),
        _ => None,
    };
    items.iter().filter_map(name).collect()
}

#[test]
fn c_lays_structs_out_as_rust_does_and_finds_every_function() {
    let mut program = "#include <cutline.h>\n#include <stdio.h>\n".to_owned();
    macro_rules! sizes {
        ($($name:literal $type:ty: $($field:ident)*;)*) => {$(
            let size = size_of::<$type>();
            writeln!(program, "_Static_assert(sizeof(cutline_{}) == {size}, \"{}\");", $name, $name).unwrap();
            $(
                let (field, offset) = (stringify!($field), std::mem::offset_of!($type, $field));
                writeln!(program, "_Static_assert(offsetof(cutline_{}, {field}) == {offset}, \"{field}\");", $name)
                    .unwrap();
            )*
        )*};
    }
    sizes! {
        "event" SessionEvent: size kind direction measure hint limit measured error rate since_ns after_ns text;
        "requirements" Requirements: min_rate size jitter_ns loss recovery_ns reordering;
        "totals" Totals: messages duplicated;
        "interval" Interval: length_ns rate throughput_bps gap_ns;
        "distribution" HistogramSummary: count max_ns;
        "direction" DirectionMib: effective agreed received last violated violations;
        "tcp" Tcp: rtt_ns pacing_rate_bps;
        "tfrc" Tfrc: rate_bps rtt_ns loss_event_rate refused;
        "mib" Mib: size at_ns send receive delay jitter target_rate hint reports tcp
            send_details receive_details last_sent residual_rate send_queue unreachable negotiation clock_steps tfrc
            reconnected_ns reservation scheduling;
        "scheduling_stats" SchedulingStats: sent missed latest_ns;
        "axis" Axis: best worst_measured violated_since_ns;
        "details" Details: offered requested coerced operation last_since_ns delay_sum_ns;
        "sent_interval" SentInterval: since_ns held_ns;
        "negotiation" Negotiation: sent unauthenticated;
        "token_bucket" TokenBucket: rate_bps max_packet_bytes;
        "refusal" Refusal: reason available_bps node text;
        "direction_reservation" DirectionReservation: state requested reserved refusal;
        "reservation" ConnectionReservation: service send receive;
        "reservation_event" ReservationEvent: size kind direction reserved refusal node text;
    }
    let functions = functions();
    assert!(functions.len() > 20, "{functions:?}");
    program.push_str("int main(void) {\n    const void *all[] = {\n");
    for name in &functions {
        writeln!(program, "        (const void *)(size_t){name},").unwrap();
    }
    program.push_str("    };\n    printf(\"%zu\\n\", sizeof all / sizeof *all);\n    return 0;\n}\n");
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("layout.c");
    fs::write(&source, program).unwrap();
    let output = c::run(&c::build(&source, folder.path()), &[]);
    assert_eq!(output.trim(), functions.len().to_string());
}

#[test]
fn the_manual_has_every_function() {
    let page = fs::read_to_string(crates().join("../../docs/man/cutline_socket.3")).unwrap();
    let missing: Vec<String> =
        functions().into_iter().filter(|name| !page.contains(&format!("{name}("))).collect();
    assert!(missing.is_empty(), "docs/man/cutline_socket.3 lacks {missing:?}");
}
