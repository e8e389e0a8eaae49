// Cameras whose tokens leave a desk for pages, over a mover by script.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/memory/page_maker.h"
#include "engine/stream/stream_desk.h"
#include "tests/engine/stream/desk_room.h"

namespace vigil::memory::testing {

using kv::Form;
using stream::testing::patch_of;
using stream::testing::Room;

/// Eight bytes a token, what stands for its keys; and as many for its embeddings.
class ScriptedMover final : public run::TokenMover {
 public:
  explicit ScriptedMover(stream::testing::SimulatedPasses& passes) : passes_(passes) {}
  bool has_room = true;
  bool is_lost = false;

  std::unique_ptr<kernels::HostMemory> make_memory(std::uint64_t most) const override {
    return std::make_unique<kernels::HostMemory>(kernels::Stream::cpu(1), most);
  }
  std::size_t bytes_of(Form, std::int64_t tokens) const override {
    return static_cast<std::size_t>(tokens) * sizeof(std::uint64_t);
  }
  std::optional<run::MovedTokens> pack(std::span<const std::int32_t> slots, Form form,
                                       kernels::HostMemory& to) override {
    std::vector<std::uint64_t> values;
    for (const std::int32_t slot : slots) values.push_back(passes_.value_at(slot));
    return moved(form, values, to);
  }
  std::optional<run::MovedTokens> pack_embeddings(std::span<const model::VisualTokensPtr> patches,
                                                  kernels::HostMemory& to) override {
    std::vector<std::uint64_t> values;
    for (const model::VisualTokensPtr& patch : patches)
      for (std::int64_t i = 0; i < patch->count(); ++i)
        values.push_back(passes_.input_of(patch->embeddings.as<float>()[i * patch->width]));
    return moved(Form::embeddings, values, to);
  }
  void unpack(const Unpacking&) override { throw std::logic_error("not scripted"); }

  static std::vector<std::uint64_t> values_of(const run::MovedTokens& tokens) {
    std::vector<std::uint64_t> values(static_cast<std::size_t>(tokens.tokens));
    if (!values.empty()) std::memcpy(values.data(), tokens.bytes.get(), tokens.size);
    return values;
  }

 private:
  std::optional<run::MovedTokens> moved(Form form, const std::vector<std::uint64_t>& values,
                                        kernels::HostMemory& to) const {
    if (is_lost) throw std::runtime_error("the device is lost");
    if (!has_room) return std::nullopt;
    run::MovedTokens tokens;
    tokens.form = form;
    tokens.tokens = static_cast<std::int64_t>(values.size());
    tokens.size = bytes_of(form, tokens.tokens);
    tokens.bytes = to.take(tokens.size);
    if (!tokens.bytes) return std::nullopt;
    if (!values.empty()) std::memcpy(tokens.bytes.get(), values.data(), tokens.size);
    return tokens;
  }

  stream::testing::SimulatedPasses& passes_;
};

/// Cameras of a desk: a patch of two tokens each second, whose windows hold four patches.
struct PageMakerTest : ::testing::Test {
  Room room{64, {}, 4};
  ScriptedMover mover{room.passes};
  kernels::HostMemory memory{kernels::Stream::cpu(1), std::uint64_t{1} << 24U};
  std::shared_ptr<PageMaker> maker =
      std::make_shared<PageMaker>(mover, memory, PageMaker::Options{.tokens = 6, .patches = 5, .seed = 1});
  stream::CompiledQuestionPtr question = room.question("Is there a car?", 1);
  /// 10:00:00 of some day.
  base::Clock::WallTime start{std::chrono::hours(10 * 24 * 365 * 5 + 10)};
  std::vector<FreshPage> pages;
  std::vector<PageMaker::News::Lost> lost;

  void SetUp() override { room.desk.leave_to(maker); }
  void open(const std::string& camera, const std::vector<Form>& forms, const std::string& policy = "none") {
    room.desk.open(camera, stream::make_refresh(policy));
    maker->remember(camera, {{"city", camera}, forms});
  }
  /// So many patches follow, and windows are asked.
  void watch(const std::string& camera, int patches, int height = 1, int width = 2) {
    for (int i = 0; i < patches; ++i) {
      const auto next = static_cast<double>(room.desk.stream(camera).patches().last);
      room.desk.append(camera, patch_of(static_cast<float>(next), height, width, next),
                       start + std::chrono::seconds(static_cast<std::int64_t>(next) + 1));
      look(camera);
    }
  }
  void look(const std::string& camera) {
    const std::int64_t last = room.desk.stream(camera).patches().last;
    const stream::PatchRange window{
        std::max<std::int64_t>(room.desk.stream(camera).patches().first, last - 4), last};
    room.desk.slide(camera, window.first);
    const stream::WindowId id = room.ask(camera, window, {question});
    room.run();
    EXPECT_NE(room.answered(id), nullptr);
    room.desk.done(id);
    hear();
  }
  void show(const std::string& camera) {
    room.desk.show(camera);
    maker->complete(camera);
    hear();
  }
  void hear() {
    PageMaker::News news = maker->take_news();
    for (FreshPage& page : news.pages) pages.push_back(std::move(page));
    for (const auto& each : news.lost) lost.push_back(each);
  }
  /// Each as "gate 0-3: int4 6" for patches, forms and tokens.
  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    for (const FreshPage& page : pages) {
      std::string line = page.camera.camera + ' ' + std::to_string(page.info.patches.front().number) + '-' +
                         std::to_string(page.info.patches.back().number + 1) + ':';
      for (const run::MovedTokens& form : page.forms)
        line += ' ' + std::string(name_of(form.form)) + ' ' + std::to_string(form.tokens);
      all.push_back(line);
    }
    return all;
  }
};
using Lines = std::vector<std::string>;

}  // namespace vigil::memory::testing
