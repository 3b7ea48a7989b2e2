#include "engine/parameters/parameter_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <optional>
#include <utility>
#include <vector>

#include "engine/devices/disk/late_reads.h"
#include "engine/devices/host_memory.h"
#include "engine/storage/disk_tier.h"
#include "traces/base/check.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

/// Returns the tag of a group's copies. Copies of saved tensors have non-negative tags.
std::int64_t tag_of(ParameterStore::Slot slot) {
  return -1 - slot;
}

/// Waits for a copy. On failure the device becomes idle before this throws, because the caller then frees the
/// memory of the copy.
void wait_or_become_idle(Device& device, CopyQueue queue, Device::Event event) {
  try {
    device.wait(queue, event);
  } catch (...) {
    become_idle(device);
    throw;
  }
}

Error no_room(const std::string& where, Bytes bytes, const std::string& why_not, const std::string& hint) {
  return environment_error(
      fmt::format("{}: no room for another {} of parameters: {}", where, format_bytes(bytes), why_not), hint);
}

class HostParameterStore final : public ParameterStore {
 public:
  explicit HostParameterStore(Device& device) : device_(device) {}
  ~HostParameterStore() override { become_idle(device_); }
  HostParameterStore(const HostParameterStore&) = delete;
  HostParameterStore& operator=(const HostParameterStore&) = delete;

  Slot add(Bytes bytes) override {
    groups_.push_back({HostMemory(device_, bytes)});
    bytes_ += bytes;
    return static_cast<Slot>(groups_.size() - 1);
  }
  void begin_load(Slot slot, void* to) override {
    Group& group = groups_[slot];
    group.load = device_.copy(CopyQueue::kH2d,
                              {to, group.host.get(), group.host.bytes(), CopyDirection::kH2d, tag_of(slot)});
  }
  void wait_for_load(Slot slot) override {
    wait_or_become_idle(device_, CopyQueue::kH2d, groups_[slot].load);
  }
  void save(Slot slot, const void* from) override {
    const Group& group = groups_[slot];
    const Device::Event copied = device_.copy(
        CopyQueue::kD2h, {group.host.get(), from, group.host.bytes(), CopyDirection::kD2h, tag_of(slot)});
    wait_or_become_idle(device_, CopyQueue::kD2h, copied);
  }
  Bytes host_bytes(Bytes /*loading_bytes*/) const override { return bytes_; }
  bool is_over_link() const override { return true; }

 private:
  struct Group {
    HostMemory host;
    Device::Event load = 0;
  };

  Device& device_;
  std::vector<Group> groups_;
  Bytes bytes_ = 0;
};

/// A store on the device's disk. A save blocks until the disk has the bytes. So a group is always complete on
/// the disk, and saves take host memory for only one group at a time, in addition to the groups being loaded.
class DeviceDiskParameterStore final : public ParameterStore {
 public:
  explicit DeviceDiskParameterStore(Device& device) : device_(device), disk_(*device.disk()) {}
  ~DeviceDiskParameterStore() override {
    become_idle(device_);
    late_reads_.settle();
    for (Group& group : groups_) {
      if (group.load) settle(disk_, group.load->read);
      group.load.reset();
      disk_.release(group.extent);
    }
  }
  DeviceDiskParameterStore(const DeviceDiskParameterStore&) = delete;
  DeviceDiskParameterStore& operator=(const DeviceDiskParameterStore&) = delete;

  Slot add(Bytes bytes) override {
    std::string why_not;
    const std::optional<Extent> extent = disk_.reserve(bytes, &why_not);
    if (!extent)
      throw no_room(disk_.description(), bytes, why_not, "free space there, or give another folder");
    groups_.push_back({*extent, {}});
    largest_bytes_ = std::max(largest_bytes_, bytes);
    return static_cast<Slot>(groups_.size() - 1);
  }

  void begin_load(Slot slot, void* to) override {
    Group& group = groups_[slot];
    HostMemory staging(device_, group.extent.bytes);
    const DeviceDisk::Transfer read =
        disk_.read(group.extent, staging.get(), group.extent.bytes, tag_of(slot));
    try {
      disk_.hold(CopyQueue::kH2d, read);
      const Device::Event copied = device_.copy(
          CopyQueue::kH2d, {to, staging.get(), group.extent.bytes, CopyDirection::kH2d, tag_of(slot)});
      group.load.emplace(Load{std::move(staging), read, copied});
    } catch (...) {
      settle(disk_, read);
      throw;
    }
  }

  void wait_for_load(Slot slot) override {
    const Load load = *std::exchange(groups_[slot].load, std::nullopt);
    try {
      wait_or_become_idle(device_, CopyQueue::kH2d, load.copied);
    } catch (...) {
      settle(disk_, load.read);
      throw;
    }
    late_reads_.check(load.read);
  }

  void save(Slot slot, const void* from) override {
    const Group& group = groups_[slot];
    const HostMemory staging(device_, group.extent.bytes);
    const Device::Event copied = device_.copy(
        CopyQueue::kD2h, {staging.get(), from, group.extent.bytes, CopyDirection::kD2h, tag_of(slot)});
    wait_or_become_idle(device_, CopyQueue::kD2h, copied);
    disk_.wait(disk_.write(group.extent, staging.get(), group.extent.bytes, CopyQueue::kD2h, tag_of(slot)));
  }

  void end_step() override { late_reads_.finish(); }

  Bytes host_bytes(Bytes loading_bytes) const override { return loading_bytes + largest_bytes_; }
  bool is_over_link() const override { return true; }
  bool is_over_disk() const override { return true; }

 private:
  struct Load {
    HostMemory staging;
    DeviceDisk::Transfer read;
    Device::Event copied = 0;
  };
  struct Group {
    Extent extent;
    std::optional<Load> load;
  };

  Device& device_;
  DeviceDisk& disk_;
  std::vector<Group> groups_;
  LateReads late_reads_{&disk_};
  Bytes largest_bytes_ = 0;
};

/// A store in a file, read and written straight from device memory, which is the host's. A slot of another
/// file gets room in the store's own file when it is saved for the first time.
class DiskParameterStore final : public ParameterStore {
 public:
  explicit DiskParameterStore(const std::string& folder) : tier_(folder) {}

  Slot add(Bytes bytes) override {
    groups_.push_back({.extent = reserve(bytes)});
    return static_cast<Slot>(groups_.size() - 1);
  }
  std::optional<Slot> add_file(const FileRange& range) override {
    groups_.push_back({.source = range});
    return static_cast<Slot>(groups_.size() - 1);
  }
  void begin_load(Slot slot, void* to) override {
    Group& group = groups_[slot];
    if (group.extent) {
      group.load = tier_.read(*group.extent, static_cast<std::byte*>(to), group.extent->bytes);
      return;
    }
    group.source_load = std::async(std::launch::async, [to, source = group.source] {
      read_all(*source.file, source.offset, {static_cast<char*>(to), static_cast<std::size_t>(source.bytes)});
    });
  }
  void wait_for_load(Slot slot) override {
    Group& group = groups_[slot];
    if (group.source_load.valid()) return group.source_load.get();
    tier_.wait(group.load);
  }
  void save(Slot slot, const void* from) override {
    Group& group = groups_[slot];
    if (!group.extent) {
      group.extent = reserve(group.source.bytes);
      group.source = {};
    }
    tier_.wait(tier_.write(*group.extent, static_cast<const std::byte*>(from), group.extent->bytes));
  }
  Bytes host_bytes(Bytes /*loading_bytes*/) const override { return 0; }
  std::string warning() const override { return tier_.facts().warning; }
  bool is_over_link() const override { return false; }

 private:
  struct Group {
    std::optional<Extent> extent{};  ///< nullopt: its bytes are those of `source`
    FileRange source{};
    DiskTier::Ticket load = 0;
    std::future<void> source_load{};  ///< valid while bytes of `source` are being loaded
  };

  Extent reserve(Bytes bytes) {
    std::string why_not;
    const std::optional<Extent> extent = tier_.reserve(bytes, &why_not);
    if (!extent)
      throw no_room(tier_.facts().folder, bytes, why_not,
                    "free space there, or give another folder with --offload-params-dir");
    return *extent;
  }

  DiskTier tier_;
  std::vector<Group> groups_;
};

}  // namespace

std::unique_ptr<ParameterStore> make_host_parameter_store(Device& device) {
  return std::make_unique<HostParameterStore>(device);
}

std::unique_ptr<ParameterStore> make_device_disk_parameter_store(Device& device) {
  return std::make_unique<DeviceDiskParameterStore>(device);
}

std::unique_ptr<ParameterStore> make_disk_parameter_store(const std::string& folder) {
  return std::make_unique<DiskParameterStore>(folder);
}

}  // namespace offprof
