#include "cluster/process/system.h"

#include <caf/atom.hpp>

namespace vigil::cluster {

SystemConfig::SystemConfig(std::size_t threads) {
  // CAF counts the machine's processors, whatever share of them this process may use.
  set("scheduler.max-threads", threads);
  // The default, stealing, polls, with short sleeps, as long as messages come now and then: some 5 % of a
  // processor for nothing. Threads that share one queue sleep until there is something in it.
  set("scheduler.policy", caf::atom("sharing"));
  // Unlimited by default: then a busy actor would keep its thread for ever.
  set("scheduler.max-throughput", std::size_t{64});
  // Command lines and files are read elsewhere.
  config_file_path.clear();
}

}  // namespace vigil::cluster
