#include "engine/weights/weight_store.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "engine/disk/disk_tier.h"
#include "traces/check.h"
#include "traces/error.h"

namespace offprof {
namespace {

class HostWeightStore final : public WeightStore {
 public:
  explicit HostWeightStore(Device& device) : device_(device) {}
  ~HostWeightStore() override {
    for (const Page& page : pages_) device_.free_host(page.host, page.bytes);
  }
  HostWeightStore(const HostWeightStore&) = delete;
  HostWeightStore& operator=(const HostWeightStore&) = delete;

  Slot add(Bytes bytes) override {
    pages_.push_back({device_.allocate_host(bytes), bytes});
    bytes_ += bytes;
    return static_cast<Slot>(pages_.size() - 1);
  }
  void begin_load(Slot slot, void* to) override {
    Page& page = pages_[slot];
    page.load = device_.copy(CopyQueue::kH2d, {to, page.host, page.bytes, CopyDirection::kH2d, tag_of(slot)});
  }
  void wait_for_load(Slot slot) override { device_.wait(CopyQueue::kH2d, pages_[slot].load); }
  void save(Slot slot, const void* from) override {
    const Page& page = pages_[slot];
    device_.wait(CopyQueue::kD2h, device_.copy(CopyQueue::kD2h, {page.host, from, page.bytes,
                                                                 CopyDirection::kD2h, tag_of(slot)}));
  }
  Bytes bytes() const override { return bytes_; }
  bool is_over_link() const override { return true; }

 private:
  struct Page {
    std::byte* host = nullptr;
    Bytes bytes = 0;
    Device::Event load = 0;
  };

  /// Copies of saved tensors have the others.
  static std::int64_t tag_of(Slot slot) { return -1 - slot; }

  Device& device_;
  std::vector<Page> pages_;
  Bytes bytes_ = 0;
};

class DiskWeightStore final : public WeightStore {
 public:
  explicit DiskWeightStore(const std::string& folder) : tier_(folder) {}

  Slot add(Bytes bytes) override {
    std::string why_not;
    const std::optional<Extent> extent = tier_.reserve(bytes, &why_not);
    if (!extent)
      throw environment_error(fmt::format("{}: no room for {} more of weights: {}", tier_.facts().folder,
                                          format_bytes(bytes), why_not),
                              "make room there, or give another folder by --weights-dir");
    pages_.push_back({*extent});
    return static_cast<Slot>(pages_.size() - 1);
  }
  void begin_load(Slot slot, void* to) override {
    Page& page = pages_[slot];
    page.load = tier_.read(page.extent, static_cast<std::byte*>(to), page.extent.bytes);
  }
  void wait_for_load(Slot slot) override { tier_.wait(pages_[slot].load); }
  void save(Slot slot, const void* from) override {
    const Extent& extent = pages_[slot].extent;
    tier_.wait(tier_.write(extent, static_cast<const std::byte*>(from), extent.bytes));
  }
  Bytes bytes() const override { return tier_.used_bytes(); }
  std::string warning() const override { return tier_.facts().warning; }
  bool is_over_link() const override { return false; }

 private:
  struct Page {
    Extent extent;
    DiskTier::Ticket load = 0;
  };

  DiskTier tier_;
  std::vector<Page> pages_;
};

}  // namespace

std::unique_ptr<WeightStore> make_host_weight_store(Device& device) {
  return std::make_unique<HostWeightStore>(device);
}

std::unique_ptr<WeightStore> make_disk_weight_store(const std::string& folder) {
  return std::make_unique<DiskWeightStore>(folder);
}

}  // namespace offprof
