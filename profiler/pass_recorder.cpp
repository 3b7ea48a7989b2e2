#include "profiler/pass_recorder.h"

#include <utility>

#include "engine/dtype_name.h"
#include "traces/check.h"

namespace offprof {
namespace {

/// at::RecordFunction calls plain functions: this is how they find the recorder.
PassRecorder* active_recorder = nullptr;

constexpr std::size_t kExpectedEvents = 1 << 16;
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
      return StorageRole::kResident;
    case Movability::kMovable:
    case Movability::kEmpty:
    case Movability::kUnsupportedLayout:
      break;
  }
  return StorageRole::kActivation;
}

}  // namespace

PassRecorder::PassRecorder(Device& device, bool wants_node_ends, GpuTracer* tracer)
    : device_(device), wants_node_ends_(wants_node_ends), tracer_(tracer), callback_(0) {
  OFFPROF_CHECK(active_recorder == nullptr);
  pass_.events.reserve(kExpectedEvents);
  pass_.resident_bytes = device.live_bytes();
  if (const auto use = device.cache_use()) pass_.reserved_bytes = use->reserved_peak_bytes;
  active_recorder = this;
  device_.set_listener(this);
  callback_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(&PassRecorder::op_begins, &PassRecorder::op_ends)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  pass_.has_work = device_.take_work().has_value();
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

Work PassRecorder::take_work() {
  return pass_.has_work ? device_.take_work().value_or(Work{}) : Work{};
}

PassRecorder::~PassRecorder() {
  stop();
}

void PassRecorder::stop() {
  if (!recording_) return;
  recording_ = false;
  while (pushed_ > 0) pop();  // where something threw
  at::removeCallback(callback_);
  device_.set_listener(nullptr);
  active_recorder = nullptr;
}

void PassRecorder::end_step() {
  begin_phase("end");
  pass_.end_ns = device_.mark();
}

RecordedPass PassRecorder::finish() {
  stop();
  device_.synchronize();
  resolve_times();
  return std::move(pass_);
}

/// What was noted are marks; from here on they are times.
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
  note(RawKind::kPhase, intern(name));
}

void PassRecorder::note(RawKind kind, std::int64_t id, std::int64_t value) {
  if (!recording_) return;  // a graph that outlives its step still calls
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
  PassRecorder* recorder = active_recorder;
  if (recorder == nullptr) return nullptr;
  const Device::TimeMark begin = recorder->device_.mark();
  const std::int32_t name = recorder->intern(op.name());
  const auto depth = static_cast<std::int64_t>(recorder->open_ops_.size());
  recorder->open_ops_.push_back(name);
  recorder->pass_.events.push_back(
      {RawKind::kOpBegin, name, depth, begin, recorder->device_.mark(), recorder->take_work()});
  recorder->push(WorkCause::of_op(recorder->pass_.events.size() - 1));
  return nullptr;
}

void PassRecorder::op_ends(const at::RecordFunction&, at::ObserverContext*) {
  PassRecorder* recorder = active_recorder;
  if (recorder == nullptr || recorder->open_ops_.empty()) return;  // it began before the recording
  recorder->pop();
  const std::int32_t name = recorder->open_ops_.back();
  recorder->open_ops_.pop_back();
  recorder->note(RawKind::kOpEnd, name, static_cast<std::int64_t>(recorder->open_ops_.size()));
}

void PassRecorder::on_pack(SavedId tensor, const at::Tensor& value, const PackRequest& request,
                           const PackDecision& decision) {
  if (!recording_) return;
  note(RawKind::kPack, tensor);
  RawSaved raw{describe(value, request), request.storage, request.storage_bytes, role_of(request.movability),
               decision.copy};
  raw.saved.op = open_ops_.empty() ? intern("(outside an operator)") : open_ops_.back();
  pass_.saved.push_back(std::move(raw));
  pass_.escaped.push_back(0);
}

void PassRecorder::on_node_end(std::span<const SavedId>, std::span<const SavedId> escaped) {
  note(RawKind::kNodeEnd);
  for (const SavedId tensor : escaped) pass_.escaped[tensor] = 1;
}

void PassRecorder::on_command(const Command& command, Device::TimeMark begin, Device::TimeMark end) {
  if (!recording_) return;
  pop();
  pass_.events.push_back({RawKind::kCommand, static_cast<std::int64_t>(pass_.commands.size()), 0, begin,
                          device_.mark(), take_work()});
  pass_.commands.push_back({command, begin, end});
}

}  // namespace offprof
