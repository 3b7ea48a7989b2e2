#include "engine/scheduler/disk_window.h"

#include <algorithm>
#include <utility>

#include "traces/base/check.h"

namespace offprof {

const DiskWindow::Buffer* DiskWindow::find(CopyId copy) const {
  const auto found = std::ranges::find(buffers_, copy, [](const Buffer& buffer) { return buffer.copy.copy; });
  return found == buffers_.end() ? nullptr : &*found;
}

DiskWindow::Buffer* DiskWindow::find(CopyId copy) {
  return const_cast<Buffer*>(std::as_const(*this).find(copy));
}

DiskWindow::Iterator DiskWindow::first_unneeded() {
  return std::ranges::find_if(buffers_,
                              [](const Buffer& buffer) { return !buffer.is_needed && !buffer.is_held; });
}

/// Every buffer that was read came after all buffers left from forward. Of the buffers from forward, backward
/// needs the last one first.
DiskWindow::Iterator DiskWindow::needed_latest() {
  const auto last_read = std::find_if(buffers_.rbegin(), buffers_.rend(), [](const Buffer& buffer) {
    return buffer.was_read && !buffer.is_held;
  });
  if (last_read != buffers_.rend()) return std::prev(last_read.base());
  return std::ranges::find_if(buffers_, [](const Buffer& buffer) { return !buffer.is_held; });
}

void DiskWindow::make_room(Bytes bytes, Executor& executor) {
  while (!has_room(bytes) && !buffers_.empty()) {
    auto victim = first_unneeded();
    if (victim == buffers_.end()) victim = needed_latest();
    if (victim == buffers_.end()) return;
    evict(victim, executor);
  }
}

void DiskWindow::add(const CopyCommand& copy, Transfer pending) {
  held_bytes_ += copy.bytes;
  buffers_.push_back({copy, pending, pending == Transfer::kRead});
}

void DiskWindow::write(const CopyCommand& copy, Executor& executor) {
  executor.execute(WriteDisk{copy});
  add(copy, Transfer::kWrite);
}

void DiskWindow::read(const CopyCommand& copy, Executor& executor) {
  executor.execute(ReadDisk{copy});
  add(copy, Transfer::kRead);
}

void DiskWindow::bring(const CopyCommand& copy, Executor& executor) {
  if (is_on_host(copy.copy)) return;
  make_room(copy.bytes, executor);
  read(copy, executor);
}

bool DiskWindow::bring_ahead(const CopyCommand& copy, Executor& executor) {
  if (is_on_host(copy.copy)) return held_bytes_ <= most_bytes_;
  for (auto victim = first_unneeded(); !has_room(copy.bytes); victim = first_unneeded()) {
    if (victim == buffers_.end()) return false;
    evict(victim, executor);
  }
  read(copy, executor);
  return true;
}

void DiskWindow::hold(CopyId copy) {
  Buffer* const buffer = find(copy);
  OFFPROF_CHECK(buffer != nullptr);
  buffer->is_held = true;
}

/// Does not wait for a write in progress: that wait comes when somebody needs the buffer's memory.
void DiskWindow::came_in(CopyId copy, Executor& executor) {
  Buffer* const buffer = find(copy);
  OFFPROF_CHECK(buffer != nullptr && buffer->is_held);
  buffer->is_held = false;
  if (buffer->pending == Transfer::kRead) buffer->pending = Transfer::kNone;
  if (buffer->pending == Transfer::kNone) return free(copy, executor);
  buffer->is_needed = false;
}

void DiskWindow::set_unneeded(CopyId copy) {
  if (Buffer* const buffer = find(copy)) buffer->is_needed = false;
}

void DiskWindow::free(CopyId copy, Executor& executor) {
  const auto found = std::ranges::find(buffers_, copy, [](const Buffer& buffer) { return buffer.copy.copy; });
  if (found != buffers_.end()) evict(found, executor);
}

void DiskWindow::evict(Iterator buffer, Executor& executor) {
  OFFPROF_CHECK(!buffer->is_held);
  const Buffer gone = *buffer;
  buffers_.erase(buffer);
  held_bytes_ -= gone.copy.bytes;
  if (gone.pending == Transfer::kWrite) executor.execute(WaitWrite{gone.copy});
  if (gone.pending == Transfer::kRead) executor.execute(WaitRead{gone.copy});
  executor.execute(FreeHost{gone.copy});
}

}  // namespace offprof
