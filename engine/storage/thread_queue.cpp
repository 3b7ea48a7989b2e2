#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <mutex>
#include <system_error>
#include <thread>

#include "engine/storage/disk_queue.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

std::int64_t transfer(const FileTransfer& request) {
  const auto bytes = static_cast<std::size_t>(request.bytes);
  const ssize_t result = request.direction == DiskDirection::kWrite
                             ? pwrite(request.fd, request.memory, bytes, request.offset)
                             : pread(request.fd, request.memory, bytes, request.offset);
  return result < 0 ? -errno : result;
}

class ThreadQueue final : public DiskQueue {
 public:
  explicit ThreadQueue(int threads);
  ~ThreadQueue() override { stop(); }
  ThreadQueue(const ThreadQueue&) = delete;
  ThreadQueue& operator=(const ThreadQueue&) = delete;

  void submit(const FileTransfer& request) override;
  void wait(std::vector<DiskCompletion>& done) override;
  void wake() override;

 private:
  void work();
  void stop();

  std::mutex mutex_;
  std::condition_variable submitted_, completed_;
  std::deque<FileTransfer> requests_;
  std::vector<DiskCompletion> completions_;
  bool woken_ = false, stopping_ = false;
  std::vector<std::thread> threads_;  // last: they use the other members
};

ThreadQueue::ThreadQueue(int threads) {
  threads_.reserve(static_cast<std::size_t>(threads));
  try {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    stop();
    throw environment_error(
        std::string("cannot start a thread for the disk tier: ") + error.what(),
        "stop other processes, or raise the limits on processes and memory (`ulimit -u`, `-v`)");
  }
}

void ThreadQueue::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  submitted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadQueue::submit(const FileTransfer& request) {
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
  }
  submitted_.notify_one();
}

void ThreadQueue::wait(std::vector<DiskCompletion>& done) {
  std::unique_lock lock(mutex_);
  completed_.wait(lock, [&] { return woken_ || !completions_.empty(); });
  woken_ = false;
  done.insert(done.end(), completions_.begin(), completions_.end());
  completions_.clear();
}

void ThreadQueue::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  completed_.notify_one();
}

void ThreadQueue::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    submitted_.wait(lock, [&] { return stopping_ || !requests_.empty(); });
    if (requests_.empty()) return;
    const FileTransfer request = requests_.front();
    requests_.pop_front();
    lock.unlock();
    const std::int64_t result = transfer(request);
    lock.lock();
    completions_.push_back({request.id, result});
    completed_.notify_one();
  }
}

}  // namespace

std::unique_ptr<DiskQueue> make_thread_queue(int threads) {
  return std::make_unique<ThreadQueue>(threads);
}

}  // namespace offprof
