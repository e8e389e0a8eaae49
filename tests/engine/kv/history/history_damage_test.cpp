// Files of a history that are damaged, cut, gone, or another's: what is left is read, nothing is read that is
// not what was kept, and the store opens.
#include <algorithm>
#include <functional>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/kv/history/history_store.h"
#include "tests/engine/kv/history/history_pages.h"
#include "tests/temporary_folder.h"

namespace vigil::history {
namespace {

using testing::file_bytes;
using testing::files_in;
using testing::flip;
using ::testing::HasSubstr;
using testing::is_whole;
using ::testing::IsEmpty;
using testing::kFirstHour;
using testing::kGate;
using testing::kHour;
using testing::kSecond;
using testing::kYard;
using testing::missing;
using testing::part_of;
using ::testing::SizeIs;
using testing::write_file;
namespace fs = std::filesystem;

constexpr WallRange kEver{INT64_MIN, INT64_MAX};

class HistoryDamage : public ::testing::TestWithParam<bool> {
 protected:
  HistoryDamage() {
    if (GetParam()) options_.master = SecretKey::random();
  }
  std::unique_ptr<HistoryStore> open() const {
    return open_history_store(folder_.path() / "history", options_);
  }
  fs::path path(const std::string& name) const { return folder_.path() / "history" / name; }

  /// Pages 1 to 6 of two cameras, in two parts each.
  void keep() const {
    const auto store = open();
    for (const CameraId& camera : {kGate, kYard}) {
      store->put(part_of(camera, kFirstHour, 0, 1, 3).part);
      store->put(part_of(camera, kFirstHour, 30, 4, 3).part);
    }
  }
  std::vector<fs::path> parts() const { return files_in(path("parts"), ".part"); }

  static std::size_t count(const HistoryStore& store, const CameraId& camera, Missing what) {
    std::size_t result = 0;
    for (std::uint64_t page = 1; page <= 6; ++page)
      for (const auto layer : {std::uint16_t{0}, std::uint16_t{2}}) {
        const Missing is = missing(store, camera, page, layer);
        result += is == what ? 1U : 0U;
        EXPECT_EQ(is == Missing::no, is_whole(store, camera, page, layer)) << "as it was, or not at all";
      }
    return result;
  }

  HistoryOptions options_;
  TemporaryFolder folder_;
};

TEST_P(HistoryDamage, ABitOfAPageIsThatPagesAlone) {
  keep();
  const fs::path part = parts().at(0);
  flip(part, 5000);
  const auto store = open();
  EXPECT_THAT(store->list().at(0).gaps, IsEmpty()) << "nobody has looked yet";
  EXPECT_EQ(count(*store, kGate, Missing::damaged), 1U);
  EXPECT_EQ(count(*store, kGate, Missing::no), 11U);
  EXPECT_EQ(count(*store, kYard, Missing::no), 12U);
  EXPECT_EQ(store->verify(std::nullopt, 1), (VerifyReport{11, 1}));
  EXPECT_EQ(store->verify(kYard, 1), (VerifyReport{6, 0}));
  const auto list = store->list();
  EXPECT_EQ(list.at(0).pages, 6U);
  ASSERT_THAT(list[0].gaps, SizeIs(1));
  EXPECT_EQ(list[0].gaps[0].from, kFirstHour * kHour + 10 * kSecond);
  // Whole again.
  flip(part, 5000);
  EXPECT_EQ(count(*store, kGate, Missing::no), 12U);
  EXPECT_THAT(store->list().at(0).gaps, IsEmpty());
}

// Pages 1 to 6 as forms: of 0, of 1 (2 and 3), of 2, of 3.
TEST_P(HistoryDamage, FormsOfOnePageAreCountedAsOne) {
  keep();
  auto store = open();
  EXPECT_EQ(store->verify(kGate, 2), (VerifyReport{4, 0}));
  EXPECT_EQ(store->verify(std::nullopt, 8), (VerifyReport{2, 0})) << "each camera's are its own";
  // The second record of the first part is of page 2, the third of page 3.
  store.reset();
  flip(parts().at(0), 5000);
  store = open();
  EXPECT_EQ(store->verify(kGate, 1), (VerifyReport{5, 1}));
  EXPECT_EQ(store->verify(kGate, 2), (VerifyReport{3, 1}));
  EXPECT_EQ(store->verify(std::nullopt, 8), (VerifyReport{1, 1}));
  // More forms of the same.
  store.reset();
  flip(parts().at(0), 8000);
  store = open();
  EXPECT_EQ(store->verify(kGate, 1), (VerifyReport{4, 2}));
  EXPECT_EQ(store->verify(kGate, 2), (VerifyReport{3, 1}));
}

TEST_P(HistoryDamage, OfACutFileWhatIsBeforeTheCutIsRead) {
  keep();
  const std::string bytes = file_bytes(parts().at(1));
  for (const std::size_t size :
       {bytes.size() - 1, std::size_t{12000}, std::size_t{4096}, std::size_t{100}, std::size_t{0}}) {
    write_file(parts().at(1), bytes.substr(0, size));
    const auto store = open();
    const std::size_t damaged = count(*store, kGate, Missing::damaged);
    EXPECT_EQ(damaged + count(*store, kGate, Missing::no), 12U);
    // Records of a little more than 3000 bytes.
    EXPECT_EQ(damaged, 6 - std::min<std::size_t>(6, size / 3300)) << size;
    EXPECT_EQ(count(*store, kYard, Missing::no), 12U);
    EXPECT_EQ(store->list().at(0).gaps.size(), damaged == 6 ? 3U : (damaged > 0 ? 3U : 0U)) << size;
  }
}

TEST_P(HistoryDamage, OfAFileThatIsGonePagesAreKnownAsDamaged) {
  keep();
  fs::remove(parts().at(1));
  auto store = open();
  EXPECT_EQ(count(*store, kGate, Missing::damaged), 6U);
  EXPECT_EQ(count(*store, kGate, Missing::no), 6U);
  EXPECT_THAT(store->list().at(0).gaps, SizeIs(3));
  EXPECT_EQ(store->list().at(0).pages, 6U);
  // They go as others do.
  const Expiry over[] = {{kGate, kFirstHour + 1}};
  EXPECT_EQ(store->retire(over).pages, 6U);
  store.reset();
  EXPECT_THAT(open()->list(), SizeIs(1));
}

TEST_P(HistoryDamage, PagesInAnothersPlaceAreNone) {
  keep();
  const auto files = parts();
  // The same pages of another camera, and other pages of the same one.
  fs::copy_file(files.at(2), files.at(0), fs::copy_options::overwrite_existing);
  fs::copy_file(files.at(2), files.at(3), fs::copy_options::overwrite_existing);
  const auto store = open();
  EXPECT_EQ(count(*store, kGate, Missing::damaged), 6U);
  EXPECT_EQ(count(*store, kYard, Missing::damaged), 6U);
  EXPECT_EQ(count(*store, kYard, Missing::no), 6U);
}

TEST_P(HistoryDamage, DamagedPagesStayDamagedWhereOthersAreErased) {
  keep();
  flip(parts().at(0), 5000);
  auto store = open();
  const std::int64_t begin = kFirstHour * kHour;
  store->erase(kGate, {begin, begin + kSecond});
  EXPECT_EQ(store->finish_erasures().pages, 1U);
  for (int start = 0; start < 2; ++start) {
    EXPECT_EQ(count(*store, kGate, Missing::damaged), 1U);
    EXPECT_EQ(count(*store, kGate, Missing::absent), 2U);
    EXPECT_EQ(count(*store, kGate, Missing::no), 9U);
    store.reset();
    store = open();
  }
}

// Each file of the index, damaged, cut or gone.
TEST_P(HistoryDamage, TheIndexIsMadeAnewOfTheParts) {
  keep();
  const std::int64_t begin = kFirstHour * kHour;
  {
    const auto store = open();
    // Of a page that is there, and of some that may still come.
    store->erase(kYard, {begin, begin + kSecond});
    store->finish_erasures();
  }
  const fs::path pristine = folder_.path() / "pristine";
  fs::copy(path(""), pristine, fs::copy_options::recursive);
  const std::vector<std::function<void(const fs::path&)>> harms = {
      [](const fs::path& file) { fs::remove(file); }, [](const fs::path& file) { write_file(file, ""); },
      [](const fs::path& file) { flip(file, file_bytes(file).size() / 2); },
      [](const fs::path& file) { flip(file, file_bytes(file).size() / 4, 7); },
      [](const fs::path& file) {
        write_file(file, file_bytes(file).substr(0, file_bytes(file).size() * 2 / 3));
      }};
  std::vector<std::string> names;
  for (const fs::path& file : files_in(pristine / "index"))
    if (fs::file_size(file) > 0) names.push_back(file.filename());
  ASSERT_GE(names.size(), 4U);
  for (const std::string& name : names) {
    for (std::size_t harm = 0; harm < harms.size(); ++harm) {
      SCOPED_TRACE(name + ", harm " + std::to_string(harm));
      fs::remove_all(path(""));
      fs::copy(pristine, path(""), fs::copy_options::recursive);
      harms[harm](path("index") / name);
      const auto store = open();
      EXPECT_EQ(count(*store, kGate, Missing::no), 12U);
      EXPECT_EQ(count(*store, kYard, Missing::no), 10U);
      EXPECT_EQ(missing(*store, kYard, 1), Missing::absent);
      EXPECT_EQ(store->put(part_of(kYard, kFirstHour, 0, 7, 1).part), (PutReport{0, 1})) << "it still holds";
      EXPECT_EQ(store->last_page(kGate), 6U);
    }
  }
  fs::remove_all(path("index"));
  const auto store = open();
  EXPECT_EQ(count(*store, kGate, Missing::no), 12U);
  EXPECT_EQ(count(*store, kYard, Missing::absent), 2U);
}

TEST_P(HistoryDamage, AnErasureOutlivesEitherPlaceWhereItIsKept) {
  keep();
  open()->erase(kYard, kEver);
  write_file(path("ERASURES"), "x");
  EXPECT_EQ(count(*open(), kYard, Missing::absent), 12U);
  open()->erase(kGate, kEver);
  fs::remove_all(path("index"));
  const auto store = open();
  EXPECT_EQ(count(*store, kGate, Missing::absent), 12U);
  EXPECT_THAT(store->erasures(), SizeIs(2));
}

TEST_P(HistoryDamage, WhateverBitOfWhateverFileIsFlipped) {
  keep();
  const fs::path pristine = folder_.path() / "pristine";
  fs::copy(path(""), pristine, fs::copy_options::recursive);
  std::vector<fs::path> names;
  for (const fs::path& file : files_in(pristine))
    if (fs::file_size(file) > 0) names.push_back(fs::relative(file, pristine));
  std::mt19937_64 random(20261129);
  for (int round = 0; round < 60; ++round) {
    fs::remove_all(path(""));
    fs::copy(pristine, path(""), fs::copy_options::recursive);
    const fs::path file = path("") / names[random() % names.size()];
    const std::size_t at = random() % fs::file_size(file);
    SCOPED_TRACE(file.string() + " byte " + std::to_string(at));
    flip(file, at, static_cast<unsigned>(random() % 8));
    const auto store = open();
    const std::size_t whole = count(*store, kGate, Missing::no) + count(*store, kYard, Missing::no);
    EXPECT_GE(whole, 23U);
    EXPECT_EQ(whole + count(*store, kGate, Missing::damaged) + count(*store, kYard, Missing::damaged), 24U);
    EXPECT_EQ(store->put(part_of(kGate, kFirstHour, 60, 7, 1).part).pages, 1U);
  }
}

TEST_P(HistoryDamage, WhatAPutLeftBehindIsWholeOrGone) {
  keep();
  const std::string whole = file_bytes(parts().at(3));
  // Its entry is not in the index, as if the process had ended before.
  fs::remove_all(path("index"));
  write_file(parts().at(3), whole.substr(0, whole.size() - 4096));
  const auto store = open();
  EXPECT_EQ(count(*store, kYard, Missing::absent), 6U);
  EXPECT_EQ(count(*store, kYard, Missing::no), 6U);
  EXPECT_THAT(parts(), SizeIs(3)) << "half a part is of no use";
}

TEST_P(HistoryDamage, TheMasterKeyIsKnownAgain) {
  keep();
  const auto fault = [&](const std::optional<SecretKey>& master) -> std::string {
    HistoryOptions options = options_;
    options.master = master;
    try {
      open_history_store(path(""), options);
      return "opened";
    } catch (const HistoryError& error) {
      return error.what();
    }
  };
  const std::string other = fault(SecretKey::random());
  if (GetParam()) {
    EXPECT_THAT(other, HasSubstr("was encrypted by another master key"));
    EXPECT_THAT(fault(std::nullopt), HasSubstr("is encrypted, and no key file is named"));
  } else {
    EXPECT_THAT(other, HasSubstr("was begun without encryption"));
  }
  EXPECT_EQ(std::count(other.begin(), other.end(), '\n'), 0);
  EXPECT_EQ(count(*open(), kGate, Missing::no), 12U) << "it has changed nothing";
}

TEST_P(HistoryDamage, WhatTheFolderIsStandsInTwoPlaces) {
  keep();
  write_file(path("HISTORY"), "vigil history 2\nencryption none\n");
  EXPECT_EQ(count(*open(), kGate, Missing::no), 12U);
  fs::remove_all(path("index"));
  EXPECT_EQ(count(*open(), kGate, Missing::no), 12U);
  // Both at once.
  fs::remove_all(path("index"));
  fs::remove(path("HISTORY"));
  try {
    open();
    ADD_FAILURE();
  } catch (const HistoryError& error) {
    EXPECT_THAT(error.what(), HasSubstr("(HISTORY) is damaged or gone"));
  }
}

TEST_P(HistoryDamage, WhoeverLosesTheIndexLosesNotesAndNothingElse) {
  keep();
  const Note note{kGate, {0, 5}, 2};
  open()->note({&note, 1});
  EXPECT_THAT(open()->notes(kGate, kEver), SizeIs(1));
  fs::remove_all(path("index"));
  const auto store = open();
  EXPECT_THAT(store->notes(kGate, kEver), IsEmpty());
  EXPECT_EQ(count(*store, kGate, Missing::no), 12U);
}

TEST_P(HistoryDamage, OneAtATimeHasIt) {
  const auto store = open();
  try {
    open();
    ADD_FAILURE();
  } catch (const HistoryError& error) {
    EXPECT_THAT(error.what(), HasSubstr("is locked: another process has it open"));
  }
}

TEST_P(HistoryDamage, FilesThatAreOpenAreBounded) {
  options_.most_open_files = 4;
  const auto store = open();
  for (std::uint64_t page = 1; page <= 30; ++page)
    store->put(part_of(kGate, kFirstHour, static_cast<int>(10 * page), page, 1).part);
  for (std::uint64_t page = 1; page <= 30; ++page) EXPECT_TRUE(is_whole(*store, kGate, page, 0));
  std::size_t parts = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    parts += fs::read_symlink(entry.path(), error).extension() == ".part" ? 1U : 0U;
  }
  EXPECT_EQ(parts, 4U);
}

TEST_P(HistoryDamage, OthersMayNotLookIntoIt) {
  keep();
  const auto mode = [](const fs::path& of) {
    return fs::status(of).permissions() & (fs::perms::group_all | fs::perms::others_all);
  };
  EXPECT_EQ(mode(path("")), fs::perms::none);
  for (const fs::path& part : parts()) EXPECT_EQ(mode(part), fs::perms::none);
}

INSTANTIATE_TEST_SUITE_P(PlainAndSealed, HistoryDamage, ::testing::Bool());

}  // namespace
}  // namespace vigil::history
