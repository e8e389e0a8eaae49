#!/usr/bin/env python3
"""`vigil check-config` says what `vigil run` would stumble over: clips, keys, folders, addresses, rules of no camera. All at once, with places.

  check_config_test.py VIGIL MODEL CLIP
"""

import os
import shutil
import subprocess
import sys
import tempfile
import wave

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fleet"))
from certificates import Authority  # noqa: E402

CONFIGURATION = """model: {model}
cameras:
  good: {{url: good.mp4, rules: [{{name: r, prompt: p}}]}}
  again: {{url: cut.mp4, rules: [{{name: r, prompt: p}}]}}
  cut: {{url: cut.mp4, rules: [{{name: r, prompt: p}}]}}
  sound: {{url: sound.wav, rules: [{{name: r, prompt: p}}]}}
  text: {{url: text.mp4, rules: [{{name: r, prompt: p}}]}}
alerts:
  outbox: file
evidence:
  enabled: true
  dir: file/below
metrics:
  listen: 127.0.0.1:5556
  tls: {{cert_file: cert.pem, key_file: key.pem}}
memory: {{enabled: true, dir: file/past, key_file: past.key}}
asks: {{secret_key_file: past.key, askers: [{{key: "rq:rM>}}U?@Lns47E1%kR.o@n%FcmmsL/@{{H8]yf7", tenants: [north]}}]}}
"""
SOUND = """model: {model}
cameras:
  good: {{url: good.mp4, labels: {{site: north}}, rules: [{{name: r, prompt: p}}]}}
rules:
  - {{name: idle, prompt: p, labels: {{site: nort}}}}
metrics:
  tls: {{cert_file: cert.pem, key_file: key.pem}}
"""
OWN = """model: {model}
cluster: {{name: city, configuration: registry, registry: {{endpoints: ["127.0.0.1:2379"]}}}}
"""

CLOSED = """model: {model}
cameras: {{gate: {{url: "rtsp://gate/stream", rules: [{{name: r, prompt: p}}]}}}}
alerts: {{outbox: open/outbox}}
evidence: {{enabled: true, dir: closed}}
memory: {{enabled: true, dir: closed/past}}
"""
NOBODY = 65534

FLEET = """model: {model}
cameras: {{good: {{url: good.mp4, window: {{length: 20s}}, rules: [{{name: r, prompt: p}}]}}}}
shutdown_grace: 21s
engine: {{device: "cpu"}}
cluster:
  name: city
  tls_dir: tls
  advertise: 127.0.0.1
  registry: {{endpoints: ["127.0.0.1:2379"]}}
"""


def of_node(check, expect, folder):
    """What a node would end with at its start, and what it needs by its roles."""
    certificates = os.path.join(folder, "tls")
    site, others = Authority(folder, "site"), Authority(folder, "others")
    site.issue(certificates)
    expect(check(FLEET)[2], [])
    # All at once: what is named, and what is missing.
    wrong = FLEET.replace("tls_dir: tls", "tls_dir: nowhere").replace("  name: city\n", "").replace(
        "2379\"]", "2379\"], ca_file: none.crt, certificate: {{cert_file: none.crt, key_file: none.key}}")
    expect(check(wrong)[2], ["site.yaml:6:12: cluster.tls_dir: nowhere/ca.crt: no such file", "site.yaml:8:54: cluster.registry.ca_file: none.crt: no such file",
                             "site.yaml:8:89: cluster.registry.certificate.cert_file: none.crt: no such file",
                             "site.yaml:8:109: cluster.registry.certificate.key_file: none.key: no ", "site.yaml: cluster.name: is missing"])
    expect(check(FLEET.replace("advertise: 127.0.0.1", "advertise: cam.example"))[2],
           ["site.yaml:7:12: cluster.tls_dir: tls/tls.crt: is for 127.0.0.1, localhost, and not for cam.example, where other nodes are to reach this one"])
    # Of a host that is not known nothing is said but that.
    expect(check(FLEET.replace("advertise: 127.0.0.1", 'advertise: "{{NO_SUCH}}.example"'))[2],
           ["site.yaml:8:14: cluster.advertise: the environment variable NO_SUCH is not set"])
    shutil.copy(others.certificate, os.path.join(certificates, "ca.crt"))
    expect(check(FLEET)[2], ["site.yaml:7:12: cluster.tls_dir: tls/tls.crt: is not of tls/ca.crt: unable to get local issuer certificate"])
    expect(check(FLEET, "--text-only")[2], [])
    site.issue(certificates)
    # No machine has as many GPUs, and not every node needs one; of which node this is, nothing is known without its roles.
    for roles, lines in ((None, []), ("camera,gateway", []), ("stream,generate", ["site.yaml:4:18: engine.device: cuda:99: "])):
        expect(check(FLEET.replace('"cpu"', '"cuda:99"'), *(["--roles", roles] if roles else []))[2], lines)
    expect(check(SOUND.replace("metrics:", "engine: {{device: \"cuda:99\"}}\nmetrics:").replace("nort", "north"))[2][:1], ["site.yaml:6:18: engine.device: cuda:99: "])
    for roles, lines in (("gateway", []), ("camera", ["site.yaml:1:8: model: "]), ("vision", ["site.yaml:1:8: model: "])):
        expect(check(FLEET.replace("{model}", "no-model"), "--roles", roles)[2], lines)
    for roles, lines in (("gateway", []), ("camera", ["site.yaml:2:23: cameras.good.url: none.mp4: no such file"])):
        expect(check(FLEET.replace("good.mp4", "none.mp4"), "--roles", roles)[2], lines)
    # Keys are looked at where they are used.
    keys = FLEET + """memory: {{enabled: true, dir: past, key_file: none.key}}
asks: {{secret_key_file: none.key, askers: [{{key: "rq:rM>}}U?@Lns47E1%kR.o@n%FcmmsL/@{{H8]yf7", tenants: [north]}}]}}
"""
    of_memory, of_asks = "site.yaml:10:46: memory.key_file: none.key: ", "site.yaml:11:25: asks.secret_key_file: none.key: "
    for roles, lines in ((None, [of_memory, of_asks]), ("stream", [of_memory]), ("gateway", [of_asks]), ("camera,vision,generate", [])):
        expect(check(keys, *(["--roles", roles] if roles else []))[2], lines)
    status, out, told = check(FLEET, "--roles", "camera,nothing")
    expect(told, ["vigil: --roles: "])
    # A grace that is too short is no fault.
    for roles, lines in ((None, 1), ("stream,vision", 1), ("camera,gateway", 0)):
        status, out, told = check(FLEET.replace("21s", "20s"), *(["--roles", roles] if roles else []))
        expect(told, ["site.yaml: shutdown_grace: 20s is not longer than the window of camera `good`, 20s: a node that computes it and ends loses windows; 25s"] * lines)
        expect([str(status), out], ["0", "ok: 1 camera, 1 rule\n"])


def become_nobody():
    """Root is kept from nothing, so the process becomes somebody else."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def of_closed_folders(vigil, model, expect):
    """Folders that whoever starts it cannot write; nothing where nobody else reaches what was built."""
    reached = all(subprocess.run(["test", "-r", path], preexec_fn=become_nobody, check=False).returncode == 0 for path in (vigil, model))
    if not reached:
        print("folders that cannot be written: skipped")
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        os.mkdir(os.path.join(folder, "closed"), 0o555)
        os.mkdir(os.path.join(folder, "open"))
        os.chmod(os.path.join(folder, "open"), 0o777)
        with open(os.path.join(folder, "site.yaml"), "w", encoding="utf-8") as file:
            file.write(CLOSED.format(model=model))
        os.chmod(file.name, 0o644)
        done = subprocess.run([vigil, "check-config", "site.yaml"], cwd=folder, preexec_fn=become_nobody, capture_output=True, text=True, timeout=60, check=False)
        expect(done.stderr.replace(os.path.realpath(folder) + "/", "").splitlines(),
               ["site.yaml:4:32: evidence.dir: closed: cannot be written: Permission denied",
                "site.yaml:5:30: memory.dir: closed/past: cannot be made, since closed cannot be written: Permission denied"])


def main():
    vigil, model, clip = (os.path.abspath(each) for each in sys.argv[1:])
    problems = []

    with tempfile.TemporaryDirectory() as folder:
        def write(name, data, mode=0o600):
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                file.write(data)
            os.chmod(path, mode)
            return path

        def check(text, *options):
            write("site.yaml", text.format(model=model).encode())
            done = subprocess.run([vigil, "check-config", *options, "site.yaml"], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
            return done.returncode, done.stdout, done.stderr.replace(os.path.realpath(folder) + "/", "").splitlines()

        def expect(told, lines):
            """Each line begins with its own of `lines`, in their order."""
            if len(told) != len(lines) or not all(line.startswith(wanted) for line, wanted in zip(told, lines)):
                problems.append("not\n  " + "\n  ".join(lines) + "\nbut\n  " + "\n  ".join(told))

        with open(clip, "rb") as file:
            data = file.read()
        write("good.mp4", data)
        # Its index is at the end, or the beginning is all that there is.
        write("cut.mp4", data[:400])
        write("text.mp4", b"no video at all\n" * 100)
        write("file", b"")
        with wave.open(os.path.join(folder, "sound.wav"), "wb") as sound:
            sound.setparams((1, 2, 8000, 0, "NONE", ""))
            sound.writeframes(bytes(16000))
        write("key.pem", b"no key\n")
        write("past.key", b"0" * 64 + b"\n", 0o644)
        status, out, told = check(CONFIGURATION)
        expect(told, ["site.yaml:4:16: cameras.again.url: cut.mp4: ", "site.yaml:5:14: cameras.cut.url: cut.mp4: ",
                      "site.yaml:6:16: cameras.sound.url: sound.wav: ", "site.yaml:7:15: cameras.text.url: text.mp4: ",
                      "site.yaml:9:11: alerts.outbox: file: is not a folder",
                      "site.yaml:12:8: evidence.dir: file/below: cannot be made, since file is not a folder",
                      "site.yaml:14:11: metrics.listen: `127.0.0.1:5556` is the address of alerts.bind, too, by default",
                      "site.yaml:15:20: metrics.tls.cert_file: cert.pem: no such file",
                      "site.yaml:15:40: metrics.tls.key_file: key.pem: no private key in PEM",
                      "site.yaml:16:30: memory.dir: file/past: cannot be made, since file is not a folder",
                      "site.yaml:16:51: memory.key_file: past.key: has mode 0644; a secret key must be its owner's alone (chmod 600)",
                      "site.yaml:17:25: asks.secret_key_file: past.key: holds no CURVE key"])
        if (status, out) != (1, ""):
            problems.append(f"status {status}, {out!r}")

        for name, of in (("cert.pem", "a"), ("other.pem", "b")):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=" + of,
                            "-keyout", "key-" + of, "-out", name], cwd=folder, check=True, capture_output=True)
        idle = "site.yaml: rules: `idle` is a rule of no camera: none has its labels {site: nort}"
        for key, mode, wanted in (("key-b", 0o600, "key.pem: not the private key in PEM of cert.pem"), ("key-a", 0o644, "key.pem: everybody may read this")):
            with open(os.path.join(folder, key), "rb") as file:
                write("key.pem", file.read(), mode)
            expect(check(SOUND)[2], ["site.yaml:7:40: metrics.tls.key_file: " + wanted])
        os.chmod(os.path.join(folder, "key.pem"), 0o600)
        status, out, told = check(SOUND)
        expect(told, [idle])
        if (status, out) != (0, "ok: 1 camera, 1 rule\n"):
            problems.append(f"of a sound file: status {status}, {out!r}")
        os.remove(os.path.join(folder, "cert.pem"))
        expect(check(SOUND, "--text-only")[2], [idle])
        # Nor is the environment that it will run in here.
        elsewhere = SOUND.replace("good.mp4", '"rtsp://viewer:{{GATE_PASSWORD}}@gate/"')
        expect(check(elsewhere, "--text-only")[2], [idle])
        expect(check(elsewhere)[2], ["site.yaml:3:15: cameras.good.url: the environment variable GATE_PASSWORD is not set", "site.yaml:7:20: metrics.tls.cert_file: "])
        if check(elsewhere, "--text-only", "--effective")[1].count('"rtsp://***@gate/"') != 1:
            problems.append("--effective does not show the URL: " + check(elsewhere, "--text-only", "--effective")[1])
        # A node's own file, of a fleet whose cameras are in the registry.
        status, out, told = check(OWN)
        expect(told, [])
        if (status, out) != (0, "ok: cameras, rules and defaults are in the registry (vigil config show)\n"):
            problems.append(f"of a node's own file: status {status}, {out!r}")
        # What a node of that fleet would not start with.
        expect(check(OWN.replace("name: city, ", "").replace("127.0.0.1:2379", "").replace('[""]', "[]"))[2],
               ["site.yaml: cluster.name: is missing", "site.yaml: cluster.registry.endpoints: is missing"])
        without_certificates = OWN.replace("name: city", "name: city, tls_dir: nowhere")
        status, out, told = check(without_certificates)
        expect(told, ["site.yaml:2:32: cluster.tls_dir: nowhere/ca.crt: no such file"])
        if (status, out) != (1, "") or check(without_certificates, "--text-only")[0] != 0:
            problems.append(f"of a node without its certificates: status {status}, {out!r}")
        of_node(check, expect, folder)
        of_closed_folders(vigil, model, expect)
        expect(check(OWN + "rules: []\n")[2], ["site.yaml:3:8: rules: is the fleet's, whose configuration is in the registry (cluster.configuration)"])
        expect(check(OWN.replace("registry, r", "file, r"))[2], ["site.yaml:1:1: cameras: is missing"])
    sys.exit("\n".join(problems) or 0)


if __name__ == "__main__":
    main()
