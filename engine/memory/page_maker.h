// From what leaves cameras' windows to pages that are remembered.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/kv/forms.h"
#include "engine/kv/history/page_info.h"
#include "engine/kv/history/page_key.h"
#include "engine/run/token_mover.h"
#include "engine/stream/page_sink.h"
#include "kernels/device/host_buffer.h"

namespace vigil::memory {

/// Patches of a camera that follow one another, in the host's memory as soon as they have arrived there.
struct FreshPage {
  history::CameraId camera;
  /// Without number, fingerprint, form and bytes.
  history::PageInfo info;
  /// Of the groups of its pictures, those that were kept: from 0 to 1.
  double change = 0;
  /// In as many forms as were asked for, the finest first; none where nothing of it could be kept.
  std::vector<run::MovedTokens> forms;
  /// Of its sketch, if that is among the forms: as `info`, but of each patch only the tokens that stand out.
  std::optional<history::PageInfo> sketch = std::nullopt;
  /// A rule has said "Yes" of a window that it was in; said by who knows of answers.
  bool is_alerted = false;
};

/// Why what left a camera's window is not remembered: there was no room for it in the host's memory, or too
/// much was under way there; nobody kept its keys, and embeddings are not wanted; nobody said when it was.
enum class Forgotten : std::uint8_t { no_room, keyless, untimed };
constexpr std::array<std::string_view, 3> kForgottenNames{"no_room", "keyless", "untimed"};

/// Gathers what leaves the streams of a desk's cameras until it is a page: whole patches, of one stream, one
/// hour (UTC) and one grid, with so many tokens or patches. Then their keys are packed, and their places in
/// the cache are the desk's again. A patch is remembered as it leaves or is shown first, so nothing is
/// remembered twice; a stream that goes on without some begins a new page. In the desk's thread.
class PageMaker final : public stream::PageSink {
 public:
  struct Options {
    /// A page is complete with so many.
    std::int64_t tokens = 256;
    std::size_t patches = 120;
    /// Of the names of streams.
    std::uint64_t seed = 0;
  };
  /// In which forms a camera's pages are kept, the finest first; `embeddings` beside others, or alone. There
  /// is no sketch of a page of which nobody said what stands out.
  struct Remembering {
    history::CameraId id;
    std::vector<kv::Form> forms;
  };

  /// They have to outlive it, and what it holds of the cache has to be over before the book (`forget_all`).
  PageMaker(run::TokenMover& mover, kernels::HostMemory& memory, Options options);

  /// What leaves the camera is remembered so from now on.
  void remember(const std::string& camera, Remembering how);
  bool remembers(const std::string& camera) const { return cameras_.contains(camera); }
  /// What was gathered of it is a page.
  void complete(const std::string& camera) noexcept;
  /// Nothing of it is, from now on; what was gathered is a page.
  void forget(const std::string& camera);
  /// Lets go of what was gathered.
  void forget_all();

  bool takes_keyless() const override { return true; }
  void take(stream::LeavingTokens tokens) noexcept override;
  void let_go() noexcept override;

  struct News {
    std::vector<FreshPage> pages;
    /// Patches of a camera that are not remembered.
    struct Lost {
      history::CameraId camera;
      Forgotten why;
      std::size_t patches = 0;
      history::WallRange wall;
    };
    std::vector<Lost> lost;
    /// What went wrong with the device, if anything did.
    std::exception_ptr failure;
  };
  News take_news() { return std::exchange(news_, {}); }

 private:
  /// What is gathered of a camera, oldest first.
  struct Pending {
    std::vector<stream::LeavingPatch> patches;
    /// One a patch that has tokens, if they have keys.
    std::vector<kv::View> views;
    bool has_keys = false;
    std::int64_t tokens = 0;
  };
  struct Camera {
    Remembering how;
    Pending pending;
    std::uint64_t run = 0;
    /// Of the run.
    std::uint64_t stream = 0;
    /// Patches of the run before this one were taken.
    std::int64_t taken = 0;
  };

  static bool goes_on(const Camera& camera, const stream::LeavingPatch& patch, bool has_keys);
  void take(Camera& camera, const stream::LeavingTokens& tokens);
  void complete(Camera& camera);
  /// What goes wrong is news.
  void try_complete(Camera& camera) noexcept;
  /// In all forms that are wanted and have room.
  void pack(const Camera& camera, FreshPage& page);
  /// Of the page's patches, where all of them say what stands out and have keys.
  static std::optional<history::PageInfo> sketch_of(const Pending& pending, const history::PageInfo& page);
  /// Places of the tokens of these patches in the cache, in their order.
  static std::vector<std::int32_t> slots_of(const Pending& pending, const history::PageInfo& page);
  void lose(const Camera& camera, Forgotten why, std::size_t patches, const history::WallRange& wall);

  run::TokenMover& mover_;
  kernels::HostMemory& memory_;
  Options options_;
  std::map<std::string, Camera> cameras_;
  std::mt19937_64 random_;
  News news_;
};

}  // namespace vigil::memory
