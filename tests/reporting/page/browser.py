"""Headless Chromium controlled through two pipes, with the functions for testing pages."""

import base64
import itertools
import json
import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe")


def find_executable():
    """Return the path of a browser, None without one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def open_browser(profile):
    """Open a browser with a separate profile within a context."""
    command_read, command_write = os.pipe()
    answer_read, answer_write = os.pipe()
    # the browser reads commands from descriptor 3 and answers to 4
    pipes = f"exec 3<&{command_read} 4>&{answer_write}"
    chromium = subprocess.Popen(
        [
            "/bin/bash",
            "-c",
            f'{pipes}; exec "$@"',
            "-",
            find_executable(),
            *FLAGS,
            f"--user-data-dir={profile}",
        ],
        pass_fds=(command_read, answer_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(command_read)
    os.close(answer_write)
    with os.fdopen(command_write, "wb", buffering=0) as commands, os.fdopen(answer_read, "rb") as answers:
        try:
            yield Browser(commands, answers)
        finally:
            chromium.terminate()
            chromium.wait(timeout=600)


class Browser:
    """One page, with a log of its events."""

    def __init__(self, commands, answers):
        self._commands, self._answers, self._numbers = commands, answers, itertools.count(1)
        self._session = None
        self.events = []
        target = self.send_command("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send_command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send_command(f"{domain}.enable")

    def send_command(self, method, **parameters):
        """Send one command; return its answer."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._commands.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def open(self, path, *, width=1280, height=900, dark=False, medium="screen"):
        """Load a file or address in a window of this size, light or dark, for screen or paper."""
        self.events.clear()
        self.send_command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send_command("Emulation.setEmulatedMedia", media=medium, features=[scheme])
        url = path if str(path).startswith("http:") else Path(path).resolve().as_uri()
        self.send_command("Page.navigate", url=url)
        self._await_load()

    def follow(self, selector):
        """Click a link and wait until its page has loaded."""
        self.events.clear()
        # clicked later: an answer that comes while the page changes would be an error
        self.evaluate(f"void setTimeout(() => document.querySelector({json.dumps(selector)}).click())")
        self._await_load()

    def evaluate(self, script):
        """Return the result of a script on the page."""
        found = self.send_command("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def requests(self):
        """Return every requested address except the page itself and embedded data."""
        sent = (each["params"] for each in self.events if each["method"] == "Network.requestWillBeSent")
        urls = [each["request"]["url"] for each in sent]
        return [url for url in urls[1:] if not url.startswith("data:")]

    def console_messages(self):
        """Return the console messages of the page and the browser."""
        told = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
        return [each["params"] for each in self.events if each["method"] in told]

    def screenshot(self, path):
        """Write a picture of the whole page to a file."""
        shot = self.send_command("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def _await_load(self):
        """Wait until the page has loaded."""
        while not any(each["method"] == "Page.loadEventFired" for each in self.events):
            self._next()

    def _next(self):
        """Return the next message, storing events."""
        data = bytearray()
        while (byte := self._answers.read(1)) != b"\0":
            assert byte, "the browser has ended"
            data += byte
        message = json.loads(data)
        if "method" in message:
            self.events.append(message)
        return message
