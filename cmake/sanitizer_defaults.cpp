// What sanitizers do by default, in every program that is built with one, run by a test or by hand. Each
// runtime asks for its own; the others are not called.

extern "C" {

/// Tests ask for more memory than there is, and want to be refused as by any allocator. Without
/// intercept_tls_get_addr=0 the leak checker takes the memory that a thread has of a library opened later,
/// one time in 256, for memory of an old glibc, by its address: it crashes then, or finds leaks that are
/// none. With it, it does not look there, so what LibTorch keeps by thread is named below.
const char* __asan_default_options() {
  return "allocator_may_return_null=1:detect_stack_use_after_return=1:intercept_tls_get_addr=0";
}

/// Leaks that are LibTorch's own, a line each, by the innermost function that can be told.
const char* __lsan_default_suppressions() {
  return
      // caffe2::serialize::PyTorchStreamReader throws from its constructor for what is no archive, and leaves
      // what its zip reader has read until then.
      "leak:mz_zip_reader_init\n"
      "leak:mz_zip_reader_read_central_dir\n"
      // At exit PyTorch's caching allocator lets go of its lists, and not of the blocks in them.
      "leak:c10::cuda::CUDACachingAllocator::Native::\n"
      "leak:at::CachingHostAllocatorImpl\n"
      // Plans of convolutions and handles are kept by thread.
      "leak:at::native::*BenchmarkCache\n"
      "leak:at::native::run_single_conv\n"
      "leak:at::native::*createCuDNNHandle\n"
      "leak:cudnn_frontend::\n";
}

const char* __lsan_default_options() {
  return "print_suppressions=0";
}

const char* __ubsan_default_options() {
  return "print_stacktrace=1";
}

const char* __tsan_default_options() {
  return "allocator_may_return_null=1:halt_on_error=1";
}
}
