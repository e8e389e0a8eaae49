"""What a run needs of the machine."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(os.path.dirname(HERE), "fleet"))
import network  # noqa: E402


def missing(kinds):
    """Why a run with cameras of these kinds cannot be here, in a line; empty if it can."""
    try:
        import zmq  # noqa: F401  pylint: disable=unused-import
    except ImportError:
        return "python3-zmq is not installed (scripts/dependencies)"
    return network.missing() or (_server() if "rtsp" in kinds else "")


def _server():
    tried = subprocess.run(["/usr/bin/python3", os.path.join(HERE, "rtsp_server.py"), "--try"], capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"no RTSP server of GStreamer (scripts/dependencies installs it): {' '.join(tried.stderr.strip().splitlines()[-1:])}"
