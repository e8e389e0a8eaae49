#include "media/scale_thread.h"

#include <utility>

namespace vigil::media {

ScaleThread::ScaleThread() : thread_([this](const std::stop_token& stop) { run(stop); }) {}

ScaleThread::~ScaleThread() = default;

std::future<Image> ScaleThread::start(Frame frame, Size size) {
  std::packaged_task<Image(Scaler&)> task(
      [frame = std::move(frame), size](Scaler& scaler) { return scaler.convert(*frame, size); });
  std::future<Image> image = task.get_future();
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
  return image;
}

void ScaleThread::run(const std::stop_token& stop) {
  Scaler scaler;
  while (true) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [this] { return !tasks_.empty(); })) return;
    std::packaged_task<Image(Scaler&)> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task(scaler);
  }
}

}  // namespace vigil::media
