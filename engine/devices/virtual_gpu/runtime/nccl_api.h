#pragma once

#include <cstddef>

#include "engine/devices/virtual_gpu/state/gpu_collectives.h"

// Declarations of NCCL 2.28 as far as LibTorch uses them. LibTorch's packages lack nccl.h.

struct NcclUniqueId {
  char bytes[128];
};

enum NcclResult : int {
  kNcclSuccess = 0,
  kNcclUnhandledCudaError = 1,
  kNcclSystemError = 2,
  kNcclInternalError = 3,
  kNcclInvalidArgument = 4,
  kNcclInvalidUsage = 5,
  kNcclRemoteError = 6,
  kNcclInProgress = 7,
};

enum NcclType : int {
  kNcclInt8,
  kNcclUint8,
  kNcclInt32,
  kNcclUint32,
  kNcclInt64,
  kNcclUint64,
  kNcclFloat16,
  kNcclFloat32,
  kNcclFloat64,
  kNcclBfloat16,
  kNcclFloat8e4m3,
  kNcclFloat8e5m2,
};

/// Numbers beyond are operators that a program has created.
enum NcclReduction : int { kNcclSum, kNcclProduct, kNcclMax, kNcclMin, kNcclAverage, kNcclReductions };

/// Color of a rank that is in no part of a split communicator.
inline constexpr int kNcclNoColor = -1;

/// ncclSimInfo_t
struct NcclSimulation {
  std::size_t bytes;
  unsigned magic, version;
  float estimated_us;
};

using NcclComm = offprof::Communicator*;
using NcclStream = offprof::StreamId;

extern "C" {
NcclResult ncclGetVersion(int* version);
NcclResult ncclGetUniqueId(NcclUniqueId* id);
const char* ncclGetErrorString(NcclResult result);
const char* ncclGetLastError(NcclComm comm);

NcclResult ncclCommInitRank(NcclComm* comm, int ranks, NcclUniqueId id, int rank);
NcclResult ncclCommInitRankConfig(NcclComm* comm, int ranks, NcclUniqueId id, int rank, void* config);
NcclResult ncclCommInitRankScalable(NcclComm* comm, int ranks, int rank, int ids, NcclUniqueId* id,
                                    void* config);
NcclResult ncclCommInitAll(NcclComm* comms, int devices, const int* device_list);
NcclResult ncclCommSplit(NcclComm parent, int color, int key, NcclComm* comm, void* config);
NcclResult ncclCommShrink(NcclComm parent, int* excluded, int count, NcclComm* comm, void* config, int flags);
NcclResult ncclCommFinalize(NcclComm comm);
NcclResult ncclCommDestroy(NcclComm comm);
NcclResult ncclCommAbort(NcclComm comm);
NcclResult ncclCommGetAsyncError(NcclComm comm, NcclResult* error);
NcclResult ncclCommCount(NcclComm comm, int* ranks);
NcclResult ncclCommUserRank(NcclComm comm, int* rank);
NcclResult ncclCommRegister(NcclComm comm, void* memory, std::size_t bytes, void** handle);
NcclResult ncclCommDeregister(NcclComm comm, void* handle);
NcclResult ncclCommWindowRegister(NcclComm comm, void* memory, std::size_t bytes, void** window, int flags);
NcclResult ncclCommWindowDeregister(NcclComm comm, void* window);
NcclResult ncclDevCommCreate(NcclComm comm, const void* requirements, void* device_comm);
NcclResult ncclDevCommDestroy(NcclComm comm, const void* device_comm);
NcclResult ncclMemAlloc(void** memory, std::size_t bytes);
NcclResult ncclMemFree(void* memory);

NcclResult ncclGroupStart();
NcclResult ncclGroupEnd();
NcclResult ncclGroupSimulateEnd(NcclSimulation* simulation);

NcclResult ncclRedOpCreatePreMulSum(int* op, void* scalar, NcclType type, int residence, NcclComm comm);
NcclResult ncclRedOpDestroy(int op, NcclComm comm);
NcclResult ncclAllReduce(const void* send, void* receive, std::size_t count, NcclType type, int op,
                         NcclComm comm, NcclStream stream);
NcclResult ncclReduce(const void* send, void* receive, std::size_t count, NcclType type, int op, int root,
                      NcclComm comm, NcclStream stream);
NcclResult ncclReduceScatter(const void* send, void* receive, std::size_t count, NcclType type, int op,
                             NcclComm comm, NcclStream stream);
NcclResult ncclAllGather(const void* send, void* receive, std::size_t count, NcclType type, NcclComm comm,
                         NcclStream stream);
NcclResult ncclAlltoAll(const void* send, void* receive, std::size_t count, NcclType type, NcclComm comm,
                        NcclStream stream);
NcclResult ncclBroadcast(const void* send, void* receive, std::size_t count, NcclType type, int root,
                         NcclComm comm, NcclStream stream);
NcclResult ncclBcast(void* buffer, std::size_t count, NcclType type, int root, NcclComm comm,
                     NcclStream stream);
NcclResult ncclSend(const void* send, std::size_t count, NcclType type, int peer, NcclComm comm,
                    NcclStream stream);
NcclResult ncclRecv(void* receive, std::size_t count, NcclType type, int peer, NcclComm comm,
                    NcclStream stream);
}
