// A device that computes nothing but fingerprints: of each token, of all that it sees. So a test can say what
// an answer has to be, whatever the passes, pages and neighbours it came by.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/kv/book.h"
#include "engine/model/families/prompt.h"
#include "engine/model/model_folder.h"
#include "engine/past/past.h"
#include "engine/run/passes.h"
#include "engine/stream/compiled_question.h"
#include "kernels/device/buffer.h"

namespace vigil::stream::testing {

inline std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a * 0x9E3779B97F4A7C15ULL + b + 0xD1B54A32D192ED03ULL;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31U);
}

/// Of a token, and of where it lies beside the first token of its sequence.
struct Fingerprint {
  std::uint64_t value = 0;
  model::Position position;
  /// What stands for its key of the first layer, which depends on the token alone, and for the second one's,
  /// which depends on the first ones of those before it.
  std::uint64_t input = 0;
  std::uint64_t second = 0;
};

/// What stands for the second layer's key of a token that sees these before itself.
inline std::uint64_t second_key(std::uint64_t input, const model::Position& position,
                                std::span<const Fingerprint> before) {
  std::uint64_t value = mixed(2, input);
  for (const Fingerprint& each : before) {
    value = mixed(value, each.input);
    value = mixed(value, static_cast<std::uint64_t>(position.t - each.position.t));
    value = mixed(value, static_cast<std::uint64_t>(position.h - each.position.h));
    value = mixed(value, static_cast<std::uint64_t>(position.w - each.position.w));
  }
  return value;
}

/// How far two such keys are from each other.
inline float distance_of(std::uint64_t a, std::uint64_t b) {
  return a == b ? 0 : static_cast<float>(1 + (a ^ b) % 1000);
}

/// What a token is when it sees these before itself.
inline std::uint64_t fingerprint(std::uint64_t input, const model::Position& position,
                                 std::span<const Fingerprint> before) {
  std::uint64_t value = mixed(1, input);
  for (const Fingerprint& each : before) {
    value = mixed(value, each.value);
    // Rotations tell differences alone.
    value = mixed(value, static_cast<std::uint64_t>(position.t - each.position.t));
    value = mixed(value, static_cast<std::uint64_t>(position.h - each.position.h));
    value = mixed(value, static_cast<std::uint64_t>(position.w - each.position.w));
  }
  return value;
}

/// What follows a token: an answer ends after some words.
inline std::int32_t token_after(const model::ModelFolder& folder, std::uint64_t value) {
  if (value % 5 == 0) return folder.generation.end_token_ids.front();
  return static_cast<std::int32_t>(300 + value % 200);
}

/// What slid out of a camera's windows, in full.
struct SimulatedPast final : run::SequencePast {
  SimulatedPast(std::function<Fingerprint(std::int32_t)> read, int block, std::int64_t token)
      : read_(std::move(read)), of_block(block), of_token(token) {}

  void append(std::span<const std::int32_t> slots, std::span<const std::int32_t> times) override {
    if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
    ASSERT_EQ(slots.size(), times.size());
    if (blocks.empty() || (of_block > 0 && static_cast<int>(blocks.back().size()) == of_block))
      blocks.emplace_back();
    auto& patch = blocks.back().emplace_back();
    for (std::size_t i = 0; i < slots.size(); ++i) {
      patch.push_back(read_(slots[i]));
      EXPECT_EQ(patch.back().position.t, times[i]);
    }
    is_laid = false;
  }
  void lay() override {
    if (!blocks.empty() && of_token * newest() > allowed) {
      blocks.pop_back();
      throw std::invalid_argument("no room for a block");
    }
    drop_to_room();
    is_laid = true;
  }
  void forget_block() override {
    blocks.erase(blocks.begin());
    is_laid = blocks.empty();
  }
  void resize(std::int64_t host_bytes) override {
    allowed = host_bytes;
    drop_to_room();
  }
  std::int64_t tokens() const override { return static_cast<std::int64_t>(inputs().size()); }
  std::vector<int> patches() const override {
    std::vector<int> counts;
    for (const auto& block : blocks) counts.push_back(static_cast<int>(block.size()));
    return counts;
  }
  std::int64_t host_bytes() const override { return of_token * tokens(); }
  std::int64_t device_bytes() const override { return 3 * tokens(); }

  void drop_to_room() {
    while (blocks.size() > 1 && host_bytes() > allowed) forget_block();
  }
  std::int64_t newest() const {
    std::int64_t count = 0;
    for (const auto& patch : blocks.back()) count += static_cast<std::int64_t>(patch.size());
    return count;
  }

  /// Of all of its tokens.
  std::vector<std::uint64_t> inputs() const {
    std::vector<std::uint64_t> all;
    for (const auto& block : blocks)
      for (const auto& patch : block)
        for (const Fingerprint& token : patch) all.push_back(token.input);
    return all;
  }

  std::function<Fingerprint(std::int32_t)> read_;
  int of_block;
  std::int64_t of_token;
  std::vector<std::vector<std::vector<Fingerprint>>> blocks;
  bool is_laid = true;
  std::int64_t allowed = 0;
  /// Thrown by the next `append`.
  std::exception_ptr failure;
};

/// As late as it may: passes of which nothing comes out are run when one follows of which something does.
class SimulatedPasses final : public run::Passes {
 public:
  SimulatedPasses(const model::ModelFolder& folder, const kv::Book& book)
      : folder_(folder),
        book_(book),
        cache_(static_cast<std::size_t>(book.tokens())),
        written_(cache_.size()),
        logits_(static_cast<std::size_t>(folder.config.text.vocab_size)) {}

  /// Called before a pass; what it throws, the pass throws, having scribbled over its slots.
  std::function<void(const run::Pass&)> before;
  /// Called before keys are looked at; what it throws, `key_distances` does, having scribbled over what it
  /// writes.
  std::function<void(const run::Pass&)> before_probe;
  /// Called with what came of looking at keys, which it may change.
  std::function<void(const run::Pass&, std::span<float>)> measured;
  /// Called before pages are copied; what it throws, that does.
  std::function<void()> before_copy;
  /// Called before a past is made; what it throws, that does. And the last that was made.
  std::function<void(const past::PastOptions&)> before_past;
  SimulatedPast* last_past = nullptr;
  /// Bytes that a token of it takes of the host.
  std::int64_t past_token = 2;
  /// Called before the likeliest token, or logits, are read; what they throw, that does.
  std::function<void(std::size_t)> likeliest_before;
  std::function<void()> logits_before;
  /// Whose windows go on here.
  const SimulatedPasses* other = nullptr;
  std::uint64_t passes = 0;
  std::int64_t rows = 0;
  std::int64_t most_rows = 0;
  std::uint64_t probes = 0;
  std::int64_t probed_rows = 0;
  std::size_t copied = 0;

  void run(const run::Pass& pass) override {
    ++passes;
    check(pass);
    try {
      if (before) before(pass);
    } catch (...) {
      for (const auto& segment : pass.segments)
        for (const std::int32_t own : segment.own) slot_of(segment, own) = {0xBAD, {}, 0xBAD, 0xBAD};
      throw;
    }
    outputs_.assign(pass.outputs.begin(), pass.outputs.end());
    const auto of_pass = static_cast<std::int64_t>(pass.positions.size());
    rows += of_pass;
    most_rows = std::max(most_rows, of_pass);
    submitted_.emplace_back(pass);
    if (!outputs_.empty()) catch_up();
  }

  std::span<const float> key_distances(const run::Pass& pass) override {
    ++probes;
    probed_rows += static_cast<std::int64_t>(pass.positions.size());
    most_rows = std::max(most_rows, static_cast<std::int64_t>(pass.positions.size()));
    catch_up();
    try {
      if (before_probe) before_probe(pass);
    } catch (...) {
      for (const auto& segment : pass.segments)
        for (std::size_t i = 0; i < segment.own.size(); ++i)
          if (!std::binary_search(
                  pass.outputs.begin(), pass.outputs.end(),
                  static_cast<std::int32_t>(segment.first_row) + static_cast<std::int32_t>(i)))
            slot_of(segment, segment.own[i]) = {0xBAD, {}, 0xBAD, 0xBAD};
      throw;
    }
    const std::vector<std::uint64_t> inputs = inputs_of(Submitted(pass));
    distances_.clear();
    auto output = pass.outputs.begin();
    std::size_t row = 0;
    std::vector<Fingerprint> seen;
    for (const kernels::AttentionSegment& segment : pass.segments)
      for (const std::int32_t own : segment.own) {
        Fingerprint& slot = slot_of(segment, own);
        if (output == pass.outputs.end() || *output != static_cast<std::int32_t>(row)) {
          // Nobody may read more of it than was written.
          slot = {0xBAD, pass.positions[row], inputs[row], 0xBAD};
        } else {
          EXPECT_EQ(slot.input, inputs[row]) << "a key of another token";
          EXPECT_EQ(slot.position, pass.positions[row]) << "a key of another place";
          seen.clear();
          for (std::int32_t key = 0; key < own; ++key) seen.push_back(slot_of(segment, key));
          distances_.push_back(distance_of(slot.second, second_key(inputs[row], pass.positions[row], seen)));
          ++output;
        }
        ++row;
      }
    EXPECT_EQ(row, inputs.size());
    if (measured) measured(pass, distances_);
    return distances_;
  }

  std::int32_t likeliest(std::size_t i) const override {
    if (likeliest_before) likeliest_before(i);
    return token_after(folder_, values_[static_cast<std::size_t>(outputs_[i])]);
  }
  std::span<const model::Candidate> likeliest(std::size_t, std::size_t) override {
    throw std::logic_error("not simulated");
  }
  std::span<const float> logits(std::size_t i) override {
    if (logits_before) logits_before();
    const std::uint64_t value = values_[static_cast<std::size_t>(outputs_[i])];
    for (std::size_t id = 0; id < logits_.size(); ++id)
      logits_[id] = static_cast<float>(mixed(value, id) % 1000) / 500;
    return logits_;
  }
  void copy_pages(std::span<const kv::PageCopy> copies) override {
    if (before_copy) before_copy();
    catch_up();
    copied += copies.size();
    const int tokens = book_.page_tokens();
    for (const kv::PageCopy& copy : copies)
      std::copy_n(cache_.begin() + std::int64_t{copy.from} * tokens, tokens,
                  cache_.begin() + std::int64_t{copy.to} * tokens);
  }
  void take_pages(std::span<const kv::PageCopy> copies) override {
    catch_up();
    const int tokens = book_.page_tokens();
    for (const kv::PageCopy& copy : copies)
      std::copy_n(other->cache_.begin() + std::int64_t{copy.from} * tokens, tokens,
                  cache_.begin() + std::int64_t{copy.to} * tokens);
  }
  std::size_t page_bytes() const override {
    return static_cast<std::size_t>(book_.page_tokens()) * sizeof cache_[0];
  }
  std::uint64_t pages_form() const override { return static_cast<std::uint64_t>(book_.page_tokens()); }
  void read_pages(std::span<const kv::PageId> pages, std::byte* to) override {
    if (before_copy) before_copy();
    catch_up();
    for (const kv::PageId page : pages) {
      std::memcpy(to, &cache_[static_cast<std::size_t>(page * book_.page_tokens())], page_bytes());
      to += page_bytes();
    }
  }
  void write_pages(std::span<const kv::PageId> pages, std::span<const std::byte* const> from) override {
    catch_up();
    for (std::size_t i = 0; i < pages.size(); ++i)
      std::memcpy(&cache_[static_cast<std::size_t>(pages[i] * book_.page_tokens())], from[i], page_bytes());
    if (before_copy) before_copy();
  }
  void settle() noexcept override { catch_up(); }
  std::unique_ptr<run::SequencePast> make_past(const past::PastOptions& options) override {
    if (before_past) before_past(options);
    auto past = std::make_unique<SimulatedPast>([this](std::int32_t slot) { return read(slot); },
                                                options.block_patches, past_token);
    past->allowed = options.host_bytes;
    last_past = past.get();
    return past;
  }

  /// What is in a slot when all that was submitted has run.
  std::uint64_t value_at(std::int32_t slot) {
    catch_up();
    return cache_[static_cast<std::size_t>(slot)].value;
  }

  /// What stands for the keys and values in a slot, for a copy of them elsewhere.
  Fingerprint read(std::int32_t slot) {
    catch_up();
    return cache_[static_cast<std::size_t>(slot)];
  }
  void write(std::int32_t slot, const Fingerprint& value) {
    catch_up();
    cache_[static_cast<std::size_t>(slot)] = value;
  }

  static std::uint64_t input_of(std::int32_t token) { return static_cast<std::uint64_t>(token) + 1; }
  static std::uint64_t input_of(float visual) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &visual, sizeof bits);
    return (std::uint64_t{1} << 40U) + bits;
  }

 private:
  /// What a device has of a pass when it is submitted: all but the embeddings, which it reads when it runs.
  struct Submitted {
    explicit Submitted(const run::Pass& pass) : positions(pass.positions) {
      for (const run::Pass::Rows& each : pass.rows) {
        tokens.emplace_back(each.tokens.begin(), each.tokens.end());
        embedded.push_back(each.embedded);
      }
      for (const kernels::AttentionSegment& each : pass.segments)
        segments.push_back({{each.keys.begin(), each.keys.end()}, {each.own.begin(), each.own.end()}});
    }
    std::vector<std::vector<std::int32_t>> tokens;
    std::vector<kernels::ConstMatrix> embedded;
    std::vector<model::Position> positions;
    struct Segment {
      std::vector<std::int32_t> keys, own;
    };
    std::vector<Segment> segments;
  };

  void catch_up() {
    for (const Submitted& pass : std::exchange(submitted_, {})) execute(pass);
  }

  static std::vector<std::uint64_t> inputs_of(const Submitted& pass) {
    std::vector<std::uint64_t> inputs;
    for (std::size_t i = 0; i < pass.tokens.size(); ++i) {
      for (const std::int32_t token : pass.tokens[i]) inputs.push_back(input_of(token));
      if (!pass.tokens[i].empty()) continue;
      for (std::int64_t row = 0; row < pass.embedded[i].rows; ++row)
        inputs.push_back(input_of(pass.embedded[i].row<float>(row)[0]));
    }
    return inputs;
  }

  void execute(const Submitted& pass) {
    const std::vector<std::uint64_t> inputs = inputs_of(pass);
    values_.assign(inputs.size(), 0);
    std::vector<Fingerprint> seen;
    std::size_t row = 0;
    for (const Submitted::Segment& segment : pass.segments)
      for (const std::int32_t own : segment.own) {
        const auto slot = [&](std::int32_t key) -> Fingerprint& {
          return cache_[static_cast<std::size_t>(segment.keys[static_cast<std::size_t>(key)])];
        };
        seen.clear();
        for (std::int32_t key = 0; key < own; ++key) seen.push_back(slot(key));
        values_[row] = fingerprint(inputs[row], pass.positions[row], seen);
        slot(own) = {values_[row], pass.positions[row], inputs[row],
                     second_key(inputs[row], pass.positions[row], seen)};
        ++row;
      }
  }

  Fingerprint& slot_of(const kernels::AttentionSegment& segment, std::int32_t key) {
    return cache_[static_cast<std::size_t>(segment.keys[static_cast<std::size_t>(key)])];
  }

  void check(const run::Pass& pass) {
    std::int64_t rows_in = 0;
    for (const run::Pass::Rows& each : pass.rows) rows_in += each.count();
    std::int64_t next = 0;
    for (const kernels::AttentionSegment& segment : pass.segments) {
      ASSERT_EQ(segment.first_row, next) << "segments follow each other";
      next += static_cast<std::int64_t>(segment.own.size());
      for (const std::int32_t slot : segment.keys)
        ASSERT_GT(book_.references(slot / book_.page_tokens()), 0) << "a page that nobody has";
      for (const std::int32_t own : segment.own)
        ASSERT_LT(static_cast<std::size_t>(own), segment.keys.size());
    }
    // What a segment writes, those behind it may see, and nobody else writes.
    for (auto segment = pass.segments.rbegin(); segment != pass.segments.rend(); ++segment) {
      for (const std::int32_t slot : segment->keys)
        ASSERT_NE(written_[static_cast<std::size_t>(slot)], passes) << "it is written while it is read";
      for (const std::int32_t own : segment->own)
        written_[static_cast<std::size_t>(segment->keys[static_cast<std::size_t>(own)])] = passes;
    }
    ASSERT_EQ(next, rows_in);
    ASSERT_EQ(static_cast<std::int64_t>(pass.positions.size()), rows_in);
  }

  const model::ModelFolder& folder_;
  const kv::Book& book_;
  std::vector<Fingerprint> cache_;
  std::vector<Submitted> submitted_;
  /// The last pass that wrote to a slot.
  std::vector<std::uint64_t> written_;
  std::vector<std::uint64_t> values_;
  std::vector<std::int32_t> outputs_;
  std::vector<float> logits_, distances_;
};

/// Forgets visual tokens: their memory is another's, with another's values, for whoever still reads it.
struct Forget {
  void operator()(model::VisualTokens* patch) const {
    constexpr std::size_t kMost = 256;
    static std::deque<std::unique_ptr<model::VisualTokens>> forgotten;
    std::fill_n(patch->embeddings.as<float>(), patch->embeddings.bytes() / sizeof(float), -1.0F);
    forgotten.emplace_back(patch);
    if (forgotten.size() > kMost) forgotten.pop_front();
  }
};

/// The visual tokens of a patch, of these groups alone, whose first values count up from `seed`.
inline model::VisualTokensPtr patch_of(float seed, base::GridMask groups, double seconds = 0,
                                       double duration = 1) {
  const std::shared_ptr<model::VisualTokens> patch(new model::VisualTokens, Forget());
  const kernels::Stream stream = kernels::Stream::cpu(1);
  patch->kept = std::move(groups);
  patch->seconds = seconds;
  patch->duration = duration;
  constexpr std::int64_t kWidth = 4;
  patch->width = kWidth;
  patch->embeddings =
      kernels::Buffer(stream, static_cast<std::size_t>(patch->count() * kWidth) * sizeof(float));
  for (std::int64_t i = 0; i < patch->count() * kWidth; ++i)
    patch->embeddings.as<float>()[i] = seed + static_cast<float>(i / kWidth) / 64;
  return patch;
}
inline model::VisualTokensPtr patch_of(float seed, int height = 1, int width = 2, double seconds = 0,
                                       double duration = 1) {
  return patch_of(seed, base::GridMask::all(height, width), seconds, duration);
}

/// The answer's tokens about a window of these patches, as a device that has nothing else to do would say it.
inline std::vector<std::int32_t> expected_tokens(const model::ModelFolder& folder,
                                                 const model::PromptBuilder& prompts,
                                                 std::span<const model::VisualTokensPtr> patches,
                                                 const CompiledQuestion& question) {
  std::vector<model::Position> positions;
  model::PositionCursor cursor;
  std::vector<std::uint64_t> inputs;
  for (const std::int32_t token : prompts.before_tokens()) inputs.push_back(SimulatedPasses::input_of(token));
  cursor.text(prompts.before(), positions);
  std::vector<model::PositionCursor::Patch> grid;
  // Patches of one duration; those of tests that do not care about time all begin at 0.
  std::int64_t step = 0;
  for (const model::VisualTokensPtr& patch : patches) {
    step = std::max(step, std::lround((patch->seconds - patches.front()->seconds) / patch->duration));
    grid.push_back({&patch->kept, step * model::time_interval(folder.config.vision, patch->duration)});
    ++step;
  }
  cursor.grid(grid, positions, folder.config.text.traits.time_axes);
  for (const model::VisualTokensPtr& patch : patches)
    for (std::int64_t i = 0; i < patch->count(); ++i)
      inputs.push_back(SimulatedPasses::input_of(patch->rows(i, 1).row<float>(0)[0]));
  for (const std::int32_t token : question.tokens) inputs.push_back(SimulatedPasses::input_of(token));
  cursor.text(static_cast<std::int64_t>(question.tokens.size()), positions);

  std::vector<Fingerprint> seen;
  const auto add = [&](std::uint64_t input, const model::Position& position) {
    seen.push_back({fingerprint(input, position, seen), position, input, 0});
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) add(inputs[i], positions[i]);
  std::vector<std::int32_t> tokens;
  while (true) {
    const std::int32_t token = token_after(folder, seen.back().value);
    if (folder.generation.ends(token)) return tokens;
    tokens.push_back(token);
    if (static_cast<int>(tokens.size()) == question.max_tokens) return tokens;
    positions.clear();
    cursor.generated(positions);
    add(SimulatedPasses::input_of(token), positions.front());
  }
}

}  // namespace vigil::stream::testing
