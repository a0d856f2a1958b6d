#include "libtorch/rank/collectives/group_store.h"

#include "libtorch/bridge/errors.h"
#include "libtorch/rank/collectives/within_time.h"

#include <c10/util/Logging.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <netdb.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace cleave::torch_rank {
namespace {

constexpr std::chrono::milliseconds kLookUpLimit{500};

/// A likely reason that the store does not answer. Only this machine is checked, and only for kLookUpLimit.
std::string whyUnreachable(const GroupAddress& group) {
  const auto resolves = withinTime(kLookUpLimit, [address = group.masterAddress] {
    addrinfo* found = nullptr;
    const bool isKnown = ::getaddrinfo(address.c_str(), nullptr, nullptr, &found) == 0;
    if (found) ::freeaddrinfo(found);
    return isKnown;
  });
  if (!resolves.value_or(false)) return "the host name does not resolve. Check MASTER_ADDR.";
  if (!group.agentStore.empty()) return "no process answers there. Check that torchrun runs on that host.";
  if (group.rank == 0)
    return "not all ranks have connected. Check that every rank was started, and that the address is this host's.";
  return "no process answers there. Check that rank 0 runs on that host and uses this port.";
}

bool isPortTaken(std::string_view ofStore) {
  return ofStore.find("EADDRINUSE") != std::string_view::npos ||
         ofStore.find("ddress already in use") != std::string_view::npos;
}

/// The first setting that differs from rank 0, as a sentence. Empty if all are equal.
std::string differenceFromRankZero(const GroupAddress& group, std::string_view ofRankZero) {
  std::size_t from = 0;
  for (const auto& [name, value] : group.alike) {
    const std::size_t end = std::min(ofRankZero.find('\n', from), ofRankZero.size());
    const std::string_view other = ofRankZero.substr(from, end - from);
    if (other != value)
      return fmt::format("Rank {} has {} {}, but rank 0 has {}. Give all ranks the same {}.", group.rank, name, value,
                         other, name);
    from = std::min(end + 1, ofRankZero.size());
  }
  return {};
}

/// Each rank compares its settings with those of rank 0 and reports the result to it. Rank 0 waits for all results,
/// because its process serves the store.
Result<void> compareWithRankZero(c10d::Store& store, const GroupAddress& group) {
  const auto verdictOf = [](int rank) { return fmt::format("cleave/unlike/{}", rank); };
  if (group.rank > 0) {
    const std::string unlike = differenceFromRankZero(group, store.get_to_str("cleave/alike"));
    store.set(verdictOf(group.rank), unlike);
    return unlike.empty() ? Result<void>() : fail(ErrorCode::BadInput, "{}", unlike);
  }
  std::string text;
  for (const auto& [name, value] : group.alike) text += value + "\n";
  store.set("cleave/alike", text);
  for (int rank = 1; rank < group.worldSize; ++rank) {
    const std::string unlike = store.get_to_str(verdictOf(rank));
    if (!unlike.empty()) return fail(ErrorCode::RankFailed, "{}", unlike);
  }
  return {};
}

Result<void> checkSameSettings(c10d::Store& store, const GroupAddress& group) {
  if (group.alike.empty()) return {};
  auto checked = bridge::translated([&] { return compareWithRankZero(store, group); }, ErrorCode::RankFailed);
  if (checked || checked.error().code == ErrorCode::BadInput) return checked;
  return fail(checked.error().code, "Rank {} of {} cannot compare its settings with those of the other ranks: {}",
              group.rank, group.worldSize, checked.error().message);
}

/// For a lost connection, c10d logs a warning with a stack trace and then throws the error that Cleave reports.
void logErrorsOnly() {
  if (!std::getenv("TORCH_CPP_LOG_LEVEL")) FLAGS_caffe2_log_level = std::max(FLAGS_caffe2_log_level, c10::GLOG_ERROR);
}

}  // namespace

Result<c10::intrusive_ptr<c10d::Store>> connectStore(const GroupAddress& group) {
  if (group.masterPort <= 0 || group.masterPort > 65535) {
    return fail(ErrorCode::BadUsage, "MASTER_PORT must be in 1..65535, not {}.", group.masterPort);
  }
  logErrorsOnly();
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(group.masterPort);
  options.isServer = group.rank == 0 && group.agentStore.empty();
  options.numWorkers = group.worldSize;
  // Slightly less than Cleave's limit, because c10d's message is more specific.
  options.timeout = group.connectTimeout * 9 / 10;
  if (group.listenFd >= 0 && options.isServer) options.masterListenFd = group.listenFd;
  using Store = c10::intrusive_ptr<c10d::Store>;
  // c10d checks its timeout only between steps, so a name server or a port that does not answer blocks it forever.
  auto store = withinTime(group.connectTimeout, [address = group.masterAddress, prefix = group.agentStore, options] {
    return bridge::translated([&]() -> Result<Store> {
      Store own = c10::make_intrusive<c10d::TCPStore>(address, options);
      return prefix.empty() ? own : Store(c10::make_intrusive<c10d::PrefixStore>(prefix, own));
    });
  });
  if (store && *store) {
    CLEAVE_TRY_VOID(checkSameSettings(***store, group));
    return **store;
  }
  if (store && options.isServer && isPortTaken(store->error().message)) {
    return fail(ErrorCode::Environment,
                "Rank {} of {}: port {} on {} is in use by another process. Set another MASTER_PORT on all ranks.",
                group.rank, group.worldSize, group.masterPort, group.masterAddress);
  }
  return fail(ErrorCode::Environment, "Rank {} of {} cannot connect to the others at {}:{} within {:g} s: {}",
              group.rank, group.worldSize, group.masterAddress, group.masterPort,
              std::chrono::duration<double>(group.connectTimeout).count(),
              store ? store->error().message : whyUnreachable(group));
}

}  // namespace cleave::torch_rank
