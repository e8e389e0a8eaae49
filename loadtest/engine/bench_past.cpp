// What a past that is reached through retrieval costs in answers: windows of a video, of which the last
// seconds lie in the pages whole and the rest is fetched as each way chooses. A JSON object a line: a
// window's answers by each way, with what was fetched.
//
//   bench_past MODEL WINDOWS.json WAY...
//
// WINDOWS.json: a list of {"video", "start", "seconds", "rules": {rule: true or false or null}}. A way is
// "whole" (all in the pages), "window" (the last seconds alone), a control and its share ("recent:0.33"), or
// a form of ReSV and its threshold ("resv:0.3"), either with patches of a block behind it ("resv:0.3:8"),
// and then Th_hp ("resv:0.3:0:4"), and then whether it is chosen a layer ahead by guesses
// ("resv:0.3:0:7:ahead"). "guess:" and a form: which share of the true sets (tokens that a layer's queries
// choose) is in what is chosen by the layer before's queries ("before"), and by a guess of the layer's own
// from what entered the layer before ("ahead"), with how many tokens these are, of the true ones.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/kv/view.h"
#include "engine/past/past.h"
#include "engine/past/past_attend.h"
#include "engine/run/cached_model.h"
#include "engine/run/pass_runner.h"
#include "engine/run/tower_encoder.h"
#include "engine/stream/yes_no.h"
#include "loadtest/engine/video_patches.h"

namespace {

using namespace vigil;
using Json = nlohmann::json;

constexpr double kFps = 2, kWindow = 8;
const std::map<std::string, std::string> kQuestions{{"person", "Is a person present?"},
                                                    {"car", "Is a car present?"},
                                                    {"zone", "Is a person inside the marked zone?"},
                                                    {"fall", "Does a person fall?"},
                                                    {"stop", "Does a car stop on the road?"},
                                                    {"bag", "Is a bag left behind?"}};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == ':') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::vector<std::int32_t> counted(std::int64_t first, std::int64_t count) {
  std::vector<std::int32_t> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<std::int32_t>(first + i));
  return numbers;
}

/// Chooses thrice in each layer, and attends to what was chosen by the layer's own queries.
class Guesses final : public model::Attend {
 public:
  Guesses(past::Past& past, const past::PastAttend& attend) : past_(past), attend_(attend) {}

  void attend(kernels::Stream& stream, int rank, int layer, kernels::ConstMatrix q,
              const kernels::KvLayer& kv, const kernels::PagedPlan& plan, float scale,
              kernels::Matrix out) const override {
    if (plan.segments().size() != 1) throw std::invalid_argument("guesses are of one question");
    const auto truth = sets(stream, layer, q, scale, kv.kv_heads);
    // The last layer has fewer rows than its guess was made with.
    if (layer > 0 && q.rows == rows_) {
      compare(layer, truth, sets(stream, layer, before_view(q), scale, kv.kv_heads), before);
      compare(layer, truth, ahead_, ahead_sum);
    }
    ahead_ = std::move(next_);
    rows_ = q.rows;
    before_.resize(static_cast<std::size_t>(q.rows * q.cols));
    for (std::int64_t i = 0; i < q.rows; ++i)
      std::copy_n(q.row<float>(i), q.cols, before_.begin() + i * q.cols);
    attend_.attend(stream, rank, layer, q, kv, plan, scale, out);
  }
  bool looks_ahead() const override { return true; }
  void ahead(kernels::Stream& stream, int, int layer, kernels::ConstMatrix q, const kernels::PagedPlan& plan,
             float scale) const override {
    // This layer has not been compared yet.
    next_ = sets(stream, layer, q, scale, plan.shape().kv_heads);
  }

  struct Sum {
    std::int64_t found = 0, guessed = 0, truth = 0;
  };
  mutable Sum before, ahead_sum;

 private:
  using Sets = std::vector<std::set<std::int32_t>>;

  kernels::ConstMatrix before_view(kernels::ConstMatrix like) const {
    return kernels::dense(static_cast<const void*>(before_.data()), kernels::DType::f32, like.rows,
                          like.cols);
  }
  /// On the CPU: what is chosen can be read.
  Sets sets(kernels::Stream& stream, int layer, kernels::ConstMatrix q, float scale,
            std::int64_t heads) const {
    past_.choose(stream, layer, q, scale, 0, choice_);
    const kernels::ClusterSelection chosen = past_.selection(choice_);
    Sets sets;
    for (std::int64_t head = 0; head < heads; ++head) {
      const std::int32_t* first = chosen.clusters + head * past_.units_capacity();
      sets.emplace_back(first, first + chosen.count[head]);
    }
    return sets;
  }
  void compare(int layer, const Sets& truth, const Sets& guess, Sum& to) const {
    const auto counts = past_.counts(layer);
    for (std::size_t head = 0; head < truth.size(); ++head) {
      for (const std::int32_t c : truth[head]) {
        to.truth += counts[static_cast<std::size_t>(c)];
        if (guess[head].contains(c)) to.found += counts[static_cast<std::size_t>(c)];
      }
      for (const std::int32_t c : guess[head]) to.guessed += counts[static_cast<std::size_t>(c)];
    }
  }

  past::Past& past_;
  const past::PastAttend& attend_;
  mutable past::Past::Choice choice_;
  mutable std::int64_t rows_ = 0;
  mutable std::vector<float> before_;
  mutable Sets ahead_, next_;
};

class Bench {
 public:
  explicit Bench(const std::string& folder)
      : folder_(model::ModelFolder::open(folder)),
        stream_(kernels::Stream::cpu(1)),
        encoder_(folder_, kernels::DType::f32, stream_),
        model_(folder_, {.memory = {stream_}, .compute = kernels::DType::f32, .kv_tokens = 16384}),
        passes_(model_, {stream_}),
        words_(*folder_) {}

  /// Reads a window, and computes it whole.
  void look(const Json& window) {
    const double start = window.at("start"), seconds = window.at("seconds");
    patches_ = patches_of(window.at("video"), start, start + seconds, kFps, encoder_);
    view_ = std::make_unique<kv::View>(model_.book);
    cursor_ = model::PositionCursor();
    positions_.clear();
    const auto before = model_.prompts.before_tokens();
    cursor_.text(static_cast<std::int64_t>(before.size()), positions_);
    run::Pass pass;
    pass.rows.push_back({before, {}});
    const base::GridMask& grid = patches_.front()->kept;
    interval_ = model::time_interval(folder_->config.vision, patches_.front()->duration);
    cursor_.grid(static_cast<std::int64_t>(patches_.size()), grid.height(), grid.width(), interval_,
                 positions_);
    for (const auto& patch : patches_) pass.rows.push_back({{}, patch->rows(0, patch->count())});
    const auto own = counted(0, static_cast<std::int64_t>(positions_.size()));
    if (!view_->append(static_cast<std::int64_t>(own.size()))) throw std::runtime_error("no room");
    pass.positions = positions_;
    pass.segments.push_back({view_->slots(), own, 0});
    passes_.run(pass);
    tokens_ = patches_.front()->count();
    const auto kept = static_cast<std::int64_t>(kWindow / patches_.front()->duration);
    past_patches_ = std::max<std::int64_t>(0, static_cast<std::int64_t>(patches_.size()) - kept);
  }

  Json ask(const std::string& way, const std::vector<std::string>& rules) {
    const std::vector<std::string> parts = split(way);
    if (parts[0] == "whole") return ask(rules, 0, nullptr);
    if (parts[0] == "window") return ask(rules, past_patches_, nullptr);
    if (parts[0] == "guess") return guess(parts.at(1), std::stod(parts.at(2)), rules);
    return ask(rules, past_patches_, past_of(parts).get());
  }

 private:
  std::unique_ptr<past::Past> past_of(const std::vector<std::string>& parts) {
    past::PastOptions options{.method = parts.at(0)};
    const bool is_resv = parts[0].starts_with("resv");
    if (is_resv) {
      options.settings = retrieval::resv_named(parts[0]);
      options.settings->th_wics = std::stod(parts.at(1));
    } else {
      options.share = std::stod(parts.at(1));
    }
    if (parts.size() > 2) options.block_patches = std::stoi(parts[2]);
    if (parts.size() > 3 && options.settings) options.settings->th_hp = std::stoi(parts[3]);
    if (parts.size() > 4 && parts[4] != "ahead")
      throw std::invalid_argument("expected ahead, not " + parts[4]);
    options.ahead = parts.size() > 4;
    auto past = std::make_unique<past::Past>(stream_, folder_->config.text,
                                             model_.parts.front()->pages.layout(), options);
    for (std::int64_t patch = 0; patch < past_patches_; ++patch) {
      const std::int64_t first = model_.prompts.before() + patch * tokens_;
      std::vector<std::int32_t> times;
      for (std::int64_t i = 0; i < tokens_; ++i)
        times.push_back(positions_[static_cast<std::size_t>(first + i)].t);
      past->append(stream_, model_.parts.front()->pages,
                   view_->slots().subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(tokens_)),
                   times);
    }
    past->lay(stream_);
    return past;
  }

  struct Questions {
    run::Pass pass;
    std::vector<kv::View> views;
    std::vector<std::vector<std::int32_t>> tokens, slots, own;
  };
  /// The rows of these questions, which see what is before the frames and the patches from `first` on.
  std::unique_ptr<Questions> questions(const std::vector<std::string>& rules, std::int64_t first) {
    auto all = std::make_unique<Questions>();

    const auto before = model_.prompts.before();
    std::int64_t row = 0;
    for (const std::string& rule : rules) {
      all->tokens.push_back(model_.prompts.after(kQuestions.at(rule)));
      const auto count = static_cast<std::int64_t>(all->tokens.back().size());
      all->views.push_back(view_->fork());
      if (!all->views.back().append(count)) throw std::runtime_error("no room");
      const auto slots = all->views.back().slots();
      std::vector<std::int32_t>& seen = all->slots.emplace_back(slots.begin(), slots.begin() + before);
      seen.insert(seen.end(), slots.begin() + before + first * tokens_, slots.end());
      all->own.push_back(counted(static_cast<std::int64_t>(seen.size()) - count, count));
      model::PositionCursor cursor = cursor_;
      cursor.text(count, all->pass.positions);
    }

    for (std::size_t i = 0; i < rules.size(); ++i) {
      all->pass.rows.push_back({all->tokens[i], {}});
      all->pass.segments.push_back({all->slots[i], all->own[i], row});
      row += static_cast<std::int64_t>(all->own[i].size());
      all->pass.outputs.push_back(static_cast<std::int32_t>(row) - 1);
    }
    return all;
  }

  std::int32_t now() const { return positions_.back().t; }

  Json ask(const std::vector<std::string>& rules, std::int64_t first, past::Past* past) {
    const auto asked = questions(rules, first);
    past::PastAttend attend;
    attend.count();
    if (past != nullptr) {
      for (const auto& slots : asked->slots) attend.add(slots, std::vector{past}, now());
      asked->pass.attend = &attend;
    }
    passes_.run(asked->pass);
    Json told;
    for (std::size_t i = 0; i < rules.size(); ++i) told[rules[i]] = words_.probability(passes_.logits(i));
    if (past == nullptr) return told;
    std::int64_t clusters = 0;
    for (int layer = 0; layer < folder_->config.text.num_hidden_layers; ++layer)
      clusters += past->units(layer);
    told["fetched"] = attend.counted(0).share();
    told["tokens_a_cluster"] = static_cast<double>(past->tokens() * folder_->config.text.num_hidden_layers) /
                               static_cast<double>(std::max<std::int64_t>(1, clusters));
    return told;
  }

  Json guess(const std::string& form, double threshold, const std::vector<std::string>& rules) {
    const auto past = past_of({form, std::to_string(threshold)});
    Guesses::Sum before, ahead;
    const auto add = [](Guesses::Sum& to, const Guesses::Sum& more) {
      to.found += more.found;
      to.guessed += more.guessed;
      to.truth += more.truth;
    };
    for (const std::string& rule : rules) {
      const auto asked = questions({rule}, past_patches_);
      past::PastAttend attend;
      attend.add(asked->slots.front(), std::vector{past.get()}, now());
      const Guesses guesses(*past, attend);
      asked->pass.attend = &guesses;
      passes_.run(asked->pass);
      add(before, guesses.before);
      add(ahead, guesses.ahead_sum);
    }
    const auto told = [](const Guesses::Sum& sum) {
      return Json{{"found", sum.found}, {"guessed", sum.guessed}, {"truth", sum.truth}};
    };
    return {{"before", told(before)}, {"ahead", told(ahead)}};
  }

  std::shared_ptr<const model::ModelFolder> folder_;
  kernels::Stream stream_;
  run::TowerEncoder encoder_;
  run::CachedModel model_;
  run::PassRunner passes_;
  stream::YesNo words_;
  std::vector<model::VisualTokensPtr> patches_;
  std::unique_ptr<kv::View> view_;
  model::PositionCursor cursor_;
  std::vector<model::Position> positions_;
  std::int32_t interval_ = 0;
  std::int64_t tokens_ = 0, past_patches_ = 0;
};

}  // namespace

int main(int count, char** words) {
  if (count < 4) {
    std::fprintf(stderr, "bench_past MODEL WINDOWS.json WAY...\n");
    return 2;
  }
  try {
    Bench bench(words[1]);
    std::ifstream file(words[2]);
    for (const Json& window : Json::parse(file)) {
      std::vector<std::string> rules;
      for (const auto& [rule, truth] : window.at("rules").items())
        if (!truth.is_null()) rules.push_back(rule);
      if (rules.empty()) continue;
      bench.look(window);
      Json line{{"window", window}};
      for (int i = 3; i < count; ++i) line["ways"][words[i]] = bench.ask(words[i], rules);
      std::printf("%s\n", line.dump().c_str());
      std::fflush(stdout);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_past: %s\n", error.what());
    return 1;
  }
  return 0;
}
