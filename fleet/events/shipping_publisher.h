// The publisher of a node whose events go to gateways.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "actors/alerts/publisher.h"
#include "base/duration.h"

namespace vigil::fleet {

/// Stands between the thread that publishes and the maker. What is published is handed on in whole events:
/// copies of one on several topics together, as soon as another one follows, or with `serve`. Thread-safe.
class ShippingPublisher final : public actors::Publisher {
 public:
  struct Options {
    /// Events that are taken and not done, but for copies of the last one: fewer than an outbox looks at.
    std::size_t most = 192;
    /// How long `drain` waits for gateways.
    base::Duration patience{2000};
  };

  ShippingPublisher() : ShippingPublisher(Options{}) {}
  explicit ShippingPublisher(Options options) : options_(options) {}

  bool publish(const actors::OutboxEvent& event) override;
  /// Up to this position all is committed by every gateway, or dropped since another node has its series.
  std::uint64_t published() const override;
  /// As far as gateways do it in time.
  void drain() override;
  void start_over() override;
  /// Gateways know what was last.
  void remember(const actors::OutboxEvent&) override {}
  void serve() override;
  std::uint64_t take_dropped() override { return 0; }

  /// `wake` is called when there is something to take, on the thread that publishes; until the next call of
  /// this with nothing.
  void attach(std::function<void()> wake);

  struct Taken {
    /// Positions began anew so many times: they are those of the outbox after that.
    std::uint64_t epoch = 0;
    std::vector<std::vector<actors::OutboxEvent>> events;
  };
  Taken take();
  void done(std::uint64_t epoch, std::uint64_t position);

 private:
  void complete();

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable moved_;
  std::function<void()> wake_;
  std::uint64_t epoch_ = 0;
  std::uint64_t published_ = 0;
  /// Positions that were taken and are not done.
  std::deque<std::uint64_t> positions_;
  std::vector<std::vector<actors::OutboxEvent>> ready_;
  /// Copies of the event that was published last, and its name.
  std::vector<actors::OutboxEvent> last_;
  std::string name_;
};

}  // namespace vigil::fleet
