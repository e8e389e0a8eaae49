#!/usr/bin/env python3
"""The power cuts of loadtest/faults, on programs whose fate is known: each is recorded, and many disks are made of each journal.

  power_cut_test.py RECORDER WRITER
"""

import collections
import os
import random
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../loadtest/faults/power_cut"))

import disk  # noqa: E402

RECORDER, WRITER = sys.argv[1:3]
LONG = b"x" * 5000
OLD = b"before"
DISKS = 300


def files_of(folder):
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            full = os.path.join(path, name)
            with open(full, "rb") as file:
                found[os.path.relpath(full, folder)] = file.read()
    return found


class Run:
    """A case of the writer, run once under the recorder."""

    def __init__(self, case, model, before=None):
        # In memory, where the machine has a folder for that: hundreds of small folders are made.
        with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as scratch:
            folder, journal = os.path.join(scratch, "folder"), os.path.join(scratch, "journal")
            os.mkdir(folder)
            with open(os.path.join(folder, "old"), "wb") as file:
                file.write(OLD)
            self.disk = disk.Disk(folder, model)
            environment = {**os.environ, "LD_PRELOAD": RECORDER, "POWER_CUT_ROOT": os.path.realpath(folder), "POWER_CUT_JOURNAL": journal}
            if before is not None:
                environment["POWER_CUT_BEFORE"] = str(before)
            status = subprocess.run([WRITER, folder, case], env=environment).returncode
            if status != -9:
                raise AssertionError(f"{case} ended with {status}")
            self.disk.replay(journal)
            self.disk.check(folder)
            self.found = []
            for seed in range(DISKS):
                left = os.path.join(scratch, f"left-{seed}")
                self.disk.leave(left, random.Random(seed))
                self.found.append(files_of(left))

    def of(self, name):
        """How often a file was found with which data; None: it was not there."""
        return collections.Counter(each.get(name) for each in self.found)


class PowerCut(unittest.TestCase):
    def both(self, case):
        return [Run(case, model) for model in disk.MODELS]

    def test_what_was_not_synced_may_be_lost_or_torn_or_kept(self):
        for run in self.both("nothing_synced"):
            found = run.of("a")
            self.assertTrue({None, b"", LONG} <= set(found), found)
            torn = [data for data in found if data not in (None, b"", LONG)]
            self.assertTrue(torn)
            for data in torn:
                self.assertTrue(len(data) % 512 == 0 or len(data) == len(LONG), len(data))
                self.assertLessEqual({bytes(data[at:at + 512]).strip(b"x") for at in range(0, len(data), 512)},
                                     {b"", bytes(512), bytes(len(LONG) % 512)})

    def test_a_file_without_its_folders_sync_is_lost_in_posix_and_not_in_ext4(self):
        posix, ext4 = self.both("data_synced")
        self.assertEqual(set(posix.of("a")), {None, LONG})
        self.assertEqual(set(ext4.of("a")), {LONG})

    def test_what_was_synced_is_there(self):
        for run in self.both("all_synced"):
            self.assertEqual(run.of("a"), {LONG: DISKS})

    def test_a_name_that_was_synced_without_its_data_may_be_empty(self):
        for run in self.both("folder_synced_data_not"):
            self.assertNotIn(None, run.of("a"))
            self.assertTrue({b"", LONG} <= set(run.of("a")))

    def test_o_dsync_keeps_each_write(self):
        for run in self.both("o_dsync"):
            self.assertEqual(run.of("a"), {b"onetwo": DISKS})

    def test_an_append_takes_nothing_from_what_was_synced_before(self):
        for run in self.both("appended_after_sync"):
            self.assertTrue({b"kept", b"kept" + LONG} <= set(run.of("a")))
            self.assertGreater(len(run.of("a")), 3)
            for data in run.of("a"):
                self.assertTrue(data.startswith(b"kept"))

    def test_a_write_over_two_sectors_is_torn_between_them(self):
        versions = {LONG[:510] + middle + LONG[514:] for middle in (b"xxxx", b"yyyy", b"yyxx", b"xxyy")}
        for run in self.both("overwritten_after_sync"):
            self.assertEqual(set(run.of("a")), versions)

    def test_a_file_that_is_replaced_is_the_old_or_the_new_one(self):
        for run in self.both("replaced_well"):
            self.assertEqual(set(run.of("old")), {OLD, b"new"})
        for run in self.both("replaced_and_synced"):
            self.assertEqual(run.of("old"), {b"new": DISKS})

    def test_a_file_that_is_replaced_by_one_without_data_may_be_empty_in_posix(self):
        posix, ext4 = self.both("replaced_without_data")
        self.assertEqual(set(posix.of("old")), {b"", b"new"})
        self.assertEqual(set(ext4.of("old")), {b"new"})

    def test_a_folder_that_was_not_synced_above_is_lost_in_posix_with_all_in_it(self):
        posix, ext4 = self.both("new_folder_not_synced")
        self.assertEqual(set(posix.of("d/a")), {None, b"kept?"})
        self.assertEqual(set(ext4.of("d/a")), {b"kept?"})

    def test_what_was_removed_or_cut_off_may_be_there_again(self):
        for run in self.both("removed_not_synced"):
            self.assertEqual(set(run.of("old")), {OLD, None})
        for run in self.both("truncated_not_synced"):
            self.assertEqual(set(run.of("old")), {OLD, OLD[:1]})

    def test_what_vigil_says_is_kept_is_there_with_its_folders(self):
        for run in self.both("vigils_new_file"):
            self.assertEqual(run.of("camera/day/clip"), {LONG: DISKS})
        for run in self.both("vigils_key_files"):
            for name in ("key", "key.pub"):
                self.assertEqual(len(run.of(name)), 1)
                self.assertNotIn(None, run.of(name))

    def test_all_ways_to_write_are_seen(self):
        # Throws where the journal and the folder differ.
        run = Run("by_the_library", "posix")
        self.assertEqual({name: bytes(node.now) for name, node in disk.walk(run.disk.root) if isinstance(node, disk.File)},
                         {"c": LONG[:100], "v": b"abcd!" + bytes(5)})

    def test_a_write_that_is_not_seen_is_noticed(self):
        with self.assertRaises(disk.JournalError):
            Run("unseen", "posix")

    def test_the_power_can_be_cut_before_each_operation(self):
        operations = Run("replaced_and_synced", "posix").disk.records
        self.assertEqual(operations, 5)  # made, written, synced, renamed, synced
        for before in range(operations):
            run = Run("replaced_and_synced", "posix", before)
            self.assertTrue(run.disk.cut)
            self.assertEqual(run.disk.records, before + 1)
            self.assertLessEqual(set(run.of("old")), {OLD, b"new"})
            self.assertEqual(b"new" in run.of("old"), before == 4)

    def test_a_seed_makes_the_same_disk_again(self):
        first, second = Run("nothing_synced", "posix"), Run("nothing_synced", "posix")
        self.assertEqual(first.found, second.found)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
