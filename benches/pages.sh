#!/usr/bin/env bash
# the pages in Chromium: the median time until a page shows something, of 20 times, and the bytes that it loads; and the times between two
# pictures while 10,000 conversations are scrolled and while an answer of 50,000 tokens arrives, on a desktop and on a phone
#
#   ./dev bench pages
#
# The server runs in the same process and on the same machine, so the time is that of the browser. $HOB_TEST_CHROMIUM and
# $HOB_TEST_CHROMEDRIVER name another browser and its driver.
set -euo pipefail

if [ -z "${HOB_TEST_CHROMIUM:-}" ]; then
    for name in chromium chromium-browser google-chrome google-chrome-stable; do
        HOB_TEST_CHROMIUM=$(command -v "$name") && break
    done
fi
HOB_TEST_CHROMEDRIVER=${HOB_TEST_CHROMEDRIVER:-$(command -v chromedriver)}
export HOB_TEST_CHROMIUM HOB_TEST_CHROMEDRIVER

cargo test --quiet --profile measure -p hob-server --test api -- \
    --ignored --exact --nocapture --test-threads=1 pages::browser::page_weight::bench_of_first_paint \
    pages::browser::chat::smoothness::bench_of_long_content |
    grep -E '^(page|/|content|10,000|50,000)'
