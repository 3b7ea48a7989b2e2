#include <cstddef>
#include <map>
#include <mutex>

#include "engine/devices/virtual_gpu/runtime/library_handle.h"

// In cuFFT plans are numbers.

using namespace offprof::runtime;

namespace {

class Plans {
 public:
  int create() {
    const std::lock_guard<std::mutex> lock(mutex_);
    streams_.emplace(++last_, nullptr);
    return last_;
  }
  void destroy(int plan) {
    const std::lock_guard<std::mutex> lock(mutex_);
    streams_.erase(plan);
  }
  void set_stream(int plan, offprof::StreamId stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    streams_[plan] = stream;
  }
  offprof::StreamId stream(int plan) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return streams_[plan];
  }

 private:
  std::mutex mutex_;
  std::map<int, offprof::StreamId> streams_;
  int last_ = 0;
};

// Never destroyed: PyTorch destroys plans when the process ends.
Plans& plans() {
  static auto* const the_plans = new Plans;
  return *the_plans;
}

}  // namespace

extern "C" {

int cufftCreate(int* plan) {
  *plan = plans().create();
  return 0;
}

int cufftDestroy(int plan) {
  plans().destroy(plan);
  return 0;
}

int cufftSetStream(int plan, offprof::StreamId stream) {
  plans().set_stream(plan, stream);
  return 0;
}

int cufftSetAutoAllocation(int, int) {
  return 0;
}
int cufftSetWorkArea(int, void*) {
  return 0;
}

// The size of a plan's work area is not known.
int cufftXtMakePlanMany(int, int, long long*, long long*, long long, long long, int, long long*, long long,
                        long long, int, long long, std::size_t* work_bytes, int) {
  *work_bytes = 0;
  return unknown_size("cuFFT work areas");
}

int cufftXtExec(int plan, void*, void*, int) {
  launch_library_call(plans().stream(plan), "cufftXtExec");
  return 0;
}

}  // extern "C"
