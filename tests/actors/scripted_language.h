// A language model that says what a script has for what it sees last: the real desk over it, with passes that
// compute nothing.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "actors/device/engine_parts.h"
#include "engine/kv/book.h"
#include "engine/model/families/prompt.h"
#include "engine/run/passes.h"
#include "engine/stream/compiled_question.h"
#include "engine/stream/stream_desk.h"
#include "tests/actors/fakes.h"
#include "tests/engine/demo_model.h"

namespace vigil::actors::testing {

/// Says Yes with the probability (value / 100) of the last visual token, and goes on as "Yes, a 90." for one
/// of 90. A window that ends in 254 cannot be asked; of one that ends in 99 there are no words.
class ScriptedPasses final : public run::Passes {
 public:
  ScriptedPasses(const model::ModelFolder& folder, const kv::Book& book)
      : folder_(folder), slots_(static_cast<std::size_t>(book.tokens())), page_tokens_(book.page_tokens()) {}

  /// What happens while it asks so many windows, or takes so many texts a token further.
  std::function<void(std::size_t windows)> on_ask;
  std::function<void(std::size_t texts)> on_generate;
  /// Of each pass with questions, how many windows; of each with texts, how many.
  std::vector<std::size_t> asked, generated;
  /// Whose windows go on here.
  const ScriptedPasses* other = nullptr;
  /// Makes what lies before windows; nothing: it cannot.
  std::function<std::unique_ptr<run::SequencePast>(const past::PastOptions&)> past;

  void run(const run::Pass& pass) override {
    std::size_t windows = 0, questions = 0, texts = 0;
    std::vector<const run::Pass::Rows*> of_row;
    std::vector<std::int64_t> at;
    for (const run::Pass::Rows& rows : pass.rows)
      for (std::int64_t i = 0; i < rows.count(); ++i) {
        of_row.push_back(&rows);
        at.push_back(i);
      }
    for (const kernels::AttentionSegment& segment : pass.segments) {
      const auto first = static_cast<std::size_t>(segment.first_row);
      const bool has_output = std::any_of(pass.outputs.begin(), pass.outputs.end(), [&](std::int32_t row) {
        return row >= segment.first_row &&
               row < segment.first_row + static_cast<std::int64_t>(segment.own.size());
      });
      if (!has_output) {
        ++windows;
      } else if (segment.own.size() > 1) {
        ++questions;
      } else {
        ++texts;
      }
      for (std::size_t i = 0; i < segment.own.size(); ++i) {
        const run::Pass::Rows& rows = *of_row[first + i];
        Slot& slot = slot_of(segment, segment.own[i]);
        if (rows.tokens.empty()) {
          slot = {true, rows.embedded.row<float>(at[first + i])[0], 0};
        } else {
          slot = {false, 0, rows.tokens[static_cast<std::size_t>(at[first + i])]};
        }
      }
    }
    if (questions > 0) asked.push_back(std::max<std::size_t>(windows, 1));
    if (texts > 0) generated.push_back(texts);
    if (questions > 0 && on_ask) on_ask(asked.back());
    if (texts > 0 && on_generate) on_generate(texts);
    outputs_.clear();
    for (const kernels::AttentionSegment& segment : pass.segments)
      for (const std::int32_t row : pass.outputs) {
        const std::int64_t i = row - segment.first_row;
        if (i >= 0 && i < static_cast<std::int64_t>(segment.own.size()))
          outputs_.push_back(output_of(segment, segment.own[static_cast<std::size_t>(i)]));
      }
  }

  std::span<const float> key_distances(const run::Pass& pass) override {
    distances_.assign(pass.outputs.size(), 0.0F);
    return distances_;
  }
  std::int32_t likeliest(std::size_t i) const override { return outputs_[i].next; }
  std::span<const model::Candidate> likeliest(std::size_t, std::size_t) override {
    throw std::logic_error("not scripted");
  }
  std::span<const float> logits(std::size_t i) override {
    const double yes = std::clamp(outputs_[i].value / 100.0, 1e-6, 1 - 1e-6);
    logits_.assign(static_cast<std::size_t>(folder_.config.text.vocab_size),
                   -std::numeric_limits<float>::infinity());
    logits_[static_cast<std::size_t>(folder_.text().encode("Yes").at(0))] = static_cast<float>(std::log(yes));
    logits_[static_cast<std::size_t>(folder_.text().encode("No").at(0))] =
        static_cast<float>(std::log(1 - yes));
    return logits_;
  }
  void copy_pages(std::span<const kv::PageCopy> copies) override { copy(copies, slots_); }
  void take_pages(std::span<const kv::PageCopy> copies) override { copy(copies, other->slots_); }
  std::size_t page_bytes() const override { return static_cast<std::size_t>(page_tokens_) * sizeof(Slot); }
  /// Another number is another model's.
  std::uint64_t form = 1;
  std::uint64_t pages_form() const override { return form; }
  void read_pages(std::span<const kv::PageId> pages, std::byte* to) override {
    for (const kv::PageId page : pages) {
      std::memcpy(to, slots_.data() + std::int64_t{page} * page_tokens_, page_bytes());
      to += page_bytes();
    }
  }
  void write_pages(std::span<const kv::PageId> pages, std::span<const std::byte* const> from) override {
    for (std::size_t i = 0; i < pages.size(); ++i)
      std::memcpy(slots_.data() + std::int64_t{pages[i]} * page_tokens_, from[i], page_bytes());
  }
  void settle() noexcept override {}
  std::unique_ptr<run::SequencePast> make_past(const past::PastOptions& options) override {
    return past ? past(options) : run::Passes::make_past(options);
  }

  /// What is said of a window that ends in this value.
  std::vector<std::int32_t> words(float value) const {
    return folder_.text().encode((value >= 50 ? "Yes, a " : "No, a ") +
                                 std::to_string(static_cast<int>(value)) + '.');
  }

 private:
  struct Slot {
    bool is_visual = false;
    float value = 0;
    std::int32_t token = 0;
  };
  struct Output {
    float value = 0;
    std::int32_t next = 0;
  };

  Slot& slot_of(const kernels::AttentionSegment& segment, std::int32_t key) {
    return slots_[static_cast<std::size_t>(segment.keys[static_cast<std::size_t>(key)])];
  }

  Output output_of(const kernels::AttentionSegment& segment, std::int32_t own) {
    Output output;
    std::vector<std::int32_t> said;
    for (std::int32_t key = own; key >= 0; --key) {
      const Slot& slot = slot_of(segment, key);
      if (slot.is_visual) {
        output.value = slot.value;
        break;
      }
      said.insert(said.begin(), slot.token);
    }
    if (output.value == 254) throw std::invalid_argument("a window without room");
    const std::vector<std::int32_t> all = words(output.value);
    // As much of it as was said so far.
    std::size_t count = std::min(all.size(), said.size());
    while (count > 0 && !std::equal(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count),
                                    said.end() - static_cast<std::ptrdiff_t>(count)))
      --count;
    if (count > 0 && output.value == 99) throw std::invalid_argument("no words");
    output.next = count == all.size() ? folder_.generation.end_token_ids.front() : all[count];
    return output;
  }

  void copy(std::span<const kv::PageCopy> copies, const std::vector<Slot>& from) {
    for (const kv::PageCopy& each : copies)
      std::copy_n(from.begin() + std::int64_t{each.from} * page_tokens_, page_tokens_,
                  slots_.begin() + std::int64_t{each.to} * page_tokens_);
  }

  const model::ModelFolder& folder_;
  std::vector<Slot> slots_;
  int page_tokens_;
  std::vector<Output> outputs_;
  std::vector<float> logits_, distances_;
};

/// A desk over scripted passes, of a byte a token.
struct ScriptedLanguage {
  static constexpr int kPageTokens = 8;

  explicit ScriptedLanguage(std::int64_t pages = 1000, stream::PassLimits limits = {},
                            std::int64_t memory_bytes = stream::StreamDesk::Options().memory_bytes)
      : book(pages, kPageTokens),
        desk(*folder, prompts, book, passes,
             {.limits = limits,
              .epoch = epochs()++,
              .page_bytes = kPageTokens,
              .memory = {},
              .memory_bytes = memory_bytes}) {}

  /// Pages of a window of so many patches of one token with questions like these.
  std::int64_t pages_of(int patches, const std::vector<config::RuleSettings>& rules) {
    std::vector<stream::CompiledQuestionPtr> compiled;
    for (const config::RuleSettings& rule : rules)
      compiled.push_back(questions.compile({.text = rule.prompt,
                                            .max_tokens = rule.explain ? rule.max_tokens : 1,
                                            .sampling = {},
                                            .on_text = {}}));
    return desk.pages_for(patches, compiled);
  }

  std::shared_ptr<const model::ModelFolder> folder = stream::testing::demo_model();
  model::PromptBuilder prompts = folder->prompts();
  kv::Book book;
  ScriptedPasses passes{*folder, book};
  stream::QuestionCompiler questions{*folder, prompts};
  stream::StreamDesk desk;

 private:
  static std::uint32_t& epochs() {
    static std::uint32_t count = 0;
    return count;
  }
};

/// The parts of a device; the twins have to outlive the pipeline. `owner`: what all of them keep alive.
inline EngineParts parts(run::VisionEncoder& encoder, ScriptedLanguage& language,
                         ScriptedLanguage* decoder = nullptr, const std::shared_ptr<void>& owner = nullptr) {
  EngineParts made{{owner, &encoder}, {owner, &language.desk}, {owner, &language.questions}};
  if (decoder != nullptr) made.decoder = {owner, &decoder->desk};
  return made;
}

inline DeviceSlot slot(run::VisionEncoder& encoder, ScriptedLanguage& language,
                       const std::string& name = "cpu") {
  return {name, parts(encoder, language), {}};
}

}  // namespace vigil::actors::testing
