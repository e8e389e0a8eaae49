#!/usr/bin/env python3
"""vigil run with a certificate and an address for probes, asked by Python's own HTTPS client and by vigil status.

  state_test.py VIGIL MODEL VIDEO
"""

import concurrent.futures
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from free_ports import free_ports  # noqa: E402

PATIENCE = 120
SCRAPES = 1000

CONFIGURATION = """
model: {model}
cameras:
  room:
    url: {video}
    window: {{length: 4s, stride: 2s}}
    labels: {{tenant: north}}
    rules: [{{name: person, prompt: "Is there a person in the room?"}}]
alerts: {{bind: "tcp://127.0.0.1:{alerts}", replay: "ipc://{folder}/replay", outbox: outbox}}
metrics:
  listen: 127.0.0.1:{metrics}
  probes: 127.0.0.1:{probes}
  tls: {{cert_file: cert.pem, key_file: key.pem}}
"""


def check(holds, what):
    if not holds:
        sys.exit(f"state_test: {what}")


def status_of(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status
    except urllib.error.HTTPError as answer:
        return answer.code
    except OSError:
        return None


def await_status(run, port, path):
    end = time.monotonic() + PATIENCE
    while status_of(port, path) != 200:
        check(run.poll() is None, "vigil run ended")
        check(time.monotonic() < end, f"{path} is not 200")
        time.sleep(0.05)


def ask_status(vigil, *arguments):
    return subprocess.run([vigil, "status", *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False)


def check_pages(context, port):
    connection = http.client.HTTPSConnection("localhost", port, timeout=10, context=context)
    for method, path, status in (("GET", "/metrics", 200), ("HEAD", "/metrics", 200), ("GET", "/healthz", 200), ("POST", "/status", 405),
                                 ("GET", "/none", 404), ("GET", "/status", 200)):
        connection.request(method, path)
        answer = connection.getresponse()
        body = answer.read()
        check(answer.status == status, f"{method} {path}: {answer.status}")
        check((method == "HEAD") == (not body), f"{method} {path}: {len(body)} bytes")
        if path == "/metrics" and body:
            page = body.decode()
    check(re.search(r'^vigil_frames_total\{camera="room",tenant="north"\} \d', page, re.MULTILINE), "no frames of the room")
    check(re.search(r'^vigil_build_info\{commit="[^"]+",version="[0-9.]+"\} 1$', page, re.MULTILINE), "no build_info")
    for name in ("process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_start_time_seconds"):
        check(float(re.search(rf"^{name} (\S+)$", page, re.MULTILINE).group(1)) > 0, f"{name} is 0")
    if shutil.which("promtool"):
        said = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True, check=False)
        check(said.returncode == 0 and not said.stdout + said.stderr, f"promtool says: {said.stdout}{said.stderr}")
    check(json.loads(body)["live"] is True, "/status is not live")


def check_scrapes(context, ports):
    """Half-sent requests and a thousand scrapes beside each other hold up no probe."""
    half = []
    for port in (ports["metrics"], ports["probes"]):
        for _ in range(48):
            half.append(socket.create_connection(("127.0.0.1", port)))
            half[-1].sendall(b"GET /healthz HT")

    def scrape(_):
        with urllib.request.urlopen(f"https://127.0.0.1:{ports['metrics']}/metrics", timeout=60, context=context) as answer:
            return len(answer.read())

    slowest = 0
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        scrapes = [pool.submit(scrape, i) for i in range(SCRAPES)]
        while not all(each.done() for each in scrapes):
            begin = time.monotonic()
            check(status_of(ports["probes"], "/healthz") == 200, "a probe failed beside scrapes")
            slowest = max(slowest, time.monotonic() - begin)
        check(all(each.result() > 1000 for each in scrapes), "a scrape failed")
    for each in half:
        each.close()
    check(slowest < 2, f"a probe took {slowest:.2f} s")
    print(f"slowest probe beside {SCRAPES} scrapes and {len(half)} half-sent requests: {slowest * 1000:.0f} ms")


def main():
    vigil, model, video = map(os.path.abspath, sys.argv[1:])
    ports = dict(zip(("alerts", "metrics", "probes"), free_ports(3)))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                        "/CN=vigil", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", "key.pem", "-out", "cert.pem"],
                       cwd=folder, check=True, capture_output=True)
        certificate = os.path.join(folder, "cert.pem")
        configuration = os.path.join(folder, "vigil.yaml")
        with open(configuration, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(model=model, video=video, folder=folder, **ports))
        with open(os.path.join(folder, "log"), "w+", encoding="utf-8") as log:
            run = subprocess.Popen([vigil, "run", "--config", configuration], cwd=folder, stdout=log, stderr=log)
            try:
                await_status(run, ports["probes"], "/readyz")
                with open(f"/proc/{run.pid}/status", encoding="utf-8") as file:
                    ignored = int(re.search(r"^SigIgn:\s*(\w+)$", file.read(), re.MULTILINE).group(1), 16)
                for number in (signal.SIGPIPE, signal.SIGXFSZ):
                    check(ignored >> (number - 1) & 1, f"{number!r} would end the process")
                check(status_of(ports["probes"], "/metrics") == 404, "the probes' address tells more")
                context = ssl.create_default_context(cafile=certificate)
                check_pages(context, ports["metrics"])
                check_scrapes(context, ports)
                endpoint = f"https://127.0.0.1:{ports['metrics']}"
                told = ask_status(vigil, "--endpoint", endpoint, "--ca-file", certificate)
                check(told.returncode == 0 and "running for" in told.stdout and "room" in told.stdout, f"vigil status: {told}")
                check(ask_status(vigil, "--endpoint", endpoint, "--insecure").returncode == 0, "vigil status --insecure")
                doubted = ask_status(vigil, "--endpoint", endpoint)
                check(doubted.returncode == 1 and "certificate verify failed" in doubted.stderr and doubted.stderr.count("\n") == 1,
                      f"vigil status believed a certificate of nobody: {doubted}")
                run.send_signal(signal.SIGTERM)
                check(run.wait(timeout=PATIENCE) == 0, "vigil run did not end well")
            finally:
                run.kill()
                run.wait()
                log.seek(0)
                print(log.read(), file=sys.stderr)
        os.chmod(os.path.join(folder, "key.pem"), 0o644)
        refused = subprocess.run([vigil, "run", "--config", configuration], cwd=folder, capture_output=True, text=True, timeout=PATIENCE,
                                 check=False)
        check(refused.returncode == 1 and refused.stderr == f"vigil: {folder}/key.pem: everybody may read this private key; chmod 600 it\n",
              f"a key that everybody may read: {refused}")


if __name__ == "__main__":
    main()
