// Files of an outbox that are damaged, gone, or another's: nothing that was kept is lost silently, nothing
// that is shown is other than it was, and no number means two events under one identity.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <sys/stat.h>

#include "actors/alerts/outbox_records.h"
#include "engine/kv/database/rocksdb_parts.h"
#include "tests/actors/outboxes.h"

namespace vigil::actors {
namespace {

using namespace std::chrono_literals;
using testing::all_events;
using ::testing::ElementsAre;
using testing::event;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kStart;
using testing::run_and_kill;
using testing::shown;
using ::testing::SizeIs;
namespace fs = std::filesystem;

std::string bytes_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

void write(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

void flip(const fs::path& file, std::size_t at, int bit = 0) {
  std::string bytes = bytes_of(file);
  ASSERT_LT(at, bytes.size()) << file;
  bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
  write(file, bytes);
}

/// An event of about a kilobyte, as they are.
OutboxEvent large(const std::string& topic, std::uint64_t sequence) {
  OutboxEvent result = event(topic, sequence);
  result.body += std::string(700, 'x');
  std::mt19937_64 random(sequence);
  for (int i = 0; i < 300; ++i) result.body.push_back(static_cast<char>('a' + random() % 26));
  return result;
}

class OutboxDamage : public ::testing::Test {
 protected:
  std::unique_ptr<Outbox> open() { return open_rocksdb_outbox(folder_.outbox(), ages_); }

  /// Events of three topics, of which some lie in tables and the last in the log, by a process that is
  /// killed as soon as there are so many tables: a thread of RocksDB's writes them.
  void keep(std::uint64_t events, bool acknowledged = true, std::size_t tables = 0) {
    ASSERT_EQ(0, run_and_kill([&] {
                const auto outbox = open();
                for (std::uint64_t i = 1; i <= events; i += 3) {
                  std::vector<OutboxEvent> batch;
                  for (std::uint64_t each = i; each < i + 3 && each <= events; ++each) {
                    const std::string topic = std::string(1, static_cast<char>('a' + each % 3)) + '/';
                    batch.push_back(large(topic, outbox->last_sequence(topic) + 1));
                  }
                  const std::uint64_t first = outbox->append(batch);
                  for (std::uint64_t each = 0; acknowledged && each < batch.size(); ++each)
                    outbox->acknowledge(first + each);
                }
                const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
                while (files(".sst").size() < tables && std::chrono::steady_clock::now() < until)
                  std::this_thread::yield();
              }));
  }
  std::vector<fs::path> files(const std::string& extension) const {
    std::vector<fs::path> result;
    for (const auto& entry : fs::directory_iterator(folder_.outbox()))
      if (entry.path().extension() == extension || entry.path().filename().string().starts_with(extension))
        result.push_back(entry.path());
    std::sort(result.begin(), result.end());
    return result;
  }

  static std::vector<std::string> reasons(Outbox& outbox) {
    std::vector<std::string> result;
    for (const OutboxNotice& notice : outbox.take_notices()) result.push_back(notice.reason);
    return result;
  }

  /// Each event is one that was kept, as it was, under its old position.
  static void expect_true(const std::vector<OutboxEvent>& events) {
    for (const OutboxEvent& each : events) {
      EXPECT_EQ(each.body, large(each.topic, each.sequence).body) << each.topic << each.sequence;
      EXPECT_EQ(each.topic[0], static_cast<char>('a' + each.position % 3)) << each.position;
      EXPECT_EQ(each.sequence, each.topic[0] == 'a' ? each.position / 3 : each.position / 3 + 1);
    }
  }

  testing::OutboxClock clock_;
  config::RetentionClock ages_{clock_};
  const testing::OutboxFolder folder_;
};

TEST_F(OutboxDamage, AByteInTheMiddleOfTheLogCostsItsBlockAndTheIdentity) {
  keep(104);
  std::string identity;
  {
    const std::string bytes = bytes_of(files("WATERMARK").at(0));
    const auto watermark = decode_watermark(bytes.substr(0, kWatermarkBytes));
    ASSERT_TRUE(watermark);
    identity = watermark->identity;
  }
  const fs::path log = files(".log").back();
  const std::string before = bytes_of(log);
  flip(log, before.size() / 2);
  const std::string damaged = bytes_of(log);

  const auto outbox = open();
  const auto notices = outbox->take_notices();
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_EQ(notices[0].reason, "outbox_behind");
  EXPECT_THAT(notices[0].text, HasSubstr("could not"));
  EXPECT_NE(outbox->identity(), identity);
  const auto left = all_events(*outbox);
  EXPECT_GE(left.size(), 60U) << "a block of the log has 32 KiB";
  EXPECT_LT(left.size(), 104U);
  expect_true(left);
  EXPECT_EQ(outbox->append(large("a/", outbox->last_sequence("a/") + 1)), 105U)
      << "no position is given out again";
  const auto aside = files("damaged-");
  ASSERT_EQ(aside.size(), 1U);
  EXPECT_EQ(bytes_of(aside[0] / log.filename()), damaged) << "the damaged file is kept as it was";
}

TEST_F(OutboxDamage, IsOnlyOnceAnother) {
  keep(30);
  flip(files(".log").back(), 9000);
  std::string identity;
  {
    const auto outbox = open();
    EXPECT_THAT(reasons(*outbox), ElementsAre("outbox_behind"));
    identity = outbox->identity();
    outbox->append(large("z/", 1));
  }
  for (int start = 0; start < 3; ++start) {
    const auto outbox = open();
    EXPECT_THAT(reasons(*outbox), IsEmpty());
    EXPECT_EQ(outbox->identity(), identity);
    EXPECT_EQ(outbox->last_sequence("z/"), 1U);
  }
}

TEST_F(OutboxDamage, ATornEndOfTheLogThatNobodyWasToldOfIsNone) {
  keep(20);
  const fs::path log = files(".log").back();
  // What a power cut may leave behind the last write that was synced.
  write(log, bytes_of(log) + std::string("\x12\x34\x56\x78\x10\x27\x01half a record", 19));
  const auto outbox = open();
  EXPECT_THAT(reasons(*outbox), IsEmpty());
  EXPECT_THAT(all_events(*outbox), SizeIs(20));
}

TEST_F(OutboxDamage, WhatWasNotPublishedYetIsPublishedAfterADamage) {
  keep(40, /*acknowledged=*/false);
  const fs::path log = files(".log").back();
  flip(log, bytes_of(log).size() - 500);
  const auto outbox = open();
  EXPECT_EQ(outbox->unacknowledged(100).size(), all_events(*outbox).size());
}

// Each of the files that RocksDB needs, damaged or gone; there are tables and a log.
TEST_F(OutboxDamage, NoFileOfTheDatabaseIsNeededToReadTheOthers) {
  keep(900, /*acknowledged=*/true, /*tables=*/2);
  ASSERT_GE(files(".sst").size(), 2U);
  const fs::path pristine = folder_.path() / "pristine";
  fs::copy(folder_.outbox(), pristine, fs::copy_options::recursive);
  const auto again = [&] {
    fs::remove_all(folder_.outbox());
    fs::copy(pristine, folder_.outbox(), fs::copy_options::recursive);
  };
  const std::map<std::string, std::string> all = {
      {"CURRENT", "CURRENT"}, {"MANIFEST", "MANIFEST-"}, {"table", ".sst"}, {"log", ".log"}};
  for (const auto& [name, pattern] : all) {
    for (const bool gone : {true, false}) {
      SCOPED_TRACE(name + (gone ? " gone" : " damaged"));
      again();
      const fs::path file = files(pattern).at(0);
      const std::size_t bytes = bytes_of(file).size();
      if (gone) {
        fs::remove(file);
      } else {
        flip(file, bytes / 2);
      }
      auto outbox = open();
      std::vector<OutboxEvent> left;
      for (int attempt = 0;; ++attempt) {
        try {
          left = all_events(*outbox);
          break;
        } catch (const OutboxError&) {
          ASSERT_LT(attempt, 2) << "damage that is met later ends";
        }
      }
      expect_true(left);
      const auto told = reasons(*outbox);
      // The end of a manifest may be forgotten without a loss.
      if (name != "MANIFEST" || gone) {
        EXPECT_EQ(told.size(), 1U);
      }
      const std::size_t lost = 900 - left.size();
      if (pattern == ".sst" || pattern == ".log") {
        EXPECT_GT(lost, 0U);
        if (!gone) {
          EXPECT_LT(lost, 40U) << "a block, not a file";
        }
        EXPECT_LE(lost, bytes / 200) << "no more than the file had";
      } else {
        EXPECT_EQ(lost, 0U);
      }
      const std::uint64_t next = outbox->append(large("z/", 1));
      EXPECT_EQ(next, 901U);
      outbox.reset();
      EXPECT_EQ(all_events(*open()).size(), left.size() + 1);
    }
  }
}

TEST_F(OutboxDamage, AnEndOfTheManifestThatIsForgottenIsSeen) {
  keep(900);
  // RocksDB takes a last record that is longer than the file for one that was being written: the table that
  // it names is forgotten, and deleted.
  const fs::path manifest = files("MANIFEST-").at(0);
  const std::string bytes = bytes_of(manifest);
  bool told_incomplete = false;
  const fs::path pristine = folder_.path() / "pristine";
  fs::copy(folder_.outbox(), pristine, fs::copy_options::recursive);
  for (std::size_t cut = 1; cut < std::min<std::size_t>(bytes.size(), 400); cut += 37) {
    fs::remove_all(folder_.outbox());
    fs::copy(pristine, folder_.outbox(), fs::copy_options::recursive);
    write(manifest, bytes.substr(0, bytes.size() - cut));
    const auto outbox = open();
    const auto told = reasons(*outbox);
    if (told.empty()) continue;
    told_incomplete = told_incomplete || told[0] == "outbox_incomplete" || told[0] == "outbox_behind" ||
                      told[0] == "outbox_unreadable";
    EXPECT_THAT(all_events(*outbox), SizeIs(900)) << "its table was there";
  }
  EXPECT_TRUE(told_incomplete);
}

// Whatever bit of whatever file: it is told, or nothing that is shown is another.
TEST_F(OutboxDamage, EveryFlippedBitIsToldOrChangesNothing) {
  keep(300);
  const fs::path pristine = folder_.path() / "pristine";
  fs::copy(folder_.outbox(), pristine, fs::copy_options::recursive);
  std::string identity;
  {
    const auto outbox = open();
    identity = outbox->identity();
    ASSERT_EQ(all_events(*outbox).size(), 300U);
  }
  std::vector<fs::path> names;
  for (const auto& entry : fs::directory_iterator(pristine))
    if (entry.file_size() > 0) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  std::mt19937_64 random(20260801);
  int told = 0;
  for (int round = 0; round < 60; ++round) {
    fs::remove_all(folder_.outbox());
    fs::copy(pristine, folder_.outbox(), fs::copy_options::recursive);
    const fs::path file = folder_.outbox() / names[random() % names.size()];
    const std::size_t at = random() % fs::file_size(file);
    const int bit = static_cast<int>(random() % 8);
    SCOPED_TRACE(file.filename().string() + " byte " + std::to_string(at) + " bit " + std::to_string(bit));
    flip(file, at, bit);
    auto outbox = open();
    std::vector<OutboxEvent> left;
    for (int attempt = 0; attempt < 3; ++attempt) {
      try {
        left = all_events(*outbox);
        outbox->prune(24h);
        break;
      } catch (const OutboxError&) {
      }
    }
    expect_true(left);
    const auto notices = reasons(*outbox);
    if (notices.empty()) {
      EXPECT_EQ(left.size(), 300U);
      EXPECT_EQ(outbox->identity(), identity);
    } else {
      ++told;
      EXPECT_NE(outbox->identity(), identity);
      EXPECT_GE(left.size(), 250U);
    }
    EXPECT_EQ(outbox->append(large("z/", 1)), 301U);
  }
  EXPECT_GT(told, 5);
}

// A table ends with what is not an event: numbers, indexes, and what finds them.
TEST_F(OutboxDamage, WhicheverBlockOfATablesEndIsDamagedTheOthersAreRead) {
  keep(900);
  open().reset();
  const fs::path pristine = folder_.path() / "pristine";
  fs::copy(folder_.outbox(), pristine, fs::copy_options::recursive);
  const fs::path table = files(".sst").back();
  const std::size_t size = fs::file_size(table);
  for (std::size_t behind = 300; behind < std::min<std::size_t>(size, 40'000); behind += 500) {
    SCOPED_TRACE(behind);
    fs::remove_all(folder_.outbox());
    fs::copy(pristine, folder_.outbox(), fs::copy_options::recursive);
    flip(table, size - behind);
    const auto outbox = open();
    std::vector<OutboxEvent> left;
    for (int attempt = 0; attempt < 3 && left.empty(); ++attempt) {
      try {
        left = all_events(*outbox);
      } catch (const OutboxError&) {
      }
    }
    expect_true(left);
    // Of a table that does not say where its blocks are, nothing is read.
    EXPECT_GE(left.size(), behind < 3000 ? 800U : 880U);
  }
}

TEST_F(OutboxDamage, ADamagedBlockThatIsMetLaterIsSetAsideAsWell) {
  keep(900);
  auto outbox = open();
  outbox->take_notices();
  const std::string identity = outbox->identity();
  const fs::path table = files(".sst").at(0);
  flip(table, bytes_of(table).size() / 3);
  // Whoever meets it hears of it, and then everybody goes on.
  EXPECT_THROW(all_events(*outbox), OutboxError);
  EXPECT_THROW(outbox->last_sequence("a/"), OutboxError) << "numbers have to be counted again";
  EXPECT_THAT(reasons(*outbox), ElementsAre("outbox_unreadable"));
  EXPECT_NE(outbox->identity(), identity);
  const auto left = all_events(*outbox);
  EXPECT_GE(left.size(), 860U);
  expect_true(left);
  EXPECT_EQ(outbox->append(large("a/", outbox->last_sequence("a/") + 1)), 901U);
  outbox->acknowledge(1201);
  outbox->prune(24h);
  outbox.reset();
  EXPECT_THAT(reasons(*open()), IsEmpty());
}

TEST_F(OutboxDamage, SequencesThatWereCountedBeforeAreNotTakenForOthers) {
  keep(900);
  auto outbox = open();
  const std::uint64_t next = outbox->last_sequence("a/") + 1;
  flip(files(".sst").at(0), 20'000);
  EXPECT_THROW(all_events(*outbox), OutboxError);
  EXPECT_THROW(outbox->append(large("a/", next)), OutboxError);
  EXPECT_EQ(outbox->append(large("a/", outbox->last_sequence("a/") + 1)), 901U);
}

TEST_F(OutboxDamage, WithoutItsDatabaseItBeginsAnewBehindWhatWasKept) {
  keep(20);
  for (const auto& entry : fs::directory_iterator(folder_.outbox()))
    if (entry.path().filename() != "WATERMARK") fs::remove(entry.path());
  const auto outbox = open();
  EXPECT_THAT(reasons(*outbox), ElementsAre("outbox_missing"));
  EXPECT_THAT(all_events(*outbox), IsEmpty());
  EXPECT_EQ(outbox->last_position(), 20U);
  EXPECT_EQ(outbox->append(large("a/", 1)), 21U);
}

TEST_F(OutboxDamage, AFolderThatIsTakenAwayWhileItIsOpenIsToldAndMadeAnew) {
  for (const bool moved : {false, true}) {
    keep(9);
    auto outbox = open();
    outbox->take_notices();
    const std::string identity = outbox->identity();
    if (moved) {
      fs::rename(folder_.outbox(), folder_.path() / "moved");
    } else {
      fs::remove_all(folder_.outbox());
    }
    EXPECT_THROW(outbox->refresh(), OutboxError);
    EXPECT_THROW(outbox->refresh(), OutboxError) << "numbers have to be counted again";
    outbox->refresh();
    EXPECT_THAT(reasons(*outbox), ElementsAre("outbox_missing"));
    EXPECT_NE(outbox->identity(), identity);
    EXPECT_EQ(outbox->last_sequence("a/"), 0U);
    outbox->append(large("a/", 1));
    outbox.reset();
    EXPECT_THAT(all_events(*open()), SizeIs(1)) << "it lies where it belongs";
    fs::remove_all(folder_.outbox());
    if (moved) {
      fs::rename(folder_.path() / "moved", folder_.outbox());
      EXPECT_THAT(all_events(*open()), SizeIs(9)) << "and what was there is as it was";
    }
  }
}

TEST_F(OutboxDamage, AFolderThatIsTakenAwayIsToldAlsoIfNoneCanBeMadeAtFirst) {
  keep(9);
  const auto outbox = open();
  outbox->take_notices();
  fs::remove_all(folder_.outbox());
  std::ofstream(folder_.outbox()) << "in its place";
  for (int i = 0; i < 3; ++i) EXPECT_THROW(outbox->refresh(), OutboxError);
  fs::remove(folder_.outbox());
  EXPECT_THROW(outbox->refresh(), OutboxError) << "numbers have to be counted again";
  outbox->refresh();
  EXPECT_THAT(reasons(*outbox), ElementsAre("outbox_missing"));
  EXPECT_EQ(outbox->append(large("a/", 1)), 1U);
  EXPECT_THAT(reasons(*outbox), IsEmpty()) << "once";
}

TEST_F(OutboxDamage, WhatWasAcknowledgedThereIsNotHere) {
  keep(3, /*acknowledged=*/false);
  const auto outbox = open();
  ASSERT_THAT(outbox->unacknowledged(9), SizeIs(3));
  fs::remove_all(folder_.outbox());
  const std::vector<std::uint64_t> published = {1, 2, 3};
  ASSERT_THROW(outbox->acknowledge(published), OutboxError) << "it cannot be written down";
  ASSERT_THROW(outbox->refresh(), OutboxError);
  outbox->refresh();
  ASSERT_EQ(outbox->append(large("a/", 1)), 1U);
  EXPECT_THAT(outbox->unacknowledged(9), SizeIs(1)) << "another event at the same position";
}

TEST_F(OutboxDamage, AnOlderCopyOfTheDatabaseIsNotTheSame) {
  keep(10);
  const fs::path copy = folder_.path() / "copy";
  fs::copy(folder_.outbox(), copy, fs::copy_options::recursive);
  keep(10);
  fs::copy_file(folder_.outbox() / "WATERMARK", copy / "WATERMARK", fs::copy_options::overwrite_existing);
  fs::remove_all(folder_.outbox());
  fs::rename(copy, folder_.outbox());
  const auto outbox = open();
  EXPECT_THAT(reasons(*outbox), ElementsAre("outbox_behind"));
  EXPECT_THAT(all_events(*outbox), SizeIs(10));
  EXPECT_EQ(outbox->append(large("z/", 1)), 21U);
}

TEST_F(OutboxDamage, AnotherDatabaseUnderTheWatermarkIsNotTheSame) {
  keep(10);
  const std::string watermark = bytes_of(folder_.outbox() / "WATERMARK");
  fs::remove_all(folder_.outbox());
  keep(15);
  write(folder_.outbox() / "WATERMARK", watermark);
  const auto outbox = open();
  EXPECT_THAT(reasons(*outbox), ElementsAre("outbox_foreign"));
  EXPECT_THAT(all_events(*outbox), SizeIs(15));
  EXPECT_THAT(files("damaged-"), IsEmpty()) << "nothing is damaged";
}

TEST_F(OutboxDamage, NothingVouchesWithoutAWatermark) {
  keep(10);
  std::string identity;
  {
    const auto outbox = open();
    identity = outbox->identity();
  }
  const fs::path file = folder_.outbox() / "WATERMARK";
  flip(file, 30);
  {
    const auto outbox = open();
    EXPECT_THAT(reasons(*outbox), IsEmpty()) << "the other slot says the same";
    EXPECT_EQ(outbox->identity(), identity);
  }
  flip(file, 30);
  flip(file, 4096 + 30);
  {
    const auto outbox = open();
    EXPECT_THAT(reasons(*outbox), ElementsAre("outbox_watermark"));
    EXPECT_THAT(all_events(*outbox), SizeIs(10));
    EXPECT_NE(outbox->identity(), identity);
    identity = outbox->identity();
  }
  EXPECT_EQ(open()->identity(), identity);
  fs::remove(file);
  EXPECT_THAT(reasons(*open()), ElementsAre("outbox_watermark"));
}

TEST_F(OutboxDamage, KeepsAFewDamagedFoldersAndNoneWhenTheDiskIsFull) {
  for (int i = 0; i < 6; ++i) {
    clock_.passed += 1s;
    keep(30);
    auto outbox = open();
    fs::path database = folder_.outbox();
    for (const auto& entry : fs::directory_iterator(database))
      if (entry.path().filename().string().starts_with("store-")) database = entry.path();
    outbox.reset();
    for (const auto& entry : fs::recursive_directory_iterator(database))
      if (entry.path().filename() == "CURRENT") write(entry.path(), "nonsense\n");
    EXPECT_THAT(reasons(*open()), ElementsAre("outbox_unreadable")) << i;
  }
  EXPECT_THAT(files("damaged-"), SizeIs(3));
  // As much is to be kept free as this disk never has: what is no event goes first.
  const auto outbox = open_rocksdb_outbox(folder_.outbox(), ages_, std::uintmax_t{1} << 60);
  EXPECT_THROW(outbox->append(large("z/", 1)), OutboxError);
  EXPECT_THAT(reasons(*outbox), ElementsAre("outbox_space", "outbox_space", "outbox_space"));
  EXPECT_THAT(files("damaged-"), IsEmpty());
}

TEST_F(OutboxDamage, AReplacementThatWasInterruptedIsFinished) {
  keep(30);
  const fs::path pristine = folder_.path() / "pristine";
  fs::copy(folder_.outbox(), pristine, fs::copy_options::recursive);
  flip(files(".log").back(), 9000);
  std::size_t left = 0;
  {
    const auto outbox = open();
    left = all_events(*outbox).size();
  }
  // The new one is in its place; the old files are not set aside yet, and the watermark is that of before.
  for (const auto& entry : fs::directory_iterator(pristine))
    fs::copy_file(entry.path(), folder_.outbox() / entry.path().filename(),
                  fs::copy_options::overwrite_existing);
  fs::create_directories(folder_.outbox() / "store-2.tmp");
  std::ofstream(folder_.outbox() / "store-2.tmp" / "CURRENT") << "half";
  const auto outbox = open();
  EXPECT_THAT(reasons(*outbox), ElementsAre("outbox_foreign"));
  EXPECT_THAT(all_events(*outbox), SizeIs(left));
  EXPECT_THAT(files("store-2"), IsEmpty());
  EXPECT_THAT(files(".log"), IsEmpty());
  EXPECT_THAT(files("damaged-"), SizeIs(2));
}

unsigned mode_of(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777U;
}

TEST_F(OutboxDamage, IsItsOwnersAlone) {
  const auto expect_private = [&] {
    EXPECT_EQ(mode_of(folder_.outbox()), 0700U);
    int files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.outbox())) {
      EXPECT_EQ(mode_of(entry.path()), entry.is_directory() ? 0700U : 0600U) << entry.path();
      ++files;
    }
    EXPECT_GT(files, 4);
  };
  const auto old = ::umask(0);
  {
    // Written until there are tables and logs of all ages.
    const auto outbox = open();
    for (std::uint64_t i = 1; i <= 600; ++i) outbox->append(large("a/", i));
    expect_private();
  }
  // As the programs of before left it.
  for (const auto& entry : fs::directory_iterator(folder_.outbox()))
    fs::permissions(entry.path(), fs::perms(0644));
  fs::permissions(folder_.outbox(), fs::perms(0755));
  flip(files(".log").back(), 100);
  open();
  expect_private();
  // A folder that others use, such as one that was named by mistake, stays as it is.
  fs::permissions(folder_.outbox(), fs::perms(0755));
  std::ofstream(folder_.outbox() / "letter.txt") << "hello";
  fs::permissions(folder_.outbox() / "letter.txt", fs::perms(0644));
  EXPECT_THAT(reasons(*open()), ElementsAre("outbox_mode"));
  EXPECT_EQ(mode_of(folder_.outbox()), 0755U);
  EXPECT_EQ(mode_of(folder_.outbox() / "letter.txt"), 0644U);
  EXPECT_EQ(mode_of(folder_.outbox() / "WATERMARK"), 0600U);
  ::umask(old);
}

/// What a layout without stamps has, by RocksDB itself.
std::map<std::uint64_t, std::string> bodies_of_layout_2(const fs::path& folder) {
  rocksdb::DB* opened = nullptr;
  EXPECT_TRUE(rocksdb::DB::OpenForReadOnly({}, folder.string(), &opened).ok());
  const std::unique_ptr<rocksdb::DB> db(opened);
  const auto number = [](const std::string& bytes, std::size_t at) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < 8; ++i) value = value << 8U | static_cast<unsigned char>(bytes.at(at + i));
    return value;
  };
  std::map<std::uint64_t, std::string> bodies;
  const std::unique_ptr<rocksdb::Iterator> entry(db->NewIterator({}));
  for (entry->Seek("e"); entry->Valid() && entry->key().starts_with("e"); entry->Next()) {
    const std::string value = entry->value().ToString();
    bodies[number(entry->key().ToString(), 1)] = value.substr(24 + number(value, 16));
  }
  return bodies;
}

TEST_F(OutboxDamage, TakesOverAnOutboxOfBefore) {
  const fs::path recorded = fs::path(VIGIL_SOURCE_DIR) / "tests/golden/outbox_layout_2";
  fs::create_directories(folder_.outbox());
  for (const auto& entry : fs::directory_iterator(recorded / "outbox")) {
    fs::copy_file(entry.path(), folder_.outbox() / entry.path().filename());
    fs::permissions(folder_.outbox() / entry.path().filename(), fs::perms(0644));
  }
  const auto truth = bodies_of_layout_2(folder_.outbox());
  std::ifstream committed(recorded / "committed");
  std::vector<std::string> lines;
  for (std::string line; std::getline(committed, line);) lines.push_back(line);
  ASSERT_GE(truth.size(), lines.size());
  std::string identity;
  {
    auto outbox = open();
    EXPECT_THAT(outbox->take_notices(), IsEmpty());
    identity = outbox->identity();
    const auto events = all_events(*outbox);
    ASSERT_EQ(events.size(), truth.size());
    std::set<std::string> names;
    for (const OutboxEvent& each : events) {
      EXPECT_EQ(each.body, truth.at(each.position));
      names.insert(each.topic + ' ' + std::to_string(each.sequence));
      outbox->acknowledge(each.position);
    }
    for (const std::string& line : lines) EXPECT_TRUE(names.contains(line)) << line;
    EXPECT_EQ(mode_of(folder_.outbox()), 0700U);
    EXPECT_EQ(mode_of(files(".log").at(0)), 0600U);
    EXPECT_EQ(fs::file_size(folder_.outbox() / "WATERMARK"), 8192U);
    EXPECT_EQ(outbox->prune(24h), 0U) << "it was made when this clock had not begun";
  }
  // Killed and damaged, it is seen as any other.
  const auto outbox = open();
  EXPECT_THAT(outbox->take_notices(), IsEmpty());
  EXPECT_EQ(outbox->identity(), identity);
  const auto topics = outbox->last_events(1).size();
  clock_.passed += 24h * 365;
  std::size_t pruned = 0;
  for (int i = 0; i < 3; ++i) pruned += outbox->prune(24h);
  EXPECT_EQ(pruned, truth.size() - topics);
}

TEST_F(OutboxDamage, AStepOfTheClockAcrossAStartErasesNothing) {
  const auto restart_at = [&](base::Duration ahead, base::Duration rest) {
    clock_.passed += rest;
    clock_.ahead = ahead;
    // A process of its own has a clock of its own.
    config::RetentionClock own(clock_);
    const auto outbox = open_rocksdb_outbox(folder_.outbox(), own);
    for (const OutboxEvent& each : outbox->unacknowledged(100)) outbox->acknowledge(each.position);
    std::size_t pruned = outbox->prune(24h);
    clock_.passed += 9min;
    pruned += outbox->prune(24h);
    return pruned;
  };
  {
    const auto outbox = open();
    for (std::uint64_t i = 1; i <= 10; ++i) outbox->append(event("a/", i, kStart));
  }
  EXPECT_EQ(restart_at(240h, 1min), 0U) << "ten days ahead";
  EXPECT_EQ(restart_at(-24h * 365 * 24, 1min), 0U) << "booted in 2002";
  EXPECT_EQ(restart_at(0h, 1min), 0U);
  EXPECT_EQ(restart_at(0h, 26h), 0U) << "not before it has lasted";
  config::RetentionClock ages(clock_);
  const auto outbox = open_rocksdb_outbox(folder_.outbox(), ages);
  ages.now();
  clock_.passed += 11min;
  EXPECT_EQ(outbox->prune(24h), 9U) << "a day has passed";
}

TEST(ReadErrors, LastWhenTheyComeForAMinute) {
  kv::ReadErrors errors;
  EXPECT_FALSE(errors.lasts(kStart));
  EXPECT_FALSE(errors.lasts(kStart + 59s));
  EXPECT_TRUE(errors.lasts(kStart + 60s));
  EXPECT_FALSE(errors.lasts(kStart + 10min)) << "another one, after a while without any";
  EXPECT_FALSE(errors.lasts(kStart + 10min + 59s));
  EXPECT_TRUE(errors.lasts(kStart + 11min));
  EXPECT_TRUE(kv::is_unreadable(rocksdb::Status::IOError("000007.sst", "Input/output error")));
  EXPECT_FALSE(kv::is_unreadable(rocksdb::Status::IOError("000007.sst", "Too many open files")));
  EXPECT_FALSE(kv::is_damage(rocksdb::Status::IOError("000007.sst", "Input/output error")));
}

}  // namespace
}  // namespace vigil::actors
