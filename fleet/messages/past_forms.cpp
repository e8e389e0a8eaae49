#include "fleet/messages/past_forms.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>
#include <variant>

#include "engine/memory/search.h"

namespace vigil::fleet {
namespace {

constexpr std::uint8_t kQuestion = 0, kList = 1, kVerification = 2;

std::chrono::milliseconds milliseconds(base::Clock::TimePoint::duration time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time);
}

void put(const actors::PastCamera& camera, PastAsk& form) {
  form.camera = camera.name;
  form.names_tenant = camera.tenant.has_value();
  form.tenant = camera.tenant.value_or("");
}

actors::PastCamera camera_of(const PastAsk& form) {
  return {form.camera, form.names_tenant ? std::optional(form.tenant) : std::nullopt};
}

std::optional<actors::PastCamera> some_camera_of(const PastAsk& form) {
  return form.camera.empty() ? std::nullopt : std::optional(camera_of(form));
}

}  // namespace

std::optional<PastAsk> form_of(const actors::PastRequest& request, base::Clock::TimePoint now) {
  PastAsk form;
  form.ticket = request.ticket;
  form.all_tenants = !request.rights.tenants;
  if (request.rights.tenants)
    form.tenants.assign(request.rights.tenants->begin(), request.rights.tenants->end());
  form.left_ms = request.deadline == base::Clock::TimePoint::max()
                     ? -1
                     : std::max<std::int64_t>(0, milliseconds(request.deadline - now).count());
  if (const auto* question = std::get_if<actors::PastQuestion>(&request.what)) {
    form.what = kQuestion;
    put(question->camera, form);
    form.question = question->question;
    form.about = question->about;
    form.from = question->wall.from;
    form.to = question->wall.to;
    form.method = static_cast<std::uint8_t>(question->method);
    form.max_tokens = question->max_tokens;
    return form;
  }
  if (const auto* list = std::get_if<actors::PastList>(&request.what)) {
    form.what = kList;
    if (list->camera) put(*list->camera, form);
    return form;
  }
  if (const auto* verify = std::get_if<actors::PastVerify>(&request.what)) {
    form.what = kVerification;
    if (verify->camera) put(*verify->camera, form);
    return form;
  }
  return std::nullopt;
}

std::optional<actors::PastRequest> request_of(const PastAsk& form, base::Clock::TimePoint now) {
  actors::PastRequest request;
  request.ticket = form.ticket;
  if (!form.all_tenants)
    request.rights.tenants = std::set<std::string>(form.tenants.begin(), form.tenants.end());
  if (form.left_ms >= 0) request.deadline = now + std::chrono::milliseconds(form.left_ms);
  switch (form.what) {
    case kQuestion:
      if (form.method >= memory::kMethodNames.size() || form.max_tokens < 1 || form.to < form.from)
        return std::nullopt;
      request.what = actors::PastQuestion{camera_of(form),
                                          form.question,
                                          form.about,
                                          {form.from, form.to},
                                          static_cast<memory::Method>(form.method),
                                          form.max_tokens};
      return request;
    case kList:
      request.what = actors::PastList{some_camera_of(form)};
      return request;
    case kVerification:
      request.what = actors::PastVerify{some_camera_of(form)};
      return request;
    default:
      return std::nullopt;
  }
}

PastWord form_of(const actors::PastReply& reply) {
  return {reply.ticket, static_cast<std::uint8_t>(reply.outcome), reply.text, reply.retry_after.count(),
          reply.is_unknown};
}

std::optional<actors::PastReply> reply_of(const PastWord& form) {
  if (form.outcome > static_cast<std::uint8_t>(actors::PastOutcome::too_late)) return std::nullopt;
  return actors::PastReply{form.ticket, static_cast<actors::PastOutcome>(form.outcome), form.text,
                           std::chrono::milliseconds(form.retry_after_ms), form.is_unknown};
}

}  // namespace vigil::fleet
