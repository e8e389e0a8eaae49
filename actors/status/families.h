// Families of series, as they are registered.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

namespace vigil::actors {

/// They live as long as the registry, which may have each name once with one kind.
inline prometheus::Family<prometheus::Gauge>& gauge(prometheus::Registry& registry, const char* name,
                                                    const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

inline prometheus::Family<prometheus::Counter>& counter(prometheus::Registry& registry, const char* name,
                                                        const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

}  // namespace vigil::actors
