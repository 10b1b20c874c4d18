//! Check that the kernel has the congestion controls of a scenario, and uses ECN as in the scenario.

use crate::LabError;
use cutline_scenario::spec::FlowGroupSpec;
use cutline_traffic::select_congestion_control;
use cutline_units::Ecn;
use std::io::{self, ErrorKind};

/// Checks the congestion controls of all groups of flows against the running kernel.
///
/// # Errors
/// The first group whose congestion control or ECN is not available.
pub fn check<'g>(groups: impl IntoIterator<Item = &'g FlowGroupSpec>) -> Result<(), LabError> {
    check_with(groups, select_congestion_control)
}

fn check_with<'g>(
    groups: impl IntoIterator<Item = &'g FlowGroupSpec>,
    select: impl Fn(&str) -> io::Result<()>,
) -> Result<(), LabError> {
    for group in groups {
        let transport = &group.transport;
        let names = transport.congestion_control().zip(transport.linux_congestion_control());
        let Some((control, linux)) = names else { continue };
        if group.ecn == Ecn::Ect1 {
            return Err(LabError::OnlySimulated {
                flow: group.name.clone(),
                what: "TCP with ecn = \"ect-1\"",
                instead: "Linux sends ECT(0): set `ecn = true`",
            });
        }
        // Without the privilege to select it, the run fails when the namespaces are created.
        if select(linux).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            return Err(LabError::NoCongestionControl { flow: group.name.clone(), control, linux });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_scenario::ScenarioFile;

    /// A group with this congestion control and these keys.
    fn group(control: &str, keys: &str) -> FlowGroupSpec {
        let text = format!(
            "name = \"congestion\"\nduration = \"10 s\"\n[dumbbell]\nrate = \"1 Mbit/s\"\ndelay = \"10 ms\"\n\
             access-rate = \"10 Mbit/s\"\naccess-delay = \"1 ms\"\n\
             queue = {{ aqm = \"drop-tail\", limit = \"10 packets\" }}\n\
             [[flow]]\nname = \"bulk\"\napp = {{ kind = \"bulk\" }}\n{keys}\n\
             transport = {{ protocol = \"tcp\", congestion-control = \"{control}\" }}\n"
        );
        ScenarioFile::parse(&text, "congestion.toml").unwrap().scenario().unwrap().flows.remove(0)
    }

    #[test]
    fn each_congestion_control_is_selected_by_its_name_in_linux() {
        for (control, linux) in [("newreno", "reno"), ("cubic", "cubic"), ("dctcp", "dctcp"), ("bbr", "bbr")]
        {
            let group = group(control, "ecn = true");
            assert_eq!(group.transport.congestion_control(), Some(control));
            let select = |name: &str| {
                assert_eq!(name, linux);
                Ok(())
            };
            check_with(&[group], select).unwrap();
        }
    }

    #[test]
    fn a_congestion_control_that_the_kernel_does_not_have_is_refused() {
        let groups = [group("dctcp", "ecn = true")];
        let absent = |_: &str| Err(ErrorKind::NotFound.into());
        assert_eq!(
            check_with(&groups, absent).unwrap_err().to_string(),
            "flow `bulk`: congestion-control = \"dctcp\" is not available: this kernel has no `dctcp`; load its \
             module (`modprobe tcp_dctcp`) or choose another, such as \"newreno\" or \"cubic\""
        );
        let restricted = |_: &str| Err(ErrorKind::PermissionDenied.into());
        check_with(&groups, restricted).unwrap();
    }

    #[test]
    fn the_running_kernel_has_reno_and_no_unknown_control() {
        select_congestion_control("reno").unwrap();
        assert_eq!(select_congestion_control("nosuch").unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn tcp_with_ect_1_is_refused() {
        let groups = [group("dctcp", "ecn = \"ect-1\"")];
        assert_eq!(
            check_with(&groups, |_| Ok(())).unwrap_err().to_string(),
            "flow `bulk`: TCP with ecn = \"ect-1\" is not available in the laboratory; Linux sends ECT(0): set \
             `ecn = true`"
        );
    }
}
