"""That the chart's files say the same as each other, and as the program's: written_test.py"""

import json
import os
import re
import subprocess
import unittest

import yaml
from kube_tools import ROOT


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def leaves(tree, path=""):
    """The keys of a map, and of the maps in it; an empty one, a list or a scalar is a leaf."""
    if not isinstance(tree, dict) or not tree:
        yield path
        return
    for key, value in tree.items():
        yield from leaves(value, f"{path}.{key}" if path else key)


def objects_of(schema, path="#"):
    """(where, schema) of every map in a schema."""
    if isinstance(schema, dict):
        if "$comment" in schema:
            return
        if schema.get("type") == "object":
            yield path, schema
        for key, value in schema.items():
            yield from objects_of(value, f"{path}/{key}")
    elif isinstance(schema, list):
        for number, value in enumerate(schema):
            yield from objects_of(value, f"{path}/{number}")


class Written(unittest.TestCase):
    def test_schema_and_page_are_what_their_sources_say(self):
        done = subprocess.run([os.path.join(ROOT, "scripts", "chart"), "--check"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_page_lists_every_value(self):
        listed = re.findall(r"^\| `([\w.]+)` \|", read("helm", "vigil", "README.md"), re.MULTILINE)
        self.assertEqual(len(set(listed)), len(listed))
        there = list(leaves(yaml.safe_load(read("helm", "vigil", "values.yaml"))))
        missing = [leaf for leaf in there if not any(leaf == each or leaf.startswith(each + ".") for each in listed)]
        self.assertEqual(missing, [])
        self.assertEqual([each for each in listed if not any(leaf == each or leaf.startswith(each + ".") for leaf in there)], [])

    def test_the_schema_knows_every_value_and_no_other(self):
        schema = json.loads(read("helm", "vigil", "values.schema.json"))
        open_maps = [where for where, each in objects_of(schema) if each.get("additionalProperties", True) is True]
        self.assertEqual(open_maps, [])
        own = [each for each in re.findall(r'"\$comment": "([^"]+)"', json.dumps(schema)) if each != "Kubernetes' own"]
        self.assertEqual(own, ["Other charts of a release have keys of their own here"])

    def test_the_program_and_the_chart_agree_on_what_needs_a_restart(self):
        live = read("helm", "vigil", "templates", "_config.tpl").split('define "vigil.live" -}}\n')[1].split("\n")[0].split()

        def fixed(schema, path):
            """Whether each key says that it needs a restart."""
            for key, value in schema.get("properties", {}).items():
                below = f"{path}.{key}" if path else key
                if "properties" in value and value.get("additionalProperties") is False:
                    yield from fixed(value, below)
                else:
                    yield below, value.get("x-needs-restart", False)

        keys = list(fixed(json.loads(read("config", "vigil.schema.json")), ""))
        self.assertEqual({key for key, needs in keys if not needs}, {key for key, _ in keys if any(key == each or key.startswith(each + ".") for each in live)})
        self.assertEqual({key.split(".")[0] if key != "log.level" else key for key, needs in keys if not needs}, set(live))

    def test_chart_and_program_have_one_version(self):
        version = re.search(r"project\(vigil VERSION ([0-9.]+)", read("CMakeLists.txt"))[1]
        chart = yaml.safe_load(read("helm", "vigil", "Chart.yaml"))
        self.assertEqual(chart["appVersion"], version)
        images = yaml.safe_load(chart["annotations"]["artifacthub.io/images"])
        given = yaml.safe_load(read("helm", "vigil", "values.yaml"))
        wanted = [{**given["image"], "tag": version}, given["etcd"]["image"], given["tests"]["image"]]
        self.assertEqual([each["image"] for each in images], [f"{each['registry']}/{each['repository']}:{each['tag']}" for each in wanted])
        for name in ("changes", "links"):
            self.assertTrue(yaml.safe_load(chart["annotations"][f"artifacthub.io/{name}"]))


if __name__ == "__main__":
    unittest.main()
