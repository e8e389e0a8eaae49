// A memory whose pages were made up, questions about it, and who reads and computes for them by a script.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/memory/question_desk.h"
#include "tests/engine/memory/made_pages.h"

namespace vigil::memory::testing {

inline history::WallRange after_noon(double from, double to) {
  return {kNoon + static_cast<std::int64_t>(from * 1e9), kNoon + static_cast<std::int64_t>(to * 1e9) - 1};
}

/// A page of eight patches of a second each, of four tokens; the n-th patch of its stream is n seconds after
/// its begin, at place 2 n.
inline history::PageInfo eight_seconds(double second, std::int64_t first_number, std::uint64_t stream = 7) {
  history::PageInfo info;
  info.stream = stream;
  for (int i = 0; i < 8; ++i) {
    history::PatchInfo patch = made_page(0, second + i, 1).patches.front();
    patch.number = first_number + i;
    patch.place = 2 * patch.number;
    patch.seconds = static_cast<double>(patch.number);
    info.patches.push_back(std::move(patch));
  }
  info.tokens = 32;
  return info;
}

/// Cameras `gate` of two tenants; a clock that stands still; a store in memory. What the desk wants is read
/// and computed by `settle`, as `device` and `damages` say.
struct AskedMemory : ::testing::Test {
  static constexpr std::size_t kPage = 64;
  static inline const history::CameraId kGate{"city", "gate"}, kOther{"village", "gate"};

  struct StoppedClock final : base::Clock {
    TimePoint time = TimePoint(std::chrono::hours(1));
    TimePoint now() const override { return time; }
    WallTime wall() const override { return of_wall; }
    WallTime of_wall{};
  };
  struct Said {
    stream::Answer answer;
    bool is_busy = false, has_failed = false;
  };

  kernels::HostMemory memory{kernels::Stream::cpu(1), std::uint64_t{1} << 26U};
  std::unique_ptr<history::HistoryStore> store = history::make_memory_history_store();
  StoppedClock clock;
  Memory::Options options;
  QuestionDesk::Options how;
  std::unique_ptr<Memory> remembered;
  std::unique_ptr<QuestionDesk> desk;

  std::function<Said(const QuestionDesk::Window&)> device = [](const auto&) { return said(-6); };
  /// Values that cannot be read.
  std::function<history::Missing(const history::ValueName&)> damages = [](const auto&) {
    return history::Missing::no;
  };
  std::deque<QuestionDesk::Reading> to_read;
  std::deque<QuestionDesk::Window> to_ask;
  /// All windows that were asked, without their bytes.
  std::vector<QuestionDesk::Window> asked;
  /// Of what was read, bytes that somebody holds.
  std::shared_ptr<std::uint64_t> held = std::make_shared<std::uint64_t>(0);
  QuestionDesk::News heard;

  AskedMemory() {
    options.host_bytes = std::uint64_t{32} << 20U;
    options.host = {{kv::Form::fp8, std::chrono::hours(2)}};
    options.parts = {.layers = 2, .value_bytes = kPage / 2};
  }
  /// A new process; `with_store`: with a disk.
  void begin(bool with_store = false) {
    desk.reset();
    remembered = std::make_unique<Memory>(with_store ? store.get() : nullptr, options);
    for (const auto& camera : {kGate, kOther}) remembered->watch(camera, std::chrono::hours(24));
    desk = std::make_unique<QuestionDesk>(*remembered, clock, how);
  }
  void begin_on_disk(HostTier::Ages forms) {
    options.host = {};
    options.disk = std::move(forms);
    begin(/*with_store=*/true);
  }
  void take(history::PageInfo info, const history::CameraId& camera = kGate) {
    FreshPage page;
    page.camera = camera;
    const auto seed = static_cast<std::uint8_t>(info.patches.front().number);
    page.info = std::move(info);
    for (const kv::Form form : remembered->wanted())
      page.forms.push_back(made_tokens(memory, form, kPage, seed_of(seed, form)));
    remembered->take(std::move(page), clock.now());
  }
  /// All between these seconds after noon, as one run of the camera.
  void see(int from, int to, const history::CameraId& camera = kGate, std::uint64_t stream = 7) {
    for (int second = from; second < to; second += 8) take(eight_seconds(second, second, stream), camera);
    write();
  }
  void write() {
    if (remembered->queue() == nullptr) return;
    remembered->queue()->flush(std::nullopt);
    while (const auto written = remembered->queue()->write_next(clock.now())) remembered->wrote(*written);
  }
  void ask(std::uint64_t ticket, const std::string& question, const history::WallRange& wall,
           Method method = Method::windows, const history::CameraId& camera = kGate) {
    desk->ask(ticket, {camera, wall, question, "", method, 64});
  }
  /// What is ready now; nothing of it is done.
  void hear() {
    QuestionDesk::News news = desk->take_news();
    const auto add = [](auto& from, auto& to) {
      std::move(from.begin(), from.end(), std::back_inserter(to));
    };
    for (const QuestionDesk::Window& each : news.windows) note(each);
    add(news.readings, to_read);
    add(news.windows, to_ask);
    add(news.forgotten, heard.forgotten);
    add(news.progress, heard.progress);
    add(news.answered, heard.answered);
    add(news.erased, heard.erased);
  }
  /// One reading, or one window, or nothing.
  bool step() {
    hear();
    if (!to_read.empty()) {
      const QuestionDesk::Reading reading = std::move(to_read.front());
      to_read.pop_front();
      desk->read(reading.id, values_of(reading));
      return true;
    }
    if (to_ask.empty()) return false;
    std::optional<QuestionDesk::Window> window = std::move(to_ask.front());
    to_ask.pop_front();
    const std::uint64_t id = window->id;
    const Said said = device(*window);
    window.reset();
    if (said.is_busy || said.has_failed) {
      desk->failed(id, said.is_busy);
    } else {
      desk->recalled(id, said.answer);
    }
    return true;
  }
  void settle() {
    while (step()) {
    }
  }
  /// The one answer there is.
  PastAnswer answer() {
    settle();
    EXPECT_EQ(heard.answered.size(), 1U);
    if (heard.answered.empty()) return {};
    PastAnswer answer = std::move(heard.answered.front().second);
    heard.answered.clear();
    return answer;
  }
  /// Each as a store's, with bytes that are counted as long as somebody has them.
  std::vector<history::Value> values_of(const QuestionDesk::Reading& reading) const {
    std::vector<history::Value> values;
    std::vector<history::Value> read = store->read(reading.camera, reading.names);
    for (std::size_t i = 0; i < read.size(); ++i) {
      if (const history::Missing missing = damages(reading.names[i]); missing != history::Missing::no) {
        values.emplace_back(missing);
        continue;
      }
      EXPECT_TRUE(read[i]) << "nobody asks for what is not there";
      const std::size_t size = read[i].bytes().size();
      *held += size;
      auto inner = std::make_shared<history::Value>(std::move(read[i]));
      values.emplace_back(inner->bytes(), std::shared_ptr<const void>(
                                              inner.get(), [inner, size, count = held](const void*) mutable {
                                                inner.reset();
                                                *count -= size;
                                              }));
    }
    return values;
  }

  static std::uint8_t seed_of(std::uint8_t seed, kv::Form form) {
    return static_cast<std::uint8_t>(5 * seed + static_cast<std::uint8_t>(form));
  }
  static Said said(double log_odds, std::string text = "") {
    Said said;
    said.answer.probability_yes = static_cast<float>(1 / (1 + std::exp(-log_odds)));
    said.answer.text = std::move(text);
    return said;
  }
  /// Patches of a window that begin within these seconds after noon.
  static int shown(const QuestionDesk::Window& window, double from, double to) {
    int patches = 0;
    const history::WallRange range = after_noon(from, to);
    for (const RecalledPage& page : window.what.pages)
      for (std::size_t i = page.first; i < page.last; ++i) {
        const std::int64_t begin = page.info.patches[i].wall.from;
        if (begin >= range.from && begin <= range.to) ++patches;
      }
    return patches;
  }
  /// Something happens then: whatever shows of it says "Yes", the more the surer.
  static Said happens(const QuestionDesk::Window& window, double from, double to) {
    const int patches = shown(window, from, to);
    return said(patches == 0 ? -6 : 2 + patches);
  }
  /// Of the answer's best window, and in seconds after noon.
  static std::pair<double, double> best(const PastAnswer& answer) {
    if (answer.found.windows.empty()) return {};
    const history::WallRange& wall = answer.found.windows.front().wall;
    return {static_cast<double>(wall.from - kNoon) * 1e-9, static_cast<double>(wall.to + 1 - kNoon) * 1e-9};
  }
  /// Each form once, in the order of the windows' pages.
  static std::vector<kv::Form> forms_of(const QuestionDesk::Window& window) {
    std::vector<kv::Form> forms;
    for (const RecalledPage& page : window.what.pages)
      if (std::find(forms.begin(), forms.end(), page.form) == forms.end()) forms.push_back(page.form);
    return forms;
  }

 private:
  void note(const QuestionDesk::Window& window) {
    ASSERT_FALSE(window.what.pages.empty());
    QuestionDesk::Window& noted = asked.emplace_back(window);
    for (RecalledPage& page : noted.what.pages) {
      expect_whole(page);
      page.values.clear();
    }
  }
  /// All bytes of the page are there, each layer's once, and they are this page's and no other one's.
  static void expect_whole(const RecalledPage& page) {
    std::vector<std::byte> bytes(kPage);
    std::size_t size = 0;
    for (const RecalledPage::Value& value : page.values) {
      const auto at = static_cast<std::size_t>(value.layer) * kPage / 2;
      ASSERT_LE(at + value.bytes.size(), bytes.size());
      std::copy(value.bytes.begin(), value.bytes.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
      size += value.bytes.size();
      const std::int64_t layers = value.bytes.size() == kPage ? 0 : 1;
      EXPECT_EQ(value.layers, layers) << "0: all of it";
    }
    ASSERT_EQ(size, kPage);
    const std::uint8_t seed = seed_of(static_cast<std::uint8_t>(page.info.patches.front().number), page.form);
    for (std::size_t i = 0; i < kPage; ++i)
      ASSERT_EQ(bytes[i], static_cast<std::byte>(static_cast<std::uint8_t>(seed + i)));
  }
};

}  // namespace vigil::memory::testing
