#include "engine/model/language/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

namespace vigil::model {
namespace {

constexpr float kImpossible = -std::numeric_limits<float>::infinity();
constexpr const char* kNoToken = "no token has a logit above minus infinity";

/// The order of the distribution.
bool less_likely(const Candidate& a, const Candidate& b) {
  return a.score != b.score ? a.score < b.score : a.id > b.id;
}

bool more_likely(const Candidate& a, const Candidate& b) {
  return less_likely(b, a);
}

/// Steele, Lea and Flood's SplitMix64, at position `step` of the sequence of `seed`; 53 bits as a number in
/// [0, 1).
double uniform(std::uint64_t seed, std::uint64_t step) {
  std::uint64_t z = seed + (step + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  z ^= z >> 31U;
  return static_cast<double>(z >> 11U) * 0x1p-53;
}

}  // namespace

void validate(const Sampling& sampling) {
  if (!(sampling.temperature >= 0) || !std::isfinite(sampling.temperature)) {
    throw std::invalid_argument("temperature must be a finite number from 0 on");
  }
  if (sampling.top_k < 0) throw std::invalid_argument("top_k must be 0 (no limit) or more");
  if (!(sampling.top_p >= 0 && sampling.top_p <= 1)) {
    throw std::invalid_argument("top_p must be between 0 and 1");
  }
  if (!(sampling.repetition_penalty > 0) || !std::isfinite(sampling.repetition_penalty)) {
    throw std::invalid_argument("repetition_penalty must be above 0");
  }
  for (const std::string& stop : sampling.stop) {
    if (stop.empty()) throw std::invalid_argument("a stop string must not be empty");
  }
}

Sampler::Sampler(const Sampling& sampling, std::span<const std::int32_t> prompt) : sampling_(sampling) {
  validate(sampling);
  for (const std::int32_t id : prompt) remember(id);
}

bool Sampler::seen(std::int32_t id) const {
  return static_cast<std::size_t>(id) < seen_.size() && seen_[static_cast<std::size_t>(id)];
}

void Sampler::remember(std::int32_t id) {
  constexpr std::int32_t kMost = 1 << 24;
  if (sampling_.repetition_penalty == 1 || id < 0 || id > kMost) return;
  if (seen_.size() <= static_cast<std::size_t>(id)) seen_.resize(static_cast<std::size_t>(id) + 1);
  seen_[static_cast<std::size_t>(id)] = true;
}

float Sampler::penalized(std::span<const float> logits, std::size_t id) const {
  const float logit = logits[id];
  if (!seen(static_cast<std::int32_t>(id))) return logit;
  return logit < 0 ? logit * sampling_.repetition_penalty : logit / sampling_.repetition_penalty;
}

std::vector<Likelihood> Sampler::distribution(std::span<const float> logits) const {
  const bool greedy = sampling_.temperature == 0;
  std::vector<Candidate> candidates;
  if (greedy) {
    Candidate best{kImpossible, -1};
    for (std::size_t id = 0; id < logits.size(); ++id) {
      const float score = penalized(logits, id);
      if (score > best.score) best = {score, static_cast<std::int32_t>(id)};
    }
    if (best.id >= 0) return {{best.id, 1.0}};
  } else {
    candidates.reserve(logits.size());
    for (std::size_t id = 0; id < logits.size(); ++id) {
      const float score = penalized(logits, id) / sampling_.temperature;
      if (score > kImpossible) candidates.push_back({score, static_cast<std::int32_t>(id)});
    }
  }
  return distribution_of(std::move(candidates));
}

std::vector<Likelihood> Sampler::distribution_of(std::vector<Candidate> candidates) const {
  if (candidates.empty()) throw std::invalid_argument(kNoToken);
  const auto most = static_cast<std::size_t>(sampling_.top_k);
  if (most > 0 && most < candidates.size()) {
    const auto last = candidates.begin() + static_cast<std::ptrdiff_t>(most) - 1;
    std::nth_element(candidates.begin(), last, candidates.end(), more_likely);
    const float threshold = last->score;
    std::erase_if(candidates, [threshold](const Candidate& c) { return c.score < threshold; });
  }
  // A sum depends on its order, which must not be that in which the candidates came.
  if (most > 0) std::sort(candidates.begin(), candidates.end(), more_likely);
  const float top = std::max_element(candidates.begin(), candidates.end(), less_likely)->score;
  // A logit of +infinity, or one that the temperature made infinite, leaves nothing to the others.
  const auto weight = [top](float score) {
    return std::isinf(top) ? (score == top ? 1.0 : 0.0) : std::exp(static_cast<double>(score) - top);
  };
  double sum = 0;
  for (const Candidate& c : candidates) sum += weight(c.score);

  // The likeliest first, as long as what came before has less than top_p; a heap orders no more than that.
  std::vector<Likelihood> chosen;
  std::make_heap(candidates.begin(), candidates.end(), less_likely);
  double above = 0;
  const double limit = sampling_.top_p < 1 ? static_cast<double>(sampling_.top_p) * sum
                                           : std::numeric_limits<double>::infinity();
  while (!candidates.empty() && (chosen.empty() || above < limit)) {
    std::pop_heap(candidates.begin(), candidates.end(), less_likely);
    const double w = weight(candidates.back().score);
    chosen.push_back({candidates.back().id, w});
    above += w;
    candidates.pop_back();
  }
  for (Likelihood& c : chosen) c.probability /= above;
  return chosen;
}

std::size_t Sampler::wanted() const {
  constexpr std::size_t kTies = 8;
  if (sampling_.temperature == 0 || sampling_.repetition_penalty != 1 || sampling_.top_k == 0) return 0;
  return static_cast<std::size_t>(sampling_.top_k) + kTies;
}

std::optional<std::int32_t> Sampler::next_of(std::span<const Candidate> likeliest) {
  std::vector<Candidate> candidates;
  for (const Candidate& one : likeliest) {
    const float score = one.score / sampling_.temperature;
    if (score > kImpossible) candidates.push_back({score, one.id});
  }
  const auto most = static_cast<std::size_t>(sampling_.top_k);
  const bool more = likeliest.size() >= wanted() && candidates.size() >= most;
  if (more && candidates.back().score == candidates[most - 1].score) return std::nullopt;
  return draw(distribution_of(std::move(candidates)));
}

std::int32_t Sampler::next(std::span<const float> logits) {
  return draw(distribution(logits));
}

std::int32_t Sampler::draw(std::span<const Likelihood> choices) {
  double point = uniform(sampling_.seed, step_++);
  std::int32_t id = choices.front().id;
  for (const Likelihood& choice : choices) {
    // Rounding may leave a rest at the end: the last token that is possible at all takes it.
    if (choice.probability > 0) id = choice.id;
    if (point < choice.probability) break;
    point -= choice.probability;
  }
  remember(id);
  return id;
}

void Sampler::follow(std::int32_t token) {
  ++step_;
  remember(token);
}

std::int32_t Sampler::take(std::int32_t likeliest) {
  if (likeliest < 0) throw std::invalid_argument(kNoToken);
  ++step_;
  remember(likeliest);
  return likeliest;
}

StopStrings::StopStrings(std::vector<std::string> stop) : stop_(std::move(stop)) {
  for (const std::string& text : stop_) {
    if (text.empty()) throw std::invalid_argument("a stop string must not be empty");
  }
}

std::string StopStrings::push(std::string_view piece) {
  if (stopped_) return {};
  pending_ += piece;
  std::size_t found = std::string::npos;
  for (const std::string& stop : stop_) found = std::min(found, pending_.find(stop));
  if (found != std::string::npos) {
    stopped_ = true;
    std::string text = pending_.substr(0, found);
    pending_.clear();
    return text;
  }
  std::size_t held = 0;
  for (const std::string& stop : stop_) {
    for (std::size_t length = std::min(stop.size() - 1, pending_.size()); length > held; --length) {
      if (pending_.ends_with(std::string_view(stop).substr(0, length))) held = length;
    }
  }
  std::string text = pending_.substr(0, pending_.size() - held);
  pending_.erase(0, text.size());
  return text;
}

std::string StopStrings::finish() {
  return std::exchange(pending_, {});
}

}  // namespace vigil::model
