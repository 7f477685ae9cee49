//! The pictures in `docs/images`. Tests take them, and compare them with the stored ones: in levels of grey and coarsely, so that the fonts
//! of a machine do not matter, and an old picture is noticed. With `HOB_WRITE_DOCS` they are written instead.

use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::chromium::{Browser, Device};

/// The largest mean difference, of 255 levels of grey. A page whose lower half is missing has 7 or more.
const MAX_DIFFERENCE: f64 = 5.0;

/// Bytes of a stored picture.
const MAX_BYTES: usize = 120_000;

const RENEW: &str = "If the page is right, renew the pictures: HOB_WRITE_DOCS=1 ./dev test picture_of";

/// The screen of the pictures.
pub const SCREEN: Device = Device { width: 1100, height: 760, motion: "reduce", ..Device::DESKTOP };

/// Calls its last argument with the sizes of `stored` and `taken`, and the mean difference of squares of 40 pixels.
const COMPARE: &str = "
    const done = arguments[0];
    const bytes = (text) => Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
    const load = (text) => createImageBitmap(new Blob([bytes(text)], { type: 'image/png' }));
    const squares = ({ width, height }, picture) => {
        const context = Object.assign(document.createElement('canvas'), { width, height }).getContext('2d');
        context.drawImage(picture, 0, 0);
        const means = [];
        for (let y = 0; y < height; y += 40) {
            for (let x = 0; x < width; x += 40) {
                const [across, down] = [Math.min(40, width - x), Math.min(40, height - y)];
                const { data } = context.getImageData(x, y, across, down);
                let sum = 0;
                for (let at = 0; at < data.length; at += 4) sum += 0.299 * data[at] + 0.587 * data[at + 1] + 0.114 * data[at + 2];
                means.push(sum / (across * down));
            }
        }
        return means;
    };
    const compare = async () => {
        const [one, other] = await Promise.all([load(stored), load(taken)]);
        const sizes = [[one.width, one.height], [other.width, other.height]];
        const [before, now] = [squares(one, one), squares(one, other)];
        const sum = before.reduce((sum, level, index) => sum + Math.abs(level - now[index]), 0);
        return { sizes, difference: sum / before.length };
    };
    compare().then(done, (error) => done({ error: String(error) }));";

/// Pictures that were taken, with their names in `docs/images`.
#[derive(Default)]
pub struct Pictures(Vec<(&'static str, Vec<u8>)>);

impl Pictures {
    /// Takes one of the page as it is, on this screen.
    pub async fn take(&mut self, browser: &Browser, name: &'static str, device: Device) {
        browser.set_device(Device { motion: "reduce", ..device }).await;
        browser.run("document.activeElement.blur(); scrollTo(0, 0)").await;
        self.0.push((name, browser.picture().await));
    }

    /// Compares them with the stored ones, or stores them. The browser leaves the page.
    pub async fn check(self, browser: &Browser) {
        browser.go("about:blank").await;
        let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images");
        for (name, taken) in self.0 {
            let path = images.join(name);
            if std::env::var_os("HOB_WRITE_DOCS").is_some() {
                assert!(taken.len() <= MAX_BYTES, "docs/images/{name} has {} bytes", taken.len());
                std::fs::create_dir_all(&images).unwrap();
                std::fs::write(path, taken).unwrap();
                continue;
            }
            let stored =
                std::fs::read(&path).unwrap_or_else(|error| panic!("docs/images/{name}: {error}. {RENEW}"));
            let [stored, taken] = [stored, taken].map(|bytes| BASE64_STANDARD.encode(bytes));
            let compared = browser
                .run_async(&format!("const [stored, taken] = ['{stored}', '{taken}'];{COMPARE}"))
                .await;
            assert_eq!(compared["sizes"][0], compared["sizes"][1], "docs/images/{name}: {compared}. {RENEW}");
            let difference = compared["difference"].as_f64();
            assert!(
                difference.is_some_and(|difference| difference <= MAX_DIFFERENCE),
                "docs/images/{name} does not show the page as it is: {compared}. {RENEW}"
            );
        }
    }
}
