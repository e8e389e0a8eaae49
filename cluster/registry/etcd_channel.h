// The wire to etcd: a thread, and connections to single servers. Its source is the only one that knows gRPC.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/duration.h"
#include "cluster/registry/etcd_tls.h"
#include "cluster/registry/registry.h"

namespace vigil::cluster {

/// The thread on which everything of one registry happens: all that follows is called there, and calls back
/// there, but for what says otherwise.
class EtcdLoop {
 public:
  EtcdLoop();
  /// As `stop`.
  ~EtcdLoop();
  EtcdLoop(const EtcdLoop&) = delete;
  EtcdLoop& operator=(const EtcdLoop&) = delete;

  /// Steps run in the order in which they come; after `stop`, none does. From any thread.
  void post(std::function<void()> step);
  void after(base::Duration delay, std::function<void()> step);

  /// Gives up all calls, which are not answered any more, and waits for the thread. Not from the thread.
  void stop();

 private:
  friend class EtcdChannel;
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

/// 0: fine; otherwise gRPC's number and what was said.
struct EtcdStatus {
  int code = 0;
  std::string text;
};

/// Of the numbers, those that matter.
namespace etcd_code {
inline constexpr int kCancelled = 1;
inline constexpr int kUnknown = 2;
inline constexpr int kInvalidArgument = 3;
inline constexpr int kDeadlineExceeded = 4;
inline constexpr int kNotFound = 5;
inline constexpr int kPermissionDenied = 7;
inline constexpr int kResourceExhausted = 8;
inline constexpr int kAborted = 10;
inline constexpr int kInternal = 13;
inline constexpr int kUnavailable = 14;
inline constexpr int kUnauthenticated = 16;
}  // namespace etcd_code

/// What a watch's stream brings.
struct EtcdNews {
  RegistryNews news;
  /// The server has begun to watch.
  bool created = false;
  /// The server watches no more; why, and if it has forgotten revisions, up to which one.
  bool cancelled = false;
  Revision compacted = 0;
  std::string reason;
};

/// Ends with the object, which is called back no more then.
class EtcdStream {
 public:
  virtual ~EtcdStream() = default;
};

/// A connection to one server, or the way to one. When it broke it is `ready` no more, and of no use. What
/// was asked for is answered though the object is gone. Headers have history 0.
class EtcdChannel {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  template <class T>
  using Done = std::function<void(const EtcdStatus& status, T answer)>;

  struct Times {
    /// To become connected.
    base::Duration connect{0};
    /// How often a server is asked whether it is there while something is expected of it; that long again
    /// without an answer ends the connection.
    base::Duration ping{0};
  };

  /// Connects with the first call. `tls`: nothing for plain text.
  EtcdChannel(EtcdLoop& loop, const std::string& endpoint, const EtcdTls::Material* tls, const Times& times);
  ~EtcdChannel();
  EtcdChannel(const EtcdChannel&) = delete;
  EtcdChannel& operator=(const EtcdChannel&) = delete;

  const std::string& endpoint() const { return endpoint_; }
  bool ready() const;

  /// Asks for nothing but a current header; fails if the server has no part in the cluster now.
  void hello(TimePoint until, Done<RegistryHeader> done);
  /// As `hello`; later calls are this user's.
  void authenticate(const std::string& user, const std::string& password, TimePoint until,
                    Done<RegistryHeader> done);

  void range(const std::string& prefix, TimePoint until, Done<RegistryRange> done);
  void commit(const RegistryTransaction& transaction, TimePoint until, Done<RegistryCommit> done);
  void grant(std::chrono::seconds ttl, TimePoint until, Done<RegistryLease> done);
  /// A ttl of 0: there is no such lease.
  void keep_alive(LeaseId lease, TimePoint until, Done<RegistryLease> done);
  void revoke(LeaseId lease, TimePoint until, Done<RegistryHeader> done);

  /// `ended` is the last that is called.
  std::unique_ptr<EtcdStream> watch(const std::string& prefix, Revision from,
                                    std::function<void(EtcdNews)> seen,
                                    std::function<void(const EtcdStatus&)> ended);

 private:
  struct Impl;
  const std::string endpoint_;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace vigil::cluster
