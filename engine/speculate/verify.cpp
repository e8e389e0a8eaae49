#include "engine/speculate/verify.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace vigil::speculate {
namespace {

// From as little as its sampling needs: the likeliest token, the likeliest few, or all logits.
std::int32_t next(model::Sampler& sampler, TargetRows& rows, std::size_t row) {
  if (sampler.takes_likeliest()) return sampler.take(rows.likeliest(row));
  const std::size_t wanted = sampler.wanted();
  if (wanted > 0 && wanted <= rows.most_likeliest()) {
    const std::optional<std::int32_t> token = sampler.next_of(rows.likeliest(row, wanted));
    if (token) return *token;
  }
  return sampler.next(rows.logits(row));
}

// `next(row)` gives the token there, until it is not the draft. Drafts are told by `id_of(i)`.
template <typename IdOf, typename Next>
Verdict run_through(std::size_t drafts, const TargetRows& rows, const TakeToken& take, const IdOf& id_of,
                    const Next& next_at) {
  const std::size_t count = rows.count();
  if (count == 0 || count < drafts || count > drafts + 1) {
    throw std::invalid_argument("a round has as many rows as drafts, or one more");
  }
  Verdict verdict;
  for (std::size_t row = 0; row < count; ++row) {
    const std::int32_t token = next_at(row);
    const bool is_draft = row < drafts && token == id_of(row);
    verdict.tokens.push_back(token);
    if (is_draft) ++verdict.accepted;
    verdict.ended = take && !take(token);
    if (verdict.ended || !is_draft) break;
  }
  return verdict;
}

double probability_of(std::int32_t id, std::span<const model::Likelihood> in) {
  const auto at = std::find_if(in.begin(), in.end(), [id](const auto& one) { return one.id == id; });
  return at == in.end() ? 0 : at->probability;
}

std::vector<model::Likelihood> target_distribution(const model::Sampler& sampler, TargetRows& rows,
                                                   std::size_t row) {
  if (!sampler.takes_likeliest()) return sampler.distribution(rows.logits(row));
  const std::int32_t likeliest = rows.likeliest(row);
  // The sampler says what is wrong with a row of no token.
  return likeliest < 0 ? sampler.distribution({}) : std::vector<model::Likelihood>{{likeliest, 1}};
}

// norm(max(0, p - q)) in the order of p; empty if rounding leaves nothing.
std::vector<model::Likelihood> residual(std::span<const model::Likelihood> p, const Draft& draft) {
  std::vector<model::Likelihood> q = draft.from;
  if (q.empty()) q = {{draft.id, 1}};
  std::sort(q.begin(), q.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  std::vector<model::Likelihood> rest;
  double sum = 0;
  for (const model::Likelihood& one : p) {
    const auto at = std::lower_bound(q.begin(), q.end(), one.id,
                                     [](const model::Likelihood& a, std::int32_t id) { return a.id < id; });
    const double taken = at != q.end() && at->id == one.id ? at->probability : 0;
    if (one.probability <= taken) continue;
    rest.push_back({one.id, one.probability - taken});
    sum += rest.back().probability;
  }
  for (model::Likelihood& one : rest) one.probability /= sum;
  return rest;
}

}  // namespace

Verdict verify_by_seed(model::Sampler& sampler, std::span<const std::int32_t> drafts, TargetRows& rows,
                       const TakeToken& take) {
  return run_through(
      drafts.size(), rows, take, [&](std::size_t i) { return drafts[i]; },
      [&](std::size_t row) { return next(sampler, rows, row); });
}

Draft draw_draft(const model::Sampler& drafter, std::span<const float> logits, const Uniform& uniform,
                 std::uint64_t step) {
  std::vector<model::Likelihood> from = drafter.distribution(logits);
  const std::int32_t id = choose(from, uniform(Stream::draft, step));
  return {id, std::move(from)};
}

Verdict verify_by_rejection(model::Sampler& sampler, const Uniform& uniform, std::uint64_t step,
                            std::span<const Draft> drafts, TargetRows& rows, const TakeToken& take) {
  const auto next_at = [&](std::size_t row) {
    const std::vector<model::Likelihood> p = target_distribution(sampler, rows, row);
    std::int32_t token = 0;
    if (row == drafts.size()) {
      token = choose(p, uniform(Stream::resample, step + row));
    } else {
      const Draft& draft = drafts[row];
      token = draft.id;
      const double q = draft.from.empty() ? 1 : probability_of(draft.id, draft.from);
      if (!(q > 0)) throw std::invalid_argument("a draft is none of those that it was drawn from");
      if (!(uniform(Stream::accept, step + row) * q < probability_of(draft.id, p))) {
        const std::vector<model::Likelihood> rest = residual(p, draft);
        token = choose(rest.empty() ? p : rest, uniform(Stream::resample, step + row));
      }
    }
    sampler.follow(token);
    return token;
  };
  return run_through(
      drafts.size(), rows, take, [&](std::size_t i) { return drafts[i].id; }, next_at);
}

}  // namespace vigil::speculate
