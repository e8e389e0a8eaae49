// Windows of what is remembered, asked beside those of the present.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/kv/forms.h"
#include "engine/kv/history/page_info.h"
#include "engine/model/files/config.h"
#include "engine/run/executor.h"
#include "engine/run/token_mover.h"
#include "engine/run/token_transfer.h"
#include "engine/stream/compiled_question.h"
#include "engine/stream/stream_desk.h"

namespace vigil::memory {

/// Some patches of a page, in the host's memory.
struct RecalledPage {
  history::PageInfo info;
  kv::Form form = kv::Form::bf16;
  /// Of its layers [layer, layer + layers), or of all (0), or embeddings. They may come from anywhere;
  /// `owner` keeps them.
  struct Value {
    std::span<const std::byte> bytes;
    std::int64_t layer = 0, layers = 0;
    std::shared_ptr<const void> owner;
  };
  std::vector<Value> values;
  /// Of its patches [first, last).
  std::size_t first = 0, last = 0;
};

/// What is asked about the past.
struct Recalling {
  /// In the order of time, of one model; at least one patch.
  std::vector<RecalledPage> pages;
  /// Pages follow one another without the time between them, from position 0 of a stream on: what lies hours
  /// apart fits into the length that the model knows. Otherwise each is where it was, and all are of one
  /// stream.
  bool moves_together = false;
  /// Only the newest seconds are a window; of all that is before them each layer and KV head sees what it
  /// chooses (stream::WindowMemory). All pages have keys.
  bool by_clusters = false;
  /// Above 0: each layer sees so much of it by ReKV instead, the same for all KV heads.
  double rekv_share = 0;
  std::vector<stream::CompiledQuestionPtr> questions;
  base::Clock::TimePoint due{};
  /// How long its texts may take after its first answers.
  base::Duration patience = std::chrono::seconds(30);
};

/// Each is a stream of its own at the desk (`StreamDesk::restore`), which is over with its answers. It takes
/// room that nobody keeps, and gives it up for windows; then it has failed. What is seen by clusters comes
/// page by page, each a piece of work, and there is one at a time. In the desk's thread.
class RecallDesk final : public run::WorkSource {
 public:
  /// They have to outlive it. `model`: of the desk.
  RecallDesk(stream::StreamDesk& desk, run::TokenMover& mover, const run::TokenTransfer& transfer,
             const model::ModelConfig& model)
      : desk_(desk), mover_(mover), transfer_(transfer), model_(model) {}

  /// Why it cannot be asked, or will be told under this ticket, which is new. `busy`: later it might be.
  struct Refusal {
    std::string reason;
    bool is_busy = false;
  };
  std::optional<Refusal> ask(std::uint64_t ticket, const Recalling& recalling);
  /// Nobody waits for it any more.
  void give_up(std::uint64_t ticket);

  // What the desk tells. True: it was of the past, and nobody else's business.
  bool answered(const stream::DeskNews::Answered& news);
  bool failed(const stream::DeskNews::Failed& news);
  bool told(const stream::DeskNews::Told& news);
  bool forgotten(const stream::DeskNews::Forgotten& news);
  bool shortened(const stream::DeskNews::Shortened& news);

  std::optional<base::Clock::TimePoint> due() const override;
  void work(const run::Turn& turn) override;

  struct News {
    /// The ticket, and its answers in the order of the questions, whole.
    std::vector<std::pair<std::uint64_t, std::vector<stream::Answer>>> answered;
    struct Failed {
      std::uint64_t ticket = 0;
      std::string reason;
      /// Later it might be answered.
      bool is_busy = false;
    };
    std::vector<Failed> failed;
  };
  News take_news() { return std::exchange(news_, {}); }

  std::size_t open() const { return recalls_.size(); }

 private:
  struct Filling {
    Recalling what;
    std::vector<stream::RememberedPatch> patches;
    /// Pages and patches that have come.
    std::size_t page = 0, patch = 0;
    /// The window begins with this one.
    std::int64_t shown_from = 0;
  };
  struct Recall {
    std::string name;
    stream::WindowId window;
    std::vector<stream::CompiledQuestionPtr> questions;
    std::vector<stream::Answer> answers;
    /// Texts that go on.
    std::size_t texts = 0;
    bool by_clusters = false;
    /// Of one that is seen by clusters, until all its pages have come.
    std::unique_ptr<Filling> filling;
  };

  std::vector<stream::RememberedPatch> patches_of(const Recalling& recalling) const;
  void unpack(const Recalling& recalling, std::span<const stream::RememberedPatch> patches,
              std::span<const std::int32_t> slots);
  void unpack(const RecalledPage& page, std::span<const stream::RememberedPatch> patches,
              std::span<const std::int32_t> slots, bool moves_together);
  stream::WindowId ask(const std::string& name, const Recalling& recalling,
                       const stream::PatchRange& patches);
  /// Its next page comes. False: there is no room for it.
  bool fill(Recall& recall);
  /// What lies before its window is not all there. `had_room`: until others needed that.
  bool has_no_memory(const std::string& name, const std::string& reason, bool had_room);
  std::map<std::uint64_t, Recall>::iterator find(const stream::WindowId& window);
  void end(std::map<std::uint64_t, Recall>::iterator recall);

  stream::StreamDesk& desk_;
  run::TokenMover& mover_;
  const run::TokenTransfer& transfer_;
  const model::ModelConfig& model_;
  std::map<std::uint64_t, Recall> recalls_;
  News news_;
};

}  // namespace vigil::memory
