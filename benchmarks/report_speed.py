"""How quick the report is: made, opened in a browser with every chart drawn, and how large.

Three pages: a run of a network of 500 layers, traced; a hundred runs beside each other; where its
directory is given, the study of layers, whose page has 41 figures. The runs are real: one is
trained, the hundred are it again and again under other names. A page is opened five times by a
browser that is running already, as a reader's is; `shown` is until the browser says that it is
loaded, `drawn` until its last chart is there; medians.

    python benchmarks/report_speed.py [--runs 100] [--layers 500] [--study studies/layers]
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

TO_REACH_S, TO_REACH_MB = 2.0, 10.0
OPENED = 5
NETWORK = """
import keras

def build(input_shape, classes):
    layers = [keras.Input(input_shape), keras.layers.AveragePooling2D(8, name="small")]
    layers += [
        keras.layers.DepthwiseConv2D(1, name=f"block{{n // 10:02d}}_layer{{n:03d}}")
        for n in range({layers} - 3)
    ]
    layers += [keras.layers.Flatten(name="flat"), keras.layers.Dense(classes, name="output")]
    return keras.Sequential(layers)
"""
EXPERIMENT = """
[pipeline]
image_size = 32
[training]
network = "deep:build"
batch_size = 16
iterations = 60
validation = false
checkpoint_keep = 0
[profile]
verdict = false
"""
SWITCHES = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


def timesink(*words: str, cwd: Path) -> None:
    """Call the command."""
    command = [sys.executable, "-m", "timesink", *words]
    subprocess.run(command, cwd=cwd, check=True, capture_output=True)


def trained(place: Path, layers: int) -> Path:
    """Train a network of so many layers; gives the run's directory."""
    (place / "deep.py").write_text(NETWORK.format(layers=layers))
    (place / "deep.toml").write_text(EXPERIMENT)
    timesink("run", "deep.toml", "--out", "run", cwd=place)
    return place / "run"


def copied(run: Path, count: int) -> Path:
    """Give a directory of runs that differ in what they say they were asked for."""
    base = run.parent / "runs"
    for number in range(count):
        place = base / f"{number:03d}"
        place.mkdir(parents=True)
        for name in ("log.txt", "experiment.toml", "machine.json", "ledger.parquet"):
            text = (run / name).read_bytes()
            other = text.replace(b'"batch_size": 16', b'"batch_size": %d' % (number + 1))
            (place / name).write_bytes(other if name == "log.txt" else text)
        summary = json.loads((run / "summary.json").read_bytes())
        summary["images_per_s"] *= 1 + number / 100
        (place / "summary.json").write_text(json.dumps(summary))
    return base


def browser(profile: Path) -> webdriver.Chrome:
    """Start chromium."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for switch in (*SWITCHES, f"--user-data-dir={profile}"):
        options.add_argument(switch)
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


def opened(driver: webdriver.Chrome, page: Path) -> tuple[float, float, int]:
    """Open a page; gives seconds until it is shown, until it is drawn, and how many charts."""
    driver.get("about:blank")
    begin_s = time.perf_counter()
    driver.get(page.as_uri())
    shown_s = time.perf_counter() - begin_s
    script = "return document.documentElement.dataset.drawn"
    drawn = WebDriverWait(driver, 120, poll_frequency=0.02).until(
        lambda each: each.execute_script(script)
    )
    return shown_s, time.perf_counter() - begin_s, int(drawn)


def measure(driver: webdriver.Chrome, what: str, directory: Path) -> None:
    """Make a report of a directory, open it, and print a line."""
    page = directory.resolve().parent / "measured.html"
    begin_s = time.perf_counter()
    words = ("report", str(directory.resolve()), "--out", str(page), "--force")
    timesink(*words, cwd=directory.resolve().parent)
    made_s = time.perf_counter() - begin_s
    times = [opened(driver, page) for _ in range(OPENED)]
    shown_s, drawn_s = (statistics.median(each[at] for each in times) for at in (0, 1))
    size_mb = page.stat().st_size / 1e6
    page.unlink()
    good = shown_s <= TO_REACH_S and size_mb <= TO_REACH_MB
    print(
        f"{what:<24} made {made_s:5.2f} s  {size_mb:5.2f} MB  shown {shown_s:5.2f} s  "
        f"{times[0][2]:>2} charts drawn {drawn_s:5.2f} s  {'' if good else 'NOT REACHED'}",
        flush=True,
    )


def main() -> None:
    """Make and measure the pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--layers", type=int, default=500)
    parser.add_argument("--study", type=Path)
    asked = parser.parse_args()
    print(f"to reach: shown in {TO_REACH_S:g} s, {TO_REACH_MB:g} MB")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        driver = browser(place / "profile")
        try:
            run = trained(place, asked.layers)
            measure(driver, f"a run of {asked.layers} layers", run)
            measure(driver, f"{asked.runs} runs", copied(run, asked.runs))
            if asked.study:
                measure(driver, "a study", asked.study)
        finally:
            driver.quit()


if __name__ == "__main__":
    main()
