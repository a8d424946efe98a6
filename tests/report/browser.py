"""Headless Chromium, driven over the pipe of its DevTools protocol: nothing but Python's own library is needed."""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-extensions", "--hide-scrollbars", "--force-device-scale-factor=1",
    "--font-render-hinting=none", "--disable-lcd-text", "--remote-debugging-pipe",
]


def found():
    """The path of a Chromium, or nothing."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One browser with one page."""

    def __init__(self, path, limit_s=60):
        self.limit_s = limit_s
        self.profile = tempfile.mkdtemp(prefix="nandscape-report-")
        to_read, self.to = os.pipe()
        self.back, from_write = os.pipe()

        def wire():
            # The protocol wants descriptors 3 and 4; both are moved out of the way of each other first.
            high_in, high_out = os.dup2(to_read, 103), os.dup2(from_write, 104)
            os.dup2(high_in, 3)
            os.dup2(high_out, 4)
            os.setsid()

        self.process = subprocess.Popen(
            [path, *FLAGS, f"--user-data-dir={self.profile}", "about:blank"], close_fds=False, preexec_fn=wire,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(from_write)
        self.buffer, self.number, self.events, self.session = b"", 0, [], None
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self.session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.call(f"{domain}.enable")

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.to)
        os.close(self.back)
        shutil.rmtree(self.profile, ignore_errors=True)

    def message(self):
        until = time.monotonic() + self.limit_s
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.back], [], [], max(0, until - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser says nothing")
            piece = os.read(self.back, 1 << 16)
            if not piece:
                raise EOFError("the browser has ended")
            self.buffer += piece
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, params=None):
        """What the browser answers; what happens meanwhile is kept in `events`."""
        self.number += 1
        asked = {"id": self.number, "method": method, "params": params or {}}
        if self.session:
            asked["sessionId"] = self.session
        left = json.dumps(asked).encode() + b"\0"
        while left:
            left = left[os.write(self.to, left):]
        while True:
            message = self.message()
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def run(self, script):
        """The value of an expression in the page; promises are waited for."""
        answer = self.call("Runtime.evaluate", {"expression": script, "returnByValue": True, "awaitPromise": True})
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script[:80]}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def open(self, url, scheme="light", width=1000, height=800):
        """Opens a page and waits until it says that it has drawn everything."""
        # What is set for the next page is nothing that the last one is to hear of.
        self.call("Page.navigate", {"url": "about:blank"})
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.call("Emulation.setEmulatedMedia", {"media": "screen", "features": [{"name": "prefers-color-scheme", "value": scheme}]})
        self.call("Page.navigate", {"url": url})
        until = time.monotonic() + self.limit_s
        while self.run("document.readyState + document.documentElement?.dataset.drawn") != "completeyes":
            if time.monotonic() > until:
                raise TimeoutError(f"{url} is not drawn: {self.complaints()}")
            time.sleep(0.05)
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def complaints(self):
        """Everything that the page has complained about."""
        found = []
        for event in self.events:
            params = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"].get("exception", {}).get("description", params["exceptionDetails"]["text"]))
            elif event.get("method") == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                found.append(" ".join(str(one.get("value", one.get("description"))) for one in params["args"]))
            elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
        return found

    def requests(self):
        """Everything that the page has asked for, itself included."""
        asked = (event["params"]["request"]["url"] for event in self.events if event.get("method") == "Network.requestWillBeSent")
        return [url for url in asked if url != "about:blank"]

    def picture(self, height, width=1000):
        """The page's first pixels as a PNG of half their number each way."""
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 0.5}
        return base64.b64decode(self.call("Page.captureScreenshot", {"format": "png", "clip": clip, "captureBeyondViewport": True})["data"])
