//! A browser for one test.

use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::web_driver::WebDriver;

/// Far longer than anything here takes, two polls of the page included.
const WAIT_LIMIT: Duration = Duration::from_secs(300);

/// The intervals between checks of the page: short at first, because most changes come soon.
const FIRST_GLANCE: Duration = Duration::from_millis(5);
const LONGEST_GLANCE: Duration = Duration::from_millis(50);

/// Holds back the answers to one kind of request.
const HOLD: &str = "
    const real = window.fetch;
    window.holds = true;
    window.held = [];
    window.fetch = async (address, options) => {
        const isHeld = holds && (options?.method ?? 'GET') === {method} && String(address).split('?')[0] === {path};
        const answer = await real(address, options);
        if (!isHeld) return answer;
        const body = await answer.text();
        answer.json = async () => JSON.parse(body);
        await new Promise((release) => held.push(release));
        return answer;
    };";

/// Holds back the requests with one path of every new page, from its first one on.
const HOLD_REQUESTS: &str = "{
    const real = window.fetch;
    window.heldRequests = [];
    window.fetch = async (address, options) => {
        if (heldRequests !== null && address === {path}) await new Promise((release) => heldRequests.push(release));
        return real(address, options);
    };
}";

const FLAGS: [&str; 13] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    // Fewer processes: a third of the time of a start.
    "--in-process-gpu",
    "--no-zygote",
    "--enable-features=NetworkServiceInProcess2",
];

/// The settings of the browser: screen, colour scheme, language.
#[derive(Debug, Clone, Copy)]
pub struct Device {
    pub width: u32,
    pub height: u32,
    pub scheme: &'static str,
    pub motion: &'static str,
    pub locale: &'static str,
}

impl Device {
    pub const DESKTOP: Device =
        Device { width: 1280, height: 900, scheme: "light", motion: "no-preference", locale: "en-GB" };
    pub const DARK: Device = Device { scheme: "dark", motion: "reduce", ..Device::DESKTOP };
    pub const PHONE: Device = Device { width: 390, height: 844, ..Device::DESKTOP };
}

/// Chromium. It ends when the value is dropped, also after a failed test.
pub struct Browser {
    // Ends the session before the driver is killed, because the fields are dropped in order.
    driver: WebDriver,
    _process: Child,
    _profile: TempDir,
}

fn part(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("${variable} is not set. This test needs a real browser: run it with './dev test', which installs one.")
    })
}

impl Browser {
    pub async fn open(device: Device) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut process = Command::new(part("HOB_TEST_CHROMEDRIVER"))
            .args(["--port=0", "--allowed-ips=127.0.0.1"])
            // It leaves directories behind when it is killed.
            .env("TMPDIR", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("chromedriver starts");
        let port = port_of(&mut process).await;
        let data = format!("--user-data-dir={}", profile.path().display());
        let arguments: Vec<&str> = FLAGS.into_iter().chain([data.as_str()]).collect();
        let binary = part("HOB_TEST_CHROMIUM");
        // Chromium without windows starts in a fifth of the time. chromedriver waits for ever for it under the name of the other.
        let name = if binary.ends_with("headless-shell") { "chrome-headless-shell" } else { "chrome" };
        let capabilities = json!({
            "browserName": name,
            "goog:chromeOptions": { "binary": binary, "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
            // In milliseconds. The usual limit of a script is 30 seconds.
            "timeouts": { "script": WAIT_LIMIT.as_secs() * 1000, "pageLoad": WAIT_LIMIT.as_secs() * 1000 },
        });
        let driver = WebDriver::connect(port, &capabilities).await;
        let browser = Browser { driver, _process: process, _profile: profile };
        browser.set_device(device).await;
        browser
    }

    /// Changes the settings of the browser for the same page.
    pub async fn set_device(&self, device: Device) {
        let Device { width, height, scheme, motion, locale } = device;
        let screen =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.devtools("Emulation.setDeviceMetricsOverride", screen).await;
        let features = json!([
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "prefers-reduced-motion", "value": motion },
        ]);
        self.devtools("Emulation.setEmulatedMedia", json!({ "features": features })).await;
        self.devtools("Emulation.setLocaleOverride", json!({ "locale": locale })).await;
        // The page has adapted one frame later.
        self.run_async("requestAnimationFrame(() => requestAnimationFrame(() => arguments[0]()))").await;
    }

    pub async fn go(&self, url: &str) {
        self.driver.post("url", &json!({ "url": url })).await.expect("a page");
    }

    pub async fn reload(&self) {
        self.driver.post("refresh", &json!({})).await.expect("the page again");
    }

    /// Goes back to the previous page. Not by a script: chromedriver runs one again that ended with its page, and so goes back twice.
    pub async fn back(&self) {
        self.driver.post("back", &json!({})).await.expect("the previous page");
    }

    /// Opens another tab and switches to it. Returns the previous tab.
    pub async fn open_tab(&self) -> Tab {
        let opened = self.driver.post("window/new", &json!({ "type": "tab" })).await.expect("another tab");
        self.turn_to(Tab(opened["handle"].clone())).await
    }

    /// Switches to this tab. Returns the previous tab.
    pub async fn turn_to(&self, tab: Tab) -> Tab {
        let before = self.driver.get("window").await.expect("a tab");
        self.driver.post("window", &json!({ "handle": tab.0 })).await.expect("the tab");
        Tab(before)
    }

    /// What a script returns.
    pub async fn run(&self, script: &str) -> Value {
        self.script("execute/sync", script).await
    }

    /// The same for one that calls its last argument with the result.
    pub async fn run_async(&self, script: &str) -> Value {
        self.script("execute/async", script).await
    }

    async fn script(&self, command: &str, script: &str) -> Value {
        let body = json!({ "script": script, "args": [] });
        self.driver.post(command, &body).await.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// The visible text of an element; empty if it is hidden or not there.
    pub async fn text(&self, id: &str) -> String {
        let script =
            "const it = document.getElementById('{id}'); return it?.checkVisibility() ? it.innerText : ''";
        let shown = self.run(&script.replace("{id}", id)).await;
        shown.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an element shows this text.
    pub async fn shows(&self, id: &str, text: &str) {
        let mut seen = String::new();
        let looking = async {
            let mut glance = FIRST_GLANCE;
            loop {
                seen = self.text(id).await;
                if seen.contains(text) {
                    return;
                }
                tokio::time::sleep(glance).await;
                glance = LONGEST_GLANCE.min(glance * 2);
            }
        };
        let found = tokio::time::timeout(WAIT_LIMIT, looking).await;
        assert!(found.is_ok(), "#{id} never showed {text:?}, but {seen:?}");
    }

    /// Waits until a condition of the page holds, and returns its value.
    pub async fn until(&self, condition: &str) -> Value {
        let wait = "const done = arguments[0];
            const look = () => { const found = {condition}; if (found) done(found); else setTimeout(look, 5); };
            look();";
        self.run_async(&wait.replace("{condition}", condition)).await
    }

    pub async fn click(&self, selector: &str) {
        self.run(&format!("document.querySelector({selector:?}).click()")).await;
    }

    /// Clicks the button of this action, such as `disable ana`.
    pub async fn press_action(&self, action: &str) {
        let find = "[...document.querySelectorAll('[data-action]')].find((one) => one.dataset.action === ";
        self.run(&format!("{find}{}).click()", Value::from(action))).await;
    }

    /// Holds back the answers to requests with this method and path that the page sends from now on.
    pub async fn hold_answers(&self, method: &str, path: &str) {
        let literal = |text: &str| Value::from(text).to_string();
        let script = HOLD.replace("{method}", &literal(method)).replace("{path}", &literal(path));
        self.run(&script).await;
    }

    /// Waits until such an answer has arrived. Those to later requests are not held back.
    pub async fn an_answer_is_held(&self) {
        self.until("held.length > 0").await;
        self.run("window.holds = false").await;
    }

    /// Gives the page the answers that were held back, and waits until it has used them.
    pub async fn release_answers(&self) {
        let release = "const done = arguments[0];
            held.splice(0).forEach((release) => release());
            held.push = (release) => release();
            setTimeout(done);";
        self.run_async(release).await;
    }

    /// Holds back the requests with this path that the next pages send, so that the server does not get them yet.
    pub async fn hold_requests_of_next_page(&self, path: &str) {
        self.run_first_on_next_page(&HOLD_REQUESTS.replace("{path}", &Value::from(path).to_string())).await;
    }

    /// Sends the requests that were held back, and holds back no more on this page.
    pub async fn release_requests(&self) {
        self.until("heldRequests.length > 0").await;
        self.run(
            "const held = heldRequests; window.heldRequests = null; held.forEach((release) => release())",
        )
        .await;
    }

    /// Runs a script on the next pages, before their own.
    pub async fn run_first_on_next_page(&self, script: &str) {
        self.devtools("Page.addScriptToEvaluateOnNewDocument", json!({ "source": script })).await;
    }

    /// Makes the current tab the one that a person sees.
    pub async fn bring_to_front(&self) {
        self.devtools("Page.bringToFront", json!({})).await;
    }

    /// Asserts that nothing makes the page wider than the screen.
    pub async fn assert_fits_the_screen(&self, when: &str) {
        let widths = self.run("return [document.documentElement.scrollWidth, innerWidth]").await;
        assert_eq!(widths[0], widths[1], "nothing sticks out: {when}");
    }

    /// Presses keys where the focus is.
    pub async fn press(&self, keys: &str) {
        loop {
            let focused = self.driver.get("element/active").await.unwrap();
            let command = format!("element/{}/value", element_id(&focused));
            match self.driver.post(&command, &json!({ "text": keys })).await {
                // The page has replaced the element in between, and no key is pressed yet.
                Err(error) if error.contains("stale element reference") => {}
                pressed => return drop(pressed.unwrap()),
            }
        }
    }

    /// The errors in the browser's log since the last call: errors of scripts and violations of the policy.
    pub async fn complaints(&self) -> Vec<String> {
        let log = self.driver.post("se/log", &json!({ "type": "browser" })).await.unwrap();
        let said = |entry: &Value| entry["message"].as_str().unwrap_or_default().to_owned();
        log.as_array().unwrap().iter().map(said).collect()
    }

    pub async fn picture(&self) -> Vec<u8> {
        let encoded = self.driver.get("screenshot").await.unwrap();
        BASE64_STANDARD.decode(encoded.as_str().unwrap()).unwrap()
    }

    /// Sends a command to the browser.
    pub async fn devtools(&self, command: &str, parameters: Value) -> Value {
        let body = json!({ "cmd": command, "params": parameters });
        self.driver.post("goog/cdp/execute", &body).await.unwrap()
    }
}

/// A tab of the browser.
pub struct Tab(Value);

/// The id of an element in an answer of the driver. It is the only field, whose name is a constant of the standard.
fn element_id(element: &Value) -> &str {
    let fields = element.as_object().expect("an element");
    fields.values().next().and_then(Value::as_str).expect("the id of an element")
}

/// The port that chromedriver chose and prints.
async fn port_of(driver: &mut Child) -> u16 {
    let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if let Some((_, port)) = line.split_once("started successfully on port ") {
            let port = port.trim_end_matches('.').parse().unwrap();
            // It ends if it prints more than is read.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return port;
        }
    }
    panic!("chromedriver ended without saying its port");
}
