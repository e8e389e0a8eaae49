// What a window answers when its keys and values went through pages and came back at their own positions, in
// each form, beside the same window whole. A JSON object a line, of each window and question of stdin;
// tools/evaluation/forms.py asks, and makes tables of it.
//
//   page_answers MODEL_FOLDER [auto|f32|bf16 [DEVICE]] < WINDOWS
//     (DEVICE: cpu, cuda:0; a line: {"video": "...", "from": 0, "to": 10, "fps": 2, "questions": ["..."]})
//
// `computed`: the first question where all was computed, beside the same with kept keys. `again`: keys that
// are of bf16 already, packed in bf16 and unpacked once more, beside these; where the cache is of bf16, that
// is what `bf16` is, too.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/engine.h"
#include "engine/stream/refresh.h"
#include "engine/stream/stream_desk.h"
#include "engine/stream/yes_no.h"
#include "media/media.h"

namespace {

using namespace vigil;
using kv::Form;
using nlohmann::json;

constexpr std::array kForms{Form::bf16, Form::fp8, Form::int4};
/// As engine/memory/page_maker.h gathers them: whole patches, so many tokens or more.
constexpr std::int64_t kPageTokens = 256;
constexpr const char* kCamera = "window";

std::vector<model::VisualTokensPtr> see(engine::Engine& engine, const json& window) {
  const double fps = window.at("fps");
  media::ReadOptions options;
  options.fps = fps;
  options.from = window.at("from");
  options.to = window.at("to").get<double>();
  options.motion = false;
  options.size = [&](media::Size source) {
    const auto fitted = engine.encoder->frame_size({source.width, source.height});
    return media::Size{fitted.width, fitted.height};
  };
  const auto reader = media::VideoReader::open(window.at("video").get<std::string>(), options);
  std::vector<media::SampledFrame> frames;
  while (auto frame = reader->next()) frames.push_back(std::move(*frame));
  if (frames.empty()) throw std::runtime_error(window.at("video").get<std::string>() + ": no frame there");
  const auto each = static_cast<std::size_t>(engine.frames_per_patch);
  std::vector<run::PatchFrames> patches;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (i % each == 0)
      patches.push_back(
          {.frames = {}, .seconds = frames[i].seconds, .duration = static_cast<double>(each) / fps});
    const media::Image& image = *frames[i].image;
    patches.back().frames.push_back({image.rgb.data(), image.size.width, image.size.height});
  }
  return engine.encoder->encode(patches);
}

/// A window at the desk, as a camera's, whose keys stay there.
class Window {
 public:
  Window(engine::Engine& engine, const std::vector<model::VisualTokensPtr>& patches)
      : engine_(engine), desk_(*engine.language.desk) {
    desk_.open(kCamera, stream::make_refresh("none"));
    for (const model::VisualTokensPtr& patch : patches) {
      desk_.append(kCamera, patch);
      if (pages_.empty() || pages_.back() >= kPageTokens) pages_.push_back(0);
      pages_.back() += patch->count();
      tokens_ += patch->count();
    }
    patches_ = static_cast<std::int64_t>(patches.size());
  }
  ~Window() { desk_.close(kCamera); }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  /// The logits of the answer's first token. All of the first question is computed; of later ones what the
  /// visual tokens are is kept.
  std::vector<float> ask(const std::string& text) {
    stream::Asking asking;
    asking.patches = {0, patches_};
    asking.questions.push_back(
        {engine_.language.questions->compile({.text = text, .sampling = {}, .on_text = {}}), {}});
    const stream::WindowId id = desk_.ask(kCamera, std::move(asking));
    while (desk_.due()) desk_.work({});
    const stream::DeskNews news = desk_.take_news();
    if (news.answered.size() != 1) throw std::runtime_error("the window was not answered");
    if (news.answered[0].tokens.kept != (is_kept_ ? tokens_ : 0))
      throw std::runtime_error("the window's keys were not kept");
    is_kept_ = true;
    const std::span<const float> logits = engine_.language.passes->logits(0);
    std::vector<float> copy(logits.begin(), logits.end());
    desk_.done(id);
    return copy;
  }

  /// The pages of the window in a form.
  std::vector<run::MovedTokens> pack(Form form, kernels::HostMemory& memory) const {
    const std::span<const std::int32_t> slots = this->slots();
    std::vector<run::MovedTokens> pages;
    std::int64_t first = 0;
    for (const std::int64_t tokens : pages_) {
      const auto own = slots.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(tokens));
      auto page = engine_.language.mover->pack(own, form, memory);
      if (!page) throw std::runtime_error("no room for a page in the host's memory");
      page->arrived.wait();
      pages.push_back(std::move(*page));
      first += tokens;
    }
    return pages;
  }
  /// Back to where they were.
  void unpack(const std::vector<run::MovedTokens>& pages) {
    const std::span<const std::int32_t> slots = this->slots();
    std::int64_t first = 0;
    for (const run::MovedTokens& page : pages) {
      run::TokenMover::Unpacking unpacking;
      unpacking.form = page.form;
      unpacking.tokens = page.tokens;
      unpacking.bytes = {page.bytes.get(), page.size};
      unpacking.slots = slots.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(page.tokens));
      engine_.language.mover->unpack(unpacking);
      first += page.tokens;
    }
  }
  std::int64_t tokens() const { return tokens_; }

 private:
  std::span<const std::int32_t> slots() const {
    const std::span<const std::int32_t> slots = desk_.stream(kCamera).slots();
    if (static_cast<std::int64_t>(slots.size()) != tokens_)
      throw std::runtime_error("the window has other slots than visual tokens");
    return slots;
  }

  engine::Engine& engine_;
  stream::StreamDesk& desk_;
  std::vector<std::int64_t> pages_;
  std::int64_t tokens_ = 0, patches_ = 0;
  bool is_kept_ = false;
};

json compared(const stream::YesNo& yes_no, const std::vector<float>& logits,
              const std::vector<float>& whole) {
  double largest = 0;
  std::size_t differ = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    largest = std::max(largest, std::abs(double{logits[i]} - double{whole[i]}));
    differ += logits[i] == whole[i] ? 0U : 1U;
  }
  return {{"probability_yes", yes_no.probability(logits)}, {"largest", largest}, {"differ", differ}};
}

void answer(engine::Engine& engine, kernels::HostMemory& memory, const stream::YesNo& yes_no,
            const json& line) {
  Window window(engine, see(engine, line));
  const std::vector<std::string> questions = line.at("questions");
  // What the window says whole: the first time all is computed; then, with what it has kept.
  std::vector<std::vector<float>> computed{window.ask(questions.at(0))}, whole;
  for (const std::string& question : questions) whole.push_back(window.ask(question));
  std::vector<std::vector<run::MovedTokens>> forms;
  for (const Form form : kForms) forms.push_back(window.pack(form, memory));
  std::vector<json> results;
  for (std::size_t i = 0; i < questions.size(); ++i)
    results.push_back({{"video", line.at("video")},
                       {"from", line.at("from")},
                       {"question", questions[i]},
                       {"tokens", window.tokens()},
                       {"pages", forms.front().size()},
                       {"probability_yes", yes_no.probability(whole[i])}});
  results[0]["computed"] = compared(yes_no, computed[0], whole[0]);
  for (std::size_t form = 0; form < kForms.size(); ++form) {
    window.unpack(forms[form]);
    std::vector<std::vector<float>> back;
    for (const std::string& question : questions) back.push_back(window.ask(question));
    for (std::size_t i = 0; i < questions.size(); ++i)
      results[i]["forms"][std::string(name_of(kForms[form]))] = compared(yes_no, back[i], whole[i]);
    if (kForms[form] != Form::bf16) continue;
    window.unpack(window.pack(Form::bf16, memory));
    for (std::size_t i = 0; i < questions.size(); ++i)
      results[i]["again"] = compared(yes_no, window.ask(questions[i]), back[i]);
  }
  for (const json& each : results) std::cout << each.dump() << '\n';
  std::cout << std::flush;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2 || count > 4) {
    std::fprintf(stderr, "usage: page_answers MODEL_FOLDER [auto|f32|bf16 [DEVICE]] < WINDOWS\n");
    return EXIT_FAILURE;
  }
  try {
    engine::EngineOptions options;
    options.device = run::parse_device(count > 3 ? arguments[3] : "cpu");
    const std::string type = count > 2 ? arguments[2] : "auto";
    if (type != "auto" && type != "f32" && type != "bf16")
      throw std::invalid_argument("expected auto, f32 or bf16, not '" + type + "'");
    if (type != "auto") options.compute = type == "f32" ? kernels::DType::f32 : kernels::DType::bf16;
    engine::Engine engine = engine::make_engine(arguments[1], options);
    const auto memory = engine.language.mover->make_memory(std::uint64_t{1} << 30U);
    const stream::YesNo yes_no(*engine.language.model->folder);
    for (std::string line; std::getline(std::cin, line);) answer(engine, *memory, yes_no, json::parse(line));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "page_answers: %s\n", error.what());
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
