// Which clips show what a camera saw: by what they say of themselves, as long as they are kept.
#include "actors/evidence/clip_index.h"

#include <filesystem>
#include <fstream>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/evidence/evidence_store.h"
#include "tests/actors/evidence_files.h"
#include "tests/actors/fakes.h"
#include "tests/actors/times.h"
#include "tests/media/clip.h"
#include "tests/media/kept.h"

namespace vigil::actors {
namespace {

namespace fs = std::filesystem;
using namespace testing;
using ::testing::Eq;
using ::testing::Optional;

constexpr std::int64_t kSecond = 1'000'000'000;
const history::CameraId kNorth{"north", "gate"};
const history::CameraId kSouth{"south", "gate"};

/// Seconds after the tests' start.
std::int64_t at(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(kStart.time_since_epoch()).count() +
         static_cast<std::int64_t>(seconds * kSecond);
}

history::WallRange from_to(double from, double to) {
  return {at(from), at(to)};
}

std::string found(const Clips& clips, const history::CameraId& camera, double from, double to) {
  const auto shown = clips.showing(camera, from_to(from, to));
  return shown ? shown->clip : "";
}

void add(ClipIndex& index, const std::string& name, double from, double to,
         const history::CameraId& camera = kNorth) {
  index.add(name, {camera, from_to(from, to)}, name, name + ".jpg");
}

TEST(ClipIndex, WhatShowsMostIsNamed) {
  ClipIndex index;
  EXPECT_EQ(found(index, kNorth, 0, 100), "");
  add(index, "a", 10, 20);
  add(index, "b", 15, 40);
  add(index, "c", 50, 52);
  EXPECT_EQ(found(index, kNorth, 8, 18), "a");
  EXPECT_EQ(found(index, kNorth, 8, 30), "b");
  EXPECT_EQ(found(index, kNorth, 0, 100), "b");
  EXPECT_EQ(found(index, kNorth, 51, 51.5), "c") << "within it";
  const auto shown = index.showing(kNorth, from_to(12, 18));
  ASSERT_TRUE(shown.has_value());
  EXPECT_EQ(*shown, (ShownClip{"a", "a.jpg", at(10), 6 * kSecond}));
}

TEST(ClipIndex, WhatOnlyMeetsItShowsNothing) {
  ClipIndex index;
  add(index, "a", 10, 20);
  EXPECT_EQ(found(index, kNorth, 0, 10), "");
  EXPECT_EQ(found(index, kNorth, 20, 30), "");
  EXPECT_EQ(found(index, kNorth, 15, 15), "") << "no time";
  EXPECT_EQ(found(index, kNorth, 18, 12), "") << "backwards";
  EXPECT_EQ(index.showing(kNorth, {INT64_MIN, INT64_MAX})->clip, "a");
  EXPECT_FALSE(index.showing(kNorth, {INT64_MAX, INT64_MAX}));
}

TEST(ClipIndex, ALongOneThatBeganLongBeforeIsFound) {
  ClipIndex index;
  add(index, "hour", 0, 3600);
  for (int i = 1; i < 100; ++i) add(index, "s" + std::to_string(i), i * 10, i * 10 + 1);
  EXPECT_EQ(found(index, kNorth, 3598, 3700), "hour");
  EXPECT_EQ(found(index, kNorth, 995, 996), "hour");
  index.remove("s1");
  EXPECT_EQ(found(index, kNorth, 3598, 3700), "hour");
  add(index, "hour", 100, 101);
  EXPECT_EQ(found(index, kNorth, 3598, 3700), "");
  EXPECT_EQ(found(index, kNorth, 990.5, 996), "s99");
  // Of another camera, and before there is any time.
  add(index, "first", -1e9, 1e9, kSouth);
  EXPECT_EQ(index.showing(kSouth, {INT64_MIN, at(0)})->clip, "first");
  EXPECT_EQ(found(index, kNorth, 980.5, 981), "s98");
}

TEST(ClipIndex, OfEqualOnesTheEarlier) {
  ClipIndex index;
  add(index, "late", 14, 24);
  add(index, "early", 10, 20);
  EXPECT_EQ(found(index, kNorth, 0, 100), "early");
  EXPECT_EQ(found(index, kNorth, 15, 18), "early");
  add(index, "also", 10, 20);
  EXPECT_EQ(found(index, kNorth, 15, 18), "also") << "by name, where they begin at once";
}

TEST(ClipIndex, WhatHasGoneIsNotNamed) {
  ClipIndex index;
  add(index, "a", 10, 20);
  add(index, "b", 11, 20);
  index.remove("a");
  index.remove("a");
  index.remove("never");
  EXPECT_EQ(found(index, kNorth, 0, 100), "b");
  add(index, "b", 30, 40);
  EXPECT_EQ(found(index, kNorth, 0, 25), "") << "it took its own place";
  add(index, "b", 30, 40, kSouth);
  EXPECT_EQ(found(index, kNorth, 0, 100), "");
  EXPECT_EQ(found(index, kSouth, 0, 100), "b");
}

TEST(ClipIndex, NoTenantIsToldOfAnothersClips) {
  ClipIndex index;
  add(index, "a", 0, 100, kSouth);
  EXPECT_EQ(found(index, kNorth, 0, 100), "");
  add(index, "b", 99, 101, kNorth);
  EXPECT_EQ(found(index, kNorth, 0, 100), "b");
  EXPECT_EQ(found(index, kSouth, 0, 200), "a");
  EXPECT_EQ(found(index, {"", "gate"}, 0, 200), "");
  EXPECT_EQ(found(index, {"north", "gat"}, 0, 200), "");
}

TEST(ClipIndex, AgreesWithLookingAtAll) {
  std::mt19937 random(20);
  const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  ClipIndex index;
  std::map<std::string, history::WallRange> all;
  for (int i = 0; i < 2000; ++i) {
    const std::string name = std::to_string(below(40));
    if (below(3) == 0) {
      index.remove(name);
      all.erase(name);
    } else {
      const int from = below(60);
      const int to = from + 1 + below(20);
      add(index, name, from, to);
      all[name] = from_to(from, to);
    }
    const int from = below(70);
    const history::WallRange wall = from_to(from, from + below(15));
    std::optional<ShownClip> best;
    for (const auto& [each, clip] : all) {
      const std::int64_t shown = std::min(wall.to, clip.to) - std::max(wall.from, clip.from);
      const ShownClip one{each, each + ".jpg", clip.from, shown};
      if (shown > 0 && (!best || shows_better(one, *best))) best = one;
    }
    ASSERT_EQ(index.showing(kNorth, wall), best) << i;
  }
}

TEST(ClipNote, IsReadAsItWasWritten) {
  for (const std::string& name : {std::string("gate-7"), std::string("../a b\n\"}"),
                                  std::string("t\xc3\xbcr"), std::string(400, 'n')}) {
    const ClipNote note{{name + "'s", name}, from_to(0.25, 61.5)};
    const std::string text = print(note);
    EXPECT_EQ(text.find('\n'), std::string::npos);
    EXPECT_THAT(parse_clip_note(text), Optional(note));
  }
}

TEST(ClipNote, WhatMakesNoSenseIsNone) {
  const std::string whole = print({kNorth, from_to(0, 1)});
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse_clip_note(whole.substr(0, size))) << size;
  for (
      const char* const other :
      {"", "null", "[]", "made by a camera", "{\"camera\": \"gate\", \"tenant\": \"north\"}",
       R"({"camera": 1, "tenant": "north", "from": "2026-08-01T10:00:00Z", "to": "2026-08-01T10:00:01Z"})",
       R"({"camera": "gate", "tenant": "north", "from": "2026-08-01T10:00:00Z", "to": 7})",
       R"({"camera": "gate", "tenant": "north", "from": "2026-08-01T10:00:00Z", "to": "2026-02-30T10:00:01Z"})",
       R"({"camera": "gate", "tenant": "north", "from": "2026-08-01T10:00:01Z", "to": "2026-08-01T10:00:00Z"})"})
    EXPECT_FALSE(parse_clip_note(other)) << other;
}

class KeptClips : public ::testing::Test {
 protected:
  KeptClips() {
    media::Clip video;
    video.frames = 100;
    video.gop = 25;
    media::write_clip(scratch_ / "video.mp4", video);
    media::watch(scratch_ / "video.mp4", kept_);
    // Of a codec that MP4 does not take.
    video.codec = "ffv1";
    media::write_clip(scratch_ / "video.mkv", video);
    media::watch(scratch_ / "video.mkv", other_);
  }

  EvidenceStore open(std::uintmax_t budget = 100 << 20, base::Duration age = 24h) {
    return EvidenceStore(
        {.dir = folder_, .budget = budget, .max_age = age, .free_bytes = {}, .clips = &index_},
        retention_clock_);
  }
  /// As the next run, which knows nothing.
  EvidenceStore open_again() {
    for (const std::string& file : files_below(folder_))
      index_.remove(fs::path(file).replace_extension().string());
    return open();
  }

  /// A clip of two seconds, and its still; without a note if it has none.
  std::string keep(EvidenceStore& store, const history::CameraId& camera, double from,
                   const std::string& episode, const char* extension = ".mp4", bool has_note = true) {
    clock_.advance(1s);
    const media::Cut cut = (extension == std::string(".mkv") ? other_ : kept_)->cut({1, 3, 2});
    EXPECT_EQ(cut.extension(), extension);
    const ClipNote note{camera, from_to(from, from + 2)};
    const std::string stem =
        EvidenceStore::place(camera.camera, "rule", episode, kStart + seconds(from)).string();
    std::ofstream(store.prepare(stem + ".jpg")) << "still";
    store.keep(stem + ".jpg");
    cut.write_clip(store.prepare(stem + extension), has_note ? print(note) : "");
    store.keep(stem + extension);
    if (has_note) store.shows(stem + extension, note);
    return stem;
  }
  static std::chrono::milliseconds seconds(double count) {
    return std::chrono::milliseconds(static_cast<int>(count * 1000));
  }

  static void read_all(EvidenceStore& store) {
    while (store.has_unread()) store.read_next();
  }

  media::Scratch scratch_;
  fs::path folder_ = scratch_ / "evidence";
  media::History kept_ = media::history();
  media::History other_ = media::history();
  ManualClock clock_;
  config::RetentionClock retention_clock_{clock_};
  ClipIndex index_;
};

TEST_F(KeptClips, AreFoundAtOnceAndAfterARestart) {
  std::string a;
  std::string b;
  {
    EvidenceStore store = open();
    a = keep(store, kNorth, 10, "a");
    b = keep(store, kNorth, 11, "b", ".mkv");
    EXPECT_FALSE(store.has_unread()) << "it is known of these";
    EXPECT_EQ(found(index_, kNorth, 8, 11), a + ".mp4");
    EXPECT_EQ(found(index_, kNorth, 12, 14), b + ".mkv");
  }
  EvidenceStore store = open_again();
  EXPECT_TRUE(store.has_unread());
  EXPECT_EQ(found(index_, kNorth, 0, 100), "") << "not read yet";
  store.read_next();
  EXPECT_EQ(found(index_, kNorth, 0, 100), b + ".mkv") << "the newest first";
  store.read_next();
  EXPECT_FALSE(store.has_unread());
  store.read_next();
  EXPECT_EQ(index_.showing(kNorth, from_to(8, 11)), (ShownClip{a + ".mp4", a + ".jpg", at(10), kSecond}));
  EXPECT_EQ(found(index_, kNorth, 12, 14), b + ".mkv");
}

TEST_F(KeptClips, ThatGoForAgeOrRoomAreNotFound) {
  EvidenceStore store = open(100 << 20, 1h);
  keep(store, kNorth, 10, "a");
  for (int i = 0; i < 90; ++i) {
    clock_.advance(30s);
    store.tidy();
  }
  const std::string b = keep(store, kNorth, 11, "b");
  EXPECT_NE(found(index_, kNorth, 10, 11), "");
  for (int i = 0; i < 40; ++i) {
    clock_.advance(30s);
    store.tidy();
  }
  EXPECT_EQ(found(index_, kNorth, 10, 11), "") << "too old";
  EXPECT_EQ(found(index_, kNorth, 10, 13), b + ".mp4");
  store.make_room(100 << 20);
  EXPECT_EQ(found(index_, kNorth, 10, 13), "") << "its room was needed";

  const std::string c = keep(store, kNorth, 20, "c");
  fs::remove(folder_ / (c + ".mp4"));
  EXPECT_EQ(found(index_, kNorth, 20, 22), c + ".mp4") << "somebody else's doing is not seen";
  store.discard(c + ".mp4");
  EXPECT_EQ(found(index_, kNorth, 20, 22), "") << "it was given up";
}

TEST_F(KeptClips, ThatGoBeforeTheyAreReadAreNotFound) {
  std::string a;
  std::string b;
  {
    EvidenceStore store = open();
    a = keep(store, kNorth, 10, "a");
    b = keep(store, kNorth, 20, "b");
  }
  EvidenceStore store = open_again();
  // Somebody else removes the one, the store itself the other.
  fs::remove(folder_ / (b + ".mp4"));
  store.read_next();
  store.make_room(100 << 20);
  read_all(store);
  EXPECT_EQ(found(index_, kNorth, 0, 100), "");
}

TEST_F(KeptClips, ThatSayNothingOrAreDamagedAreNotFound) {
  std::string whole;
  std::map<std::string, std::string> clips;
  {
    EvidenceStore store = open();
    whole = keep(store, kNorth, 10, "whole");
    for (const char* const damage : {"empty", "noise", "cut", "header", "note", "text"})
      for (const char* const extension : {".mp4", ".mkv"})
        clips[std::string(damage) + extension] =
            keep(store, kNorth, 12, std::string(damage) + (extension + 1), extension) + extension;
    for (const char* const extension : {".mp4", ".mkv"})
      keep(store, kNorth, 12, std::string("older") + (extension + 1), extension, /*has_note=*/false);
  }
  for (const auto& [damage, clip] : clips) {
    const std::string path = folder_ / clip;
    std::string bytes = media::read_bytes(path);
    const std::size_t note = bytes.find("\"camera\"");
    ASSERT_NE(note, std::string::npos) << clip;
    if (damage.starts_with("empty")) bytes.clear();
    if (damage.starts_with("noise"))
      for (char& c : bytes) c = static_cast<char>(c ^ 0x5a);
    if (damage.starts_with("cut")) bytes.resize(note + 4);
    if (damage.starts_with("header")) bytes.replace(0, 16, std::string(16, '\0'));
    if (damage.starts_with("note")) bytes.replace(note, 8, "\"comera\"");
    if (damage.starts_with("text")) bytes.replace(note, 8, std::string("\xff\0{[}\"\"\"", 8));
    media::write_bytes(path, bytes);
  }
  EvidenceStore store = open_again();
  read_all(store);
  EXPECT_EQ(found(index_, kNorth, 12, 14), "");
  EXPECT_EQ(found(index_, kNorth, 0, 100), whole + ".mp4");
}

TEST_F(KeptClips, OfTenantsWithEqualCameraNamesAreEachsOwn) {
  std::string north;
  std::string south;
  {
    EvidenceStore store = open();
    north = keep(store, kNorth, 10, "n");
    south = keep(store, kSouth, 10.5, "s");
    EXPECT_EQ(fs::path(north).parent_path(), fs::path(south).parent_path()) << "one folder has both";
  }
  for (const bool is_restarted : {false, true}) {
    if (is_restarted) {
      EvidenceStore store = open_again();
      read_all(store);
    }
    EXPECT_EQ(found(index_, kNorth, 10, 20), north + ".mp4");
    EXPECT_EQ(found(index_, kSouth, 10, 20), south + ".mp4");
    EXPECT_EQ(found(index_, kNorth, 12.1, 20), "") << "only the other tenant's shows that";
    EXPECT_EQ(found(index_, kSouth, 10, 10.4), "");
  }
}

TEST_F(KeptClips, AreFoundWhateverTheirCamerasAreCalled) {
  const std::vector<std::string> names{"../a b\n", "_._a_b_", "t\xc3\xbcr", std::string(200, 'n'),
                                       std::string(201, 'n')};
  std::map<std::string, std::string> clips;
  {
    EvidenceStore store = open();
    for (const std::string& name : names)
      clips[name] = keep(store, {"north", name}, 10, std::to_string(clips.size()));
  }
  EvidenceStore store = open_again();
  read_all(store);
  for (const std::string& name : names) {
    EXPECT_EQ(found(index_, {"north", name}, 10, 12), clips[name] + ".mp4");
    EXPECT_TRUE(fs::exists(folder_ / (clips[name] + ".mp4")));
    const fs::path clip = clips[name];
    EXPECT_EQ(std::distance(clip.begin(), clip.end()), 3) << clip;
  }
}

TEST_F(KeptClips, AreNotReadWhereNobodyAsks) {
  {
    EvidenceStore store = open();
    keep(store, kNorth, 10, "a");
  }
  EvidenceStore store({.dir = folder_, .free_bytes = {}}, retention_clock_);
  EXPECT_FALSE(store.has_unread());
  store.read_next();
}

}  // namespace
}  // namespace vigil::actors
