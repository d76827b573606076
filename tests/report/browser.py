#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A report's page in a real browser: no error, every picture drawn and readable, in light and dark, on a phone, printed.

    browser.py DIR [--shots DIR]

Closes with "report: P passed, F failed, S skipped".  Needs chromium, chromium-driver and python3-selenium.
"""
import argparse
import base64
import importlib.util
import json
import os
import pathlib
import shutil
import sys

SYSTEM = "/usr/bin/python3"
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--hide-scrollbars")
VIEWS = [("light", 1200, "light", False), ("dark", 1200, "dark", False), ("phone", 390, "light", True), ("dark phone", 390, "dark", True)]

# How text stands out against what is behind it.
CONTRAST = """
const lum = c => { const v = c.match(/[0-9.]+/g).slice(0, 3).map(x => { x /= 255; return x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4; });
                   return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
const ratio = (a, b) => { const [x, y] = [lum(a), lum(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$|transparent/.test(c)) return c; } return "rgb(255,255,255)"; };
"""
# This script returns the elements that are drawn in each picture.
PICTURES = CONTRAST + """
return [...document.querySelectorAll("figure")].map(f => {
	const svg = f.querySelector("svg"), box = svg.getBoundingClientRect(), back = behind(f);
	const shapes = [...svg.querySelectorAll("path, use")].filter(p => { const b = p.getBoundingClientRect(); return b.width + b.height > 1; }).length;
	const texts = [...svg.querySelectorAll("text")];
	const scale = box.width / svg.viewBox.baseVal.width;
	return { title: f.querySelector("h3").textContent, width: box.width, height: box.height, shapes: shapes, texts: texts.length,
		 contrast: Math.min(...texts.map(t => ratio(getComputedStyle(t).fill, back))),
		 size: Math.min(...texts.map(t => parseFloat(getComputedStyle(t).fontSize) * scale)) };
});
"""
PROSE = CONTRAST + """
return Math.min(...[...document.querySelectorAll("p, dd, dt, h1, h2, h3, figcaption, td, a")].map(e =>
	ratio(getComputedStyle(e).color, behind(e))));
"""


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def result(self, good, name, details=""):
        self.passed += bool(good)
        self.failed += not good
        print(name if good else f"report: FAILED: {name}: {details}", flush=True)


def start():
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    options = webdriver.ChromeOptions()
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)


def check_page(driver, checks, page, view, expected, shots):
    name, width, scheme, phone = view
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": phone})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    driver.get(page)
    pictures = driver.execute_script(PICTURES)
    bad = [p for p in pictures if p["width"] < 200 or p["height"] < 60 or p["shapes"] < 5 or p["texts"] < 3]
    checks.result(len(pictures) == expected and not bad, f"{name}: {expected} pictures are drawn", bad or len(pictures))
    faint = [(p["title"], p["contrast"]) for p in pictures if p["contrast"] < 4.5]
    checks.result(not faint, f"{name}: the text of pictures stands out", faint)
    small = [(p["title"], p["size"]) for p in pictures if p["size"] < (10 if phone else 9)]
    checks.result(not small, f"{name}: the text of pictures is large enough", small)
    contrast = driver.execute_script(PROSE)
    checks.result(contrast >= 4.5, f"{name}: the text of the page stands out", contrast)
    wide = driver.execute_script("return document.documentElement.scrollWidth - innerWidth")
    checks.result(wide <= 0, f"{name}: nothing sticks out to the side", f"{wide} pixels")
    if shots:
        height = driver.execute_script("return document.documentElement.scrollHeight")
        shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": {
            "x": 0, "y": 0, "width": width, "height": min(height, 15000), "scale": 1}})
        (pathlib.Path(shots) / f"{name.replace(' ', '-')}.png").write_bytes(base64.b64decode(shot["data"]))


def check_printed(driver, checks, page):
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]})
    driver.get(page)
    paper = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    nav = driver.execute_script("return getComputedStyle(document.querySelector('nav')).display")
    faint = [p["title"] for p in driver.execute_script(PICTURES) if p["contrast"] < 4.5]
    checks.result(paper == "rgb(255, 255, 255)" and nav == "none" and not faint, "printed: dark on white, without links", f"{paper} {nav} {faint}")
    pdf = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", {})["data"])
    checks.result(pdf.startswith(b"%PDF") and pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") + pdf.count(b"/Type/Page") >= 2 or len(pdf) > 50000,
                  "printed: some pages", len(pdf))


def check_files(checks, directory):
    """Returns how many pictures there are."""
    document = json.loads((directory / "report.json").read_text(encoding="utf-8"))
    svg, png = ({p.stem for p in directory.glob(f"*.{kind}")} for kind in ("svg", "png"))
    checks.result(svg and svg == png, "each picture is there as SVG and as PNG", svg ^ png)
    text = (directory / "index.html").read_text(encoding="utf-8")
    outside = [word for word in ('src="http', "url(http", "<script", "<link rel=\"stylesheet") if word in text]
    checks.result(not outside, "the page needs nothing else", outside)
    empty = [name for name, part in document["parts"].items() if not part["rows"]]
    checks.result(len(document["parts"]) >= 6 and not empty, "all parts were measured", empty)
    return len(svg)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("directory")
    args.add_argument("--shots")
    opt = args.parse_args()
    if not importlib.util.find_spec("selenium") and os.path.realpath(sys.executable) != os.path.realpath(SYSTEM) and os.path.exists(SYSTEM):
        os.execv(SYSTEM, [SYSTEM, *sys.argv])
    checks = Checks()
    directory = pathlib.Path(opt.directory).resolve()
    pictures = check_files(checks, directory)
    if not importlib.util.find_spec("selenium") or not shutil.which("chromedriver"):
        print(f"report: skipped: chromium-driver or python3-selenium is not installed\nreport: {checks.passed} passed, {checks.failed} failed, 1 skipped")
        return 1 if checks.failed else 0
    driver = start()
    try:
        page = (directory / "index.html").as_uri()
        for view in VIEWS:
            check_page(driver, checks, page, view, pictures, opt.shots)
        check_printed(driver, checks, page)
        log = [entry["message"] for entry in driver.get_log("browser")]
        checks.result(not log, "no message on the console", log)
    finally:
        driver.quit()
    print(f"report: {checks.passed} passed, {checks.failed} failed, 0 skipped")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
