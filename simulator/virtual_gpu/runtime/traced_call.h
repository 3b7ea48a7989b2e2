#pragma once

#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>

#include "simulator/virtual_gpu/runtime/access.h"

/// Tells who traces that the function which this stands in was called, under the name and the number that
/// CUPTI has of it: `OFFPROF_TRACED_CALL(cudaLaunchKernel_v7000);`
#define OFFPROF_TRACED_CALL(function)                                                            \
  static constexpr offprof::ApiCall kTracedCall{offprof::CallDomain::kRuntime,                   \
                                                CUPTI_RUNTIME_TRACE_CBID_##function, #function}; \
  const offprof::runtime::CallScope traced_call(kTracedCall)

/// Likewise of the driver.
#define OFFPROF_TRACED_DRIVER_CALL(function)                                                    \
  static constexpr offprof::ApiCall kTracedCall{offprof::CallDomain::kDriver,                   \
                                                CUPTI_DRIVER_TRACE_CBID_##function, #function}; \
  const offprof::runtime::CallScope traced_call(kTracedCall)
