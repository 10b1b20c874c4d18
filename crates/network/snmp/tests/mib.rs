//! The text of CUTLINE-QOS-MIB.

use std::path::Path;

/// The module as it is installed.
const FILE: &str = "../../../packaging/CUTLINE-QOS-MIB.txt";

#[test]
fn the_module_in_the_package_is_that_of_the_agent() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let text = cutline_snmp::mib::text();
    if std::env::var_os("CUTLINE_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(
        kept == text,
        "packaging/CUTLINE-QOS-MIB.txt is not up to date: run this test with CUTLINE_BLESS=1"
    );
}

#[test]
fn the_module_has_no_fault() {
    use mib_rs::{DiagnosticConfig, Loader, ResolverStrictness, Severity};
    let config = DiagnosticConfig { fail_at: Severity::Fatal, ..DiagnosticConfig::verbose() };
    let mib = Loader::new()
        .source(mib_rs::source::memory("CUTLINE-QOS-MIB", cutline_snmp::mib::text()))
        .source(mib_rs::source::memory("HCNUM-TC", include_str!("modules/HCNUM-TC.txt")))
        .modules(["CUTLINE-QOS-MIB"])
        .resolver_strictness(ResolverStrictness::Strict)
        .diagnostic_config(config)
        .load()
        .unwrap();
    let report = mib.diagnostic_report();
    let faults: Vec<String> = report
        .iter()
        .filter(|entry| entry.diagnostic().module.as_deref() == Some("CUTLINE-QOS-MIB"))
        .map(|entry| entry.render().unwrap_or_else(|_| format!("{:?}", entry.diagnostic().message)))
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
    assert_eq!(mib.unresolved().len(), 0);
    let name = mib.resolve_oid("cqosDirLastDelayP99").unwrap();
    assert_eq!(name.to_string(), "1.3.6.1.4.1.8072.9999.9999.2005.1.3.1.21");
}
