#!/usr/bin/env python3
"""scripts/image makes an image that engines take, the same again, of nothing but what it says; and what is in it runs.

  image_test.py VIGIL BUILD     Exit status 77: Debian's servers cannot be reached, or something is not installed. (BUILD: a folder of the build, where packages are kept)

Images are started without a daemon, in bubblewrap: as the user that the image declares where the test is root.
"""

import contextlib
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "scripts", "image")
VIGIL, BUILD = (os.path.abspath(each) for each in sys.argv[1:3])
PATIENCE = 60
IS_ROOT = os.geteuid() == 0
NOBODY = 65534
SHARE = "/usr/share/vigil"


def image(*arguments, environment=None, prefix=(), **options):
    return subprocess.run([*prefix, sys.executable, SCRIPT, *arguments], env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False, **options)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def files_of(folder):
    """{name: bytes} without the image's version in the names."""
    found = {}
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            with open(path, "rb") as file:
                found[name.split("amd64")[-1].split("arm64")[-1]] = file.read()
    return found


class Archive:
    """The layout, read by what the specification says and nothing of scripts/image."""

    def __init__(self, data):
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            self.members = archive.getmembers()
            self.files = {member.name: archive.extractfile(member).read() for member in self.members}
        self.index = json.loads(self.files["index.json"])
        self.manifest = json.loads(self.blob(self.index["manifests"][0]))
        self.config = json.loads(self.blob(self.manifest["config"]))
        self.packed = [self.blob(each) for each in self.manifest["layers"]]
        self.layers = [gzip.decompress(each) for each in self.packed]

    def blob(self, descriptor):
        data = self.files["blobs/" + descriptor["digest"].replace(":", "/")]
        assert sha256(data) == descriptor["digest"].removeprefix("sha256:") and len(data) == descriptor["size"], descriptor
        return data


class Usage(unittest.TestCase):
    def one_line(self, status, said, *arguments, **options):
        with tempfile.TemporaryDirectory() as folder:
            done = image("--out", folder, *arguments, **options)
            self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
            self.assertRegex(done.stderr, said)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertFalse([name for name in os.listdir(folder) if name != "packages"])

    def test_help_names_the_options(self):
        done = image("--help")
        self.assertEqual(done.returncode, 0)
        for option in ("--vigil", "--out", "--with-demo", "--offline", "SOURCE_DATE_EPOCH"):
            self.assertIn(option, done.stdout)

    def test_what_makes_no_sense_is_one_line(self):
        self.one_line(2, "unrecognized arguments: --foo", "--foo")
        self.one_line(2, "--vigil", "--vigil")
        self.one_line(1, "there is no /nowhere/vigil .*scripts/build release vigil", "--vigil", "/nowhere/vigil")
        self.one_line(1, "does not say which version", "--vigil", "/bin/true")
        self.one_line(1, "SOURCE_DATE_EPOCH is 'soon'", "--vigil", VIGIL, environment={"SOURCE_DATE_EPOCH": "soon"})
        self.one_line(1, "there is no /nowhere.list", "--vigil", VIGIL, "--sources", "/nowhere.list")
        self.one_line(1, "has no lists of packages, and --offline fetches none", "--vigil", VIGIL, "--offline")

    def test_missing_programs_are_one_line(self):
        self.one_line(1, "there is no apt-get", "--vigil", VIGIL, environment={"PATH": "/nowhere"})

    def test_servers_that_cannot_be_reached_are_one_line(self):
        with tempfile.NamedTemporaryFile("w", suffix=".list") as sources:
            sources.write("deb [trusted=yes] http://127.0.0.1:1/debian bookworm main\n")
            sources.flush()
            self.one_line(1, "apt-get failed: .*127.0.0.1:1", "--vigil", VIGIL, "--sources", sources.name)

    def test_a_library_of_no_package_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            libz = re.search(r"libz\.so\.1 => (\S+)", subprocess.run(["ldd", VIGIL], capture_output=True, text=True, check=True).stdout).group(1)
            shutil.copy(libz, os.path.join(folder, "libz.so.1"))
            self.one_line(1, r"needs libz\.so\.1, which no package of this system has", "--vigil", VIGIL, environment={"LD_LIBRARY_PATH": folder})


class Image(unittest.TestCase):
    """One image with the demo, unpacked once."""

    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        cls.folder = cls.stack.enter_context(tempfile.TemporaryDirectory())
        os.chmod(cls.folder, 0o755)
        cls.packages = os.path.join(BUILD, "image-packages")
        done = image("--vigil", VIGIL, "--with-demo", "--out", os.path.join(cls.folder, "first"), "--packages", cls.packages)
        if re.search("Failed to fetch|Temporary failure|Could not (resolve|connect)", done.stderr):
            raise unittest.SkipTest(done.stderr.strip())
        assert done.returncode == 0, done.stderr
        cls.said = done.stdout
        cls.made = files_of(os.path.join(cls.folder, "first"))
        cls.archive = Archive(cls.made[".tar"])
        cls.settings = cls.archive.config["config"]
        cls.root = os.path.join(cls.folder, "root")
        cls.members = {}
        for layer in cls.archive.layers:
            with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
                cls.members |= {member.name: member for member in tar}
                # With its owners, where somebody may give files away.
                tar.extractall(cls.root, numeric_owner=True)  # pylint: disable=consider-using-with

    def read(self, name):
        with open(os.path.join(self.root, name), encoding="utf-8") as file:
            return file.read()

    # --- What it is ---------------------------------------------------------------------------------------------------

    def test_again_it_is_the_same_bit_by_bit(self):
        """By somebody else, in another folder, at another time of another zone, with a narrower mask."""
        second, prefix = os.path.join(self.folder, "second"), ()
        os.makedirs(second)
        # Who may read all of it, and write nothing but to this folder.
        nobody = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
        readable = (SCRIPT, VIGIL, sys.executable, self.packages)
        if IS_ROOT and all(subprocess.run([*nobody, "test", "-r", each], check=False).returncode == 0 for each in readable):
            prefix = nobody
            os.chown(second, NOBODY, NOBODY)
        # git does not tell others about a repository; what it told the first time is in the image.
        epoch = str(min(member.mtime for member in self.archive.members))
        done = image("--vigil", VIGIL, "--with-demo", "--offline", "--out", second, "--packages", self.packages, prefix=prefix, cwd="/", umask=0o077,
                     environment={"TZ": "Pacific/Auckland", "LC_ALL": "C", "TMPDIR": second, "SOURCE_DATE_EPOCH": epoch, "HOME": "/nowhere"})
        self.assertEqual(done.returncode, 0, done.stderr)
        again = files_of(second)
        for name in (".sbom.json", ".tar"):
            self.assertEqual(sha256(again[name]), sha256(self.made[name]), name)

    def test_checksums_and_digest_are_those_of_the_files(self):
        folder = os.path.join(self.folder, "first")
        checked = subprocess.run(["sha256sum", "--check", *(name for name in os.listdir(folder) if name.endswith(".sha256"))], cwd=folder, capture_output=True,
                                 text=True, check=False)
        self.assertEqual((checked.returncode, checked.stdout.count(": OK")), (0, 2), checked.stderr)
        self.assertIn(self.archive.index["manifests"][0]["digest"], self.said)

    def test_layout_is_what_the_specification_says(self):
        self.assertEqual(json.loads(self.archive.files["oci-layout"]), {"imageLayoutVersion": "1.0.0"})
        self.assertEqual([sha256(layer) for layer in self.archive.layers], [each.removeprefix("sha256:") for each in self.archive.config["rootfs"]["diff_ids"]])
        for layer in self.archive.packed:
            # No name (flags) and no time.
            self.assertEqual(layer[3:8], bytes(5))
        docker = json.loads(self.archive.files["manifest.json"])[0]
        self.assertEqual(docker["Config"], "blobs/" + self.archive.manifest["config"]["digest"].replace(":", "/"))
        self.assertEqual(docker["Layers"], ["blobs/" + each["digest"].replace(":", "/") for each in self.archive.manifest["layers"]])
        self.assertEqual(len(self.archive.files), 3 + 2 + len(docker["Layers"]))
        self.assertEqual(len(self.archive.config["history"]), len(docker["Layers"]))

    @unittest.skipUnless(shutil.which("skopeo"), "skopeo is not installed")
    def test_skopeo_reads_both_of_its_formats(self):
        path = next(os.path.join(self.folder, "first", name) for name in os.listdir(os.path.join(self.folder, "first")) if name.endswith(".tar"))
        for kind in ("oci-archive", "docker-archive"):
            shown = subprocess.run(["skopeo", "inspect", f"{kind}:{path}"], capture_output=True, text=True, check=False)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            self.assertEqual(json.loads(shown.stdout)["Labels"], self.settings["Labels"])

    def test_declares_how_it_is_run(self):
        version = re.match(r"vigil (\S+) \((\S+)\)", subprocess.run([VIGIL, "--version"], capture_output=True, text=True, check=True).stdout)
        self.assertEqual(self.settings["Entrypoint"], ["/usr/bin/vigil"])
        self.assertEqual(self.settings["User"], "65532:65532")
        self.assertEqual(self.settings["StopSignal"], "SIGTERM")
        self.assertEqual(self.settings["Volumes"], {"/var/lib/vigil": {}})
        self.assertEqual(set(self.settings["ExposedPorts"]), {"5556/tcp", "5557/tcp", "9464/tcp", "9465/tcp"})
        labels = {key.removeprefix("org.opencontainers.image."): value for key, value in self.settings["Labels"].items()}
        self.assertEqual((labels["title"], labels["licenses"], labels["version"], labels["revision"]), ("vigil", "Apache-2.0", *version.groups()))
        self.assertNotIn("source", labels)
        self.assertRegex(self.read("etc/passwd"), r"(?m)^vigil:x:65532:65532:")

    def test_holds_nothing_that_it_does_not_need(self):
        names = set(self.members)
        for pattern in (r"(usr/)?bin/(?!vigil$)", r"usr/sbin/.", r".*/(ba|da|)sh$", r"etc/apt", r"var/lib/apt", r"var/cache/.", r"var/log/.",
                        r"etc/ld\.so\.cache$", r"etc/machine-id", r".*random-seed", r".*\.(a|h|hpp|pyc|deb)$", r"usr/share/(man|info|locale)/",
                        r"usr/share/doc/[^/]+/(?!copyright|LICENSE|sbom)", r"etc/(hostname|resolv\.conf|hosts)$"):
            self.assertEqual([name for name in names if re.match(pattern, name)], [], pattern)

    def test_nobody_but_root_may_change_it_save_the_state_folder(self):
        epoch = min(member.mtime for member in self.archive.members)
        for name, member in self.members.items():
            self.assertLessEqual(member.mtime, epoch, name)
            self.assertTrue(member.isfile() or member.isdir() or member.issym(), name)
            self.assertEqual(member.mode & 0o6000, 0, name)
            self.assertEqual((member.uid, member.gid), (65532, 65532) if name == "var/lib/vigil" else (0, 0), name)
            if not member.issym() and name not in ("tmp", "var/tmp", "var/lock", "run/lock"):
                self.assertEqual(member.mode & 0o022, 0, name)
        self.assertEqual(self.members["var/lib/vigil"].mode, 0o700)

    def test_dpkg_knows_its_files(self):
        """Those of packages are as the packages have them, and there are few others."""
        verified = subprocess.run(["dpkg", f"--root={self.root}", "--verify"], capture_output=True, text=True, check=False)
        self.assertEqual((verified.returncode, verified.stdout, verified.stderr), (0, "", ""))
        known = set()
        for name in os.listdir(os.path.join(self.root, "var/lib/dpkg/info")):
            if name.endswith(".list"):
                # /lib is a link to /usr/lib, and so on.
                known |= {re.sub(r"^/(s?bin|lib|lib64)/", r"/usr/\1/", line) for line in self.read(f"var/lib/dpkg/info/{name}").splitlines()}
        others = [name for name, member in self.members.items()
                  if member.isfile() and "/" + name not in known and not name.startswith(("var/lib/dpkg/", "usr/share/vigil/"))]
        self.assertEqual(sorted(others), ["etc/group", "etc/nsswitch.conf", "etc/passwd", "etc/ssl/certs/ca-certificates.crt", "usr/bin/vigil",
                                          "usr/share/doc/vigil/LICENSE", "usr/share/doc/vigil/sbom.json"])

    def test_has_what_the_program_opens_by_itself(self):
        # FFmpeg's devices, which no `ldd` tells of.
        self.assertTrue([name for name in self.members if re.fullmatch(r"usr/lib/[^/]+/libavdevice\.so\.\d+", name)])

    def test_certificates_are_those_of_the_package(self):
        folder = os.path.join(self.root, "usr/share/ca-certificates/mozilla")
        single = []
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), encoding="ascii") as file:
                single.append(file.read().strip())
        bundle = self.read("etc/ssl/certs/ca-certificates.crt")
        self.assertGreater(len(single), 100)
        self.assertEqual([each + "-----END CERTIFICATE-----" for each in re.split(r"-----END CERTIFICATE-----\n", bundle)[:-1]], single)
        self.assertTrue(os.readlink(os.path.join(self.root, "usr/lib/ssl/cert.pem")).endswith("ca-certificates.crt"))

    # --- What it is made of -------------------------------------------------------------------------------------------

    def test_the_list_of_parts_is_complete_and_true(self):
        text = self.made[".sbom.json"].decode()
        self.assertEqual(self.read("usr/share/doc/vigil/sbom.json"), text)
        bom = json.loads(text)
        self.assertEqual((bom["bomFormat"], bom["specVersion"], bom["version"]), ("CycloneDX", "1.5", 1))
        self.assertRegex(bom["serialNumber"], r"^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
        self.assertRegex(bom["metadata"]["timestamp"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        vigil = bom["metadata"]["component"]
        with open(VIGIL, "rb") as file:
            self.assertEqual(vigil["hashes"], [{"alg": "SHA-256", "content": sha256(file.read())}])
        linked = {}
        for each in bom["components"]:
            self.assertTrue(each["type"] and each["name"] and each["bom-ref"], each)
            if each["type"] != "machine-learning-model":
                self.assertTrue(each["version"] and each["supplier"]["name"] and each["purl"].startswith("pkg:deb/"), each)
                linked.setdefault(next(one["value"] for one in each["properties"] if one["name"] == "vigil:linked"), set()).add((each["name"], each["version"]))
        shown = subprocess.run(["dpkg-query", f"--admindir={self.root}/var/lib/dpkg", "-W", "-f", "${Package} ${Version}\n"], capture_output=True, text=True,
                               check=True).stdout
        self.assertEqual(linked["dynamically"], {tuple(line.split()) for line in shown.splitlines()})
        # RocksDB is in the program itself.
        self.assertIn("librocksdb-dev", {name for name, _ in linked["statically"]})
        licensed = {each["name"]: {one["license"].get("name") for one in each["licenses"]} for each in bom["components"] if "licenses" in each}
        self.assertIn("Apache-2.0", licensed["libdnnl2"])
        self.assertGreater(len(licensed), 100)
        models = {each["name"]: each for each in bom["components"] if each["type"] == "machine-learning-model"}
        self.assertEqual(set(models), {"demo", "demo-draft"})
        with open(os.path.join(ROOT, "models/demo-draft/model.safetensors"), "rb") as file:
            self.assertEqual(models["demo-draft"]["components"][0]["hashes"][0]["content"], sha256(file.read()))
        references = [each["bom-ref"] for each in bom["components"]]
        self.assertEqual(len(set(references)), len(references))
        self.assertEqual(sorted(bom["dependencies"][0]["dependsOn"]), sorted(references))

    # --- That it runs -------------------------------------------------------------------------------------------------

    def inside(self, *command, state=None, network=False, writable=False, binds=(), info=None):
        """A command line as an engine would start it: read-only, no network, no capabilities."""
        as_user = ["setpriv", "--reuid=65532", "--regid=65532", "--clear-groups"] if IS_ROOT else []
        line = [*as_user, "bwrap", "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--die-with-parent", "--as-pid-1",
                "--uid", "65532", "--gid", "65532", *([] if network else ["--unshare-net"]), "--bind" if writable else "--ro-bind", self.root, "/",
                "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", *(["--bind", state, "/var/lib/vigil"] if state else ["--tmpfs", "/var/lib/vigil"])]
        for source, target in binds:
            line += ["--ro-bind", source, target]
        line.append("--clearenv")
        for each in self.settings["Env"]:
            line += ["--setenv", *each.split("=", 1)]
        if info is not None:
            line += ["--info-fd", str(info)]
        return [*line, "--chdir", self.settings["WorkingDir"], *self.settings["Entrypoint"], *command]

    def run_inside(self, *command, **options):
        return subprocess.run(self.inside(*command, **options), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False)

    def needs_bubblewrap(self):
        if not shutil.which("bwrap"):
            self.skipTest("bubblewrap is not installed (scripts/dependencies --images)")
        if subprocess.run([*self.inside()[:self.inside().index("bwrap")], "bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"], check=False).returncode:
            self.skipTest("bubblewrap may not make namespaces here")

    def state_folder(self):
        folder = tempfile.mkdtemp(dir=self.folder)
        if IS_ROOT:
            os.chown(folder, 65532, 65532)
        return folder

    def test_says_its_version(self):
        self.needs_bubblewrap()
        done = self.run_inside("--version")
        self.assertEqual(done.stdout, subprocess.run([VIGIL, "--version"], capture_output=True, text=True, check=True).stdout, done.stderr)

    def test_answers_as_the_program_does_outside(self):
        self.needs_bubblewrap()
        question = ["Is there a car?", "--from", "15", "--to", "18", "--model"]
        done = self.run_inside("ask", f"{SHARE}/tests/videos/car-detection.mp4", *question, f"{SHARE}/models/demo")
        outside = subprocess.run([VIGIL, "ask", "tests/videos/car-detection.mp4", *question, "models/demo"], cwd=ROOT, capture_output=True,
                                 text=True, check=True)
        self.assertEqual((done.returncode, done.stdout), (0, outside.stdout), done.stderr)
        self.assertTrue(done.stdout.startswith("Yes"), done.stdout)

    def test_the_demo_is_complete(self):
        self.needs_bubblewrap()
        done = self.run_inside("check-config", f"{SHARE}/config/demo.yaml")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_without_a_configuration_it_says_which_file_is_missing(self):
        self.needs_bubblewrap()
        done = self.run_inside(*self.settings["Cmd"])
        self.assertEqual(done.returncode, 1)
        self.assertIn("/etc/vigil/vigil.yaml", done.stderr)

    def test_writes_to_its_state_folder_alone(self):
        self.needs_bubblewrap()
        state = self.state_folder()
        self.assertEqual(self.run_inside("keygen", "server.key", state=state).returncode, 0)
        self.assertIn("server.key", os.listdir(state))
        # Read-only, and, where users are real, with nothing but the modes of the files.
        for writable in (False, True) if IS_ROOT else (False,):
            for folder in ("/etc", "/etc/vigil", "/usr/bin", SHARE, "/var/lib", "/"):
                done = self.run_inside("keygen", os.path.join(folder, "planted.key"), state=state, writable=writable)
                self.assertEqual(done.returncode, 1, (folder, writable))
        self.assertEqual([name for at, _, names in os.walk(self.root) for name in names if name.startswith("planted")], [])

    def test_watches_answers_probes_and_ends_when_it_is_told(self):
        self.needs_bubblewrap()
        state = self.state_folder()
        settings = os.path.join(self.folder, "etc")
        os.makedirs(settings)
        with open(os.path.join(settings, "vigil.yaml"), "w", encoding="utf-8") as file:
            file.write(f"model: {SHARE}/models/demo\ndefaults: {{window: {{length: 6s, stride: 2s}}, loop: true}}\ncameras:\n  gate:\n"
                       f"    url: {SHARE}/tests/videos/one-by-one-person-detection.mp4\n"
                       "    rules:\n      - {name: person, prompt: 'Is there a person in the room?'}\n"
                       "alerts: {outbox: /var/lib/vigil/outbox}\nmetrics: {listen: '127.0.0.1:9464', probes: '0.0.0.0:9465'}\n")
        reading, writing = os.pipe()
        log = self.stack.enter_context(tempfile.TemporaryFile("w+"))
        run = subprocess.Popen(self.inside(*self.settings["Cmd"], state=state, binds=[(settings, "/etc/vigil")], info=writing), pass_fds=[writing],
                               stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        os.close(writing)
        with open(reading, encoding="ascii") as info:
            process = json.load(info)["child-pid"]

        def get(place):
            """From within its network, which has nobody else in it."""
            fetch = "import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())"
            done = subprocess.run(["nsenter", "--target", str(process), "--user", "--net", "--preserve-credentials", sys.executable, "-c", fetch,
                                   f"http://127.0.0.1:{place}"], capture_output=True, text=True, check=False)
            return done.stdout if done.returncode == 0 else None

        def said():
            log.seek(0)
            return log.read()

        def until(holds):
            end = time.monotonic() + PATIENCE
            while not holds():
                self.assertIsNone(run.poll(), said())
                self.assertLess(time.monotonic(), end, said())
                time.sleep(0.2)

        until(lambda: get("9465/readyz") is not None)
        until(lambda: json.loads(get("9464/status") or '{"cameras": []}')["cameras"])
        until(lambda: re.search(r'^vigil_windows_total{.*outcome="answered".*} [1-9]', get("9464/metrics") or "", re.MULTILINE))
        self.assertIsNotNone(get("9465/healthz"))
        self.assertIsNone(get("9465/status"))
        os.kill(process, signal.Signals[self.settings["StopSignal"]])
        self.assertEqual(run.wait(timeout=PATIENCE), 0, said())
        self.assertIn("outbox", os.listdir(state))


if __name__ == "__main__":
    result = unittest.main(argv=[sys.argv[0], *sys.argv[3:]], exit=False, verbosity=2).result
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)
