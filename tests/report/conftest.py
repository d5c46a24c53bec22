"""A real browser: Debian's chromium, which notes every request and every complaint."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

SWITCHES = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class Browser:
    """Pages opened from disk, as a reader opens them."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, page: Path, width: int = 1400, *, dark: bool = False) -> None:
        """Open a page and wait until its figures are drawn."""
        self.driver.get("about:blank")
        self.complaints()  # of the page before
        self.requests()
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.get(page.resolve().as_uri())
        WebDriverWait(self.driver, 60).until(
            lambda driver: driver.execute_script("return document.documentElement.dataset.drawn")
        )

    def requests(self) -> list[str]:
        """Give the addresses that were asked for, besides the page's own."""
        messages = [json.loads(e["message"])["message"] for e in self.driver.get_log("performance")]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        """Give what the console was told."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def hover(self, element) -> None:
        """Point at an element, as a reader asks for its figures."""
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        ActionChains(self.driver).move_to_element(element).perform()

    def run(self, script: str, *arguments: object):
        """Run a script in the page."""
        return self.driver.execute_script(script, *arguments)

    def all(self, selector: str):
        """Find elements."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def wait_for(self, selector: str):
        """Find elements, once there are any: what a click does may come a moment later."""
        return WebDriverWait(self.driver, 60).until(lambda _: self.all(selector))

    def texts(self, selector: str) -> list[str]:
        """Give the shown text of elements."""
        return [element.text for element in self.all(selector)]


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    profile = tmp_path_factory.mktemp("chromium")
    for switch in (*SWITCHES, f"--user-data-dir={profile}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    yield Browser(driver)
    driver.quit()
