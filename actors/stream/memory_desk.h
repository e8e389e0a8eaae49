// What a device does for the cache: makes pages of what leaves its streams, and asks windows of the past.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/messages/data.h"
#include "actors/messages/remembered.h"
#include "actors/messages/watch.h"
#include "engine/kv/history/page_info.h"
#include "engine/memory/page_maker.h"
#include "engine/memory/recall_desk.h"
#include "engine/model/model_folder.h"
#include "engine/run/token_mover.h"
#include "engine/run/token_transfer.h"
#include "engine/stream/compiled_question.h"
#include "engine/stream/ids.h"
#include "engine/stream/stream_desk.h"

namespace vigil::actors {

/// Beside a `WindowDesk`, in its thread: that hands on what the desk tells of windows of the past
/// (`recalls`). Nothing is remembered before the forms are known in which it is wanted.
class MemoryDesk {
 public:
  /// They have to outlive it.
  struct Parts {
    stream::StreamDesk& desk;
    stream::QuestionCompiler& questions;
    run::TokenMover& mover;
    const run::TokenTransfer& transfer;
    const model::ModelFolder& folder;
  };
  /// `most`: bytes of pages in the host's memory, wherever they have gone from here. `seed`: of the names of
  /// streams.
  MemoryDesk(const Parts& parts, std::uint64_t most, std::uint64_t seed);
  /// Lets go of what it holds of the cache.
  ~MemoryDesk();
  MemoryDesk(const MemoryDesk&) = delete;
  MemoryDesk& operator=(const MemoryDesk&) = delete;

  /// Takes what leaves the streams.
  std::shared_ptr<stream::PageSink> sink() const { return maker_; }
  memory::RecallDesk& recalls() { return recalls_; }

  /// A camera's settings, which say whether it is remembered. True: they are news to whoever keeps its pages.
  bool watch(const WatchPtr& watch);
  /// No patch of it follows.
  void end(const std::string& camera);
  /// What there is of it becomes pages, whether it has left its windows or not: at once, and once more when
  /// the window has its answers that is next, if one was asked. Then it is told as shown.
  void show(const Show& show);
  /// In which forms pages are wanted from now on, the finest first.
  void want(const std::vector<kv::Form>& forms);

  /// A window has its answers: what it shows is worth more if one is an alert's (`FreshPage::is_alerted`).
  void answered(const WindowAnswers& window);

  /// Asks, in time that windows leave.
  void recall(const Recall& recall);
  void forget(std::uint64_t ticket) { recalls_.give_up(ticket); }

  struct News {
    memory::PageMaker::News pages;
    std::vector<Recalled> recalled;
    /// Of these, all has come with these pages or before.
    std::vector<Shown> shown;

    bool has_pages() const { return !pages.pages.empty() || !pages.lost.empty(); }
  };
  /// Rethrows run::DeviceLost, which befell a page; what else did is in `News::pages`.
  News take_news();

 private:
  void remember(const WatchSettings& watch);
  bool is_alerted(const memory::FreshPage& page);
  /// Returns the window after which there may be more.
  std::optional<stream::WindowId> show(const std::string& camera);

  Parts parts_;
  std::unique_ptr<kernels::HostMemory> memory_;
  std::shared_ptr<memory::PageMaker> maker_;
  memory::RecallDesk recalls_;
  std::map<std::string, WatchPtr> watched_;
  std::vector<kv::Form> forms_;
  std::vector<Recalled> recalled_;
  struct Showing {
    Show what;
    /// Nothing: it has no answers to wait for.
    std::optional<stream::WindowId> window;
  };
  std::vector<Showing> showing_;
  /// Of windows of which a rule has said "Yes", by camera, oldest first: what they show may still leave.
  std::map<std::string, std::deque<history::WallRange>> alerted_;
};

}  // namespace vigil::actors
