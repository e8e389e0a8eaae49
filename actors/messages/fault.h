// Why an actor failed, in the words of what it threw, as those who monitor it read it.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <system_error>

#include <caf/actor_system.hpp>
#include <caf/error.hpp>
#include <caf/sec.hpp>

#include "engine/run/vision_encoder.h"

namespace vigil::actors {

/// Beside CAF's own codes. device_lost: nothing works any more on the device that the actor used.
enum class Fault : std::uint8_t { none, device_lost };

}  // namespace vigil::actors

CAF_ERROR_CODE_ENUM(vigil::actors::Fault, "fault")

namespace vigil::actors {

/// What was thrown, as an exit reason: `Fault::device_lost`, or `sec::runtime_error`, with its text.
inline caf::error fault_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const run::DeviceLost& error) {
    return caf::make_error(Fault::device_lost, std::string(error.what()));
  } catch (const std::system_error& error) {
    // What a thread that cannot be started throws says nothing of threads.
    const bool again = error.code() == std::errc::resource_unavailable_try_again;
    return caf::make_error(caf::sec::runtime_error,
                           (again ? "no thread could be started: " : "") + std::string(error.what()));
  } catch (const std::exception& error) {
    return caf::make_error(caf::sec::runtime_error, std::string(error.what()));
  } catch (...) {
    return caf::sec::runtime_error;
  }
}

inline bool is_device_lost(const caf::error& reason) {
  return reason.category() == caf::atom("fault") &&
         reason.code() == static_cast<std::uint8_t>(Fault::device_lost);
}

/// The text of what was thrown, or what CAF says.
inline std::string reason_of(const caf::error& reason, const caf::actor_system& system) {
  if (reason && reason.context().match_elements<std::string>())
    return reason.context().get_as<std::string>(0);
  return system.render(reason);
}

}  // namespace vigil::actors
