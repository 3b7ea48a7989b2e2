#pragma once

#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>

#include "engine/devices/virtual_gpu/runtime/access.h"

/// Reports a call of the surrounding function to the tracer, under CUPTI's name and number of the function:
/// `OFFPROF_TRACED_CALL(cudaLaunchKernel_v7000);`
#define OFFPROF_TRACED_CALL(function)                                                            \
  static constexpr offprof::ApiCall kTracedCall{offprof::CallDomain::kRuntime,                   \
                                                CUPTI_RUNTIME_TRACE_CBID_##function, #function}; \
  const offprof::runtime::CallScope traced_call(kTracedCall)

/// Does the same for a function of the driver.
#define OFFPROF_TRACED_DRIVER_CALL(function)                                                    \
  static constexpr offprof::ApiCall kTracedCall{offprof::CallDomain::kDriver,                   \
                                                CUPTI_DRIVER_TRACE_CBID_##function, #function}; \
  const offprof::runtime::CallScope traced_call(kTracedCall)
