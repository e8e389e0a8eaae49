// The cache's desk over a store in memory, with readers, a writer and a device by script.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "actors/cache/cache_desk.h"
#include "actors/cache/disk_writing.h"
#include "tests/actors/fakes.h"
#include "tests/engine/memory/failing_store.h"
#include "tests/engine/memory/made_pages.h"

namespace vigil::actors::testing {

/// 2026-08-01T10:00:00Z, as the tests' clock begins.
inline constexpr std::int64_t kBegin = std::int64_t{1785578400} * 1'000'000'000;

inline history::WallRange from_begin(std::int64_t from, std::int64_t to) {
  return {kBegin + from * 1'000'000'000, kBegin + to * 1'000'000'000 - 1};
}

/// A page of eight patches of a second each, of four tokens, from so many seconds on.
inline memory::FreshPage page_from(const history::CameraId& camera, std::int64_t second,
                                   const std::vector<kv::Form>& forms, kernels::HostMemory& memory,
                                   std::size_t bytes = 64) {
  memory::FreshPage page;
  page.camera = camera;
  page.info.stream = 7;
  for (std::int64_t i = second; i < second + 8; ++i) {
    history::PatchInfo patch = memory::testing::made_page(0, 0).patches.front();
    patch.number = i;
    patch.place = 2 * i;
    patch.seconds = static_cast<double>(i);
    patch.wall = from_begin(i, i + 1);
    page.info.patches.push_back(std::move(patch));
  }
  page.info.tokens = 32;
  for (const kv::Form form : forms) page.forms.push_back(memory::testing::made_tokens(memory, form, bytes));
  return page;
}

inline WatchPtr watch_of_tenant(const std::string& tenant, const std::string& name,
                                base::Duration keep = std::chrono::hours(24)) {
  auto watch = std::make_shared<WatchSettings>();
  watch->name = name;
  watch->tenant = tenant;
  watch->keep = keep;
  return watch;
}

inline stream::Answer answer_of(double log_odds, std::string text = "") {
  stream::Answer answer;
  answer.probability_yes = static_cast<float>(1 / (1 + std::exp(-log_odds)));
  answer.text = std::move(text);
  return answer;
}

/// How many patches of a recalled window begin within these seconds.
inline int shown(const Recall& recall, std::int64_t from, std::int64_t to) {
  int patches = 0;
  for (const memory::RecalledPage& page : recall.what.pages)
    for (std::size_t i = page.first; i < page.last; ++i) {
      const std::int64_t begin = page.info.patches[i].wall.from;
      if (begin >= from_begin(from, to).from && begin <= from_begin(from, to).to) ++patches;
    }
  return patches;
}

inline const PastRights kEverything{std::nullopt, true};

struct AskedCache : ::testing::Test {
  static inline const history::CameraId kGate{"city", "gate"}, kOther{"village", "gate"},
      kYard{"city", "yard"};

  kernels::HostMemory memory{kernels::Stream::cpu(1), std::uint64_t{1} << 26U};
  std::unique_ptr<history::HistoryStore> inner = history::make_memory_history_store();
  memory::testing::FailingStore store{*inner};
  ManualClock clock;
  CacheDesk::Options options;
  std::unique_ptr<CacheDesk> desk;
  std::unique_ptr<DiskWriting> writing;

  std::function<Recalled(const Recall&)> device = [](const Recall& recall) {
    return Recalled{recall.ticket, answer_of(-6), "", false};
  };
  /// The writer and the readers work.
  bool has_disk = true;
  bool has_device = true;
  /// Called with what devices are to show; by then it has come. Without, nobody is there.
  std::function<void(const Show&)> shows;
  /// That nobody has shown yet.
  std::vector<Show> unshown;
  std::function<void(ReadPages&)> after_reading = [](ReadPages&) {};
  /// All that was told, and what waits.
  CacheDesk::News heard;
  std::uint64_t tickets = 0;

  AskedCache() {
    store.fails = false;
    // What tests let cameras see has been by then.
    clock.advance(std::chrono::seconds(200));
    options.memory.host_bytes = std::uint64_t{16} << 20U;
    options.memory.host = {{kv::Form::fp8, std::chrono::hours(2)}};
    options.memory.disk = {{kv::Form::int4, std::chrono::hours(48)}};
    begin();
  }
  /// A new process.
  void begin(bool with_store = true) {
    writing.reset();
    desk = std::make_unique<CacheDesk>(with_store ? &store : nullptr, clock, options);
    heard = {};
    if (with_store) writing = std::make_unique<DiskWriting>(store, *desk->memory().queue(), clock);
  }
  void see(const history::CameraId& camera, std::int64_t from, std::int64_t to) {
    LeftPages left;
    for (std::int64_t second = from; second < to; second += 8)
      left.news.pages.push_back(page_from(camera, second, desk->memory().wanted(), memory));
    desk->take(left);
    hear();
  }
  void see_all() {
    for (const history::CameraId& camera : {kGate, kOther, kYard}) {
      desk->watch(watch_of_tenant(camera.tenant, camera.camera));
      see(camera, 0, 80);
      desk->end(camera.camera);
    }
    settle();
  }
  std::uint64_t ask(decltype(PastRequest::what) what, const PastRights& rights = kEverything) {
    desk->take(PastRequest{++tickets, rights, std::move(what), base::Clock::TimePoint::max()});
    hear();
    return tickets;
  }
  static PastQuestion question(const PastCamera& camera, const std::string& text = "Did a car stop?",
                               const history::WallRange& wall = from_begin(0, 80)) {
    PastQuestion asked;
    asked.camera = camera;
    asked.question = text;
    asked.wall = wall;
    return asked;
  }
  /// Takes what is told; nothing of it is done.
  void hear() {
    CacheDesk::News news = desk->take_news();
    const auto add = [](auto& from, auto& to) {
      std::move(from.begin(), from.end(), std::back_inserter(to));
    };
    add(news.to_read, heard.to_read);
    add(news.recalls, heard.recalls);
    add(news.forgotten, heard.forgotten);
    add(news.replies, heard.replies);
    add(news.warnings, heard.warnings);
    for (const Show& each : news.shows) {
      unshown.push_back(each);
      if (shows) {
        shows(each);
      } else {
        show();
      }
    }
    if (news.wanted) heard.wanted = std::move(news.wanted);
    if (!news.aged.expiries.empty()) heard.aged.expiries = std::move(news.aged.expiries);
    heard.wakes_writer = heard.wakes_writer || news.wakes_writer;
    heard.counts.pages += news.counts.pages;
    heard.counts.written_bytes += news.counts.written_bytes;
    for (const auto& [why, count] : news.counts.lost)
      if (count > 0) heard.counts.lost[why] += count;
  }
  /// Nothing more comes of what devices were to show.
  void show() {
    for (const Show& each : std::exchange(unshown, {})) desk->shown(each.ticket);
    hear();
  }
  ReadPages read(const PagesToRead& wanted) const {
    ReadPages pages;
    pages.id = wanted.id;
    if (wanted.names.empty()) {
      pages.verified = store.verify(wanted.camera, memory::Memory::kNumbersAPage);
    } else {
      pages.values = store.read(wanted.camera.value(), wanted.names);
    }
    after_reading(pages);
    return pages;
  }
  /// What waits for the disk or the device, until nothing does.
  void settle() {
    for (;;) {
      hear();
      if (has_disk && !heard.to_read.empty()) {
        const std::vector<PagesToRead> wanted = std::exchange(heard.to_read, {});
        for (const PagesToRead& each : wanted) {
          ReadPages pages = read(each);
          desk->read(pages);
        }
        continue;
      }
      if (has_disk && writing && std::exchange(heard.wakes_writer, false)) {
        bool goes_on = true;
        while (goes_on) desk->hear(writing->turn(goes_on));
        continue;
      }
      if (!has_device || heard.recalls.empty()) return;
      const std::vector<Recall> recalls = std::exchange(heard.recalls, {});
      for (const Recall& each : recalls) desk->recalled(device(each));
    }
  }
  /// The last words that were told under this ticket; exactly one.
  PastReply last_word(std::uint64_t ticket) const {
    std::vector<PastReply> replies;
    for (const PastReply& each : heard.replies)
      if (each.ticket == ticket && each.outcome != PastOutcome::progress) replies.push_back(each);
    EXPECT_EQ(replies.size(), 1U) << "of ticket " << ticket;
    return replies.empty() ? PastReply{} : replies.front();
  }
  nlohmann::json answer(std::uint64_t ticket) const {
    const PastReply reply = last_word(ticket);
    EXPECT_EQ(reply.outcome, PastOutcome::answer) << reply.text;
    return reply.outcome == PastOutcome::answer ? nlohmann::json::parse(reply.text) : nlohmann::json();
  }
  /// "city/gate" of those in a list or a verification.
  static std::vector<std::string> cameras(const nlohmann::json& told) {
    std::vector<std::string> names;
    for (const nlohmann::json& each : told.at("cameras"))
      names.push_back(each.at("tenant").get<std::string>() + '/' + each.at("camera").get<std::string>());
    return names;
  }
};

}  // namespace vigil::actors::testing
