"""That whoever lists the roles of a node lists those that the program knows: roles_test.py VIGIL"""

import json
import os
import re
import subprocess
import sys
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
# In the program's table, and refused until they have something to do.
TO_COME = {"cache"}


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def said(*arguments):
    done = subprocess.run([VIGIL, "node", *arguments], capture_output=True, text=True, check=False, timeout=30)
    return " ".join((done.stdout + done.stderr).split())


def words(text):
    return re.findall(r"[a-z]+", text)


class Roles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.known = re.search(r"with commas: ((?:[a-z]+, )+[a-z]+)", said("--help")).group(1).split(", ")

    def test_one_that_is_none_is_told_which_there_are(self):
        self.assertIn(f"unknown role 'chef' (known: {', '.join(self.known)})", said("--roles", "chef", "--config", "none.yaml"))

    def test_those_to_come_are_refused(self):
        for role in TO_COME:
            self.assertIn(f"'{role}' has nothing to do yet", said("--roles", role, "--config", "none.yaml"))

    def test_the_chart_knows_the_same(self):
        listed = re.search(r'define "vigil.roles" -}}\n(.*)\n', read("helm", "vigil", "templates", "_pools.tpl")).group(1)
        self.assertEqual(listed.split(", "), self.known)
        schema = json.loads(read("helm", "values.schema.in.json"))
        self.assertEqual(set(schema["$defs"]["pool"]["properties"]["roles"]["items"]["enum"]), {*self.known, *TO_COME})
        comment = re.search(r"# -- Some of (.*?);", read("helm", "vigil", "values.yaml")).group(1)
        self.assertEqual(comment.split(", "), self.known)

    def test_programs_that_start_nodes_of_all_roles_know_the_same(self):
        for path in (("scripts", "demo-fleet"), ("loadtest", "fleet", "scenes"), ("loadtest", "load", "scenario.py")):
            listed = re.search(r"^ROLES = (.*)$", read(*path), re.MULTILINE).group(1)
            self.assertEqual(words(listed), self.known, "/".join(path))


if __name__ == "__main__":
    VIGIL = sys.argv.pop(1)
    unittest.main()
