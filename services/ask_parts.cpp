#include "services/ask_parts.h"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <caf/send.hpp>

#include "cluster/sockets/curve.h"

namespace vigil::services {

cluster::AskServer::Options ask_server_options(const config::AskSettings& settings,
                                               const base::Clock& clock) {
  cluster::AskServer::Options options{.endpoint = settings.bind, .clock = &clock};
  if (settings.secret_key_file.empty()) return options;
  std::vector<std::string> allow;
  allow.reserve(settings.askers.size());
  for (const config::AskerSettings& asker : settings.askers) allow.push_back(asker.key);
  options.curve = cluster::CurveServer{cluster::read_secret_key(settings.secret_key_file), std::move(allow)};
  return options;
}

fleet::AskBook::Options ask_book_options(const config::AskSettings& settings) {
  fleet::AskBook::Options options{.at_once = static_cast<std::size_t>(settings.at_once)};
  for (const config::AskerSettings& asker : settings.askers) {
    cluster::KeyRights& rights = options.permissions[asker.key];
    rights.erase = asker.erase;
    for (const std::string& tenant : asker.tenants) {
      if (tenant == "*") {
        rights.all_tenants = true;
      } else {
        rights.tenants.insert(tenant);
      }
    }
  }
  return options;
}

TakingAsks::TakingAsks(const config::AskSettings& settings, const fleet::past_answers_actor& answers,
                       caf::actor_system& system, const base::Clock& clock, spdlog::logger& logger,
                       actors::Metrics& metrics) {
  if (!answers || settings.bind.empty()) return;
  asks_ = system.spawn(
      fleet::asks,
      fleet::AsksDeps{.server = std::make_shared<cluster::AskServer>(ask_server_options(settings, clock)),
                      .answers = answers,
                      .book = ask_book_options(settings),
                      .clock = clock,
                      .logger = logger,
                      .metrics = metrics});
}

TakingAsks::~TakingAsks() {
  if (asks_) caf::anon_send(asks_, actors::stop_atom_v);
}

}  // namespace vigil::services
