"""Have a browser for the tests of `report`: install Debian's chromium where allowed."""

import os
import shutil
import subprocess
import sys

PACKAGES = ("chromium", "chromium-driver")

if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
    sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
    print("installing chromium for the tests of `report` …", flush=True)
    try:
        for command in (["apt-get", "update"], ["apt-get", "install", "-y", *PACKAGES]):
            subprocess.run([*sudo, *command], check=True, stdout=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        sys.exit("the tests of `report` need chromium and chromedriver: install them, try again")
