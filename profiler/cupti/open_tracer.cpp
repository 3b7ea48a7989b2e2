#include "profiler/cupti/open_tracer.h"

#include "profiler/cupti/cupti_tracer.h"
#include "profiler/cupti/driver.h"
#include "profiler/cupti/library.h"

namespace offprof {

std::unique_ptr<GpuTracer> open_gpu_tracer() {
  const CuptiFunctions& cupti = open_cupti();
  // The first call of CUPTI 13.2 crashes without a driver.
  if (const auto refusal = missing_driver()) throw Error(*refusal);
  try {
    auto tracer = std::make_unique<CuptiTracer>(cupti);
    tracer->begin(TraceDetail::kAll);  // some systems refuse only here
    tracer->end();
    return tracer;
  } catch (const Error&) {
    // CUPTI's errors say hardly anything if the driver is the cause.
    if (const auto refusal = driver_refusal()) throw Error(*refusal);
    throw;
  }
}

}  // namespace offprof
