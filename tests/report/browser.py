"""A headless Chromium, driven over its debugging pipe (Chrome DevTools Protocol). Needs nothing but Python."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

PROGRAMS = ("chromium-headless-shell", "chromium", "google-chrome")
_FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
)


def find_browser() -> str | None:
    """Returns the path of an installed Chromium, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """A browser with one page. Use it as a context manager."""

    def __init__(self, program: str) -> None:
        """Starts the browser, which reads commands from its file 3 and writes answers to its file 4."""
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        commands, self._commands = _high_pipe()
        self._answers, answers = _high_pipe()
        # Chromium's sandbox refuses to run as root.
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        self._process = subprocess.Popen(
            [
                "bash",
                "-c",
                f'exec "$@" 3<&{commands} 4>&{answers}',
                "browser",
                program,
                *_FLAGS,
                *sandbox,
                f"--user-data-dir={self._profile.name}",
                "about:blank",
            ],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._unread = b""
        self._number = 0
        self._session: str | None = None
        self._loads = 0
        self.problems: list[str] = []
        self._attach()

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._commands)
        self._process.terminate()
        self._process.wait()
        os.close(self._answers)
        self._profile.cleanup()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Calls a method of the protocol and returns its result. Raises RuntimeError with the browser's message."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") != self._number:
                self._note(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            else:
                result: dict[str, Any] = answer["result"]
                return result

    def evaluate(self, expression: str) -> Any:
        """Returns the value of a JavaScript expression, or of the promise that it is."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def open(self, page: Path, width: int, dark: bool = False, medium: str = "screen", height: int = 1000) -> None:
        """Opens a file and waits until its scripts have drawn it."""
        self.call("Emulation.setScriptExecutionDisabled", value=False)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=medium, features=[scheme])
        self.call("Page.navigate", url=page.resolve().as_uri())
        self.evaluate(
            "new Promise((done) => { const look = () => document.documentElement?.dataset.ready ? done() : "
            "requestAnimationFrame(look); look(); })"
        )

    def reload_without_scripts(self) -> None:
        """Loads the page again with JavaScript switched off, until the next call of open."""
        self.call("Emulation.setScriptExecutionDisabled", value=True)
        loads = self._loads
        self.call("Page.reload")
        while self._loads == loads:
            self._note(self._read())

    def mouse(self, kind: str, x: float, y: float, clicks: int = 0, button: str = "none") -> None:
        """Moves, presses or releases the mouse at a point of the window."""
        self.call(
            "Input.dispatchMouseEvent",
            type=f"mouse{kind}",
            x=x,
            y=y,
            button=button,
            buttons=int(button != "none" and kind != "Released"),
            clickCount=clicks,
        )

    def point(self, selector: str, x: float = 0.5, y: float = 0.5) -> tuple[float, float]:
        """Scrolls to an element and returns the point at these shares of its width and height."""
        return tuple(
            self.evaluate(
                f"(() => {{ const e = document.querySelector({json.dumps(selector)}); "
                "e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect(); "
                f"return [b.x + {x} * b.width, b.y + {y} * b.height]; }})()"
            )
        )

    def hover(self, selector: str, x: float = 0.5, y: float = 0.5) -> None:
        """Moves the mouse onto an element."""
        self.mouse("Moved", *self.point(selector, x, y))

    def click(self, selector: str, x: float = 0.5, y: float = 0.5, count: int = 1) -> None:
        """Clicks on an element, once or several times in a row."""
        at = self.point(selector, x, y)
        self.mouse("Moved", *at)
        for clicks in range(1, count + 1):
            self.mouse("Pressed", *at, clicks=clicks, button="left")
            self.mouse("Released", *at, clicks=clicks, button="left")

    def drag(self, selector: str, begin: float, end: float) -> None:
        """Drags the mouse across an element, between two shares of its width."""
        from_point, to_point = self.point(selector, begin), self.point(selector, end)
        self.mouse("Moved", *from_point)
        self.mouse("Pressed", *from_point, clicks=1, button="left")
        self.mouse("Moved", *to_point, button="left")
        self.mouse("Released", *to_point, clicks=1, button="left")

    def screenshot(self, file: Path) -> None:
        """Writes a PNG of the whole page."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        image = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        file.write_bytes(base64.b64decode(image["data"]))

    def _attach(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def _note(self, event: dict[str, Any]) -> None:
        """Keeps errors that the page reports, and counts its loads."""
        parameters = event.get("params", {})
        if event.get("method") == "Page.loadEventFired":
            self._loads += 1
        if event.get("method") == "Runtime.exceptionThrown":
            self.problems.append(str(parameters["exceptionDetails"]))
        if event.get("method") == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.problems.append(str(parameters["args"]))
        if event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.problems.append(parameters["entry"]["text"])

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            piece = os.read(self._answers, 1 << 16)
            if not piece:
                raise RuntimeError(f"the browser ended with status {self._process.wait()}")
            self._unread += piece
        message, self._unread = self._unread.split(b"\0", 1)
        answer: dict[str, Any] = json.loads(message)
        return answer


def _high_pipe() -> tuple[int, int]:
    """Returns the ends of a pipe, with numbers that do not collide with the browser's files 3 and 4."""
    ends = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return high[0], high[1]
