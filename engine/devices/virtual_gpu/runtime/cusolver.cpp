#include <cstdarg>
#include <cstddef>

#include "engine/devices/virtual_gpu/runtime/descriptor.h"
#include "engine/devices/virtual_gpu/runtime/library_handle.h"

// Dense linear algebra. The workspace sizes of the solvers are not known: they count as 0, and are reported
// with the unknown sizes.

using namespace offprof::runtime;

namespace {

// Skips `before` integer and pointer arguments and sets the next `sizes` sizes to 0.
template <typename Size>
int no_bytes(int before, int sizes, std::va_list arguments) {
  for (int i = 0; i < before; ++i) va_arg(arguments, void*);
  for (int i = 0; i < sizes; ++i) *va_arg(arguments, Size*) = 0;
  return unknown_size("cuSOLVER work areas");
}

}  // namespace

// Defines a function that returns `sizes` sizes through the arguments after its handle and `before` others.
// All are integers and pointers, which the C calling convention passes the same way with or without a
// declaration.
#define OFFPROF_UNKNOWN_SIZE(function, Size, before, sizes)      \
  int function(const void* handle, ...) {                        \
    std::va_list arguments;                                      \
    va_start(arguments, handle);                                 \
    const int status = no_bytes<Size>(before, sizes, arguments); \
    va_end(arguments);                                           \
    return status;                                               \
  }

#define OFFPROF_SOLVER(stem, before)                                  \
  OFFPROF_UNKNOWN_SIZE(cusolverDn##stem##_bufferSize, int, before, 1) \
  OFFPROF_LIBRARY_CALL(cusolverDn##stem)

#define OFFPROF_SOLVER_SDCZ(stem, before) \
  OFFPROF_SOLVER(S##stem, before)         \
  OFFPROF_SOLVER(D##stem, before)         \
  OFFPROF_SOLVER(C##stem, before)         \
  OFFPROF_SOLVER(Z##stem, before)

#define OFFPROF_SOLVER_REAL_COMPLEX(real, complex, before) \
  OFFPROF_SOLVER(S##real, before)                          \
  OFFPROF_SOLVER(D##real, before)                          \
  OFFPROF_SOLVER(C##complex, before)                       \
  OFFPROF_SOLVER(Z##complex, before)

#define OFFPROF_SOLVER_64(stem, before)                                        \
  OFFPROF_UNKNOWN_SIZE(cusolverDnX##stem##_bufferSize, std::size_t, before, 2) \
  OFFPROF_LIBRARY_CALL(cusolverDnX##stem)

#define OFFPROF_CALL_SDCZ(stem)           \
  OFFPROF_LIBRARY_CALL(cusolverDnS##stem) \
  OFFPROF_LIBRARY_CALL(cusolverDnD##stem) \
  OFFPROF_LIBRARY_CALL(cusolverDnC##stem) \
  OFFPROF_LIBRARY_CALL(cusolverDnZ##stem)

extern "C" {

OFFPROF_LIBRARY_HANDLE(cusolverDnCreate, cusolverDnDestroy, cusolverDnSetStream)

int cusolverDnCreateParams(void** parameters) {
  return create_descriptor(parameters);
}
int cusolverDnDestroyParams(void* parameters) {
  return destroy_descriptor(parameters);
}
int cusolverDnCreateGesvdjInfo(void** parameters) {
  return create_descriptor(parameters);
}
int cusolverDnDestroyGesvdjInfo(void* parameters) {
  return destroy_descriptor(parameters);
}
int cusolverDnCreateSyevjInfo(void** parameters) {
  return create_descriptor(parameters);
}
int cusolverDnDestroySyevjInfo(void* parameters) {
  return destroy_descriptor(parameters);
}
int cusolverDnXgesvdjSetTolerance(void*, double) {
  return 0;
}
int cusolverDnXgesvdjSetMaxSweeps(void*, int) {
  return 0;
}
int cusolverDnXgesvdjSetSortEig(void*, int) {
  return 0;
}

OFFPROF_SOLVER_SDCZ(getrf, 4)
OFFPROF_SOLVER_SDCZ(geqrf, 4)
OFFPROF_SOLVER_SDCZ(potrf, 4)
OFFPROF_SOLVER_SDCZ(sytrf, 3)
OFFPROF_SOLVER_SDCZ(gesvd, 2)
OFFPROF_SOLVER_SDCZ(gesvdj, 11)
OFFPROF_SOLVER_SDCZ(gesvdjBatched, 10)
OFFPROF_SOLVER_SDCZ(gesvdaStridedBatched, 15)
OFFPROF_SOLVER_REAL_COMPLEX(syevd, heevd, 6)
OFFPROF_SOLVER_REAL_COMPLEX(syevj, heevj, 6)
OFFPROF_SOLVER_REAL_COMPLEX(syevjBatched, heevjBatched, 6)
OFFPROF_SOLVER_REAL_COMPLEX(orgqr, ungqr, 6)
OFFPROF_SOLVER_REAL_COMPLEX(ormqr, unmqr, 10)
OFFPROF_SOLVER_64(geqrf, 9)
OFFPROF_SOLVER_64(potrf, 7)
OFFPROF_SOLVER_64(syevd, 10)
OFFPROF_SOLVER_64(syevBatched, 10)
OFFPROF_SOLVER_64(geev, 16)
OFFPROF_SOLVER_64(sytrs, 10)
OFFPROF_CALL_SDCZ(getrs)
OFFPROF_CALL_SDCZ(potrs)
OFFPROF_CALL_SDCZ(potrfBatched)
OFFPROF_CALL_SDCZ(potrsBatched)
OFFPROF_LIBRARY_CALL(cusolverDnXpotrs)

}  // extern "C"
