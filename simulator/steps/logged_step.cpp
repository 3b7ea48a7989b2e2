#include "simulator/steps/logged_step.h"

namespace offprof {
namespace {

class CallLogger final : public ReplayListener {
 public:
  explicit CallLogger(std::vector<AllocatorCall>& calls) : calls_(calls) {}

  void on_carried(const CarriedCopy& copy, std::int32_t storage) override {
    add({.storage = storage, .older_storage = copy.storage, .kind = AllocatorCall::Kind::kCarry});
  }

  void on_event_begin(std::size_t index, Nanoseconds) override { event_ = static_cast<std::uint32_t>(index); }

  void on_allocate(std::int32_t storage, Bytes bytes) override {
    add({.bytes = bytes, .storage = storage, .kind = AllocatorCall::Kind::kAllocate});
  }

  void on_free_requested(std::int32_t storage) override {
    add({.storage = storage, .kind = AllocatorCall::Kind::kRequestFree});
  }

  void on_free(std::int32_t storage) override {
    add({.storage = storage, .kind = AllocatorCall::Kind::kFree});
  }

  void on_staging(Bytes bytes) override { add({.bytes = bytes, .kind = AllocatorCall::Kind::kStage}); }

 private:
  void add(AllocatorCall call) {
    call.event = event_;
    calls_.push_back(call);
  }

  std::vector<AllocatorCall>& calls_;
  std::uint32_t event_ = 0;
};

}  // namespace

LoggedStep log_step(const CarriedMemory& carried, const Step& step, const Policy& policy, const Link& link) {
  LoggedStep logged;
  logged.calls.reserve(step.events().size());
  CallLogger logger(logged.calls);
  logged.prediction = replay_after(carried, step, policy, link, &logger);
  return logged;
}

}  // namespace offprof
