#include "profiler/recorder/pass_recorder.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "engine/torch/dtype_name.h"
#include "traces/base/check.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

/// Guards active_recorder and all that it holds. Device allocators call with their own lock held, so code
/// that holds this lock must not allocate device memory.
std::mutex recorder_mutex;
using Turn = std::lock_guard<std::mutex>;

/// at::RecordFunction calls plain functions, which find the recorder here.
PassRecorder* active_recorder = nullptr;

/// Place in the code that saves a tensor on this thread, between on_pack_begin and on_pack.
thread_local CodeLocation packing_location;

constexpr std::size_t kExpectedEvents = 1 << 16;
constexpr std::string_view kForward = "forward";
constexpr std::string_view kNodePrefix = "autograd::engine::evaluate_function: ";

SavedTensor describe(const at::Tensor& value, const PackRequest& request) {
  SavedTensor saved;
  saved.version = request.version;
  saved.movability = request.movability;
  saved.is_parameter = request.is_parameter;
  saved.bytes = request.tensor_bytes;
  TensorLayout layout{std::string(dtype_name(value.scalar_type())), value.sizes().vec(), {}};
  if (value.layout() == at::kStrided) {
    layout.strides = value.strides().vec();
    saved.storage_offset = value.storage_offset();
  }
  saved.layout = std::move(layout);
  return saved;
}

StorageRole role_of(Movability movability) {
  switch (movability) {
    case Movability::kParameter:
      return StorageRole::kParameter;
    case Movability::kBuffer:
      return StorageRole::kBuffer;
    case Movability::kInput:
      return StorageRole::kInput;
    case Movability::kResident:
    case Movability::kParameterGroup:
      return StorageRole::kResident;
    case Movability::kMovable:
    case Movability::kEmpty:
    case Movability::kUnsupportedLayout:
    case Movability::kUnpacked:
      break;
  }
  return StorageRole::kActivation;
}

Error runs_on_threads_at_once() {
  return input_error(
      "the model runs operators on several threads at once (torch.jit.fork): such a step has no fixed "
      "order, so one step does not predict the next",
      "export the model without torch.jit.fork");
}

}  // namespace

PassRecorder::PassRecorder(Device& device, bool wants_node_ends, GpuTracer* tracer, CodeLocator locate)
    : device_(device),
      wants_node_ends_(wants_node_ends),
      tracer_(tracer),
      locate_(std::move(locate)),
      callback_(0) {
  pass_.events.reserve(kExpectedEvents);
  pass_.resident_bytes = device.live_bytes();
  if (const auto use = device.cache_use()) pass_.reserved_bytes = use->reserved_peak_bytes;
  {
    const Turn turn(recorder_mutex);
    OFFPROF_CHECK(active_recorder == nullptr);
    active_recorder = this;
  }
  device_.set_listener(this);
  callback_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(&PassRecorder::op_begins, &PassRecorder::op_ends)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  device_.note_stream_commands(true);
  pass_.has_work = device_.take_work().has_value();
  device_.take_step_size();
  pass_.begin_ns = device_.mark();
}

void PassRecorder::push(std::uint64_t cause) {
  if (tracer_ == nullptr || !recording_) return;
  tracer_->push(cause);
  ++pushed_;
}

void PassRecorder::pop() {
  if (pushed_ == 0) return;
  tracer_->pop();
  --pushed_;
}

/// Takes the work since the last event, and before it the commands of other streams, for the event that is
/// about to be added.
Work PassRecorder::take_work() {
  if (!pass_.has_work) return {};
  for (StreamCommand& command : device_.take_stream_commands()) {
    command.before = then(std::exchange(dropped_work_, {}), command.before);
    command.event = static_cast<std::int32_t>(pass_.events.size());
    pass_.stream_commands.push_back(command);
  }
  return then(std::exchange(dropped_work_, {}), device_.take_work().value_or(Work{}));
}

PassRecorder::~PassRecorder() {
  stop();
}

void PassRecorder::stop() {
  {
    const Turn turn(recorder_mutex);
    if (!std::exchange(recording_, false)) return;
    while (pushed_ > 0) pop();  // after an exception
    active_recorder = nullptr;
  }
  at::removeCallback(callback_);
  device_.note_stream_commands(false);
  // without recorder_mutex: an allocating thread holds the lock that this takes
  device_.set_listener(nullptr);
}

/// The child has one thread, so nobody else can hold the lock for long; but a thread that does not exist in
/// the child may have held it when the process forked. So the lock is not taken.
void PassRecorder::forget_in_child() {
  recording_ = false;
  active_recorder = nullptr;
  device_.set_listener(nullptr);
}

void PassRecorder::note_gathered(const at::Tensor& parameter) {
  if (!parameter.has_storage()) return;
  const Device* device = nullptr;
  {
    const Turn turn(recorder_mutex);
    if (active_recorder == nullptr) return;
    device = &active_recorder->device_;
  }
  // without recorder_mutex: an allocating thread holds the lock that this takes
  const std::optional<AllocationId> allocation = device->allocation_of(parameter.storage());
  const Turn turn(recorder_mutex);
  if (allocation && active_recorder != nullptr) active_recorder->pass_.gathered.insert(*allocation);
}

void PassRecorder::end_step() {
  begin_phase("end");
  pass_.end_ns = device_.mark();
  pass_.size = device_.take_step_size().value_or(StepSize{});
}

RecordedPass PassRecorder::finish() {
  stop();
  check_marks(device_);
  device_.synchronize();
  if (has_threads_at_once_) throw runs_on_threads_at_once();
  resolve_times();
  return std::move(pass_);
}

/// Converts the recorded marks to times.
void PassRecorder::resolve_times() {
  const auto resolve = [&](auto& span) {
    span.begin_ns = device_.time_of(span.begin_ns);
    span.end_ns = device_.time_of(span.end_ns);
  };
  resolve(pass_);
  for (RawEvent& event : pass_.events) resolve(event);
  for (RawCommand& command : pass_.commands) resolve(command);
}

void PassRecorder::begin_phase(std::string_view name) {
  const Turn turn(recorder_mutex);
  forward_thread_ = name == kForward ? std::optional(std::this_thread::get_id()) : std::nullopt;
  note(RawKind::kPhase, intern(name));
}

void PassRecorder::take_note(RawKind kind, std::int64_t id, std::int64_t value) {
  const Turn turn(recorder_mutex);
  note(kind, id, value);
}

void PassRecorder::note_memory(RawKind kind, AllocationId id, Bytes bytes, std::int32_t stream) {
  const Turn turn(recorder_mutex);
  if (stream != kComputeStream && recording_) pass_.streams[id] = stream;
  note(kind, id, bytes);
}

void PassRecorder::on_free_requested(AllocationId id, std::span<const std::int32_t> points) {
  const Turn turn(recorder_mutex);
  if (!points.empty() && recording_) pass_.free_points[id].assign(points.begin(), points.end());
  note(RawKind::kFreeRequested, id);
}

/// Checks the calling thread when an operator begins or ends on it.
void PassRecorder::see_thread() {
  const std::thread::id thread = std::this_thread::get_id();
  if (forward_thread_.value_or(thread) != thread) has_threads_at_once_ = true;
  if (open_ops_.empty())
    ops_thread_ = thread;
  else if (ops_thread_ != thread)
    has_threads_at_once_ = true;
}

void PassRecorder::note(RawKind kind, std::int64_t id, std::int64_t value) {
  if (!recording_) return;  // a graph may outlive its step and still call
  see_program_frees();
  add(kind, id, value);
}

/// Records storages that only the engine still holds. No callback reports this, but checking before each
/// event is early enough.
void PassRecorder::see_program_frees() {
  for (Held& held : held_) {
    if (!held.by_program) continue;
    const auto by_engine = std::ranges::count(held_, held.allocation, &Held::allocation);
    if (static_cast<std::ptrdiff_t>(held.storage.use_count()) > by_engine) continue;
    held.by_program = false;
    add(RawKind::kProgramFree, held.allocation, 0);
  }
}

void PassRecorder::add(RawKind kind, std::int64_t id, std::int64_t value) {
  const Device::TimeMark now = device_.mark();
  pass_.events.push_back({kind, id, value, now, now, take_work()});
}

std::int32_t PassRecorder::intern(std::string_view name) {
  if (name.starts_with(kNodePrefix)) name.remove_prefix(kNodePrefix.size());
  const auto next = static_cast<std::int32_t>(pass_.names.size());
  const auto [found, is_new] = name_index_.try_emplace(std::string(name), next);
  if (is_new) pass_.names.emplace_back(name);
  return found->second;
}

std::unique_ptr<at::ObserverContext> PassRecorder::op_begins(const at::RecordFunction& op) {
  const Turn turn(recorder_mutex);
  PassRecorder* recorder = active_recorder;
  if (recorder == nullptr) return nullptr;
  recorder->see_thread();
  recorder->see_program_frees();
  const Device::TimeMark begin = recorder->device_.mark();
  const std::int32_t name = recorder->intern(op.name());
  const auto depth = static_cast<std::int64_t>(recorder->open_ops_.size());
  recorder->open_ops_.push_back(name);
  recorder->pass_.events.push_back(
      {RawKind::kOpBegin, name, depth, begin, recorder->device_.mark(), recorder->take_work()});
  recorder->push(WorkCause::of_op(recorder->pass_.events.size() - 1));
  return nullptr;
}

/// Drops the last event if it is the beginning of the operator that ends now, and that operator only sets up
/// a tensor: then it computes nothing, and its number differs from step to step. A process that takes batches
/// from its data workers, for example, sets up as many as have arrived.
bool PassRecorder::drops_op_that_ends() {
  if (!recording_ || pass_.events.empty() || pass_.events.back().kind != RawKind::kOpBegin) return false;
  const RawEvent& begin = pass_.events.back();
  const std::string& name = pass_.names[static_cast<std::size_t>(begin.id)];
  if (name != "aten::empty" && name != "aten::set_") return false;
  dropped_work_ = then(begin.work, dropped_work_);
  pass_.events.pop_back();
  dropped_work_ = take_work();
  return true;
}

void PassRecorder::op_ends(const at::RecordFunction&, at::ObserverContext*) {
  const Turn turn(recorder_mutex);
  PassRecorder* recorder = active_recorder;
  if (recorder == nullptr || recorder->open_ops_.empty()) return;  // it began before the recording
  recorder->see_thread();
  recorder->pop();
  const std::int32_t name = recorder->open_ops_.back();
  recorder->open_ops_.pop_back();
  if (recorder->drops_op_that_ends()) return;
  recorder->note(RawKind::kOpEnd, name, static_cast<std::int64_t>(recorder->open_ops_.size()));
}

void PassRecorder::on_pack_begin() {
  packing_location = locate_();
}

void PassRecorder::on_pack(SavedId tensor, const at::Tensor& value, const PackRequest& request,
                           const PackDecision& decision) {
  const Turn turn(recorder_mutex);
  if (!recording_) return;
  note(RawKind::kPack, tensor);
  RawSaved raw{describe(value, request), request.storage, request.storage_bytes, role_of(request.movability),
               decision.copy};
  raw.saved.op = open_ops_.empty() ? intern("(outside an operator)") : open_ops_.back();
  raw.saved.module = intern(packing_location.module);
  if (!packing_location.line.empty()) raw.saved.line = intern(packing_location.line);
  pass_.saved.push_back(std::move(raw));
  pass_.escaped.push_back(0);
}

void PassRecorder::on_node_end(std::span<const SavedId>, std::span<const SavedId> escaped) {
  const Turn turn(recorder_mutex);
  if (!recording_) return;
  note(RawKind::kNodeEnd);
  for (const SavedId tensor : escaped) pass_.escaped[tensor] = 1;
}

void PassRecorder::on_hold(CopyId copy, AllocationId allocation, const c10::Storage& storage) {
  if (!wants_node_ends_) return;  // the pass is not used for a step program
  const Turn turn(recorder_mutex);
  held_.push_back({copy, allocation, storage.getWeakStorageImpl()});
}

void PassRecorder::on_command_begin(const Command& command) {
  const Turn turn(recorder_mutex);
  if (const auto* const drop = std::get_if<Drop>(&command))
    std::erase_if(held_, [&](const Held& held) { return held.copy == drop->copy; });
  push(WorkCause::of_command(pass_.commands.size()));
}

void PassRecorder::on_command(const Command& command, Device::TimeMark begin, Device::TimeMark end) {
  const Turn turn(recorder_mutex);
  if (!recording_) return;
  pop();
  pass_.events.push_back({RawKind::kCommand, static_cast<std::int64_t>(pass_.commands.size()), 0, begin,
                          device_.mark(), take_work()});
  pass_.commands.push_back({command, begin, end});
}

}  // namespace offprof
