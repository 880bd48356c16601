"""Nodes, and Finders alone, for tests: each in a directory of its own, ended with the test."""

import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from weft.xrl import Component, Node

#: The program; the tests that need it are not run without it.
WEFT = os.environ.get("WEFT", "")
ROOT = pathlib.Path(__file__).resolve().parents[4]
INTERFACES = ROOT / "interfaces"
CENSUS = ROOT / "examples" / "component-python" / "census.py"
NEEDS_WEFT = "WEFT names no program: cargo test -p weft --test commands python"
#: A test that waits longer than this for an event fails.
PATIENCE = 60.0


def wait_until(holds, what):
    """Waits for something to be so."""
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not come")
        time.sleep(0.01)


@contextlib.contextmanager
def directory():
    """A directory that processes with users of their own can pass."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="weft-"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def end(process):
    """Ends a process that the test has started."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()


def listener(path):
    """A listening Unix socket, as the launcher makes it."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.bind(str(path))
    os.chmod(path, 0o666)
    sock.listen(64)
    return sock


def sealed(secret):
    """A file in memory that nobody can change, as the launcher passes secrets on."""
    descriptor = os.memfd_create("secret", os.MFD_ALLOW_SEALING)
    os.write(descriptor, secret)
    seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor


def launch(command, run, instance, profile, sock, secret, **more):
    """Starts a process as the launcher does."""
    descriptor = sealed(secret)
    entries = [
        {"fd": sock.fileno(), "kind": "listener", "name": f"xrl-{instance}", "path": sock.getsockname()},
        {"fd": descriptor, "kind": "secret", "name": "secret"},
    ]
    sandbox = {"profile": profile, "instance": instance, "run_directory": str(run), "write": []}
    environment = {
        "PATH": os.environ["PATH"],
        "WEFT_NODE": "t",
        "WEFT_OPERATOR": str(os.geteuid()),
        "WEFT_LOG": "info",
        "WEFT_INHERITED": json.dumps(entries),
        "WEFT_SANDBOX": json.dumps(sandbox),
    }
    try:
        return subprocess.Popen(
            command, env=environment, pass_fds=(sock.fileno(), descriptor), stdin=subprocess.DEVNULL, **more
        )
    finally:
        os.close(descriptor)


class Finder:
    """The Finder of a node without anything else; the test is the manager."""

    SECRET = b"f" * 32

    def __init__(self, run):
        self.run = run
        self.socket = listener(run / "xrl-finder")
        self.process = None
        self.start()

    def start(self):
        command = [WEFT, "component", "finder", "--instance", "finder"]
        self.process = launch(
            command, self.run, "finder", "finder", self.socket, self.SECRET, stderr=subprocess.DEVNULL
        )

    def restart(self):
        self.process.kill()
        self.process.wait()
        self.start()

    def owner(self):
        """A connection with the rights of the manager."""
        return Node(self.run, secret=self.SECRET, timeout=PATIENCE)

    def close(self):
        end(self.process)
        self.socket.close()


@contextlib.contextmanager
def finder():
    """A Finder alone."""
    with directory() as run:
        one = Finder(run)
        try:
            yield one
        finally:
            one.close()


@contextlib.contextmanager
def serving(run, class_, interfaces, handlers, *, secret=None, **more):
    """A component in a thread of its own."""
    with Node(run, secret=secret, timeout=PATIENCE) as node:
        instance = more.pop("instance", class_)
        with Component(node, class_, instance, interfaces, handlers, timeout=PATIENCE, **more) as one:
            while not one.is_registered and not one.trouble:
                node.poll(0.1)
            thread = threading.Thread(target=node.serve)
            thread.start()
            try:
                yield one
            finally:
                node.stop()
                thread.join()
