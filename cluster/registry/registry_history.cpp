#include "cluster/registry/registry_history.h"

#include <algorithm>

namespace vigil::cluster {

RegistryHeader RegistryHistory::answered(const Asked& asked, RegistryHeader header, Answer answer) {
  header.history = asked.history;
  if (asked.history != current_) return header;
  const bool replaced = seen_ != 0 && header.cluster != cluster_;
  const bool back = answer == Answer::current && header.revision < asked.seen;
  if (replaced || back) {
    header.history = ++current_;
    seen_ = 0;
  }
  cluster_ = header.cluster;
  seen_ = std::max(seen_, header.revision);
  return header;
}

}  // namespace vigil::cluster
