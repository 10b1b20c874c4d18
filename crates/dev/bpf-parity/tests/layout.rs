//! The loader's layouts are those of the C compiler.

use cutline_qdisc::KernelQueue;
use cutline_qdisc::layout::{
    AccountLayout, CELLS, CODE_POINTS, CountLayout, FILTER_SETS, FieldPlace, HintLayout, InstanceAssignment,
    InterfaceKey, LAYOUT, LEVELS, Layout, PACKET_BITS, PLACES, PROBABILITY_BITS, Pi2Layout, PiLayout, QUEUES,
    QdiscConfig, QdiscCounters, RATIO_BITS, RedWorcesterLayout, SieveLayout, TsqLayout, WAITS,
};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A struct: its name in C, its size, and its fields.
fn described<T: Layout>(
    name: &'static str,
    places: Vec<FieldPlace>,
) -> (&'static str, usize, Vec<FieldPlace>) {
    (name, T::SIZE, places)
}

/// Definitions that `accounts.h` needs, of a program that is no queue.
const BEFORE_ACCOUNTS: &str = "struct cl_set;\ntypedef struct cl_set *cl_table;\n#define CL_CAN_LOOP 1\n\
                               #include <cutline/qdisc.h>\n\
                               static cl_u64 cl_random(void) { return 0; }\n\
                               static struct cl_set *cl_set(cl_table table, cl_u32 index) { return index ? 0 : table; }\n";

/// Compiles a program that includes the headers, and returns the words that it prints.
fn answers(test: &str, body: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    fs::create_dir_all(&folder).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../bpf/include");
    let text = format!(
        "#include <stddef.h>\n#include <stdio.h>\n{BEFORE_ACCOUNTS}#include <cutline/accounts.h>\n\
         int main(void) {{\n{body}return 0;\n}}\n"
    );
    let (source, program) = (folder.join("layout.c"), folder.join("layout"));
    fs::write(&source, text).unwrap();
    let compiled = Command::new("cc").arg("-I").arg(include).arg(&source).arg("-o").arg(&program).status();
    assert!(compiled.unwrap().success(), "cc has refused {}", source.display());
    let output = Command::new(program).output().unwrap().stdout;
    String::from_utf8(output).unwrap().split_whitespace().map(str::to_owned).collect()
}

#[test]
fn every_field_has_the_place_and_the_size_of_c() {
    let structs = [
        described::<InterfaceKey>("cutline_interface", InterfaceKey::places()),
        described::<InstanceAssignment>("cutline_assignment", InstanceAssignment::places()),
        described::<PiLayout>("cutline_pi", PiLayout::places()),
        described::<Pi2Layout>("cutline_pi2", Pi2Layout::places()),
        described::<RedWorcesterLayout>("cutline_red_worcester", RedWorcesterLayout::places()),
        described::<TsqLayout>("cutline_tsq", TsqLayout::places()),
        described::<SieveLayout>("cutline_sieve", SieveLayout::places()),
        described::<QdiscConfig>("cutline_config", QdiscConfig::places()),
        described::<CountLayout>("cutline_count", CountLayout::places()),
        described::<HintLayout>("cutline_hint_statistics", HintLayout::places()),
        described::<QdiscCounters>("cutline_statistics", QdiscCounters::places()),
        described::<AccountLayout>("cl_account", AccountLayout::places()),
    ];
    let (mut body, mut expected) = (String::new(), Vec::new());
    for (name, size, places) in structs {
        writeln!(body, "printf(\"{name} %zu\\n\", sizeof(struct {name}));").unwrap();
        expected.extend([name.to_owned(), size.to_string()]);
        for FieldPlace { name: field, at, size } in places {
            // The union of the laws has no name in C. RED-Worcester is its largest member.
            let member = if field == "law_parameters" { "red_worcester" } else { field };
            writeln!(
                body,
                "printf(\"{name}.{field} %zu %zu\\n\", offsetof(struct {name}, {member}), sizeof ((struct {name} *)0)->{member});"
            )
            .unwrap();
            expected.extend([format!("{name}.{field}"), at.to_string(), size.to_string()]);
        }
    }
    assert_eq!(answers("places", &body), expected);
}

#[test]
fn numbers_and_names_are_those_of_the_header() {
    let names = KernelQueue::ALL.map(KernelQueue::kernel_name).join(" ");
    let (filters, of) = FILTER_SETS;
    let expected = format!(
        "{LAYOUT} {CODE_POINTS} {LEVELS} {WAITS} {PROBABILITY_BITS} {PACKET_BITS} {RATIO_BITS} {CELLS} {filters} {of} {PLACES} {QUEUES} {names}"
    );
    let body = "printf(\"%d %d %d %d %d %d %d %d %d %d %d %d %s %s\\n\", CUTLINE_LAYOUT, CUTLINE_CODE_POINTS, CUTLINE_HINTS, CUTLINE_WAITS,\n\
                __builtin_ctzll(CUTLINE_ONE), CUTLINE_PACKET_BITS, CUTLINE_RATIO_BITS, CL_WAYS, CL_FILTER_SETS, CL_FILTER_PARTS,\n\
                (int)CL_PLACES, CUTLINE_QUEUES, CUTLINE_TSQ_NAME, CUTLINE_SIEVE_NAME);\n";
    assert_eq!(answers("numbers", body).join(" "), expected);
}
