#include "engine/storage/transfer_book.h"

#include <algorithm>
#include <utility>

#include "traces/base/check.h"
#include "traces/base/steady_clock.h"

namespace offprof {

DiskTier::Ticket TransferBook::enqueue(Transfer transfer) {
  const std::lock_guard lock(mutex_);
  ExtentQueue& extent = extents_[transfer.offset];
  if (transfer.direction == DiskDirection::kWrite) extent.readable_bytes = transfer.bytes;
  OFFPROF_CHECK(transfer.bytes <= extent.readable_bytes);  // only written bytes can be read
  transfer.ticket = ++last_ticket_;
  transfer.contents = &extent.contents;
  under_way_.insert(transfer.ticket);
  extent.waiting.push_back(std::make_unique<Transfer>(std::move(transfer)));
  Transfer* added = extent.waiting.back().get();
  if (extent.waiting.size() == 1) ready(added->direction).push_back(added);
  return added->ticket;
}

Transfer* TransferBook::begin_next(DiskDirection direction) {
  const std::lock_guard lock(mutex_);
  std::deque<Transfer*>& ready_here = ready(direction);
  if (ready_here.empty()) return nullptr;
  Transfer* next = ready_here.front();
  ready_here.pop_front();
  next->begin_ns = steady_now();
  return next;
}

void TransferBook::end(Transfer* transfer) {
  {
    const std::lock_guard lock(mutex_);
    keep_outcome(*transfer);
    auto& waiting = extents_.at(transfer->offset).waiting;
    OFFPROF_CHECK(waiting.front().get() == transfer);
    waiting.pop_front();
    if (!waiting.empty()) ready(waiting.front()->direction).push_back(waiting.front().get());
  }
  ended_.notify_all();
}

void TransferBook::keep_outcome(const Transfer& transfer) {
  under_way_.erase(transfer.ticket);
  if (transfer.failure) {
    failures_.emplace(transfer.ticket, *transfer.failure);
  } else {
    records_.push_back({transfer.direction, transfer.begin_ns, steady_now(), transfer.bytes, transfer.tag});
  }
}

bool TransferBook::is_done(DiskTier::Ticket ticket) const {
  const std::lock_guard lock(mutex_);
  return !under_way_.contains(ticket);
}

void TransferBook::wait(DiskTier::Ticket ticket) const {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return !under_way_.contains(ticket); });
  if (const auto failure = failures_.find(ticket); failure != failures_.end()) throw Error(failure->second);
}

std::vector<DiskRecord> TransferBook::take_records() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return under_way_.empty(); });
  return std::exchange(records_, {});
}

void TransferBook::forget(Bytes offset) {
  std::unique_lock lock(mutex_);
  const auto extent = extents_.find(offset);
  if (extent == extents_.end()) return;
  ended_.wait(lock, [&] { return extent->second.waiting.empty(); });
  extents_.erase(extent);
}

}  // namespace offprof
