// How CAF writes down and reads back what may leave a process. What it reads is refused where it makes no
// sense; that it is true, nobody can tell.
#pragma once

#include <cmath>
#include <optional>

#include <caf/error.hpp>
#include <caf/meta/load_callback.hpp>
#include <caf/meta/type_name.hpp>
#include <caf/sec.hpp>

#include "actors/messages/data.h"
#include "actors/messages/pruned_less.h"
#include "actors/messages/reports.h"
#include "actors/messages/watch.h"
#include "actors/messages/wire.h"

namespace vigil::actors {

/// An enumerator that was read has to be one.
template <class Enum>
auto at_most(const Enum& value, Enum last) {
  return caf::meta::load_callback([&value, last]() -> caf::error {
    if (value <= last) return caf::none;
    return caf::sec::invalid_argument;
  });
}

/// What was read has to be so.
template <class Holds>
auto is_so(Holds holds) {
  return caf::meta::load_callback([holds]() -> caf::error {
    if (holds()) return caf::none;
    return caf::sec::invalid_argument;
  });
}

/// A time that may be missing, which CAF cannot write by itself.
struct MaybeTime {
  std::optional<base::Clock::WallTime>& time;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, MaybeTime& x) {
  bool there = x.time.has_value();
  base::Clock::WallTime time = x.time.value_or(base::Clock::WallTime());
  return f(there, time, caf::meta::load_callback([&]() -> caf::error {
             x.time = there ? std::optional(time) : std::nullopt;
             return caf::none;
           }));
}

}  // namespace vigil::actors

// CAF looks for these beside the types.
namespace vigil::config {

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, WindowSettings& x) {
  return f(caf::meta::type_name("Window"), x.length, x.stride, x.memory);
}

/// But for what is kept of a picture, which is the camera's business alone.
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, PruningSettings& x) {
  return f(caf::meta::type_name("Pruning"), x.policy, actors::at_most(x.policy, Pruning::changes),
           x.motion_threshold, x.residual_weight, x.refresh, actors::at_most(x.refresh, Refresh::topk),
           x.refresh_share, x.kv_budget.bytes, x.audit, actors::is_so([&x] {
             return std::isfinite(x.motion_threshold) && x.motion_threshold >= 0 &&
                    std::isfinite(x.residual_weight) && x.residual_weight >= 0 && x.refresh_share >= 0 &&
                    x.refresh_share <= 1 && std::isfinite(x.audit) && x.audit >= 0;
           }));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, RuleSettings& x) {
  actors::MaybeTime snooze_until{x.snooze_until};
  return f(caf::meta::type_name("Rule"), x.name, x.prompt, x.title, x.threshold, x.confirm.needed,
           x.confirm.of, x.cooldown, x.max_per_hour, x.severity, actors::at_most(x.severity, Severity::alert),
           x.topics, snooze_until, x.explain, x.max_tokens, actors::is_so([&x] {
             return x.threshold >= 0 && x.threshold <= 1 && x.confirm.needed >= 1 &&
                    x.confirm.of >= x.confirm.needed && x.max_tokens >= 1;
           }));
}

}  // namespace vigil::config

namespace vigil::stream {

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Answer& x) {
  return f(caf::meta::type_name("Answer"), x.text, x.probability_yes, x.tokens, x.finish,
           actors::at_most(x.finish, FinishReason::stop), x.prompt_tokens, x.shared_tokens,
           actors::is_so([&x] { return x.probability_yes >= 0 && x.probability_yes <= 1; }));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, WindowId& x) {
  return f(caf::meta::type_name("WindowId"), x.camera, x.epoch, x.number);
}

}  // namespace vigil::stream

namespace vigil::actors {

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, WatchRef& x) {
  return f(caf::meta::type_name("WatchRef"), x.camera, x.version);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, WatchSettings& x) {
  return f(caf::meta::type_name("WatchSettings"), x.name, x.version, x.tenant, x.labels, x.rules, x.window,
           x.pruning, x.fps, x.lossless, x.keep, is_so([&x] {
             // What is smaller than a normal number, CAF writes as none.
             return std::isnormal(x.fps) && x.fps > 0 && x.window.stride.count() > 0 &&
                    x.window.length >= x.window.stride && x.window.memory.count() >= 0 &&
                    (x.window.memory.count() == 0 || x.pruning.refresh != config::Refresh::all);
           }));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Age& x) {
  return f(caf::meta::type_name("Age"), x.microseconds);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, CaptureForm& x) {
  return f(caf::meta::type_name("Captured"), x.steady, x.wall);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, WorkForm& x) {
  return f(caf::meta::type_name("Work"), x.begin, x.end);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, MaskForm& x) {
  return f(caf::meta::type_name("Mask"), x.height, x.width, x.cells);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, PatchForm& x) {
  return f(caf::meta::type_name("Patch"), x.watch, x.seconds, x.duration, x.sequence, x.generation, x.frames,
           x.width, x.height, x.has_encoded, x.encoded, x.has_kept, x.kept, x.is_audited, x.audit,
           x.has_pixels, x.pixels, x.has_standing_out, x.standing_out, x.is_intra, x.captured, is_so([&x] {
             return std::isfinite(x.seconds) && std::isnormal(x.duration) && x.duration > 0 &&
                    std::isfinite(x.audit);
           }));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, WindowForm& x) {
  return f(caf::meta::type_name("WindowAnswers"), x.watch, x.held, x.id, x.start, x.end, x.start_wall,
           x.end_wall, x.frames, x.answers, x.captured, x.encoded,
           is_so([&x] { return std::isfinite(x.start) && std::isfinite(x.end) && x.frames >= 0; }));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Explain& x) {
  return f(caf::meta::type_name("Explain"), x.window, x.rule, x.ticket);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Done& x) {
  return f(caf::meta::type_name("Done"), x.window);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Returned& x) {
  return f(caf::meta::type_name("Returned"), x.window, x.rule);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, CameraReport& x) {
  return f(caf::meta::type_name("CameraReport"), x.camera, x.state, at_most(x.state, CameraState::down),
           x.reason, x.failed);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Advice& x) {
  return f(caf::meta::type_name("Advice"), x.share, x.less, x.is_behind,
           is_so([&x] { return x.share >= 0 && x.share <= 1 && x.less >= 0 && x.less <= kMostLess; }));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, PatchAck& x) {
  return f(caf::meta::type_name("PatchAck"), x.camera, x.generation, x.sequence, x.outcome,
           at_most(x.outcome, PatchOutcome::unknown), x.reason, x.advice);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, TokensRoom& x) {
  return f(caf::meta::type_name("TokensRoom"), x.camera, x.session, x.patches);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, TokensAck& x) {
  return f(caf::meta::type_name("TokensAck"), x.camera, x.generation, x.sequence, x.outcome,
           at_most(x.outcome, TokensOutcome::lost), x.advice);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, RecorderReport& x) {
  return f(caf::meta::type_name("RecorderReport"), x.camera, x.recording, x.reason);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, StatusChange& x) {
  return f(caf::meta::type_name("StatusChange"), x.watch, x.state, at_most(x.state, CameraState::down),
           x.reason);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Explanation& x) {
  return f(caf::meta::type_name("Explanation"), x.ticket, x.text, x.failure);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, EvidenceRequest& x) {
  return f(caf::meta::type_name("EvidenceRequest"), x.camera, x.tenant, x.rule, x.episode, x.span.from,
           x.span.to, x.span.moment, x.moment);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Evidence& x) {
  MaybeTime thumb_time{x.thumb_time};
  return f(caf::meta::type_name("Evidence"), x.state, at_most(x.state, EvidenceState::failed), x.thumb,
           x.clip, x.reason, thumb_time, x.from, x.to, x.bytes, x.codec);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, EvidenceReport& x) {
  return f(caf::meta::type_name("EvidenceReport"), x.episode, x.evidence);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, StatusReport& x) {
  return f(caf::meta::type_name("StatusReport"), x.phase, at_most(x.phase, RunPhase::draining), x.live,
           x.started, x.ready, caf::meta::load_callback([&x]() -> caf::error {
             const bool fits = x.started == (x.phase != RunPhase::starting) &&
                               (!x.ready || (x.live && x.phase == RunPhase::running));
             if (fits) return caf::none;
             return caf::sec::invalid_argument;
           }),
           x.late, x.page);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, DrainReport& x) {
  return f(caf::meta::type_name("DrainReport"), x.complete, x.alerts_kept, x.failures);
}

}  // namespace vigil::actors
