#include "engine/kv/retrieval/resv_settings.h"

#include <stdexcept>
#include <string>
#include <utility>

namespace vigil::retrieval {
namespace {

using kernels::ClusterBits;
using kernels::WicsumRows;
using kernels::WicsumScores;

template <typename T>
T named(std::string_view name, std::string_view what,
        const std::array<std::pair<std::string_view, T>, 2>& known) {
  for (const auto& [word, value] : known)
    if (word == name) return value;
  throw std::invalid_argument("\"" + std::string(name) + "\" is no kind of " + std::string(what) + ": " +
                              std::string(known[0].first) + ", " + std::string(known[1].first));
}

}  // namespace

ResvSettings resv_named(std::string_view name) {
  ResvSettings settings;
  if (name == "resv") return settings;
  if (name == "resv-mean") {
    settings.bits = ClusterBits::mean;
    return settings;
  }
  if (name == "resv-still") {
    settings.keys = HashedKeys::still;
    return settings;
  }
  if (name == "resv-mass" || name == "resv-pooled") {
    settings.scores = WicsumScores::exp;
    settings.rows = name == "resv-mass" ? WicsumRows::united : WicsumRows::pooled;
    return settings;
  }
  std::string known;
  for (const std::string_view each : kResvForms) known += (known.empty() ? "" : ", ") + std::string(each);
  throw std::invalid_argument("\"" + std::string(name) + "\" is no form of ReSV: " + known);
}

WicsumScores scores_named(std::string_view name) {
  return named<WicsumScores>(name, "scores", {{{"raw", WicsumScores::raw}, {"exp", WicsumScores::exp}}});
}

WicsumRows rows_named(std::string_view name) {
  return named<WicsumRows>(name, "rows", {{{"union", WicsumRows::united}, {"pooled", WicsumRows::pooled}}});
}

ClusterBits bits_named(std::string_view name) {
  return named<ClusterBits>(name, "bits", {{{"first", ClusterBits::first}, {"mean", ClusterBits::mean}}});
}

HashedKeys keys_named(std::string_view name) {
  return named<HashedKeys>(name, "keys", {{{"rotated", HashedKeys::rotated}, {"still", HashedKeys::still}}});
}

void check(const ResvSettings& settings) {
  if (settings.n_hp < 1 || settings.n_hp > kernels::kMostHyperplanes)
    throw std::invalid_argument("n_hp: " + std::to_string(settings.n_hp) + " is not from 1 to " +
                                std::to_string(kernels::kMostHyperplanes));
  if (settings.th_hp < 0 || settings.th_hp > settings.n_hp + 1)
    throw std::invalid_argument("th_hp: " + std::to_string(settings.th_hp) + " is not from 0 to " +
                                std::to_string(settings.n_hp + 1) + ", one more than n_hp");
  if (!(settings.th_wics >= 0 && settings.th_wics <= 1))
    throw std::invalid_argument("th_wics: " + std::to_string(settings.th_wics) + " is not from 0 to 1");
  if (settings.scores == WicsumScores::raw && settings.rows == WicsumRows::pooled)
    throw std::invalid_argument("rows: pooled goes with scores: exp, since raw scores may add up to nothing");
}

}  // namespace vigil::retrieval
