"""Runs PostgreSQL servers for tests, as children that never outlive their tests.

    postgres.py INSTALLATION shared DIRECTORY
    postgres.py INSTALLATION private DIRECTORY PORT
    postgres.py INSTALLATION standby DIRECTORY PORT PRIMARY_DIRECTORY PRIMARY_PORT

A shared server has a Unix socket in DIRECTORY. The command ends when it is ready. It stops when no process has locked DIRECTORY/users
for a while, and DIRECTORY/ready exists while it can be used. Its data is in memory if there is room. A private server also has a TCP port, and obeys lines of stdin, each answered by a line: 'start', 'stop',
'kill'. It stops at the end of stdin. A standby is a private server that follows another one. Data that tests write is not meant to survive the machine, so nothing is synced to the disk.
Needs nothing but the standard library.
"""

import ctypes
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# PostgreSQL refuses to run as root, so it then runs as this user: nobody.
OTHER_USER = 65534

LINGER = 15.0
PASSWORD = "hob-test"

SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "400",
    "shared_buffers": "64MB",
    "max_wal_size": "256MB",
    "log_min_messages": "fatal",
}

# Nothing survives the end of a shared server, so a commit need not wait until it is written.
SHARED_SETTINGS = {"synchronous_commit": "off"}

# Files in memory on Linux. Tests create and drop hundreds of databases, and wait for each file on a disk.
MEMORY = Path("/dev/shm")
NEEDED_MEMORY = 4 << 30


def die_with_parent():
    """Linux only. Elsewhere a killed supervisor leaves its server behind."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGQUIT)
    except (OSError, AttributeError):
        pass


def data_of_shared(directory):
    """The same place every time. What a killed server left there is removed first, so that it takes no room."""
    in_memory = MEMORY / f"{directory.as_posix().strip('/').replace('/', '-')}-data"
    if not os.access(MEMORY, os.W_OK | os.X_OK):
        return directory / "data"
    shutil.rmtree(in_memory, ignore_errors=True)
    return in_memory if shutil.disk_usage(MEMORY).free >= NEEDED_MEMORY else directory / "data"


class Server:
    def __init__(self, installation, directory, port, data=None, settings=None):
        self.directory, self.port = directory, port
        self.data = data or directory / "data"
        self.settings = SETTINGS | (settings or {})
        self.user = {"user": OTHER_USER, "group": OTHER_USER, "extra_groups": []} if os.geteuid() == 0 else {}
        self.installation = self.readable(installation)
        self.pg_isready = installation / "bin" / "pg_isready"
        self.process = None

    def readable(self, installation):
        """The other user may not be allowed to read the home directory of root, so it gets a copy, once."""
        if not self.user:
            return installation
        package = installation.parents[1]
        name = hashlib.sha256(str(package).encode()).hexdigest()[:12]
        copy = Path(os.environ.get("HOB_TEST_SHARED_DIRECTORY") or tempfile.gettempdir()) / f"hob-test-postgres-{name}-copy"
        if not copy.exists():
            part = copy.with_name(f"{copy.name}-{os.getpid()}")
            shutil.copytree(package, part, ignore=shutil.ignore_patterns("pginstall", "include"))
            try:
                os.rename(part, copy)
            except OSError:
                # Another process was faster.
                shutil.rmtree(part)
        return copy / installation.relative_to(package)

    def create(self):
        shutil.rmtree(self.data, ignore_errors=True)
        self.data.mkdir(mode=0o700)
        if self.user:
            os.chown(self.data, OTHER_USER, OTHER_USER)
            os.chown(self.directory, OTHER_USER, OTHER_USER)
        password = self.directory / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        command = [
            self.installation / "bin" / "initdb", "--pgdata", self.data, "--username", "hob", "--pwfile", password,
            "--auth-local", "trust", "--auth-host", "scram-sha-256", "--encoding", "UTF8",
            "--locale-provider", "builtin", "--locale", "C.UTF-8", "--no-sync", "--no-instructions",
        ]
        subprocess.run(command, check=True, stdout=sys.stderr, cwd="/", **self.user)

    def copy_of(self, directory, port):
        """A standby of the server with its socket there, which runs."""
        if self.user:
            os.chown(self.directory, OTHER_USER, OTHER_USER)
        command = [
            self.installation / "bin" / "pg_basebackup", "--pgdata", self.data, "--host", directory, "--port", port,
            "--username", "hob", "--write-recovery-conf", "--wal-method", "stream", "--checkpoint", "fast", "--no-sync",
        ]
        subprocess.run(command, check=True, stdout=sys.stderr, cwd="/", **self.user)

    def launch(self):
        settings = self.settings | {
            "unix_socket_directories": str(self.directory),
            "listen_addresses": "127.0.0.1" if self.port != 5432 else "",
            "port": str(self.port),
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [self.installation / "bin" / "postgres", "-D", self.data, *options]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=sys.stderr, cwd="/", preexec_fn=die_with_parent, **self.user
        )

    def start(self):
        """After a crash, the data is in use until the last child has noticed it."""
        deadline = time.monotonic() + 30
        self.launch()
        probe = [self.pg_isready, "-q", "-h", self.directory, "-p", str(self.port), "-U", "hob", "-d", "postgres"]
        while subprocess.run(probe, cwd="/").returncode != 0:
            if self.process.poll() is not None:
                if time.monotonic() > deadline:
                    sys.exit(f"postgres ended with {self.process.returncode}")
                self.launch()
            time.sleep(0.02)

    def end(self, how):
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait()


def run_shared(server):
    """Returns when the server is ready. A process in the background stays with it."""
    reader, writer = os.pipe()
    if os.fork() > 0:
        os.close(writer)
        sys.exit(0 if os.read(reader, 1) else 1)
    os.setsid()
    # Files of the test that started it, such as the lock of a build, would otherwise stay open as long as the server.
    os.closerange(3, writer)
    os.closerange(writer + 1, 1024)
    server.create()
    server.start()
    ready = server.directory / "ready"
    ready.touch()
    os.write(writer, b"1")
    with open(server.directory / "users", "r") as users:
        used = time.monotonic()
        while server.process.poll() is None:
            time.sleep(0.5)
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                used = time.monotonic()
                continue
            if time.monotonic() - used > LINGER:
                break
            fcntl.flock(users, fcntl.LOCK_UN)
        else:
            # It has crashed. Without the lock, the files may already be those of the next server.
            return
        # Held until this process ends, so that a test that comes now waits and then starts a new server.
        ready.unlink(missing_ok=True)
        server.end(signal.SIGQUIT)
        shutil.rmtree(server.data, ignore_errors=True)


def run_private(server):
    server.start()
    print("started", flush=True)
    try:
        for line in sys.stdin:
            command = line.strip()
            if command == "start":
                server.start()
            elif command == "stop":
                server.end(signal.SIGINT)
            elif command == "kill":
                server.end(signal.SIGKILL)
            else:
                sys.exit(f"unknown command: {command}")
            print("done", flush=True)
    finally:
        server.end(signal.SIGQUIT)


def main(arguments):
    installation, kind, directory = Path(arguments[0]), arguments[1], Path(arguments[2])
    if kind == "shared":
        run_shared(Server(installation, directory, 5432, data_of_shared(directory), SHARED_SETTINGS))
        return
    server = Server(installation, directory, int(arguments[3]))
    if kind == "standby":
        server.copy_of(arguments[4], arguments[5])
    else:
        server.create()
    run_private(server)


if __name__ == "__main__":
    main(sys.argv[1:])
