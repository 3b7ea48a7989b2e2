#include "engine/devices/virtual_gpu/runtime/nccl_api.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/devices/virtual_gpu/runtime/access.h"
#include "engine/devices/virtual_gpu/runtime/traced_call.h"

// NCCL, of one rank without its peers: no function waits for another rank. Communicators and collectives are
// those of GpuCollectives.

using namespace offprof;
using namespace offprof::runtime;

namespace {

constexpr int kVersion = 22809;  // 2.28.9, which LibTorch 2.11 was built with
constexpr double kNsPerUs = 1e3;

/// A call that waits for the end of its group.
struct GroupedCall {
  NcclComm comm;
  StreamId stream;
  CollectiveCall call;
};

/// The group of a thread: calls between ncclGroupStart and the matching ncclGroupEnd.
struct Group {
  int depth = 0;
  std::vector<GroupedCall> calls;
};

thread_local Group group;
thread_local std::string last_error;

NcclResult fail(NcclResult result, std::string what) {
  last_error = std::move(what);
  return result;
}

NcclResult check(NcclComm comm) {
  return gpu().collectives().exists(comm) ? kNcclSuccess
                                          : fail(kNcclInvalidArgument, "the communicator does not exist");
}

Bytes width_of(NcclType type) {
  switch (type) {
    case kNcclInt8:
    case kNcclUint8:
    case kNcclFloat8e4m3:
    case kNcclFloat8e5m2:
      return 1;
    case kNcclFloat16:
    case kNcclBfloat16:
      return 2;
    case kNcclInt32:
    case kNcclUint32:
    case kNcclFloat32:
      return 4;
    case kNcclInt64:
    case kNcclUint64:
    case kNcclFloat64:
      return 8;
  }
  return 0;
}

NumberType number_type(NcclType type) {
  switch (type) {
    case kNcclInt8:
      return NumberType::kInt8;
    case kNcclUint8:
      return NumberType::kUint8;
    case kNcclInt32:
      return NumberType::kInt32;
    case kNcclUint32:
      return NumberType::kUint32;
    case kNcclInt64:
      return NumberType::kInt64;
    case kNcclUint64:
      return NumberType::kUint64;
    case kNcclFloat32:
      return NumberType::kFloat32;
    case kNcclFloat64:
      return NumberType::kFloat64;
    case kNcclFloat16:
      return NumberType::kFloat16;
    case kNcclBfloat16:
      return NumberType::kBfloat16;
    case kNcclFloat8e4m3:
      return NumberType::kFloat8E4m3;
    case kNcclFloat8e5m2:
      return NumberType::kFloat8E5m2;
  }
  return NumberType::kOther;
}

Reduction reduction_of(int op) {
  switch (op) {
    case kNcclSum:
      return Reduction::kSum;
    case kNcclMax:
      return Reduction::kMax;
    case kNcclMin:
      return Reduction::kMin;
    case kNcclAverage:
      return Reduction::kAverage;
    case kNcclProduct:
      return Reduction::kProduct;
    default:
      return Reduction::kOther;
  }
}

/// Returns the result of a call that the other ranks may contradict.
NcclResult checked(GpuStatus status) {
  return status == GpuStatus::kPeerProblem ? fail(kNcclInvalidUsage, gpu().collectives().take_problem())
                                           : kNcclSuccess;
}

NcclResult run(NcclComm comm, StreamId stream, const std::vector<CollectiveCall>& calls) {
  OFFPROF_TRACED_DRIVER_CALL(cuLaunchKernel);
  const GpuStatus status = gpu().collectives().run(stream, *comm, calls);
  if (status == GpuStatus::kInvalidHandle)
    return fail(kNcclUnhandledCudaError, "the stream of a collective does not exist");
  return checked(status);
}

/// Returns the group's calls, those of a communicator and stream together, and ends the group.
std::vector<std::pair<GroupedCall, std::vector<CollectiveCall>>> take_group() {
  std::vector<std::pair<GroupedCall, std::vector<CollectiveCall>>> kernels;
  for (const GroupedCall& grouped : std::exchange(group.calls, {})) {
    const bool is_next = !kernels.empty() && kernels.back().first.comm == grouped.comm &&
                         kernels.back().first.stream == grouped.stream;
    if (!is_next) kernels.emplace_back(grouped, std::vector<CollectiveCall>{});
    kernels.back().second.push_back(grouped.call);
  }
  return kernels;
}

/// Checks the call and runs it, or keeps it until the end of the group. `count` is that of the numbers that
/// NCCL's function takes. `root` is that of broadcast and reduce, or the peer; 0 for others.
NcclResult call(Collective collective, const void* send, void* receive, std::size_t count, NcclType type,
                Reduction reduction, int root, NcclComm comm, StreamId stream) {
  if (const NcclResult result = check(comm); result != kNcclSuccess) return result;
  if (root < 0 || root >= comm->group.ranks)
    return fail(kNcclInvalidArgument, "rank " + std::to_string(root) +
                                          " is not in the communicator, which has " +
                                          std::to_string(comm->group.ranks) + " ranks");
  const Bytes width = width_of(type);
  if (width == 0) return fail(kNcclInvalidArgument, "unknown data type " + std::to_string(type));
  const bool has_a_part_of_each = collective == Collective::kAllGather ||
                                  collective == Collective::kReduceScatter ||
                                  collective == Collective::kAllToAll;
  const Bytes parts = has_a_part_of_each ? comm->group.ranks : 1;
  const CollectiveCall collective_call{.collective = collective,
                                       .send = send,
                                       .receive = receive,
                                       .bytes = static_cast<Bytes>(count) * width * parts,
                                       .type = number_type(type),
                                       .reduction = reduction,
                                       .is_root = root == comm->rank,
                                       .root = root};
  if (group.depth == 0) return run(comm, stream, {collective_call});
  group.calls.push_back({comm, stream, collective_call});
  return kNcclSuccess;
}

/// Creates a communicator, on the nodes of its group if that was noted. `name` is the same on all its ranks;
/// empty: it is not known.
NcclResult create(NcclComm* comm, int rank, int ranks, const std::optional<NotedGroup>& noted,
                  const std::string& name) {
  if (ranks <= 0 || rank < 0 || rank >= ranks)
    return fail(kNcclInvalidArgument,
                "invalid rank " + std::to_string(rank) + " of " + std::to_string(ranks));
  *comm =
      gpu().collectives().create(rank, ranks, noted ? std::optional(noted->shape.nodes) : std::nullopt, name);
  return kNcclSuccess;
}

/// Returns how often torchrun has started the job again; empty without torchrun.
const char* attempt_of_job() {
  const char* const attempt = std::getenv("TORCHELASTIC_RESTART_COUNT");
  return attempt != nullptr ? attempt : "";
}

/// Returns true if the id was made before torchrun started the job again: torch's store may keep it.
bool is_of_earlier_attempt(const NcclUniqueId& id) {
  std::array<char, 16> attempt{};
  return std::sscanf(id.bytes, "offprof %*d %*d %15s", attempt.data()) == 1 &&
         attempt_of_job() != std::string_view(attempt.data());
}

std::string key_of(const NcclUniqueId& id) {
  return {id.bytes, sizeof id.bytes};
}

NcclResult create(NcclComm* comm, int rank, int ranks, const NcclUniqueId& id) {
  if (is_of_earlier_attempt(id))
    return fail(kNcclRemoteError, "the unique id is of ranks that ran before torchrun started the job again");
  const std::string key = key_of(id);
  const auto noted = gpu().collectives().noted_group(key);
  return create(comm, rank, ranks, noted, noted && !noted->name.empty() ? noted->name : key);
}

/// Key of the group that Python is making, whose color is not known beforehand (python/offprof/lone_rank.py).
const std::string kGroupBeingMade = "being made";

NcclResult no_symmetric_memory() {
  return fail(kNcclInvalidUsage, "the virtual GPU has no symmetric memory");
}

}  // namespace

extern "C" {

NcclResult ncclGetVersion(int* version) {
  *version = kVersion;
  return kNcclSuccess;
}

NcclResult ncclGetUniqueId(NcclUniqueId* id) {
  static std::atomic<int> number = 0;
  *id = {};
  std::snprintf(id->bytes, sizeof id->bytes, "offprof %d %d %s", static_cast<int>(getpid()), ++number,
                attempt_of_job());
  return kNcclSuccess;
}

const char* ncclGetErrorString(NcclResult result) {
  switch (result) {
    case kNcclSuccess:
      return "no error";
    case kNcclUnhandledCudaError:
      return "unhandled cuda error (virtual GPU)";
    case kNcclSystemError:
      return "unhandled system error (virtual GPU)";
    case kNcclInternalError:
      return "internal error (virtual GPU)";
    case kNcclInvalidArgument:
      return "invalid argument (virtual GPU)";
    case kNcclInvalidUsage:
      return "invalid usage (virtual GPU)";
    case kNcclRemoteError:
      return "remote process exited or there was a network error (virtual GPU)";
    case kNcclInProgress:
      return "NCCL operation in progress (virtual GPU)";
  }
  return "unknown result code";
}

const char* ncclGetLastError(NcclComm) {
  return last_error.c_str();
}

NcclResult ncclCommInitRank(NcclComm* comm, int ranks, NcclUniqueId id, int rank) {
  return create(comm, rank, ranks, id);
}

NcclResult ncclCommInitRankConfig(NcclComm* comm, int ranks, NcclUniqueId id, int rank, void*) {
  return create(comm, rank, ranks, id);
}

NcclResult ncclCommInitRankScalable(NcclComm* comm, int ranks, int rank, int ids, NcclUniqueId* id, void*) {
  if (ids <= 0) return fail(kNcclInvalidArgument, "a communicator needs a unique id");
  return create(comm, rank, ranks, id[0]);
}

// All ranks in one process, which the virtual GPU has one device for.
NcclResult ncclCommInitAll(NcclComm* comms, int devices, const int*) {
  if (devices != 1) return fail(kNcclInvalidUsage, "a process of the virtual GPU has one device");
  return create(comms, 0, 1, std::nullopt, {});
}

// The other ranks tell who is in the part; a rank alone knows by noted groups.
NcclResult ncclCommSplit(NcclComm parent, int color, int key, NcclComm* comm, void*) {
  *comm = nullptr;
  if (const NcclResult result = check(parent); result != kNcclSuccess) return result;
  *comm = gpu().collectives().split(parent, color, key);
  if (std::string problem = gpu().collectives().take_problem(); !problem.empty())
    return fail(kNcclRemoteError, std::move(problem));
  const std::string name = gpu().collectives().name_of_part(parent, color);
  if (color == kNcclNoColor) *comm = nullptr;
  if (color == kNcclNoColor || *comm != nullptr) return kNcclSuccess;
  const GpuCollectives& collectives = gpu().collectives();
  auto part = collectives.noted_group(std::to_string(color));
  if (!part) part = collectives.noted_group(kGroupBeingMade);
  return create(comm, key, part ? part->shape.ranks : parent->group.ranks, part, name);
}

NcclResult ncclCommShrink(NcclComm parent, int* excluded, int count, NcclComm* comm, void*, int) {
  *comm = nullptr;
  if (const NcclResult result = check(parent); result != kNcclSuccess) return result;
  int before = 0;  // excluded ranks before this one
  for (int i = 0; i < count; ++i) {
    if (excluded[i] == parent->rank)
      return fail(kNcclInvalidUsage, "an excluded rank must not call ncclCommShrink");
    before += excluded[i] < parent->rank ? 1 : 0;
  }
  return create(comm, parent->rank - before, parent->group.ranks - count, std::nullopt, {});
}

NcclResult ncclCommFinalize(NcclComm comm) {
  if (const NcclResult result = check(comm); result != kNcclSuccess) return result;
  return checked(gpu().collectives().finalize(comm));
}

NcclResult ncclCommDestroy(NcclComm comm) {
  return gpu().collectives().destroy(comm) == GpuStatus::kOk ? kNcclSuccess : check(comm);
}

NcclResult ncclCommAbort(NcclComm comm) {
  return ncclCommDestroy(comm);
}

NcclResult ncclCommGetAsyncError(NcclComm comm, NcclResult* error) {
  *error = kNcclSuccess;
  return check(comm);
}

NcclResult ncclCommCount(NcclComm comm, int* ranks) {
  if (const NcclResult result = check(comm); result != kNcclSuccess) return result;
  *ranks = comm->group.ranks;
  return kNcclSuccess;
}

NcclResult ncclCommUserRank(NcclComm comm, int* rank) {
  if (const NcclResult result = check(comm); result != kNcclSuccess) return result;
  *rank = comm->rank;
  return kNcclSuccess;
}

// A registration changes how fast NCCL is, and nothing else.
NcclResult ncclCommRegister(NcclComm comm, void* memory, std::size_t, void** handle) {
  *handle = memory;
  return check(comm);
}

NcclResult ncclCommDeregister(NcclComm comm, void*) {
  return check(comm);
}

NcclResult ncclCommWindowRegister(NcclComm, void*, std::size_t, void** window, int) {
  *window = nullptr;
  return no_symmetric_memory();
}
NcclResult ncclCommWindowDeregister(NcclComm, void*) {
  return no_symmetric_memory();
}
NcclResult ncclDevCommCreate(NcclComm, const void*, void*) {
  return no_symmetric_memory();
}
NcclResult ncclDevCommDestroy(NcclComm, const void*) {
  return no_symmetric_memory();
}

NcclResult ncclMemAlloc(void** memory, std::size_t bytes) {
  const GpuStatus status = gpu().memory().allocate(memory, static_cast<Bytes>(bytes));
  return status == GpuStatus::kOk ? kNcclSuccess : fail(kNcclUnhandledCudaError, "out of device memory");
}

NcclResult ncclMemFree(void* memory) {
  return gpu().memory().free(memory) == GpuStatus::kOk
             ? kNcclSuccess
             : fail(kNcclInvalidArgument, "nothing is allocated there");
}

NcclResult ncclGroupStart() {
  ++group.depth;
  return kNcclSuccess;
}

NcclResult ncclGroupEnd() {
  if (group.depth == 0) return fail(kNcclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--group.depth > 0) return kNcclSuccess;
  for (const auto& [grouped, calls] : take_group()) {
    if (const NcclResult result = check(grouped.comm); result != kNcclSuccess) return result;
    if (const NcclResult result = run(grouped.comm, grouped.stream, calls); result != kNcclSuccess)
      return result;
  }
  return kNcclSuccess;
}

NcclResult ncclGroupSimulateEnd(NcclSimulation* simulation) {
  if (group.depth == 0) return fail(kNcclInvalidUsage, "ncclGroupSimulateEnd without ncclGroupStart");
  --group.depth;
  Nanoseconds sum = 0;
  for (const auto& [grouped, calls] : take_group()) sum += gpu().collectives().time_of(*grouped.comm, calls);
  if (simulation != nullptr)
    simulation->estimated_us = static_cast<float>(static_cast<double>(sum) / kNsPerUs);
  return kNcclSuccess;
}

// The factor is a value, which is not known: the sum's values are not carried.
NcclResult ncclRedOpCreatePreMulSum(int* op, void*, NcclType, int, NcclComm comm) {
  *op = kNcclReductions;
  return check(comm);
}

NcclResult ncclRedOpDestroy(int, NcclComm comm) {
  return check(comm);
}

NcclResult ncclAllReduce(const void* send, void* receive, std::size_t count, NcclType type, int op,
                         NcclComm comm, NcclStream stream) {
  return call(Collective::kAllReduce, send, receive, count, type, reduction_of(op), 0, comm, stream);
}

NcclResult ncclReduce(const void* send, void* receive, std::size_t count, NcclType type, int op, int root,
                      NcclComm comm, NcclStream stream) {
  return call(Collective::kReduce, send, receive, count, type, reduction_of(op), root, comm, stream);
}

NcclResult ncclReduceScatter(const void* send, void* receive, std::size_t count, NcclType type, int op,
                             NcclComm comm, NcclStream stream) {
  return call(Collective::kReduceScatter, send, receive, count, type, reduction_of(op), 0, comm, stream);
}

NcclResult ncclAllGather(const void* send, void* receive, std::size_t count, NcclType type, NcclComm comm,
                         NcclStream stream) {
  return call(Collective::kAllGather, send, receive, count, type, Reduction::kOther, 0, comm, stream);
}

NcclResult ncclAlltoAll(const void* send, void* receive, std::size_t count, NcclType type, NcclComm comm,
                        NcclStream stream) {
  return call(Collective::kAllToAll, send, receive, count, type, Reduction::kOther, 0, comm, stream);
}

NcclResult ncclBroadcast(const void* send, void* receive, std::size_t count, NcclType type, int root,
                         NcclComm comm, NcclStream stream) {
  return call(Collective::kBroadcast, send, receive, count, type, Reduction::kOther, root, comm, stream);
}

NcclResult ncclBcast(void* buffer, std::size_t count, NcclType type, int root, NcclComm comm,
                     NcclStream stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

NcclResult ncclSend(const void* send, std::size_t count, NcclType type, int peer, NcclComm comm,
                    NcclStream stream) {
  return call(Collective::kSend, send, nullptr, count, type, Reduction::kOther, peer, comm, stream);
}

NcclResult ncclRecv(void* receive, std::size_t count, NcclType type, int peer, NcclComm comm,
                    NcclStream stream) {
  return call(Collective::kReceive, nullptr, receive, count, type, Reduction::kOther, peer, comm, stream);
}

}  // extern "C"
