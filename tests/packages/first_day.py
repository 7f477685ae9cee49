#!/usr/bin/env python3
"""first_day.py DEB MODEL: what a new user does first, with a clock: from the Debian package to an answer, a document and a briefing.

Runs in a clean Debian without a network, as root, so a file takes the place of the model's download. Nothing else is configured by hand.
Ends with 1 at the first command that does not do what the documentation says. Uses only Python's standard library.
"""

import datetime
import json
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ADDRESS = "http://127.0.0.1:8000"
LONGEST = 120.0


class Clock:
    """Prints how long each step took, and how long all of them."""

    def __init__(self):
        self.began = self.last = time.monotonic()

    def lap(self, words):
        now = time.monotonic()
        print(f"ok {words}: {now - self.last:.1f} s, {now - self.began:.1f} s in all", flush=True)
        self.last = now


def run(*command):
    ran = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=LONGEST)
    if ran.returncode != 0:
        sys.exit(f"!! {' '.join(map(str, command))}: exit code {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def require(holds, problem):
    if not holds:
        sys.exit(f"!! {problem}")


def wait_until_ready(server):
    deadline = time.monotonic() + LONGEST
    while True:
        require(server.poll() is None, "hob serve ended")
        try:
            with urllib.request.urlopen(f"{ADDRESS}/health", timeout=5):
                return
        except OSError:
            require(time.monotonic() < deadline, "hob serve does not answer")
            time.sleep(0.02)


def post(path, body):
    request = urllib.request.Request(
        ADDRESS + path, data=json.dumps(body).encode(), headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=LONGEST) as answer:
        return json.load(answer)


def write_calendar(path):
    today = datetime.date.today().strftime("%Y%m%d")
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//first day//EN", "BEGIN:VEVENT", "UID:dentist@example.org",
             f"DTSTAMP:{today}T000000Z", f"DTSTART;VALUE=DATE:{today}", "SUMMARY:Dentist", "END:VEVENT", "END:VCALENDAR"]
    path.write_text("\r\n".join(lines) + "\r\n")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    package, model = sys.argv[1:]
    home = Path.home()
    clock = Clock()

    run("dpkg", "--install", package)
    clock.lap("the package is installed")

    models = home / ".hob/models"
    models.mkdir(parents=True)
    shutil.copy(model, models / "smollm2-135m-instruct.gguf")
    answer = run("hob", "ask", "-t", "0", "What is the capital of France? Answer in one sentence.")
    require("Paris" in answer, f"the first answer: {answer}")
    clock.lap("hob ask answers")

    with subprocess.Popen(["hob", "serve"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_until_ready(server)
            clock.lap("hob serve is ready")
            said = post("/v1/chat/completions", {
                "model": "default", "agent": "none", "max_tokens": 30, "temperature": 0,
                "messages": [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]})
            require(said["choices"][0]["message"]["content"].strip(), f"the server's answer: {said}")
            clock.lap("a client of OpenAI's API has its answer")

            notes = home / "notes"
            notes.mkdir()
            (notes / "house.md").write_text("# The house\nThe boiler was serviced on 3 March.\n")
            run("hob", "memory", "index", notes)
            found = run("hob", "memory", "search", "when was the boiler serviced")
            require("3 March" in found, f"the search: {found}")
            clock.lap("a document is found")

            calendar = home / "me.ics"
            write_calendar(calendar)
            run("hob", "recipes", "add", "briefing", "--yes", "--every", "weekdays 07:00", "--set", f"calendar={calendar}")
            briefing = run("hob", "scheduler", "run", "briefing")
            require("Dentist" in briefing and "## Summary" in briefing, f"the briefing: {briefing}")
            clock.lap("a briefing is written")
        finally:
            server.terminate()
    require(server.returncode == 0, f"hob serve ended with {server.returncode}")


main()
