//! Accessibility checks by axe-core.

use serde_json::Value;

use super::chromium::{Browser, Device};

/// The rules of axe-core that run.
const ALL: &str = "{}";
const ABOUT_COLOURS: &str = "{ runOnly: ['color-contrast', 'link-in-text-block'] }";

/// Checks the page as a desktop and a phone show it: with axe-core, and that nothing is wider than the screen. Dark colours leave the
/// structure of the page as it is, so only the rules about colours are checked with them.
pub async fn assert_accessible_on_all_screens(browser: &Browser) {
    let dark_phone = Device { scheme: "dark", ..Device::PHONE };
    for (device, rules) in [
        (Device::DESKTOP, ALL),
        (Device::DARK, ABOUT_COLOURS),
        (Device::PHONE, ALL),
        (dark_phone, ABOUT_COLOURS),
    ] {
        let when = format!("{device:?}");
        browser.set_device(device).await;
        check(browser, rules, &when).await;
        browser.assert_fits_the_screen(&when).await;
    }
}

/// Runs axe-core. Results that it is not sure of are ignored.
pub async fn assert_accessible(browser: &Browser, when: &str) {
    check(browser, ALL, when).await;
}

async fn check(browser: &Browser, rules: &str, when: &str) {
    // Half a megabyte, which is sent only once to a page.
    if browser.run("return window.axe === undefined").await == Value::Bool(true) {
        browser.run(&format!("{}; window.axe = axe;", axe_core())).await;
    }
    // Waits for transitions, because half-faded text has a low contrast. Only the details of violations are collected: those of all
    // other elements take long.
    let look = "const done = arguments[0];
        Promise.all(document.getAnimations().filter((one) => one instanceof CSSTransition).map((one) => one.finished))
            .catch(() => {}).then(() => axe.run({ ...{rules}, resultTypes: ['violations'], selectors: false }))
            .then((found) => done({ passes: found.passes.length, violations: found.violations.map((one) =>
                ({ id: one.id, impact: one.impact, nodes: one.nodes.map((node) => node.html + ' ' + node.failureSummary) })) }),
            (error) => done({ error: String(error) }))";
    let found = browser.run_async(&look.replace("{rules}", rules)).await;
    let least = if rules == ALL { 11 } else { 1 };
    assert!(found["passes"].as_i64() >= Some(least), "{when}: axe-core looked at nothing: {found}");
    assert_eq!(found["violations"], Value::Array(Vec::new()), "{when}");
}

fn axe_core() -> String {
    let modules = std::env::var("HOB_TEST_NODE_MODULES")
        .expect("$HOB_TEST_NODE_MODULES is not set: run this with './dev test', which installs axe-core");
    std::fs::read_to_string(format!("{modules}/axe-core/axe.min.js")).expect("axe-core")
}
