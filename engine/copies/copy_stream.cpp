#include "engine/copies/copy_stream.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "traces/base/error.h"

namespace offprof {
namespace {

/// Typical delay of the system in waking a sleeper. The last part of a wait is spent awake.
constexpr Nanoseconds kWakesLate = 150'000;

void sleep_until(Nanoseconds due) {
  std::this_thread::sleep_until(
      std::chrono::steady_clock::time_point(std::chrono::nanoseconds(due - kWakesLate)));
  while (steady_now() < due) std::this_thread::yield();
}

/// Waits until `ball` is `value`, without a system call if the other thread is on another core.
void await(const std::atomic<int>& ball, int value) {
  constexpr int kSpins = 10'000;
  for (int spins = 0; ball.load(std::memory_order_acquire) != value; ++spins)
    if (spins >= kSpins) std::this_thread::yield();
}

std::thread start(std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    throw environment_error(
        std::string("cannot start a copy thread: ") + error.what(),
        "stop other processes, or raise the limits on processes and memory (`ulimit -u`, `-v`)");
  }
}

}  // namespace

CopyStream::CopyStream(const Link& cap, Nanoseconds stays_awake_ns)
    : cap_(cap), stays_awake_ns_(stays_awake_ns), worker_(start([this] { run(); })) {}

CopyStream::~CopyStream() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  queued_.notify_one();
  worker_.join();
}

CopyStream::Event CopyStream::enqueue(CopyJob job) {
  Event event = 0;
  bool asleep = false;
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    event = ++enqueued_;
    asleep = asleep_;
  }
  if (asleep) queued_.notify_one();
  return event;
}

Nanoseconds CopyStream::time_round_trip() {
  constexpr int kSeries = 20, kTrips = 100;
  constexpr std::size_t kCacheLine = 64;
  alignas(kCacheLine) std::atomic<int> ball = 0;
  enqueue({[&ball] {
             for (int trip = 1; trip <= kSeries * kTrips; ++trip) {
               await(ball, trip);
               ball.store(-trip, std::memory_order_release);
             }
           },
           CopyDirection::kD2h, 0, 0});
  Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
  for (int trip = 1, i = 0; i < kSeries; ++i) {
    const Nanoseconds begin = steady_now();
    for (const int end = trip + kTrips; trip < end; ++trip) {
      ball.store(trip, std::memory_order_release);
      await(ball, -trip);
    }
    least = std::min(least, (steady_now() - begin) / kTrips);
  }
  take_records();  // the other thread has finished with the ball when this returns
  return least;
}

void CopyStream::wait(Event event) const {
  while (!is_reached(event)) std::this_thread::yield();
  if (has_failures_) tell_failure(event);
}

void CopyStream::tell_failure(Event event) const {
  const std::lock_guard lock(mutex_);
  if (const auto failure = failures_.find(event); failure != failures_.end())
    std::rethrow_exception(failure->second);
}

void CopyStream::finish() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return completed_ == enqueued_; });
}

std::vector<CopyRecord> CopyStream::take_records() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return completed_ == enqueued_; });
  failures_.clear();
  has_failures_ = false;
  return std::exchange(records_, {});
}

void CopyStream::run() {
  while (std::optional<CopyJob> job = next_job()) run_one(std::move(*job));
}

std::optional<CopyJob> CopyStream::next_job() {
  stay_awake();
  std::unique_lock lock(mutex_);
  asleep_ = true;
  queued_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
  asleep_ = false;
  if (jobs_.empty()) return std::nullopt;
  CopyJob job = std::move(jobs_.front());
  jobs_.pop_front();
  return job;
}

/// Waits until there is a job, or until there was none for a long time.
void CopyStream::stay_awake() const {
  const Nanoseconds until = steady_now() + stays_awake_ns_;
  while (enqueued_.load(std::memory_order_acquire) == completed_.load(std::memory_order_relaxed) &&
         !stopping_ && steady_now() < until)
    std::this_thread::yield();
}

void CopyStream::run_one(CopyJob job) {
  const Nanoseconds begin = steady_now();
  std::exception_ptr failure;
  try {
    job.copy();
  } catch (...) {
    failure = std::current_exception();
  }
  job.copy = nullptr;  // free what the job held before its event is reached
  const LinkDirection& cap = cap_.of(job.direction);
  if (job.is_copy && cap.bytes_per_second > 0) {
    sleep_until(begin + cap.duration(job.bytes));
  }
  {
    const std::lock_guard lock(mutex_);
    if (job.is_copy) records_.push_back({job.direction, begin, steady_now(), job.bytes, job.tag});
    if (failure) {
      failures_[completed_ + 1] = failure;
      has_failures_ = true;
    }
    ++completed_;
  }
  done_.notify_all();
}

}  // namespace offprof
