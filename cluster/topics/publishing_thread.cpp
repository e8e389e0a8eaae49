#include "cluster/topics/publishing_thread.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

namespace vigil::cluster {
namespace {

// Subscriptions are looked at and last events sent no more often than this: no faster than a subscriber can
// read, and however many subscribe, events go first.
constexpr auto kServeEvery = std::chrono::milliseconds(50);
// An event that the socket cannot take is offered again after this.
constexpr auto kOfferAgain = std::chrono::milliseconds(10);

}  // namespace

PublishingThread::PublishingThread(const TopicPublisher::Options& options, HandOver hand_over)
    : publisher_(options), hand_over_(std::move(hand_over)), thread_([this] { run(); }) {}

PublishingThread::~PublishingThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  bell_.ring();
  thread_.join();
}

bool PublishingThread::publish(TopicMessage event) {
  {
    const std::lock_guard lock(mutex_);
    if (taken_.size() >= kWaiting) return false;
    taken_.push_back(std::move(event));
  }
  bell_.ring();
  return true;
}

std::uint64_t PublishingThread::published() const {
  const std::lock_guard lock(mutex_);
  return published_;
}

void PublishingThread::drain() {
  std::unique_lock lock(mutex_);
  handed_over_.wait(lock, [this] { return taken_.empty(); });
}

void PublishingThread::start_over() {
  std::unique_lock lock(mutex_);
  handed_over_.wait(lock, [this] { return taken_.empty(); });
  published_ = 0;
}

void PublishingThread::remember(TopicMessage event) {
  {
    const std::lock_guard lock(mutex_);
    remembered_.push_back(std::move(event));
  }
  bell_.ring();
}

std::uint64_t PublishingThread::take_dropped() {
  const std::lock_guard lock(mutex_);
  return std::exchange(dropped_, 0);
}

bool PublishingThread::hand_over_taken() {
  std::unique_lock lock(mutex_);
  for (const TopicMessage& event : std::exchange(remembered_, {})) publisher_.remember(event);
  while (!taken_.empty()) {
    // It keeps its place until it is handed over. References into a deque stay good when others come.
    const TopicMessage& event = taken_.front();
    lock.unlock();
    const bool handed = hand_over_(publisher_, event);
    lock.lock();
    dropped_ += publisher_.take_dropped();
    if (!handed) return false;
    published_ = event.position;
    taken_.pop_front();
    if (taken_.empty()) handed_over_.notify_all();
  }
  return true;
}

void PublishingThread::run() {
  std::chrono::steady_clock::time_point serve_at{};
  for (;;) {
    const bool all = hand_over_taken();
    const auto now = std::chrono::steady_clock::now();
    if (now >= serve_at && publisher_.has_work()) {
      publisher_.serve();
      serve_at = now + kServeEvery;
    }
    {
      std::unique_lock lock(mutex_);
      // What the socket does not take now is published by the next process.
      if (stopping_ && (taken_.empty() || !all)) return;
    }
    wait(all, serve_at);
  }
}

void PublishingThread::wait(bool all_handed_over, std::chrono::steady_clock::time_point serve_at) {
  std::array<zmq::pollitem_t, 2> items = {zmq::pollitem_t{nullptr, bell_.descriptor(), ZMQ_POLLIN, 0},
                                          zmq::pollitem_t{publisher_.socket().handle(), 0, ZMQ_POLLIN, 0}};
  std::chrono::milliseconds timeout(-1);
  // Before its time, the socket is not asked for.
  std::size_t polled = items.size();
  const auto now = std::chrono::steady_clock::now();
  if (now < serve_at) {
    timeout = std::chrono::ceil<std::chrono::milliseconds>(serve_at - now);
    polled = 1;
  } else if (publisher_.has_work()) {
    timeout = std::chrono::milliseconds(0);
  }
  if (!all_handed_over) timeout = timeout.count() < 0 ? kOfferAgain : std::min(timeout, kOfferAgain);
  try {
    zmq::poll(items.data(), polled, timeout);
  } catch (const zmq::error_t& error) {
    if (error.num() != EINTR) throw;
  }
  bell_.silence();
}

}  // namespace vigil::cluster
