//! The monitor in `cutlined`: a table of its file, and nothing else.

use cutline_testbed::outputs::terminated;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

#[test]
fn a_host_without_reservations_has_a_monitor_until_cutlined_ends() {
    // The agent asks the kernel about routes and traffic control, which only root may.
    if !rustix::process::geteuid().is_root() {
        return cutline_testbed::skip("it needs root", "sudo -E cargo test -p cutline-daemon monitor::");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let text = format!(
        "socket = '{}'\n[monitor]\nlisten = '127.0.0.1:0'\npublish-socket = '{}'\nsocket = '{}'\ntoken-file = '{}'\n[monitor.snmp]\nlisten = '127.0.0.1:0'\nstate = '{}'\n",
        path("c.sock").display(),
        path("publish.sock").display(),
        path("monitor.sock").display(),
        path("token").display(),
        path("snmp.toml").display()
    );
    std::fs::write(path("c.toml"), text).unwrap();
    std::fs::write(path("token"), "a-token-of-this-test").unwrap();
    let cutlined = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutlined"));
        command.arg("--config").arg(path("c.toml")).stdin(Stdio::null()).stderr(Stdio::piped());
        command
    };
    // Others may read the token: both the check and the start say so.
    for more in [&["--check"][..], &[]] {
        std::fs::set_permissions(path("token"), std::fs::Permissions::from_mode(0o644)).unwrap();
        let output = cutlined().args(more).output().unwrap();
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && why.contains("token-file"), "{more:?}: {why}");
    }
    std::fs::set_permissions(path("token"), std::fs::Permissions::from_mode(0o600)).unwrap();
    // Neither starts with an address of another host, or with a file in the place of a socket.
    std::fs::write(path("file"), "").unwrap();
    let text = std::fs::read_to_string(path("c.toml")).unwrap();
    let (publish, file) = (path("publish.sock").display().to_string(), path("file").display().to_string());
    let page = text.replacen("127.0.0.1:0", "192.0.2.1:0", 1);
    let snmp = format!(
        "{}[[monitor.snmp.user]]\nname = 'manager'\nauth-file = '{}'\n",
        text.replace("[monitor.snmp]\nlisten = '127.0.0.1:0'", "[monitor.snmp]\nlisten = '192.0.2.1:0'"),
        path("token").display()
    );
    let manager = format!(
        "{text}[manager]\nsocket = '{}'\nstate = '{}'\nhost = 1\nlisten = '192.0.2.1:0'\nkeys = '{}'\n[[manager.path]]\nnumber = 1\n\
         destinations = ['10.0.0.0/8']\n[[manager.path.peer]]\nhost = 2\naddress = '10.0.0.2:9467'\n",
        path("manager.sock").display(),
        path("manager.state").display(),
        path("keys").display()
    );
    let secret = "00112233445566778899aabbccddeeff".repeat(2);
    let key = format!("[[key]]\nid = 1\nalgorithm = 'hmac-sha-256'\nsecret = '{secret}'\n");
    std::fs::write(path("keys"), key).unwrap();
    std::fs::set_permissions(path("keys"), std::fs::Permissions::from_mode(0o600)).unwrap();
    for (wrong, why) in [
        (page, "192.0.2.1:0"),
        (snmp, "192.0.2.1:0"),
        (manager, "192.0.2.1:0"),
        (text.replace(&publish, &file), "not a socket"),
    ] {
        std::fs::write(path("c.toml"), &wrong).unwrap();
        for more in [&["--check"][..], &[]] {
            let output = cutlined().args(more).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.code() == Some(1) && said.contains(why), "{more:?}: {said}");
        }
    }
    std::fs::write(path("c.toml"), text).unwrap();
    assert!(cutlined().arg("--check").output().unwrap().status.success());
    let mut agent = cutlined().spawn().unwrap();
    let mut lines = BufReader::new(agent.stderr.take().unwrap()).lines();
    let page =
        lines.find_map(|line| Some(line.unwrap().split_once("http://")?.1.trim_end_matches('/').to_owned()));
    let page = page.expect("it says where the page is");
    let agent_at =
        lines.find_map(|line| Some(line.unwrap().split_once("SNMP agent listens at ")?.1.to_owned()));
    let agent_at = agent_at.expect("it says where the agent is");
    // Totals of the host, and the counters of a cutlined without sessions.
    let answer = Command::new("snmpget")
        .args(["-v2c", "-c", "public", "-m", "", "-On", "-t", "20", &agent_at])
        .arg(".1.3.6.1.4.1.8072.9999.9999.2005.1.1.2.0")
        .output()
        .unwrap();
    let answer = String::from_utf8_lossy(&answer.stdout).into_owned();
    assert!(answer.contains("Gauge32: 0"), "{answer}");
    let mut stream = TcpStream::connect(&page).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {page}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("cutline_monitor_publishers 0"),
        "{answer}"
    );
    assert_eq!(terminated(&mut agent).expect("SIGTERM ends it").code(), Some(0));
    assert!(!path("publish.sock").exists() && !path("monitor.sock").exists() && !path("c.sock").exists());
}
