#include "services/fleet_routes.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "fleet/evidence/evidence_folder.h"
#include "fleet/evidence/fetcher_actor.h"
#include "fleet/messages/fleet_query.h"
#include "services/asked_actor.h"

namespace vigil::services {

namespace {

using What = fleet::EvidenceReply::What;

constexpr std::string_view kEvidence = "/evidence/";

int status_of(What what) {
  switch (what) {
    case What::found:
      return 200;
    case What::absent:
      return 404;
    case What::refused:
      return 400;
    case What::busy:
      return 503;
    case What::failed:
      break;
  }
  return 502;
}

}  // namespace

void FleetRoutes::set(fleet::fleet_status_actor status, fleet::fetcher_actor fetcher) {
  const std::lock_guard lock(mutex_);
  status_ = std::move(status);
  fetcher_ = std::move(fetcher);
}

std::vector<cluster::HttpRoute> FleetRoutes::routes() {
  return {{.path = "/fleet",
           .handler = [this](const cluster::HttpRequest& request) { return tell_fleet(request); },
           .slow = true},
          {.path = std::string(kEvidence),
           .handler = [this](const cluster::HttpRequest& request) { return tell_evidence(request); },
           .slow = true}};
}

cluster::HttpResponse FleetRoutes::tell_fleet(const cluster::HttpRequest& request) {
  auto query = fleet::parse_fleet_query(request.query);
  if (const auto* fault = std::get_if<std::string>(&query)) return {.status = 400, .body = *fault + '\n'};
  fleet::fleet_status_actor status;
  {
    const std::lock_guard lock(mutex_);
    status = status_;
  }
  std::optional<fleet::FleetReplyPtr> reply;
  if (status)
    reply = ask_actor<fleet::FleetReplyPtr>(system_, status, patience_, fleet::report_atom_v,
                                            std::get<fleet::FleetQuery>(query));
  if (!reply) return {.status = 503, .body = "nothing is known of the fleet now\n"};
  return {
      .status = (*reply)->is_known ? 200 : 404, .content_type = "application/json", .body = (*reply)->page};
}

cluster::HttpResponse FleetRoutes::tell_evidence(const cluster::HttpRequest& request) {
  const std::string name = request.path.substr(kEvidence.size());
  fleet::fetcher_actor fetcher;
  {
    const std::lock_guard lock(mutex_);
    fetcher = fetcher_;
  }
  std::optional<fleet::EvidenceReplyPtr> reply;
  if (fetcher)
    reply = ask_actor<fleet::EvidenceReplyPtr>(system_, fetcher, fleet::kFetcherAnswers, fleet::fetch_atom_v,
                                               name);
  if (!reply) return {.status = 503, .body = "nobody answers who would fetch it\n"};
  if ((*reply)->what != What::found)
    return {.status = status_of((*reply)->what), .body = (*reply)->reason + '\n'};
  return {.content_type = std::string(fleet::content_type_of(name)), .body = (*reply)->bytes};
}

}  // namespace vigil::services
