"""scripts/dependencies with stand-ins for dpkg-query, apt-get and sudo, which record how they were called."""

import os
import subprocess
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(__file__), "..", "..", "scripts", "dependencies")

DEBIAN = 'ID=debian\nVERSION_ID="12"\n'
UBUNTU = 'ID=ubuntu\nVERSION_ID="24.04"\n'

# Prints what is installed, as dpkg-query does for the packages that it knows; a removed package is known still.
DPKG_QUERY = """#!/bin/sh
sed 's/$/ installed/' "$STAND_INS/installed"
echo "ccache config-files"
"""
APT_GET = """#!/bin/sh
echo "apt-get $*" >>"$STAND_INS/calls"
test ! -e "$STAND_INS/apt-fails" || { echo "E: no network"; exit 100; }
"""
SUDO = """#!/bin/sh
echo sudo >>"$STAND_INS/calls"
exec "$@"
"""
ID = """#!/bin/sh
cat "$STAND_INS/uid"
"""


class Dependencies(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.stand_ins = folder.name
        self.put("installed", "")
        self.put("uid", "0\n")
        self.put("os-release", DEBIAN)
        for name, text in (("dpkg-query", DPKG_QUERY), ("apt-get", APT_GET), ("sudo", SUDO), ("id", ID)):
            self.put(name, text)
            os.chmod(os.path.join(self.stand_ins, name), 0o755)

    def put(self, name, text):
        with open(os.path.join(self.stand_ins, name), "w", encoding="utf-8") as file:
            file.write(text)

    def run_script(self, *arguments, path="/usr/bin:/bin"):
        environment = {"PATH": f"{self.stand_ins}:{path}", "STAND_INS": self.stand_ins,
                       "VIGIL_OS_RELEASE": os.path.join(self.stand_ins, "os-release")}
        return subprocess.run([SCRIPT, *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False)

    def calls(self):
        try:
            with open(os.path.join(self.stand_ins, "calls"), encoding="utf-8") as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []

    def packages(self, *arguments):
        return self.run_script("--list", *arguments).stdout.split()

    def test_installs_what_is_missing_and_nothing_else(self):
        self.put("installed", "\n".join(p for p in self.packages() if p not in ("libcaf-dev", "ccache")) + "\n")
        done = self.run_script()
        self.assertEqual(done.returncode, 0, done.stderr)
        update, install = self.calls()
        self.assertTrue(update.endswith(" update"), update)
        self.assertTrue(install.endswith(" install --no-install-recommends ccache libcaf-dev"), install)

    def test_does_nothing_when_all_is_there(self):
        self.put("installed", "\n".join(self.packages("--lint", "--fuzz")) + "\n")
        done = self.run_script("--lint", "--fuzz")
        self.assertEqual((done.returncode, done.stdout, done.stderr, self.calls()), (0, "", "", []))

    def test_a_name_that_contains_another_is_not_that_package(self):
        self.put("installed", "\n".join(p.replace("libicu-dev", "libicu-dev-tools") for p in self.packages()) + "\n")
        self.run_script()
        self.assertTrue(self.calls()[-1].endswith(" libicu-dev"), self.calls())

    def test_lint_fuzz_faults_and_images_ask_for_more(self):
        plain = self.packages()
        self.assertNotIn("clang", plain)
        self.assertNotIn("clang-format-14", plain)
        self.assertEqual(set(self.packages("--lint")) - set(plain), {"clang-format-14"})
        self.assertEqual(set(self.packages("--fuzz")) - set(plain), {"clang", "libclang-rt-14-dev", "libomp-14-dev"})
        self.assertEqual(set(self.packages("--faults")) - set(plain), {"prometheus"})
        self.assertEqual(set(self.packages("--images")) - set(plain), {"bubblewrap", "skopeo"})
        self.assertEqual(set(self.packages("--benches")) - set(plain), {"fio"})
        self.put("os-release", UBUNTU)
        self.assertEqual(set(self.packages("--fuzz")) - set(plain), {"clang", "libclang-rt-18-dev", "libomp-18-dev"})

    def test_uses_sudo_when_not_root(self):
        self.put("uid", "1000\n")
        self.assertEqual(self.run_script().returncode, 0)
        self.assertEqual([call.split()[0] for call in self.calls()], ["sudo", "apt-get", "sudo", "apt-get"])

    def test_neither_root_nor_sudo_is_one_line(self):
        self.put("uid", "1000\n")
        os.remove(os.path.join(self.stand_ins, "sudo"))
        os.makedirs(os.path.join(self.stand_ins, "bin"))
        for tool in ("bash", "cat", "env", "grep", "sed"):
            os.symlink(f"/usr/bin/{tool}", os.path.join(self.stand_ins, "bin", tool))
        done = self.run_script(path=os.path.join(self.stand_ins, "bin"))
        self.assertEqual((done.returncode, self.calls()), (1, []))
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("apt-get install g++", done.stderr)

    def test_another_distribution_is_one_line_that_names_the_packages(self):
        for release in ('ID=fedora\nVERSION_ID="40"\n', 'ID=debian\nVERSION_ID="11"\n', ""):
            self.put("os-release", release)
            done = self.run_script()
            self.assertEqual((done.returncode, self.calls()), (1, []))
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn("libcaf-dev", done.stderr)

    def test_another_distribution_with_all_packages_is_fine(self):
        self.put("os-release", 'ID=debian\nVERSION_ID="13"\n')
        self.put("installed", "\n".join(self.packages()) + "\n")
        self.assertEqual(self.run_script().returncode, 0)

    def test_shows_why_apt_failed(self):
        self.put("apt-fails", "")
        done = self.run_script()
        self.assertEqual(done.returncode, 1)
        self.assertIn("E: no network", done.stderr)

    def test_an_unknown_argument_is_wrong_usage(self):
        done = self.run_script("--everything")
        self.assertEqual((done.returncode, self.calls()), (2, []))
        self.assertIn("--everything", done.stderr)


if __name__ == "__main__":
    unittest.main()
