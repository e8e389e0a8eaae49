// Windows of a stream with masks and gaps, beside what transformers' language model says of the same tokens
// at the same places (tools/golden_stream.py).
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/model/files/safetensors.h"
#include "engine/run/cached_model.h"
#include "engine/run/pass_runner.h"
#include "engine/stream/refresh.h"
#include "engine/stream/stream_desk.h"
#include "tests/engine/demo_model.h"

namespace vigil::stream {
namespace {

/// Keeps the logits of all that was chosen.
class RecordedPasses final : public run::Passes {
 public:
  explicit RecordedPasses(run::Passes& passes) : passes_(passes) {}

  void run(const run::Pass& pass) override {
    passes_.run(pass);
    for (std::size_t i = 0; i < pass.outputs.size(); ++i) {
      const std::span<const float> row = passes_.logits(i);
      recorded.emplace_back(row.begin(), row.end());
    }
    for (const model::Position& position : pass.positions) farthest = std::max(farthest, position.t);
  }
  std::int32_t likeliest(std::size_t i) const override { return passes_.likeliest(i); }
  std::span<const model::Candidate> likeliest(std::size_t i, std::size_t count) override {
    return passes_.likeliest(i, count);
  }
  std::span<const float> logits(std::size_t i) override { return passes_.logits(i); }
  std::span<const float> key_distances(const run::Pass& pass) override { return passes_.key_distances(pass); }
  void copy_pages(std::span<const kv::PageCopy> copies) override { passes_.copy_pages(copies); }
  void take_pages(std::span<const kv::PageCopy> copies) override { passes_.take_pages(copies); }
  std::size_t page_bytes() const override { return passes_.page_bytes(); }
  std::uint64_t pages_form() const override { return passes_.pages_form(); }
  void read_pages(std::span<const kv::PageId> pages, std::byte* to) override {
    passes_.read_pages(pages, to);
  }
  void write_pages(std::span<const kv::PageId> pages, std::span<const std::byte* const> from) override {
    passes_.write_pages(pages, from);
  }
  void settle() noexcept override { passes_.settle(); }

  std::vector<std::vector<float>> recorded;
  std::int32_t farthest = 0;

 private:
  run::Passes& passes_;
};

constexpr double kMonth = 30.0 * 86'400;

class WindowGoldenTest : public ::testing::Test {
 protected:
  template <class T>
  std::span<const T> values(const std::string& name) const {
    const model::TensorView* tensor = golden_->find(name);
    if (tensor == nullptr) throw std::logic_error(name);
    return {reinterpret_cast<const T*>(tensor->data), static_cast<std::size_t>(tensor->elements())};
  }

  /// The patches of the file, so much later.
  std::vector<model::VisualTokensPtr> patches(double later) const {
    const std::vector<std::int64_t>& shape = golden_->find("groups")->shape;
    const std::int64_t width = golden_->find("levels")->shape[1];
    const auto groups = values<std::uint8_t>("groups"), levels = values<std::uint8_t>("levels");
    const auto seconds = values<std::int32_t>("seconds");
    std::vector<model::VisualTokensPtr> made;
    std::size_t from = 0;
    for (std::int64_t number = 0; number < shape[0]; ++number) {
      const auto patch = std::make_shared<model::VisualTokens>();
      patch->kept = base::GridMask::none(shape[1], shape[2]);
      for (std::int64_t cell = 0; cell < shape[1] * shape[2]; ++cell)
        if (groups[static_cast<std::size_t>(number * shape[1] * shape[2] + cell)] != 0)
          patch->kept.add(static_cast<std::int32_t>(cell));
      patch->width = width;
      patch->seconds = later + seconds[static_cast<std::size_t>(number)];
      patch->duration = 1;
      const auto count = static_cast<std::size_t>(patch->count() * width);
      patch->embeddings = kernels::Buffer(kernels::Stream::cpu(1), count * sizeof(float));
      for (std::size_t i = 0; i < count; ++i)
        patch->embeddings.as<float>()[i] = static_cast<float>(levels[from + i] - 128) / 64;
      from += count;
      made.push_back(patch);
    }
    EXPECT_EQ(from, levels.size());
    return made;
  }

  /// Asks all windows of the file, in order, of a stream that is refreshed in this way and runs for so long
  /// before them. |made - expected| / |expected| of the logits that are farthest off.
  void ask(const std::string& policy, double later, const PassLimits& limits, double& farthest_off) {
    farthest_off = 0;
    SCOPED_TRACE(policy + " after " + std::to_string(later) + " s, " + std::to_string(limits.rows) + " rows");
    RecordedPasses passes(runner_);
    StreamDesk desk(*model_.folder, model_.prompts, model_.book, passes, {.limits = limits});
    desk.open("gate", make_refresh(policy, {.share = 1}));
    std::int64_t begin = 0;
    if (later > 0) {
      // What the camera saw first, a month ago.
      const auto first = std::make_shared<model::VisualTokens>();
      first->kept = base::GridMask::none(3, 4);
      first->width = golden_->find("levels")->shape[1];
      first->duration = 1;
      begin = desk.append("gate", first) + 1;
    }
    const auto question = questions_.compile({.text = golden_->metadata().find("question")->second,
                                              .max_tokens = 3,
                                              .sampling = {},
                                              .on_text = {}});
    const std::vector<model::VisualTokensPtr> all = patches(later);
    std::int64_t appended = 0;
    for (const std::string name : {"first", "slid", "last"}) {
      const auto range = values<std::int32_t>(name + "/patches");
      for (; appended < range[1]; ++appended)
        ASSERT_EQ(desk.append("gate", all[static_cast<std::size_t>(appended)]), begin + appended);
      desk.slide("gate", begin + range[0]);
      const auto ids = [this, &name](const char* part) {
        const auto golden = values<std::int32_t>(name + "/" + part);
        return std::vector<std::int32_t>(golden.begin(), golden.end());
      };
      const auto before = model_.prompts.before_tokens();
      ASSERT_EQ(std::vector<std::int32_t>(before.begin(), before.end()), ids("before"));
      ASSERT_EQ(question->tokens, ids("after"));

      passes.recorded.clear();
      Asking asking;
      asking.patches = {begin + range[0], begin + range[1]};
      asking.questions.push_back({question});
      const WindowId window = desk.ask("gate", std::move(asking));
      while (desk.due()) desk.work({});
      DeskNews news = desk.take_news();
      ASSERT_EQ(news.answered.size(), 1U);
      const WindowTokens& tokens = news.answered[0].tokens;
      EXPECT_EQ(tokens.kept > 0, policy != "all" && name != "first") << name;
      EXPECT_EQ(tokens.refreshed, policy == "none" ? 0 : tokens.kept) << name;
      ASSERT_TRUE(desk.explain(window, 0));
      while (desk.due()) desk.work({});
      news = desk.take_news();
      ASSERT_EQ(news.told.size(), 1U);
      desk.done(window);
      if (policy == "none")
        passes.recorded.resize(1);
      else
        EXPECT_EQ(news.told[0].answer.tokens, ids("tokens")) << name;

      const auto logits = values<float>(name + "/logits");
      ASSERT_EQ(passes.recorded.size(), policy == "none" ? 1 : ids("tokens").size());
      for (std::size_t step = 0; step < passes.recorded.size(); ++step) {
        const std::vector<float>& found = passes.recorded[step];
        const auto expected = logits.subspan(step * found.size(), found.size());
        double error = 0, size = 0;
        for (std::size_t i = 0; i < found.size(); ++i) {
          error += std::pow(double{found[i]} - expected[i], 2);
          size += std::pow(double{expected[i]}, 2);
        }
        farthest_off = std::max(farthest_off, std::sqrt(error / size));
      }
    }
    EXPECT_EQ(passes.farthest >= 2 * kMonth, later > 0 && policy != "all");
  }

  void expect_as_golden(const std::string& policy, double later, const PassLimits& limits) {
    double farthest_off = INFINITY;
    ask(policy, later, limits, farthest_off);
    EXPECT_LT(farthest_off, 1e-5) << policy << " after " << later << " s";
  }

  const std::shared_ptr<const model::SafetensorsFile> golden_ =
      model::SafetensorsFile::open(VIGIL_SOURCE_DIR "/tests/golden/stream.safetensors");
  run::CachedModel model_{testing::demo_model(),
                          {.compute = kernels::DType::f32, .kv_tokens = 1024, .page_tokens = 8}};
  run::PassRunner runner_{model_, {kernels::Stream::cpu(2)}};
  QuestionCompiler questions_{*model_.folder, model_.prompts};
};

// In one pass and in many.
TEST_F(WindowGoldenTest, ComputedWholeTheySayWhatTransformersSays) {
  for (const std::int64_t rows : {1024, 7}) {
    expect_as_golden("all", 0, {.rows = rows});
    expect_as_golden("all", kMonth, {.rows = rows});
  }
}

// Rows that are computed again among keys that are there, where the stream is: rotations depend on
// differences of positions alone.
TEST_F(WindowGoldenTest, WithAllKeysRefreshedTheySayTheSameAlsoAfterAMonth) {
  for (const char* policy : {"first-k", "random-k", "topk"})
    for (const std::int64_t rows : {1024, 7}) {
      expect_as_golden(policy, 0, {.rows = rows});
      expect_as_golden(policy, kMonth, {.rows = rows});
    }
}

TEST_F(WindowGoldenTest, WithNoneRefreshedTheirLogitsAreOthers) {
  double farthest_off = 0;
  ask("none", 0, {}, farthest_off);
  EXPECT_GT(farthest_off, 1e-3) << "else all of this would prove nothing";
}

}  // namespace
}  // namespace vigil::stream
