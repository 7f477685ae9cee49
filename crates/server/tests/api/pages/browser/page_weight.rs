//! What a page costs: the bytes that it loads, and the time until it shows something.

use super::chromium::{Browser, Device};
use crate::admin::settings::SettingsServer;

/// Bytes over the wire, with all that the script of the page loads.
const MAX_LOADED_BYTES: u64 = 200_000;

/// How often the bench opens each page.
const OPENED: usize = 20;

/// Waits until nothing more is loaded, and adds up what came, with its headers.
const LOADED: &str = "
    const done = arguments[0];
    const entries = () => [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
    let [known, quiet] = [0, 0];
    const look = () => {
        const count = entries().length;
        quiet = count === known ? quiet + 1 : 0;
        known = count;
        if (quiet < 10) setTimeout(look, 50);
        else done(entries().reduce((sum, entry) => sum + entry.transferSize, 0));
    };
    look();";

async fn loaded_bytes(browser: &Browser) -> u64 {
    browser.run_async(LOADED).await.as_u64().unwrap()
}

/// Asserts that the page that was just opened loads little.
pub async fn assert_light(browser: &Browser, page: &str) {
    let bytes = loaded_bytes(browser).await;
    assert!((1..MAX_LOADED_BYTES).contains(&bytes), "{page} loads {bytes} bytes");
}

#[tokio::test]
#[ignore = "a bench: ./dev bench pages"]
async fn bench_of_first_paint() {
    let server = SettingsServer::start(&[]).await;
    let browser = Browser::open(Device::DESKTOP).await;
    println!("{:<12} {:>12} {:>10}", "page", "first paint", "bytes");
    for page in ["/", "/documents", "/tasks", "/channels", "/models", "/dashboard", "/team", "/settings"] {
        let mut times = Vec::with_capacity(OPENED);
        for _ in 0..OPENED {
            browser.go(&server.http.url(page)).await;
            let paint = "performance.getEntriesByName('first-contentful-paint')";
            browser.until(&format!("{paint}.length > 0")).await;
            times.push(browser.run(&format!("return {paint}[0].startTime")).await.as_f64().unwrap());
        }
        times.sort_by(f64::total_cmp);
        let bytes = loaded_bytes(&browser).await;
        println!("{page:<12} {:>9.1} ms {bytes:>10}", times[OPENED / 2]);
    }
}
