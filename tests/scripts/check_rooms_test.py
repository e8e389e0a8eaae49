"""scripts/check-rooms on small trees, each with one fault."""

import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(__file__), "..", "..", "scripts", "check-rooms")

# A tree that keeps to every rule; each test puts one fault into it.
GOOD = {
    "actors/CMakeLists.txt": "vigil_room(actors\n  SOURCES a.cpp\n  KNOWS engine media config\n  PUBLIC CAF::core)\n",
    "actors/camera/camera.cpp": '#include "actors/camera/camera.h"\n#include "actors/messages/messages.h"\n#include "media/media.h"\n'
                                '#include "actors/status/metrics.h"\n',
    "actors/camera/camera.h": "#include <caf/all.hpp>\n#include <vector>\n",
    "actors/messages/messages.h": "#include <caf/all.hpp>\n",
    "actors/status/metrics.h": "#include <prometheus/registry.h>\n",
    "actors/supervisor/supervisor.cpp": '#include "actors/camera/camera.h"\n#include "actors/vision/vision.h"\n',
    "actors/vision/vision.h": '#include "engine/stream/stream_desk.h"\n',
    "cluster/clock.cpp": '#include <zmq.hpp>\n#include "config/settings.h"\n',
    "config/file/load.cpp": '#include <yaml-cpp/yaml.h>\n#include "config/settings.h"\n',
    "config/settings.h": '#include "config/values/byte_size.h"\n',
    "docs/notes.md": "",
    "engine/kv/history/store.cpp": '#include <rocksdb/db.h>\n#include "kernels/device/dtype.h"\n',
    "kernels/matmul/matmul_cpu.cpp": "#include <dnnl.hpp>\n#include <omp.h>\n",
    "media/reader.cpp": 'extern "C" {\n#include <libavformat/avformat.h>\n#include <libswscale/swscale.h>\n}\n#include "media/media.h"\n',
    "services/run.cpp": '#include <CLI/CLI.hpp>\n#include "actors/camera/camera.h"\n#include "cluster/process/clock.h"\n',
    "tests/media/reader_test.cpp": '#include "services/command.h"\n',
}


class CheckRooms(unittest.TestCase):
    def check(self, **changes):
        """Runs the script on GOOD with `changes` (path=text); returns its exit status and what it said on stderr."""
        with tempfile.TemporaryDirectory() as tree:
            for path, text in {**GOOD, **changes}.items():
                os.makedirs(os.path.join(tree, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(tree, path), "w", encoding="utf-8") as file:
                    file.write(text)
            done = subprocess.run([sys.executable, SCRIPT, tree], capture_output=True, text=True, check=False)
            return done.returncode, done.stderr

    def rejects(self, path, text, line, *words):
        """`text` at `path` yields exactly one violation, at `line`, whose message has all `words`."""
        status, errors = self.check(**{path: text})
        self.assertEqual(status, 1, errors)
        violations = errors.splitlines()[:-1]
        self.assertEqual(len(violations), 1, errors)
        self.assertTrue(violations[0].startswith(f"{path}:{line}: "), violations[0])
        for word in words:
            self.assertIn(word, violations[0])

    def test_accepts_a_tree_that_keeps_to_the_drawing(self):
        self.assertEqual(self.check(), (0, ""))

    def test_rejects_an_empty_tree(self):
        with tempfile.TemporaryDirectory() as tree:
            done = subprocess.run([sys.executable, SCRIPT, tree], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("found no sources", done.stderr)

    def test_rejects_arrows_that_go_up_or_sideways(self):
        self.rejects("engine/model/m.cpp", '#include <vector>\n#include "actors/messages/messages.h"\n', 2,
                     "engine -> actors", "may know kernels/ config/")
        self.rejects("engine/model/m.cpp", '#include "media/media.h"\n', 1, "engine -> media")
        self.rejects("kernels/k.h", '#include "engine/model/files/config.h"\n', 1, "kernels -> engine", "no other room")
        self.rejects("media/m.cpp", '#include "config/settings.h"\n', 1, "media -> config")
        self.rejects("config/c.cpp", '#include "kernels/device/dtype.h"\n', 1, "config -> kernels")
        self.rejects("cluster/c.cpp", '#include "engine/stream/stream_desk.h"\n', 1, "cluster -> engine")
        self.rejects("actors/camera/c.cpp", '#include "cluster/process/clock.h"\n', 1, "actors -> cluster")

    def test_rejects_an_arrow_past_a_room(self):
        self.rejects("services/s.cpp", '#include "kernels/device/dtype.h"\n', 1, "services -> kernels")
        self.rejects("actors/vision/v.cpp", '#include "kernels/device/dtype.h"\n', 1, "actors -> kernels")

    def test_sees_an_include_in_any_spelling(self):
        for spelling in ("#include <engine/x.h>", "  #  include\t<engine/x.h>", '#include"engine/x.h"', "#import <engine/x.h>",
                         "#include_next <engine/x.h>", "#include \\\n  <engine/x.h>"):
            self.rejects("media/m.cu", "\n" + spelling + "  // why\n", 2, "media -> engine")

    def test_rejects_an_include_through_a_macro(self):
        self.rejects("media/m.cpp", "#define H <engine/x.h>\n#include H\n", 2, "macro")

    def test_ignores_an_include_in_a_comment_or_a_string(self):
        status, errors = self.check(**{"media/m.cpp": '// #include "engine/x.h"\nauto s = "#include <engine/x.h>";\n'})
        self.assertEqual((status, errors), (0, ""))

    def test_rejects_libraries_outside_their_rooms(self):
        for header, library, path in (
                ("libavcodec/avcodec.h", "FFmpeg", "actors/camera/c.cpp"),
                ("libswscale/swscale.h", "FFmpeg", "engine/model/m.cpp"),
                ("libavutil/log.h", "FFmpeg", "services/s.cpp"),
                ("caf/all.hpp", "CAF", "engine/run/w.cpp"),
                ("caf/actor.hpp", "CAF", "media/m.cpp"),
                ("dnnl.hpp", "oneDNN", "engine/model/m.cpp"),
                ("oneapi/dnnl/dnnl.hpp", "oneDNN", "engine/model/m.cpp"),
                ("rocksdb/db.h", "RocksDB", "actors/camera/c.cpp"),
                ("rocksdb/db.h", "RocksDB", "engine/run/w.cpp"),
                ("rocksdb/db.h", "RocksDB", "engine/kvx/w.cpp"),
                ("rocksdb/db.h", "RocksDB", "engine/kv/w.cpp"),
                ("xxhash.h", "xxHash", "engine/kv/w.cpp"),
                ("zmq.hpp", "ZeroMQ", "actors/camera/c.cpp"),
                ("zmq_addon.hpp", "ZeroMQ", "engine/run/w.cpp"),
                ("prometheus/counter.h", "prometheus-cpp", "engine/run/w.cpp"),
                ("prometheus/counter.h", "prometheus-cpp", "actors/camera/c.cpp"),
                ("yaml-cpp/yaml.h", "yaml-cpp", "services/s.cpp"),
                ("yaml-cpp/yaml.h", "yaml-cpp", "config/settings.cpp"),
                ("CLI/CLI.hpp", "CLI11", "config/c.cpp"),
                ("cuda_runtime.h", "CUDA", "engine/run/w.cpp"),
        ):
            self.rejects(path, f"#include <{header}>\n", 1, f"-> {library}", "may know it")
            self.rejects(path, f'#include "{header}"\n', 1, f"-> {library}", "may know it")

    def test_rejects_relative_includes(self):
        self.rejects("media/m.cpp", '#include "media.h"\n', 1, "by path from the root")
        self.rejects("media/m.cpp", '#include "../media/media.h"\n', 1, "by path from the root")
        self.rejects("media/m.cpp", '#include "./media.h"\n', 1, "by path from the root")
        self.rejects("engine/model/m.cpp", '#include "media/../kernels/k.h"\n', 1, "by path from the root")

    def test_rejects_another_actors_headers(self):
        self.rejects("actors/vision/v.cpp", '#include "actors/camera/camera.h"\n', 1, "actors/vision -> actors/camera",
                     "actors/messages/")
        self.rejects("actors/camera/c.cpp", '#include "actors/supervisor/supervisor.h"\n', 1, "actors/camera -> actors/supervisor")
        self.rejects("actors/messages/m.cpp", '#include "actors/camera/camera.h"\n', 1, "actors/messages -> actors/camera")

    def test_rejects_arrows_inside_a_room(self):
        self.rejects("engine/kv/k.cpp", '#include "engine/model/language/decoder.h"\n', 1,
                     "engine/kv -> engine/model/language", "may know engine/kv/")
        self.rejects("engine/model/files/f.cpp", '#include "engine/model/model_folder.h"\n', 1,
                     "engine/model/files -> engine/model ")
        self.rejects("engine/run/r.cpp", '#include "engine/stream/s.h"\n', 1, "engine/run -> engine/stream")
        self.rejects("kernels/device/d.cpp", '#include "kernels/linear/linear.h"\n', 1, "kernels/device -> kernels/linear")
        self.rejects("config/file/f.cpp", '#include "config/running/reload.h"\n', 1, "config/file -> config/running")
        self.rejects("engine/odd/o.cpp", '#include "engine/kv/page_pool.h"\n', 1, "no such folder")
        for path, header in (("engine/stream/s.cpp", "engine/model/text/tokenizer.h"),
                             ("engine/model/verify/v.cpp", "engine/model/model_folder.h"),
                             ("engine/model/m.cpp", "engine/model/vision/vision_tower.h")):
            self.assertEqual(self.check(**{path: f'#include "{header}"\n'}), (0, ""))

    def test_keeps_rules_apart_from_devices_actors_and_threads(self):
        for header in ("kernels/device/device.h", "config/settings.h", "engine/kv/book.h", "engine/model/language/decoder.h",
                       "engine/run/passes.h"):
            self.rejects("engine/speculate/s.cpp", f'#include "{header}"\n', 1, "engine/speculate -> ", "rules alone")
        for header in ("thread", "mutex", "atomic", "condition_variable", "future", "pthread.h"):
            self.rejects("engine/speculate/s.h", f"#include <{header}>\n", 1, f"<{header}>", "no threads")
        self.rejects("engine/speculate/s.h", "#include <caf/all.hpp>\n", 1, "CAF")
        for header in ("base/fnv1a.h", "engine/model/language/sampler.h", "engine/speculate/verify.h"):
            self.assertEqual(self.check(**{"engine/speculate/s.cpp": f'#include "{header}"\n#include <vector>\n'}), (0, ""))

    def test_rejects_a_folder_that_knows_one_inside_it_which_knows_it(self):
        self.rejects("config/settings.cpp", '#include "config/file/load.h"\n', 1, "config -> config/file", "only go down")
        self.rejects("engine/model/m.cpp", '#include "engine/model/verify/verify.h"\n', 1, "engine/model -> engine/model/verify")

    def test_rejects_unknown_rooms(self):
        self.rejects("engine/model/m.cpp", '#include "common/util.h"\n', 1, "common/util.h", "no such room")
        status, errors = self.check(**{"common/util.h": "\n"})
        self.assertEqual(status, 1)
        self.assertTrue(errors.startswith("common/: no such room"), errors)

    def test_rejects_sources_that_know_tests(self):
        self.rejects("engine/model/m.cpp", '#include "tests/golden/golden.h"\n', 1, "engine -> tests")

    def test_rejects_a_link_that_the_drawing_lacks(self):
        self.rejects("engine/CMakeLists.txt", "vigil_room(engine\n  SOURCES a.cpp\n  KNOWS kernels media\n  PRIVATE x)\n", 3,
                     "engine -> media")

    def test_reports_every_violation(self):
        status, errors = self.check(**{"media/m.cpp": '#include "engine/x.h"\n#include <caf/all.hpp>\n',
                                       "config/c.h": '#include "media/media.h"\n'})
        self.assertEqual(status, 1)
        self.assertEqual([line.split(": ")[0] for line in errors.splitlines()[:-1]],
                         ["media/m.cpp:1", "media/m.cpp:2", "config/c.h:1"])
        self.assertIn("3 arrows", errors.splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
