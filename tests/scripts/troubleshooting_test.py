"""What docs/troubleshooting.md says that is seen is what the program says: each text in its first column stands in a source."""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROOMS = ("actors", "base", "cluster", "config", "engine", "fleet", "media", "services")
# What the system, OpenSSL or FFmpeg says, and names of states.
OTHERS = {"Connection refused", "No route to host", "401 Unauthorized", "404 Not Found", "certificate", "certificate verify failed", "IP address mismatch", "hostname mismatch", "Protocol not supported", "wrong version number", "tlsv1 alert unknown ca", "down", "stalled", "connecting", "dropped", "ahead"}


def main():
    with open(os.path.join(ROOT, "docs", "troubleshooting.md"), encoding="utf-8") as page:
        rows = [line.split("|")[1] for line in page if line.startswith("| ") and not line.startswith("| what is seen")]
    texts = {text for row in rows for text in re.findall(r"`([^`]+)`", row)} - OTHERS
    missing = [text for text in sorted(texts)
               if subprocess.run(["grep", "-rqF", "--include=*.cpp", "--include=*.h", text, *ROOMS], cwd=ROOT, check=False).returncode]
    if missing:
        sys.exit(f"no source says: {missing}")
    if len(texts) < 8:
        sys.exit(f"only {len(texts)} texts were found: {texts}")


if __name__ == "__main__":
    main()
