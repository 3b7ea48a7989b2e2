#include <liburing.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/storage/disk_queue.h"
#include "traces/base/check.h"

namespace offprof {
namespace {

/// Id of the request that reads the event of `wake`; no request of the caller has it.
constexpr std::uint64_t kWakeId = ~std::uint64_t{0};

/// True if the call only has to be repeated.
bool passes(int error) {
  return error == -EINTR || error == -EAGAIN || error == -EBUSY;
}

/// Queue on a ring that also contains an eventfd. A read of the eventfd is always in progress, so that `wake`
/// completes a request.
class IoUringQueue final : public DiskQueue {
 public:
  IoUringQueue() = default;
  ~IoUringQueue() override;
  IoUringQueue(const IoUringQueue&) = delete;
  IoUringQueue& operator=(const IoUringQueue&) = delete;

  /// Returns an empty string, or why the ring cannot be used.
  std::string open(int requests);

  void submit(const FileTransfer& request) override;
  void wait(std::vector<DiskCompletion>& done) override;
  void wake() override;

 private:
  bool knows_operations();
  io_uring_sqe* next_entry();
  void await_wake();
  /// Returns true if a request was complete.
  bool collect(std::vector<DiskCompletion>& done);

  io_uring ring_{};
  bool is_open_ = false;
  int event_fd_ = -1;
  std::uint64_t events_ = 0;  ///< value that the kernel read from event_fd_
};

std::string why_no_ring(int error) {
  switch (error) {
    case ENOSYS:
      return "the kernel has no io_uring";
    case EPERM:
    case EACCES:
      return "io_uring is blocked here, by a container's seccomp filter or by kernel.io_uring_disabled";
    case ENOMEM:
      return "io_uring needs more locked memory than this user may have (`ulimit -l`)";
    default:
      return std::string("io_uring: ") + std::strerror(error);
  }
}

std::string IoUringQueue::open(int requests) {
  const auto entries = static_cast<unsigned>(requests + 1);
  if (const int result = io_uring_queue_init(entries, &ring_, 0); result < 0) return why_no_ring(-result);
  is_open_ = true;
  if (!knows_operations()) return "the kernel's io_uring is older than Linux 5.6";
  event_fd_ = eventfd(0, EFD_CLOEXEC);
  if (event_fd_ < 0) return std::string("io_uring: eventfd: ") + std::strerror(errno);
  await_wake();
  return {};
}

IoUringQueue::~IoUringQueue() {
  if (is_open_) io_uring_queue_exit(&ring_);
  if (event_fd_ >= 0) close(event_fd_);
}

bool IoUringQueue::knows_operations() {
  const std::unique_ptr<io_uring_probe, void (*)(io_uring_probe*)> probe(io_uring_get_probe_ring(&ring_),
                                                                         io_uring_free_probe);
  return probe != nullptr && io_uring_opcode_supported(probe.get(), IORING_OP_READ) != 0 &&
         io_uring_opcode_supported(probe.get(), IORING_OP_WRITE) != 0;
}

io_uring_sqe* IoUringQueue::next_entry() {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  OFFPROF_CHECK(entry != nullptr);  // there is one entry per request in progress
  return entry;
}

void IoUringQueue::await_wake() {
  io_uring_sqe* entry = next_entry();
  io_uring_prep_read(entry, event_fd_, &events_, sizeof(events_), 0);
  io_uring_sqe_set_data64(entry, kWakeId);
}

void IoUringQueue::submit(const FileTransfer& request) {
  io_uring_sqe* entry = next_entry();
  const auto bytes = static_cast<unsigned>(request.bytes);
  const auto offset = static_cast<std::uint64_t>(request.offset);
  if (request.direction == DiskDirection::kWrite) {
    io_uring_prep_write(entry, request.fd, request.memory, bytes, offset);
  } else {
    io_uring_prep_read(entry, request.fd, request.memory, bytes, offset);
  }
  io_uring_sqe_set_data64(entry, request.id);
  io_uring_submit(&ring_);  // `wait` submits the entries that it does not take now
}

void IoUringQueue::wait(std::vector<DiskCompletion>& done) {
  while (!collect(done)) {
    const int result = io_uring_submit_and_wait(&ring_, 1);
    OFFPROF_CHECK(result >= 0 || passes(result));
  }
}

bool IoUringQueue::collect(std::vector<DiskCompletion>& done) {
  unsigned head = 0, count = 0;
  bool woken = false;
  io_uring_cqe* entry = nullptr;
  io_uring_for_each_cqe(&ring_, head, entry) {
    ++count;
    if (entry->user_data == kWakeId) {
      woken = true;
    } else {
      done.push_back({entry->user_data, entry->res});
    }
  }
  io_uring_cq_advance(&ring_, count);
  if (woken) await_wake();
  return count > 0;
}

void IoUringQueue::wake() {
  constexpr std::uint64_t kOne = 1;
  while (write(event_fd_, &kOne, sizeof(kOne)) < 0) OFFPROF_CHECK(errno == EINTR);
}

}  // namespace

bool has_io_uring_queue() noexcept {
  return true;
}

std::unique_ptr<DiskQueue> make_io_uring_queue(int requests, std::string& why_not) {
  auto queue = std::make_unique<IoUringQueue>();
  why_not = queue->open(requests);
  return why_not.empty() ? std::move(queue) : nullptr;
}

}  // namespace offprof
