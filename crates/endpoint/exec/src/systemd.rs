//! Files that mark the traffic of a systemd service: a drop-in with the preloaded library, or a unit that
//! marks the service's control group.
//!
//! Both are text for the user to install. Nothing is installed here.

use crate::{ExecError, MarkingMethod, find_library};
use cutline_marking::MarkSettings;
use cutline_marking::settings::VARIABLE;
use cutline_text::{Printable, systemd};
use std::path::Path;

/// Returns the text for a service, with instructions as comments. `command` is the path of `cutline` on this machine, and `options` are
/// those of `cutline exec`.
///
/// # Errors
/// When the name is that of no service, or the library is missing.
pub fn systemd_unit(
    unit: &str,
    method: MarkingMethod,
    settings: &MarkSettings,
    (command, options): (&Path, &str),
) -> Result<String, ExecError> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b":_.@-".contains(&byte);
    let name = unit.strip_suffix(".service").unwrap_or(unit);
    if name.is_empty() || !name.bytes().all(is_allowed) || name.starts_with(['.', '-']) {
        return Err(ExecError::Unreachable(format!(
            "`{}` is not the name of a service, such as nginx.service",
            Printable(unit)
        )));
    }
    Ok(match method {
        MarkingMethod::Preload => drop_in(name, &find_library()?, settings),
        MarkingMethod::Cgroup => companion(name, command, options),
    })
}

fn drop_in(name: &str, library: &Path, settings: &MarkSettings) -> String {
    format!(
        "# Save this as /etc/systemd/system/{name}.service.d/cutline.conf, then:\n\
         #   systemctl daemon-reload && systemctl restart {name}.service\n\
         # It works for a dynamic program without privileges of its own; for others, use --by cgroup.\n\
         [Service]\n\
         Environment=\"LD_PRELOAD={}\"\n\
         Environment={VARIABLE}={settings}\n",
        systemd::quoted(&library.to_string_lossy())
    )
}

fn companion(name: &str, command: &Path, options: &str) -> String {
    let command = systemd::path(command);
    format!(
        "# Save this as /etc/systemd/system/cutline-exec-{name}.service, then:\n\
         #   systemctl daemon-reload && systemctl enable --now cutline-exec-{name}.service\n\
         # It marks every process of {name}.service as long as that runs. If the service has a slice of its own, put that\n\
         # in place of system.slice.\n\
         [Unit]\n\
         Description=Marks of {name}.service\n\
         BindsTo={name}.service\n\
         After={name}.service\n\
         \n\
         [Service]\n\
         ExecStart={command} exec {options} --cgroup system.slice/{name}.service\n\
         \n\
         [Install]\n\
         WantedBy={name}.service\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Dscp;

    #[test]
    fn a_drop_in_has_the_library_and_the_settings() {
        let settings = MarkSettings { dscp: Dscp::new(23), ..MarkSettings::default() };
        let text = drop_in("nginx", Path::new("/usr/lib/cutline/lib.so"), &settings);
        assert!(text.contains("/etc/systemd/system/nginx.service.d/cutline.conf"), "{text}");
        assert!(text.contains("\nEnvironment=\"LD_PRELOAD=/usr/lib/cutline/lib.so\"\n"), "{text}");
        assert!(text.contains("\nEnvironment=CUTLINE_EXEC=v=1,dscp=23\n"), "{text}");
    }

    #[test]
    fn a_path_keeps_its_characters_in_a_unit_file() {
        let text = drop_in("nginx", Path::new(r#"/opt/50%n/a\b"c/lib.so"#), &MarkSettings::default());
        assert!(text.contains(r#"Environment="LD_PRELOAD=/opt/50%%n/a\\b\"c/lib.so""#), "{text}");
    }

    #[test]
    fn a_unit_follows_the_service() {
        let unit = |name| {
            let command = (Path::new("/opt/50% more/cutline"), "--hint 6");
            systemd_unit(name, MarkingMethod::Cgroup, &MarkSettings::default(), command)
        };
        let text = unit("web@1.service").unwrap();
        assert!(text.contains("\nExecStart=\"/opt/50%% more/cutline\" exec --hint 6 --cgroup "), "{text}");
        assert!(text.contains("exec --hint 6 --cgroup system.slice/web@1.service\n"), "{text}");
        assert_eq!(unit("web@1").unwrap(), text);
        for wrong in ["", ".service", "a b", "a/b", "x\ny", "-x"] {
            assert!(unit(wrong).is_err(), "{wrong:?}");
        }
    }
}
