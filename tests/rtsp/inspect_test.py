#!/usr/bin/python3
"""vigil inspect of a camera ends: after the seconds that were asked for, after those that it says by itself, and with Ctrl-C, with a report.

  inspect_test.py VIGIL      Exit status 77: something that it needs is not installed.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 120


class Relay:
    """Between a client and the server, to know how much has come. One client after the other."""

    def __init__(self, port):
        self.upstream = port
        self.came = threading.Condition()
        self.packets = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.upstream))
            threading.Thread(target=self.pump, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self.pump, args=(server, client, True), daemon=True).start()

    def pump(self, source, sink, counted):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
                with self.came:
                    self.packets += counted
                    self.came.notify_all()
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def wait_for(self, more):
        with self.came:
            wanted = self.packets + more
            return self.came.wait_for(lambda: self.packets >= wanted, PATIENCE)


def main():
    vigil = sys.argv[1]
    try:
        import gi  # pylint: disable=import-outside-toplevel
        gi.require_version("GstRtspServer", "1.0")
    except (ImportError, ValueError) as missing:
        print(f"skipped: GStreamer's RTSP server is not installed: {missing}")
        sys.exit(77)
    clip = os.path.join(os.path.dirname(HERE), "videos", "bottle-detection.mp4")
    server = subprocess.Popen(["/usr/bin/python3", os.path.join(HERE, "server.py"), "--clip", f"recorded={clip}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    problems = []
    try:
        relay = Relay(int(server.stdout.readline().split()[1]))
        url = f"rtsp://127.0.0.1:{relay.port}/live"

        def inspect(*options):
            done = subprocess.run([vigil, "inspect", url, *options], capture_output=True, text=True, timeout=PATIENCE, check=False)
            return done.returncode, done.stdout, done.stderr

        status, out, told = inspect("--seconds", "1", "--output", "json")
        report = json.loads(out)
        if status != 0 or told or report["ended_by"] != "limit" or not 1 <= report["seconds"] < 3 or report["frames"] < 10:
            problems.append(f"with --seconds: status {status}, {told!r}, {out}")
        # Its length is announced to whoever comes first.
        recorded = subprocess.Popen([vigil, "inspect", url.replace("/live", "/recorded"), "--output", "json"], stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True)
        status, out, told = inspect()
        if status != 0 or "looked at    the first 10." not in out or told != "vigil: it is live: 10 s of it were looked at (--seconds says otherwise)\n":
            problems.append(f"by itself: status {status}, {told!r}, {out}")

        out, told = recorded.communicate(timeout=PATIENCE)
        report = json.loads(out)
        if recorded.returncode != 0 or report["ended_by"] != "limit" or not report["announced_seconds"] > 20 or not 10 <= report["seconds"] < 12:
            problems.append(f"a camera that announces a length: status {recorded.returncode}, {told!r}, {out}")

        # How many packets FFmpeg wants before the first frame is its own business.
        packets = 50
        while True:
            run = subprocess.Popen([vigil, "inspect", url, "--seconds", "100000", "--output", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
            came = relay.wait_for(packets)
            run.send_signal(signal.SIGINT)
            out, told = run.communicate(timeout=PATIENCE)
            if not came or run.returncode == 0 or packets > 1000:
                break
            if run.returncode != 1 or not told.endswith(": cancelled\n") or out:
                problems.append(f"interrupted before it saw anything: status {run.returncode}, {told!r}, {out!r}")
            packets *= 2
        if run.returncode != 0 or json.loads(out)["ended_by"] != "interrupt" or json.loads(out)["frames"] < 1:
            problems.append(f"interrupted: status {run.returncode}, {told!r}, {out!r}")
    finally:
        server.kill()
    sys.exit("\n".join(problems) or 0)


if __name__ == "__main__":
    main()
