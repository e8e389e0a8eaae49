// Where the patches of each camera go, and why nowhere. Without actors.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/messages/data.h"
#include "actors/supervisor/placement.h"

namespace vigil::actors {

/// Where a camera goes on until it is at home elsewhere; without a device: nowhere.
struct FormerDevice {
  std::string device = {};
  /// As the other one has: it takes no patches beside that one.
  bool has_same_stream = false;
  friend bool operator==(const FormerDevice&, const FormerDevice&) = default;
};

/// Knows which device is up and which camera is placed where, and says what each camera has to be told.
/// Not thread-safe.
class Routes {
 public:
  /// What becomes of a camera.
  struct Decision {
    std::string camera;
    /// Who takes its patches from now on; empty: nobody, and it is unwatched.
    std::string device = {};
    /// Why it is unwatched.
    std::string reason = {};
    /// Who takes them, too, and has so far.
    std::string former = {};
    /// It is unwatched for a moment, as far as is known: nothing was heard of its device yet.
    bool is_awaited = false;
    friend bool operator==(const Decision&, const Decision&) = default;
  };

  /// Of the cameras of a device that entered a state, in the order in which they hold.
  struct Decisions {
    std::vector<Decision> cameras;
    /// Why nothing is watched any more, and will not be; empty while a device is left.
    std::string hopeless = {};
  };

  /// None has told yet that it is up. Without any, others decide which camera is where, of devices that come
  /// and go: then there is always hope.
  explicit Routes(const std::vector<std::string>& devices) : placement_(devices) {}

  /// A camera's actor starts. Nothing while its device has not told yet how it is, none is left, or nobody
  /// has said where it is.
  std::optional<Decision> start(const std::string& camera);
  /// Whether the camera's device has told that it is up.
  bool is_watched(const std::string& camera) const;
  /// Others say where a camera is from now on, and where it was until now. While one of the two is up, it is
  /// watched. Nothing if that is no news.
  std::optional<Decision> assign(const std::string& camera, const std::string& device,
                                 const FormerDevice& former = {});
  /// Others say that nothing is to compute it, until it is assigned again, and why. Nothing if that is no
  /// news.
  std::optional<Decision> withhold(const std::string& camera, const std::string& reason);
  bool is_withheld(const std::string& camera) const { return withheld_.contains(camera); }
  /// The camera is gone.
  void remove(const std::string& camera) {
    placement_.remove(camera);
    formers_.erase(camera);
    withheld_.erase(camera);
  }

  /// A device told its state, and why it is not up.
  Decisions enter(const std::string& device, DeviceState state, const std::string& reason);

 private:
  Decisions lose(const std::string& device, const std::string& reason);
  /// Nothing if neither of its devices is up.
  std::optional<Decision> watched(const std::string& camera) const;
  /// What becomes of a camera one of whose devices is not up any more, and why.
  Decision left(const std::string& camera, const std::string& reason) const;
  /// Those that go on at this device until they are at home elsewhere.
  std::vector<std::string> leaving(const std::string& device) const;

  Placement placement_;
  /// Devices that told that they are up.
  std::set<std::string> up_;
  /// Of cameras that move.
  std::map<std::string, FormerDevice> formers_;
  /// Cameras that nothing is to compute, and why.
  std::map<std::string, std::string> withheld_;
};

}  // namespace vigil::actors
