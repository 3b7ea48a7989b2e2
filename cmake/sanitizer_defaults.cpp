// What sanitizers do by default, in every program that is built with one, run by a test or by hand. Each
// runtime asks for its own; the others are not called.

extern "C" {

/// Tests ask for more memory than there is, and want to be refused as by any allocator. Where the runtime
/// follows memory that threads have of libraries opened later, it takes one block in 256 for one of an old
/// glibc by its address, and crashes or finds leaks that are none: it does not, and what LibTorch has there
/// is named below.
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
