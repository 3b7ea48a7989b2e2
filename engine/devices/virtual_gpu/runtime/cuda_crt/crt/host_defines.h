#pragma once

// The CUDA headers of the runtime's wheel include this header, but the wheel lacks it. In the CUDA Toolkit it
// defines the qualifiers of CUDA C++ for the compiler. A host compiler ignores most of them.

#define CUDARTAPI
#define CUDARTAPI_CDECL

#define __host__
#define __device__
#define __global__
#define __shared__
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)

#define __cudart_builtin__
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __specialization_static static

#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __no_return__ __attribute__((noreturn))
#define __forceinline__ __inline__ __attribute__((always_inline))
