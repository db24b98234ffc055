"""A browser for tests: Debian's Chromium without a window, driven by Selenium, which looks for nothing by itself."""

from __future__ import annotations

import base64
import struct
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.action_builder import ActionBuilder

CHROMIUM = "/usr/bin/chromium"
CHROMEDRIVER = "/usr/bin/chromedriver"

# A loaded machine may take long, and must not make a test fail.
PATIENCE = 60.0  # seconds

# How long a page takes to count, in milliseconds: a measure of what else the machine does.
COUNTING = """(() => {
    const began = performance.now();
    let sum = 0;
    for (let at = 0; at < 5e7; at += 1) sum = (sum * 31 + at) | 0;
    return performance.now() - began + (sum === 1 ? 1 : 0);
})()"""
COUNTING_ALONE = 300.0

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--force-device-scale-factor=1",
    "--lang=en",
)


class Browser:
    """Opens pages and does what users do."""

    def __init__(self, profile: Path) -> None:
        options = ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver: Any = Chrome(options=options, service=Service(CHROMEDRIVER))
        self.driver.set_page_load_timeout(PATIENCE)
        self.driver.set_script_timeout(PATIENCE)

    def quit(self) -> None:
        self.driver.quit()

    def open(self, path: Path, size: tuple[int, int] = (1200, 800), dark: bool = False) -> None:
        """Open a page in a window of this size, and forget what the last page said."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False},
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme, still]})
        self.driver.get_log("browser")
        self.driver.get(path.resolve().as_uri())

    def run(self, script: str, *arguments: Any) -> Any:
        """Return what an expression of JavaScript is worth; ``arguments`` is there."""
        return self.driver.execute_script(f"return {script}", *arguments)

    def wait(self, script: str, *arguments: Any) -> Any:
        """Wait until an expression is true, and return its value."""
        deadline = time.monotonic() + PATIENCE
        while not (value := self.run(script, *arguments)):
            assert time.monotonic() < deadline, f"never came true: {script}"
            time.sleep(0.02)
        return value

    def slowness(self) -> float:
        """How much longer a page takes for something than on a machine with nothing else to do, at least 1."""
        return max(1.0, float(self.run(COUNTING)) / COUNTING_ALONE)

    def messages(self) -> list[str]:
        """What the page said on its console since this was last asked: errors and warnings."""
        entries = self.driver.get_log("browser")
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    def move(self, x: float, y: float) -> None:
        pointer: Any = ActionBuilder(self.driver, duration=10)
        pointer.pointer_action.move_to_location(round(x), round(y))
        pointer.perform()

    def click(self, x: float, y: float) -> None:
        pointer: Any = ActionBuilder(self.driver, duration=10)
        pointer.pointer_action.move_to_location(round(x), round(y))
        pointer.pointer_action.click()
        pointer.perform()

    def drag(self, x: float, y: float, dx: float, dy: float) -> None:
        pointer: Any = ActionBuilder(self.driver, duration=10)
        pointer.pointer_action.move_to_location(round(x), round(y))
        pointer.pointer_action.pointer_down()
        pointer.pointer_action.move_to_location(round(x + dx / 2), round(y + dy / 2))
        pointer.pointer_action.move_to_location(round(x + dx), round(y + dy))
        pointer.pointer_action.pointer_up()
        pointer.perform()

    def turn_wheel(self, x: float, y: float, pixels: int) -> None:
        wheel: Any = ActionBuilder(self.driver, duration=10)
        wheel.wheel_action.scroll(round(x), round(y), delta_y=pixels)
        wheel.perform()

    def press(self, *keys: str) -> None:
        """Type keys, wherever the focus is."""
        ActionChains(self.driver, duration=10).send_keys(*keys).perform()

    def picture(self, x: int, y: int, width: int, height: int) -> NDArray[np.uint8]:
        """Return a part of what is seen, shape [height, width, 3]."""
        clip = {"x": x, "y": y, "width": width, "height": height, "scale": 1}
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "clip": clip})
        return decode_png(base64.b64decode(shot["data"]))[:, :, :3]


def decode_png(data: bytes) -> NDArray[np.uint8]:
    """Read a PNG file of 8 bits a channel without interlacing, shape [height, width, channels]."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed, header = 8, b"", b""
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        packed += body if kind == b"IDAT" else b""
        header = body if kind == b"IHDR" else header
        at += 12 + length
    width, height, depth, color, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    assert (depth, interlaced) == (8, 0)
    channels = {0: 1, 2: 3, 4: 2, 6: 4}[color]
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + width * channels)
    pixels = np.zeros((height + 1, width * channels), np.int64)
    for row, line in enumerate(lines):
        pixels[row + 1] = unfilter(int(line[0]), line[1:].astype(np.int64), pixels[row], channels)
    return pixels[1:].astype(np.uint8).reshape(height, width, channels)


def unfilter(kind: int, line: NDArray[np.int64], above: NDArray[np.int64], channels: int) -> NDArray[np.int64]:
    """Undo one of PNG's five filters."""
    if kind == 0:
        return line
    if kind == 1:
        return np.cumsum(line.reshape(-1, channels), axis=0).ravel() % 256
    if kind == 2:
        return (line + above) % 256
    out, up = line.tolist(), above.tolist()
    for at in range(len(out)):
        left = out[at - channels] if at >= channels else 0
        corner = up[at - channels] if at >= channels else 0
        if kind == 3:
            guess = (left + up[at]) // 2
        else:
            base = left + up[at] - corner
            guess = min((left, up[at], corner), key=lambda value: abs(base - value))
        out[at] = (out[at] + guess) % 256
    return np.array(out)
