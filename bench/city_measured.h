// What the nodes' part of a city's costs is on this machine.
#pragma once

#include "base/clock.h"
#include "bench/city.h"

namespace vigil::bench {

/// Of records and plans as a city of these options has them; each is the median of some runs.
CityPhase measured_city_costs(const CityOptions& options, const base::Clock& clock);

}  // namespace vigil::bench
