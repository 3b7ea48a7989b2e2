#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>

#include "engine/devices/virtual_gpu/runtime/nccl_api.h"
#include "engine/devices/virtual_gpu/stand_in.h"

namespace offprof {
namespace {

struct Nccl : testing::Test {
  Nccl() {
    VirtualGpuOptions options;
    options.profile = load_profile("h200");
    options.devices = 8;
    gpu.configure(options);
    NcclUniqueId id;
    EXPECT_EQ(ncclGetUniqueId(&id), kNcclSuccess);
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 8, id, 3, nullptr), kNcclSuccess);
  }
  ~Nccl() override { ncclCommDestroy(comm); }

  int count_of(NcclComm which) {
    int ranks = -1;
    EXPECT_EQ(ncclCommCount(which, &ranks), kNcclSuccess);
    return ranks;
  }
  int rank_of(NcclComm which) {
    int rank = -1;
    EXPECT_EQ(ncclCommUserRank(which, &rank), kNcclSuccess);
    return rank;
  }

  VirtualGpu& gpu = *offprof_virtual_gpu();
  NcclComm comm = nullptr;
};

TEST_F(Nccl, AnswersVersionAndUniqueIds) {
  int version = 0;
  EXPECT_EQ(ncclGetVersion(&version), kNcclSuccess);
  EXPECT_EQ(version / 100, 228);
  NcclUniqueId first, second;
  ncclGetUniqueId(&first);
  ncclGetUniqueId(&second);
  EXPECT_NE(std::memcmp(&first, &second, sizeof first), 0);
  EXPECT_STREQ(ncclGetErrorString(kNcclSuccess), "no error");
}

TEST_F(Nccl, ACommunicatorKnowsItsRankAndSize) {
  EXPECT_EQ(count_of(comm), 8);
  EXPECT_EQ(rank_of(comm), 3);
  NcclResult error = kNcclInternalError;
  EXPECT_EQ(ncclCommGetAsyncError(comm, &error), kNcclSuccess);
  EXPECT_EQ(error, kNcclSuccess);
}

TEST_F(Nccl, RefusesRanksOutsideTheCommunicator) {
  NcclComm created = nullptr;
  EXPECT_EQ(ncclCommInitRank(&created, 2, {}, 2), kNcclInvalidArgument);
  EXPECT_STREQ(ncclGetLastError(nullptr), "invalid rank 2 of 2");
  EXPECT_EQ(ncclSend(nullptr, 1, kNcclInt8, 8, comm, nullptr), kNcclInvalidArgument);
}

TEST_F(Nccl, ASplitHasTheSizeThatOthersWouldTell) {
  gpu.note_group("17", 2, 1, {});
  NcclComm part = nullptr;
  ASSERT_EQ(ncclCommSplit(comm, 17, 1, &part, nullptr), kNcclSuccess);
  EXPECT_EQ(count_of(part), 2);
  EXPECT_EQ(rank_of(part), 1);
  EXPECT_EQ(ncclCommAbort(part), kNcclSuccess);
  ASSERT_EQ(ncclCommSplit(comm, kNcclNoColor, 0, &part, nullptr), kNcclSuccess);
  EXPECT_EQ(part, nullptr);
}

TEST_F(Nccl, AShrunkCommunicatorClosesTheGaps) {
  int excluded[] = {1, 5};
  NcclComm smaller = nullptr;
  ASSERT_EQ(ncclCommShrink(comm, excluded, 2, &smaller, nullptr, 0), kNcclSuccess);
  EXPECT_EQ(count_of(smaller), 6);
  EXPECT_EQ(rank_of(smaller), 2);
  EXPECT_EQ(ncclCommDestroy(smaller), kNcclSuccess);
}

TEST_F(Nccl, ADestroyedCommunicatorDoesNotExist) {
  NcclComm other = nullptr;
  ASSERT_EQ(ncclCommInitRank(&other, 1, {}, 0), kNcclSuccess);
  EXPECT_EQ(ncclCommFinalize(other), kNcclSuccess);
  EXPECT_EQ(ncclCommDestroy(other), kNcclSuccess);
  EXPECT_EQ(ncclCommDestroy(other), kNcclInvalidArgument);
  int ranks = 0;
  EXPECT_EQ(ncclCommCount(other, &ranks), kNcclInvalidArgument);
}

TEST_F(Nccl, CountsTheWholeMessage) {
  ASSERT_EQ(ncclAllGather(nullptr, nullptr, 100, kNcclBfloat16, comm, nullptr), kNcclSuccess);
  ASSERT_EQ(ncclAllReduce(nullptr, nullptr, 100, kNcclFloat32, kNcclSum, comm, nullptr), kNcclSuccess);
  const CollectiveFigures figures = gpu.collective_figures();
  ASSERT_EQ(figures.counts.size(), 2U);
  EXPECT_EQ(figures.counts[0].bytes, 400);
  EXPECT_EQ(figures.counts[1].bytes, 1600);
}

TEST_F(Nccl, CallsOfAGroupAreOneKernelAtItsEnd) {
  const std::int64_t before = gpu.launches();
  ncclGroupStart();
  ncclGroupStart();
  ASSERT_EQ(ncclSend(nullptr, 1, kNcclFloat32, 0, comm, nullptr), kNcclSuccess);
  ASSERT_EQ(ncclRecv(nullptr, 1, kNcclFloat32, 0, comm, nullptr), kNcclSuccess);
  ncclGroupEnd();
  EXPECT_EQ(gpu.launches(), before);
  EXPECT_EQ(ncclGroupEnd(), kNcclSuccess);
  EXPECT_EQ(gpu.launches(), before + 1);
  EXPECT_EQ(ncclGroupEnd(), kNcclInvalidUsage);
}

TEST_F(Nccl, ASimulatedGroupTakesItsTimeAndRunsNothing) {
  const std::int64_t before = gpu.launches();
  ncclGroupStart();
  ncclAllReduce(nullptr, nullptr, 0, kNcclFloat32, kNcclSum, comm, nullptr);
  NcclSimulation simulation{};
  EXPECT_EQ(ncclGroupSimulateEnd(&simulation), kNcclSuccess);
  EXPECT_FLOAT_EQ(simulation.estimated_us, 15);
  EXPECT_EQ(gpu.launches(), before);
}

TEST_F(Nccl, TheDevicesOfTheNodeExistAndOneIsUsed) {
  int devices = 0;
  EXPECT_EQ(cudaGetDeviceCount(&devices), cudaSuccess);
  EXPECT_EQ(devices, 8);
  EXPECT_EQ(cudaSetDevice(8), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(5), cudaSuccess);
  int device = -1;
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(device, 5);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
}

}  // namespace
}  // namespace offprof
