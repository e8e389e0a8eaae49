// The publisher on a thread of its own, so that no subscriber's doing holds up whoever finds events.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cluster/sockets/bell.h"
#include "cluster/topics/message.h"
#include "cluster/topics/topics.h"

namespace vigil::cluster {

/// Takes events in order and hands them to the socket in that order. Thread-safe.
class PublishingThread {
 public:
  /// Events that were taken and are not handed over yet, at most.
  static constexpr std::size_t kWaiting = 128;

  /// Gives an event to the socket, false if it cannot now; runs on the thread.
  using HandOver = std::function<bool(TopicPublisher&, const TopicMessage&)>;

  /// Throws TopicError, as when the port is in use. `hand_over`: for tests.
  explicit PublishingThread(
      const TopicPublisher::Options& options,
      HandOver hand_over = [](TopicPublisher& publisher, const TopicMessage& event) {
        return publisher.publish(event);
      });
  /// What was taken is handed over first.
  ~PublishingThread();
  PublishingThread(const PublishingThread&) = delete;
  PublishingThread& operator=(const PublishingThread&) = delete;

  /// Where it really listens.
  const std::string& endpoint() const { return publisher_.endpoint(); }

  /// False if as many wait already as may; then it is to be offered again. Positions ascend.
  bool publish(TopicMessage event);

  /// The position of the last event that was handed to the socket, and all that were taken before it; 0
  /// before the first.
  std::uint64_t published() const;

  /// Waits until everything that was taken is handed over.
  void drain();

  /// As `drain`; then positions begin anew, and `published` is 0.
  void start_over();

  /// Has this event be its topic's last one, without sending it. To be called before `publish` for this
  /// topic.
  void remember(TopicMessage event);

  /// How often a subscriber began to miss events since the last call.
  std::uint64_t take_dropped();

 private:
  void run();
  /// Whether all that was taken is handed over.
  bool hand_over_taken();
  void wait(bool all_handed_over, std::chrono::steady_clock::time_point serve_at);

  TopicPublisher publisher_;
  HandOver hand_over_;
  Bell bell_;
  mutable std::mutex mutex_;
  std::condition_variable handed_over_;
  std::deque<TopicMessage> taken_;
  std::vector<TopicMessage> remembered_;
  std::uint64_t published_ = 0;
  std::uint64_t dropped_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace vigil::cluster
