"""The programs with which the chart is tested: helm, kubeconform, and a Kubernetes control plane on this machine whose nodes and pods are played
by kwok. They lie in one folder, which VIGIL_TEST_TOOLS names; without it, in `shared/tools` beside the checkout. None of them is part of the
product, and without them the tests are skipped."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile

import yaml

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
CHART = os.path.join(ROOT, "helm", "vigil")
TOOLS = os.environ.get("VIGIL_TEST_TOOLS") or os.path.join(os.path.dirname(ROOT), "shared", "tools")
# The version that helm takes a cluster for where it sees none.
KUBERNETES = "1.36.0"
APIS = ("monitoring.coreos.com/v1", "keda.sh/v1alpha1", "cert-manager.io/v1")


def unpack(archive):
    """Where kube-up unpacks its programs, too, and leaves them."""
    folder = os.path.join(tempfile.gettempdir(), f"kube-{os.path.getsize(archive)}")
    with open(folder + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.access(os.path.join(folder, "kubectl"), os.X_OK):
            part = folder + ".part"
            shutil.rmtree(part, ignore_errors=True)
            os.makedirs(part)
            subprocess.run(["tar", "-xJf", archive, "-C", part], check=True)
            os.rename(part, folder)
    return folder


def have_programs():
    return os.path.exists(os.path.join(TOOLS, "kube.tar.xz")) or os.access(os.path.join(TOOLS, "helm"), os.X_OK)


def programs():
    """The folder of the programs; ends with 77, which ctest takes for skipped, if they are not there."""
    archive = os.path.join(TOOLS, "kube.tar.xz")
    if os.path.exists(archive):
        return unpack(archive)
    if os.access(os.path.join(TOOLS, "helm"), os.X_OK):
        return TOOLS
    print(f"skipped: neither kube.tar.xz nor helm is in {TOOLS} (VIGIL_TEST_TOOLS names another folder)")
    sys.exit(77)


def values(name):
    return os.path.join(CHART, "ci", f"{name}-values.yaml")


def sets():
    """The names of the chart's own sets of values."""
    return sorted(name.removesuffix("-values.yaml") for name in os.listdir(os.path.join(CHART, "ci")))


class Helm:
    """Runs helm with folders of its own, as a process that ends well or whose output is looked at."""

    def __init__(self, folder, kubeconfig=os.devnull):
        self.program = os.path.join(programs(), "helm")
        homes = {f"HELM_{name}_HOME": os.path.join(folder, name) for name in ("CACHE", "CONFIG", "DATA")}
        self.environment = {**os.environ, **homes, "KUBECONFIG": kubeconfig}

    def run(self, *arguments):
        return subprocess.run([self.program, *arguments], env=self.environment, capture_output=True, text=True, check=False, timeout=120)

    def lint(self, *arguments, chart=CHART):
        return self.run("lint", "--strict", "--kube-version", KUBERNETES, chart, *arguments)

    def template(self, *arguments, chart=CHART, apis=APIS):
        known = [word for each in apis for word in ("--api-versions", each)]
        return self.run("template", "fleet", chart, "--namespace", "video", "--kube-version", KUBERNETES, *known, *arguments)

    def render(self, name, *arguments, **options):
        """The objects of a set of values."""
        done = self.template("--values", values(name), *arguments, **options)
        assert done.returncode == 0, done.stderr
        return [each for each in yaml.safe_load_all(done.stdout) if each]


def one(objects, kind, name):
    """The object of this kind whose name is the release's with this behind it."""
    found = [each for each in objects if each["kind"] == kind and each["metadata"]["name"] == f"fleet-vigil{name}"]
    assert len(found) == 1, f"{len(found)} of {kind} fleet-vigil{name}"
    return found[0]


def configuration(objects):
    """What vigil.yaml says."""
    return yaml.safe_load(one(objects, "ConfigMap", "")["data"]["vigil.yaml"])


def pods(objects):
    """(name of its owner, metadata, spec) of every pod that there would be."""
    for each in objects:
        if each["kind"] == "StatefulSet":
            yield each["metadata"]["name"], each["spec"]["template"]["metadata"], each["spec"]["template"]["spec"]
        elif each["kind"] == "Pod":
            yield each["metadata"]["name"], each["metadata"], each["spec"]
