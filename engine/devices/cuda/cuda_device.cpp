#include "engine/devices/cuda/cuda_device.h"

#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/StorageImpl.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/devices/cuda/cuda_call.h"
#include "engine/devices/cuda/gpu_properties.h"
#include "engine/devices/cuda/on_device.h"
#include "traces/base/steady_clock.h"

namespace offprof {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

/// Index of "all" in the statistics, whose three columns are all, small pool and large pool.
constexpr std::size_t kAggregate = 0;

/// Makes the device current, so that streams and events created next belong to it.
c10::DeviceIndex select(c10::DeviceIndex index) {
  check_cuda(cudaSetDevice(index), "select the GPU");
  return index;
}

Bytes memory_of(c10::DeviceIndex index) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, index), "read the GPU's properties");
  return static_cast<Bytes>(properties.totalGlobalMem);
}

/// Returns the stall of the compute stream while it waited for a copy. Both times count from the moment at
/// which it reached the wait. The time between the copy's end and the next event is overhead of events and of
/// the host.
Nanoseconds exposed_in(Nanoseconds copy_end, Nanoseconds after) {
  return std::clamp<Nanoseconds>(copy_end, 0, std::max<Nanoseconds>(after, 0));
}

cudaEvent_t make_untimed_event() {
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "create an event");
  return event;
}

}  // namespace

CudaDevice::CudaDevice(c10::DeviceIndex index)
    : index_(select(index)),
      total_bytes_(memory_of(index)),
      books_(AllocationBooks::of_device(index, total_bytes_)),
      own_fraction_(allocator::getMemoryFraction(index)),
      compute_(c10::cuda::getDefaultCUDAStream(index).stream()),
      queues_{Queue(c10::cuda::getStreamFromPool(false, index)),
              Queue(c10::cuda::getStreamFromPool(false, index))},
      disk_queues_(compute_, {stream_of(CopyQueue::kD2h), stream_of(CopyQueue::kH2d)},
                   c10::cuda::getStreamFromPool(false, index).stream(), index,
                   [this](Nanoseconds steady) { return origin_ns_ + steady - origin_steady_ns_; }),
      compute_event_(make_untimed_event()) {
  books_.number_streams({compute_, stream_of(CopyQueue::kD2h), stream_of(CopyQueue::kH2d)});
  forget_marks();
}

CudaDevice::~CudaDevice() {
  become_idle(*this);
  disk_.reset();  // before the memory that it reads and writes
  cudaEventDestroy(compute_event_);
  cudaEventDestroy(origin_);
}

std::string CudaDevice::description() const {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, index_), "read the GPU's properties");
  return std::string(properties.name) + ", " + std::to_string(properties.multiProcessorCount) + " SMs, " +
         format_bytes(total_bytes_);
}

// --- Memory ---

c10::Storage CudaDevice::allocate(Bytes bytes) {
  const OnDevice here(index_);
  return {c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes, allocator::get(),
                                                /*resizable=*/true)};
}

void CudaDevice::reset_peak() {
  books_.reset_peak();
  allocator::resetPeakStats(index_);
}

void CudaDevice::finish_frees() {
  if (!books_.has_requested_frees()) return;
  const OnDevice here(index_);
  allocator::raw_delete(allocator::raw_alloc(1));
}

void CudaDevice::set_capacity(std::optional<Bytes> bytes) {
  books_.set_capacity(bytes);
  const double share = bytes ? static_cast<double>(*bytes) / static_cast<double>(total_bytes_) : 1.0;
  allocator::setMemoryFraction(std::min(share, own_fraction_), index_);
}

std::optional<DeviceProfile> CudaDevice::gpu_properties() const {
  return properties_of_gpu(index_);
}

std::optional<CacheUse> CudaDevice::cache_use() const {
  const auto stats = allocator::getDeviceStats(index_);
  return CacheUse{stats.allocated_bytes[kAggregate].peak, stats.reserved_bytes[kAggregate].peak};
}

void CudaDevice::release_cache() {
  synchronize();
  allocator::emptyCache();
}

std::optional<Bytes> CudaDevice::used_beside_allocator() const {
  const OnDevice here(index_);
  std::size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "query the free memory");
  return static_cast<Bytes>(total - free) -
         allocator::getDeviceStats(index_).reserved_bytes[kAggregate].current;
}

std::optional<AllocatorState> CudaDevice::allocator_state(
    const std::function<std::int32_t(AllocationId)>& storage_of) const {
  AllocatorState state;
  const auto snapshot = allocator::snapshot({0, 0}, /*include_traces=*/false);
  state.settings = snapshot.config_metadata.last_allocator_settings;
  std::map<std::size_t, std::int32_t> ranges;  // keyed by their begin
  for (const auto& info : snapshot.segments) {
    if (info.device != index_) continue;
    AllocatorSegment& segment = state.segments.emplace_back();
    segment.stream = books_.number_of(info.stream);
    segment.is_large = info.is_large;
    segment.is_expandable = info.is_expandable;
    if (info.is_expandable) {
      const std::size_t begin = books_.range_begin(info.address).value_or(info.address);
      segment.range = ranges.try_emplace(begin, static_cast<std::int32_t>(ranges.size())).first->second;
      segment.range_offset = static_cast<Bytes>(info.address - begin);
    }
    std::size_t address = info.address;
    for (const auto& block : info.blocks) {
      const auto id = books_.id_at(reinterpret_cast<const void*>(address));
      segment.blocks.push_back({static_cast<Bytes>(block.size),
                                block.allocated ? static_cast<Bytes>(block.requested_size) : 0,
                                block.allocated, block.allocated && id ? storage_of(*id) : -1});
      address += block.size;
    }
  }
  return state;
}

std::byte* CudaDevice::allocate_host(Bytes bytes) {
  const OnDevice here(index_);
  try {
    try {
      return pool_.allocate(bytes);
    } catch (const Error&) {
      if (trim_host() == 0) throw;
      return pool_.allocate(bytes);
    }
  } catch (const Error& error) {
    host_refusal_ = error;
    throw;
  }
}

Bytes CudaDevice::trim_host() {
  synchronize();
  return pool_.trim();
}

std::vector<std::string> CudaDevice::take_notes() {
  if (!pool_.fell_back() || std::exchange(fallback_noted_, true)) return {};
  return {"CUDA cannot pin more host memory: copies use pageable memory, which is slow and blocks the host"};
}

// --- Compute on other streams ---

/// Offloaded tensors are copied, dropped and reloaded in the order of the default stream. Another stream that
/// uses them is not ordered with it, and would read whatever is there at that time.
void CudaDevice::check_compute_stream() {
  if (c10::cuda::getCurrentCUDAStream(index_).stream() != compute_) refuse_streams();
}

bool CudaDevice::is_of_other_stream(const c10::Storage& storage) const {
  return books_.saw_other_stream() && books_.stream_of(storage) >= kFirstOtherStream;
}

void CudaDevice::check_stream_of(const c10::Storage& storage) {
  if (is_of_other_stream(storage)) refuse_streams();
}

void CudaDevice::refuse_streams() {
  stream_refusal_ = input_error(
      "the model computes on a CUDA stream of its own, but offprof tracks only the default stream of cuda:" +
          std::to_string(index_),
      "run the model on the default stream: remove torch.cuda.stream or StreamContext");
  throw Error(*stream_refusal_);
}

// --- Copies ---

void CudaDevice::follow_compute(Queue& queue) {
  check_cuda(cudaEventRecord(compute_event_, compute_), "record an event");
  check_cuda(cudaStreamWaitEvent(queue.stream.stream(), compute_event_, 0),
             "make a stream wait for an event");
}

Device::Event CudaDevice::copy(CopyQueue which, const CopyRequest& request) {
  const OnDevice here(index_);
  follow_compute(queue(which));
  return add_copy(queue(which), request);
}

Device::Event CudaDevice::add_copy(Queue& queue, const CopyRequest& request) {
  const cudaMemcpyKind kind =
      request.direction == CopyDirection::kD2h ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice;
  const cudaStream_t stream = queue.stream.stream();
  Copy copy{request.direction, request.bytes, request.tag};
  // A copy from pageable memory may read its source at once, before a disk has filled it.
  if (request.direction == CopyDirection::kH2d && pool_.fell_back())
    check_cuda(cudaStreamSynchronize(stream), "synchronize a stream");
  copy.begin = events_.record(stream);
  check_cuda(cudaMemcpyAsync(request.to, request.from, static_cast<std::size_t>(request.bytes), kind, stream),
             "copy");
  copy.end = events_.record(stream);
  queue.copies.push_back(copy);
  return queue.taken + queue.copies.size();
}

Device::Event CudaDevice::copy_out_densely(CopyQueue which, const at::Tensor& from, std::byte* to,
                                           std::int64_t tag) {
  const OnDevice here(index_);
  Queue& copies = queue(which);
  follow_compute(copies);
  // The staging memory comes from the copy stream's own pool, so it can be freed at once.
  const at::NoGradGuard no_grad;
  const c10::cuda::CUDAStreamGuard guard(copies.stream);
  const auto strides = at::infer_dense_strides(from.sizes(), from.strides());
  const at::Tensor staging = at::empty_strided(from.sizes(), strides, from.options());
  staging.copy_(from);
  return add_copy(
      copies, {to, staging.const_data_ptr(), static_cast<Bytes>(staging.nbytes()), CopyDirection::kD2h, tag});
}

void CudaDevice::wait(CopyQueue which, Event event) {
  Queue& copies = queue(which);
  if (event <= copies.waited || event <= copies.taken) return;
  const OnDevice here(index_);
  Wait wait;
  wait.copy_end = copies.copies[event - copies.taken - 1].end;
  wait.before = events_.record(compute_);
  check_cuda(cudaStreamWaitEvent(compute_, wait.copy_end, 0), "make a stream wait for an event");
  wait.after = events_.record(compute_);
  waits_.push_back(wait);
  copies.waited = event;
}

std::vector<CopyRecord> CudaDevice::take_copy_records() {
  synchronize();
  std::vector<CopyRecord> records;
  for (Queue& copies : queues_) {
    for (const Copy& copy : copies.copies)
      records.push_back({copy.direction, since_origin(copy.begin), since_origin(copy.end), copy.bytes,
                         copy.tag, copy.staging});
    copies.taken += copies.copies.size();
    copies.copies.clear();
  }
  return records;
}

void CudaDevice::open_disk(const DiskRequest& request) {
  synchronize();
  set_disk(open_tiered_device_disk(request, disk_queues_));
}

// --- Time ---

Device::TimeMark CudaDevice::mark() noexcept {
  const std::lock_guard turn(marks_mutex_);
  try {
    const OnDevice here(index_);
    marks_.push_back(events_.record(compute_));
    return static_cast<TimeMark>(marks_.size() - 1);
  } catch (...) {
    if (!mark_failure_) mark_failure_ = std::current_exception();
    return kFailedMark;
  }
}

std::exception_ptr CudaDevice::take_mark_failure() {
  const std::lock_guard turn(marks_mutex_);
  return std::exchange(mark_failure_, nullptr);
}

void CudaDevice::synchronize() {
  const OnDevice here(index_);
  check_cuda(cudaDeviceSynchronize(), "synchronize the device");
}

Nanoseconds CudaDevice::elapsed(cudaEvent_t from, cudaEvent_t to) const {
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, from, to), "measure the time between two events");
  return static_cast<Nanoseconds>(std::llround(static_cast<double>(milliseconds) * 1e6));
}

Nanoseconds CudaDevice::time_of(TimeMark mark) const {
  if (mark == kFailedMark) throw environment_error("CUDA could not mark a point of the compute stream");
  return since_origin(marks_[static_cast<std::size_t>(mark)]);
}

void CudaDevice::forget_marks() {
  const OnDevice here(index_);
  synchronize();
  cudaEvent_t origin = nullptr;
  check_cuda(cudaEventCreateWithFlags(&origin, cudaEventDefault), "create an event");
  check_cuda(cudaEventRecord(origin, compute_), "record an event");
  synchronize();
  origin_steady_ns_ = steady_now();
  if (origin_ != nullptr) {
    origin_ns_ = since_origin(origin);
    cudaEventDestroy(origin_);
  }
  origin_ = origin;
  marks_.clear();
  take_mark_failure();
  take_copy_records();
  take_exposed_ns();
  events_.reuse_all();
}

Nanoseconds CudaDevice::take_exposed_ns() {
  Nanoseconds exposed = 0;
  for (const Wait& wait : waits_)
    exposed += exposed_in(elapsed(wait.before, wait.copy_end), elapsed(wait.before, wait.after));
  waits_.clear();
  return exposed;
}

}  // namespace offprof
