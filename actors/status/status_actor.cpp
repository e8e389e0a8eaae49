#include "actors/status/status_actor.h"

#include <exception>
#include <string>

#include <caf/spawn_options.hpp>

#include "actors/messages/shell.h"

namespace vigil::actors {
namespace {

/// Makes pages, which takes long when there are many cameras.
using page_actor = caf::typed_actor<caf::replies_to<status_atom>::with<StatusReport>>;

struct page_state {
  static inline const char* name = "status_page";
};

page_actor::behavior_type page(page_actor::stateful_pointer<page_state> self, StatusDeps deps) {
  set_handlers(self, deps.logger);
  return {
      [deps](status_atom) -> caf::result<StatusReport> {
        try {
          StatusReport report = deps.board.report();
          report.page = deps.board.json(deps.metrics);
          return report;
        } catch (const std::exception& error) {
          // One page less; the next one may have the memory that this one had not.
          return caf::make_error(caf::sec::runtime_error, std::string(error.what()));
        }
      },
  };
}

}  // namespace

status_actor::behavior_type status(status_actor::stateful_pointer<status_state> self, StatusDeps deps) {
  set_handlers(self, deps.logger);
  // No probe waits for a page.
  const auto pages = self->spawn<caf::hidden>(page, deps);
  return {
      [deps](probe_atom) { return deps.board.report(); },
      [self, pages](status_atom) { return self->delegate(pages, status_atom_v); },
      [self](stop_atom) { self->quit(); },
  };
}

}  // namespace vigil::actors
