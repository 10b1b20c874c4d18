//! Headless Chromium, driven by its own protocol (Chrome `DevTools`).

use cutline_testbed::KilledChild;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

use super::PATIENCE;

/// A browser with one page, which ends when this is dropped.
pub struct Browser {
    _process: KilledChild,
    connection: WebSocket<MaybeTlsStream<TcpStream>>,
    session: Option<String>,
    number: u64,
    _folder: tempfile::TempDir,
}

/// axe-core, where `tools/setup.sh page` unpacks it.
pub const AXE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../target/axe/axe_playwright_python/axe.min.js");

/// The violations of axe-core's rules and its undecided cases as texts, in JavaScript. The contrast of texts in a drawing, which axe-core
/// cannot see, has a test of its own.
const ACCESSIBILITY_FAULTS: &str = "axe
    .run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })
    .then((found) => [...found.violations, ...found.incomplete.filter((one) => one.id !== 'color-contrast')].map((one) =>
        `${one.id}: ${one.help}: ${one.nodes.map((node) => node.html.slice(0, 120)).join('; ')}`))";

/// Variable with the folder for pictures.
const PICTURES: &str = "CUTLINE_PICTURES";

impl Browser {
    /// Starts the browser; `None` if it is not installed.
    pub fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let process = Command::new("chromium")
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", folder.path().display()))
            .arg("about:blank")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .ok()?;
        let mut process = KilledChild(process);
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let address = lines.find_map(|line| Some(line.ok()?.split_once("listening on ")?.1.to_owned()));
        // The rest is not read.
        std::thread::spawn(move || lines.for_each(drop));
        let (connection, _) = tungstenite::connect(address.expect("the browser states its address")).unwrap();
        let mut browser = Self { _process: process, connection, session: None, number: 0, _folder: folder };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        browser.session =
            browser.call("Target.attachToTarget", &attach)["sessionId"].as_str().map(str::to_owned);
        Some(browser)
    }

    /// Calls a method of the protocol, and returns its result.
    pub fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.number += 1;
        let mut request = json!({ "id": self.number, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            request["sessionId"] = json!(session);
        }
        self.connection.send(Message::text(request.to_string())).unwrap();
        loop {
            let Message::Text(text) = self.connection.read().unwrap() else { continue };
            let answer: Value = serde_json::from_str(&text).unwrap();
            if answer["id"] == json!(self.number) {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    /// Opens an address in a window of this size.
    pub fn open(&mut self, address: &str, size: [u32; 2]) {
        self.resize(size);
        self.call("Page.navigate", &json!({ "url": address }));
    }

    /// Gives the window another size.
    pub fn resize(&mut self, [width, height]: [u32; 2]) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.call("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Draws the page in `light` or `dark`, as a user prefers it.
    pub fn prefer(&mut self, scheme: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.call("Emulation.setEmulatedMedia", &json!({ "features": [feature] }));
    }

    /// Returns the value of an expression in the page.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let answer =
            self.call("Runtime.evaluate", &json!({ "expression": expression, "returnByValue": true }));
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Returns the faults that axe-core finds in the page with its rules for WCAG 2.2, levels A and AA, and its own of best
    /// practice: for each the rule, its meaning, and the elements.
    pub fn accessibility_faults(&mut self) -> Vec<String> {
        let library = std::fs::read_to_string(AXE).unwrap();
        self.evaluate(&format!("{library}; true"));
        let faults = self.call(
            "Runtime.evaluate",
            &json!({ "expression": ACCESSIBILITY_FAULTS, "returnByValue": true, "awaitPromise": true }),
        );
        assert!(faults["exceptionDetails"].is_null(), "{faults}");
        let faults = faults["result"]["value"].as_array().expect("a list");
        faults.iter().map(|fault| fault.as_str().unwrap().to_owned()).collect()
    }

    /// Waits until an expression in the page is true.
    pub fn wait_for(&mut self, expression: &str) {
        let end = Instant::now() + PATIENCE;
        while self.evaluate(expression) != json!(true) {
            assert!(Instant::now() < end, "never true: {expression}\n{}", self.text());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Writes a picture of the whole page, if the variable names a folder for pictures: people look at them.
    pub fn picture(&mut self, name: &str) {
        let Some(folder) = std::env::var_os(PICTURES) else { return };
        std::fs::create_dir_all(&folder).unwrap();
        let answer = self.call("Page.captureScreenshot", &json!({ "captureBeyondViewport": true }));
        let encoded = answer["data"].as_str().unwrap();
        let picture = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, encoded).unwrap();
        std::fs::write(std::path::Path::new(&folder).join(name), picture).unwrap();
    }

    /// Returns the visible text of the page.
    pub fn text(&mut self) -> String {
        self.evaluate("document.body.innerText").as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the visible text of the page contains this.
    pub fn wait_for_text(&mut self, text: &str) {
        self.wait_for(&format!("document.body?.innerText.includes({}) ?? false", json!(text)));
    }

    /// Moves the pointer to a place in the window.
    pub fn point(&mut self, [x, y]: [f64; 2]) {
        self.call("Input.dispatchMouseEvent", &json!({ "type": "mouseMoved", "x": x, "y": y }));
    }

    /// Presses and releases a key.
    pub fn press(&mut self, key: &str) {
        // Tab moves the focus only with its number.
        let number = if key == "Tab" { 9 } else { 0 };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": number });
            self.call("Input.dispatchKeyEvent", &event);
        }
    }
}
