// Requests about the past between nodes, and words on them: what of them can leave a process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <caf/meta/type_name.hpp>

#include "actors/messages/past.h"
#include "base/clock.h"

namespace vigil::fleet {

/// As actors::PastRequest, but of an erasure, which goes by the registry.
struct PastAsk {
  std::uint64_t ticket = 0;
  /// question, list, verification.
  std::uint8_t what = 0;
  bool all_tenants = false;
  std::vector<std::string> tenants;
  /// Empty: all that there are.
  std::string camera;
  bool names_tenant = false;
  std::string tenant;
  /// Of a question.
  std::string question, about;
  std::int64_t from = 0, to = 0;
  std::uint8_t method = 0;
  std::int32_t max_tokens = 0;
  /// Until nobody waits for it any more; negative: always.
  std::int64_t left_ms = 0;
  friend bool operator==(const PastAsk&, const PastAsk&) = default;
};

/// As actors::PastReply.
struct PastWord {
  std::uint64_t ticket = 0;
  std::uint8_t outcome = 0;
  std::string text;
  std::int64_t retry_after_ms = 0;
  bool is_unknown = false;
  friend bool operator==(const PastWord&, const PastWord&) = default;
};

/// Nothing of an erasure.
std::optional<PastAsk> form_of(const actors::PastRequest& request, base::Clock::TimePoint now);
/// Nothing: it makes no sense, as one of a build that knows more.
std::optional<actors::PastRequest> request_of(const PastAsk& form, base::Clock::TimePoint now);

PastWord form_of(const actors::PastReply& reply);
std::optional<actors::PastReply> reply_of(const PastWord& form);

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, PastAsk& x) {
  return f(caf::meta::type_name("PastAsk"), x.ticket, x.what, x.all_tenants, x.tenants, x.camera,
           x.names_tenant, x.tenant, x.question, x.about, x.from, x.to, x.method, x.max_tokens, x.left_ms);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, PastWord& x) {
  return f(caf::meta::type_name("PastWord"), x.ticket, x.outcome, x.text, x.retry_after_ms, x.is_unknown);
}

}  // namespace vigil::fleet
