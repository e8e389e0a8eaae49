// Why nothing was kept, in all stores; and folders of an older layout, which have no such notes yet.
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sealed_text.h"
#include "engine/kv/history/history_store.h"
#include "tests/engine/kv/history/history_pages.h"
#include "tests/temporary_folder.h"

namespace vigil::history {
namespace {

using namespace std::string_literals;
using ::testing::ElementsAre;
using testing::file_bytes;
using ::testing::HasSubstr;
using testing::is_whole;
using ::testing::IsEmpty;
using testing::kFirstHour;
using testing::kGate;
using testing::kHour;
using testing::kYard;
using testing::part_of;
using ::testing::SizeIs;
using testing::write_file;

constexpr std::int64_t kFirst = kFirstHour * kHour;
constexpr WallRange kEverything{INT64_MIN, INT64_MAX};

class HistoryNotes : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<HistoryStore> make() {
    if (GetParam() == "memory"s) return make_memory_history_store();
    HistoryOptions options;
    if (GetParam() == "sealed"s) options.master = master_;
    return open_history_store(folder_.path() / "history", options);
  }
  /// As after a start; what is in memory alone stays as it is.
  void start_again() {
    if (GetParam() == "memory"s) return;
    store_.reset();
    store_ = make();
  }
  void note(const CameraId& camera, std::int64_t from, std::int64_t to, std::uint8_t why) {
    const Note note{camera, {from, to}, why};
    store_->note({&note, 1});
  }

  const SecretKey master_ = SecretKey::random();
  TemporaryFolder folder_;
  std::unique_ptr<HistoryStore> store_ = make();
};

TEST_P(HistoryNotes, OutliveARestart) {
  store_->note({});
  note(kGate, 100, 200, 2);
  note(kGate, 400, 500, 2);
  note(kGate, 150, 450, 3);
  note(kYard, 100, 200, 1);
  for (int start = 0; start < 2; ++start) {
    EXPECT_THAT(store_->notes(kGate, {201, 420}),
                ElementsAre(Note{kGate, {150, 450}, 3}, Note{kGate, {400, 500}, 2}));
    EXPECT_THAT(store_->notes(kGate, kEverything), SizeIs(3));
    EXPECT_THAT(store_->notes(kYard, kEverything), ElementsAre(Note{kYard, {100, 200}, 1}));
    EXPECT_THAT(store_->notes({"nobody", ""}, kEverything), IsEmpty());
    EXPECT_THAT(store_->list(), IsEmpty()) << "there is no page";
    start_again();
  }
  note(kGate, 200, 399, 2);
  start_again();
  EXPECT_THAT(store_->notes(kGate, kEverything),
              ElementsAre(Note{kGate, {100, 500}, 2}, Note{kGate, {150, 450}, 3}));
  const Note backwards[] = {{kYard, {0, 5}, 1}, {kGate, {5, 4}, 1}};
  EXPECT_THROW(store_->note(backwards), std::invalid_argument);
  EXPECT_THAT(store_->notes(kYard, kEverything), SizeIs(1)) << "nothing of it counts";
}

TEST_P(HistoryNotes, GoWithWhatIsErasedAndDoNotComeBack) {
  note(kGate, 100, 500, 2);
  note(kYard, 100, 500, 2);
  const std::uint64_t id = store_->erase(kGate, {200, 299});
  for (int start = 0; start < 2; ++start) {
    EXPECT_THAT(store_->notes(kGate, kEverything),
                ElementsAre(Note{kGate, {100, 199}, 2}, Note{kGate, {300, 500}, 2}));
    EXPECT_THAT(store_->notes(kYard, kEverything), SizeIs(1));
    start_again();
  }
  note(kGate, 250, 320, 4);
  EXPECT_THAT(store_->notes(kGate, {250, 320}),
              ElementsAre(Note{kGate, {300, 500}, 2}, Note{kGate, {300, 320}, 4}));
  store_->finish_erasures();
  note(kGate, 210, 220, 4);
  EXPECT_THAT(store_->notes(kGate, {200, 299}), IsEmpty()) << "it is finished, and holds";
  // What is noted in its place.
  store_->forget_erasure(id, std::uint8_t{6});
  for (int start = 0; start < 2; ++start) {
    EXPECT_THAT(store_->erasures(), IsEmpty());
    EXPECT_THAT(store_->notes(kGate, {200, 299}), ElementsAre(Note{kGate, {200, 299}, 6}));
    start_again();
  }
  EXPECT_EQ(store_->put(part_of(kGate, kFirstHour, 0, 1, 1).part).pages, 1U);
  const std::uint64_t other = store_->erase(kGate, {150, 249});
  store_->finish_erasures();
  store_->forget_erasure(other, std::nullopt);
  EXPECT_THAT(store_->notes(kGate, {150, 299}), ElementsAre(Note{kGate, {250, 299}, 6}));
}

TEST_P(HistoryNotes, GoWithTheirHours) {
  store_->put(part_of(kGate, kFirstHour, 0, 1, 2).part);
  note(kGate, kFirst - 100, kFirst + 100, 2);
  note(kGate, kFirst + kHour, kFirst + kHour + 100, 2);
  const Expiry form[] = {{kGate, kFirstHour + 2, 1}};
  store_->retire(form);
  EXPECT_THAT(store_->notes(kGate, kEverything), SizeIs(2)) << "why all forms are missing";
  const Expiry before[] = {{kGate, kFirstHour}, {kYard, kFirstHour + 9}};
  EXPECT_EQ(store_->retire(before).pages, 0U);
  for (int start = 0; start < 2; ++start) {
    EXPECT_THAT(store_->notes(kGate, kEverything),
                ElementsAre(Note{kGate, {kFirst, kFirst + 100}, 2},
                            Note{kGate, {kFirst + kHour, kFirst + kHour + 100}, 2}));
    start_again();
  }
  const Expiry all[] = {{kGate, kFirstHour + 2}};
  store_->retire(all);
  start_again();
  EXPECT_THAT(store_->notes(kGate, kEverything), IsEmpty());
}

TEST_P(HistoryNotes, AnExpiryLeavesWhatItSays) {
  note(kGate, kFirst, kFirst + 100, 2);
  const Expiry over[] = {
      {kGate, kFirstHour + 1, std::nullopt, 0, Note{kGate, {kFirst - 50, kFirst + 200}, 1}}};
  for (int time = 0; time < 2; ++time) {
    store_->retire(over);
    start_again();
    EXPECT_THAT(store_->notes(kGate, kEverything), ElementsAre(Note{kGate, {kFirst - 50, kFirst + 200}, 1}))
        << "once, and again";
  }
  // What is erased is not told, nor by what is over.
  store_->erase(kGate, {kFirst, kFirst + 300});
  store_->retire(over);
  start_again();
  EXPECT_THAT(store_->notes(kGate, kEverything), ElementsAre(Note{kGate, {kFirst - 50, kFirst - 1}, 1}));
  const Expiry senseless[] = {{kGate, kFirstHour + 1, std::nullopt, 0, Note{kGate, {9, 8}, 1}}};
  EXPECT_THROW(store_->retire(senseless), std::invalid_argument);
}

TEST_P(HistoryNotes, AnOlderFolderOpensAndIsNewFromThenOn) {
  if (GetParam() == "memory"s) GTEST_SKIP() << "it has no folder";
  store_->put(part_of(kGate, kFirstHour, 0, 1, 2).part);
  store_.reset();
  const auto format = folder_.path() / "history" / "HISTORY";
  const std::string text = file_bytes(format);
  const std::string lines(base::unsealed(text).value());
  const std::string newest = "vigil history 3\n";
  ASSERT_TRUE(lines.starts_with(newest));
  const auto in_layout = [&](const std::string& layout) {
    write_file(format, base::sealed("vigil history " + layout + "\n" + lines.substr(newest.size())));
  };
  in_layout("2");
  store_ = make();
  EXPECT_TRUE(is_whole(*store_, kGate, 1, 0));
  EXPECT_THAT(store_->notes(kGate, kEverything), IsEmpty());
  note(kGate, 1, 5, 2);
  EXPECT_EQ(file_bytes(format), text) << "with its key, if it has one";
  // Of which the index knows, too.
  write_file(format, "");
  start_again();
  EXPECT_EQ(file_bytes(format), text);
  EXPECT_THAT(store_->notes(kGate, kEverything), SizeIs(1));
  store_.reset();
  for (const std::string layout : {"1", "4", "22"}) {
    in_layout(layout);
    try {
      make();
      ADD_FAILURE() << layout;
    } catch (const HistoryError& error) {
      EXPECT_THAT(error.what(), HasSubstr("another layout than this program knows (vigil history 3)"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, HistoryNotes, ::testing::Values("memory", "plain", "sealed"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace vigil::history
