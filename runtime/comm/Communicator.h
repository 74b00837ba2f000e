//===- Communicator.h - what ranks say to each other ----------------------===//
//
// The small interface behind which transports live: threads of one process, or
// a c10d backend. Buffers are contiguous, sizes are in elements and by group
// order. The checks and the counting are here, once, for all transports: bytes
// come from the tensors and split sizes of the call by the table of
// core/layout/Reshard.h, never from the plan. A failure ends the job: after an
// error a communicator is only good for `abort` and destruction.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/program/Program.h"

#include <ATen/core/Tensor.h>

#include <set>

namespace monarch::runtime {

using RankList = std::vector<int64_t>;

/// Ranks of the world that talk to each other, this one among them.
struct Group {
  RankList ranks;
  /// Index of this rank in `ranks`.
  int64_t own = 0;
  int64_t size() const { return static_cast<int64_t>(ranks.size()); }
};

enum class Reduction : uint8_t { Sum, Max };

class Communicator {
public:
  virtual ~Communicator() = default;
  Communicator(const Communicator &) = delete;
  Communicator &operator=(const Communicator &) = delete;

  int64_t rank() const { return ownRank; }
  int64_t size() const { return worldSize; }

  /// Makes the groups that this rank will use. Every rank of the world calls it
  /// with its own groups; all go through theirs in the same order (of lists).
  std::optional<Error> connect(const std::set<RankList> &lists);
  /// A connected group.
  const Group &group(const RankList &ranks) const { return groups.at(ranks); }

  /// In place. Types narrower than float32 are added in float32 and rounded
  /// once.
  std::optional<Error> allReduce(const Group &group, const at::Tensor &tensor,
                                 Reduction reduction);
  /// Block i of `all` is member i's `own`.
  std::optional<Error> allGather(const Group &group, const at::Tensor &own,
                                 const at::Tensor &all,
                                 const std::vector<int64_t> &receiveSizes);
  /// `own` = sum in group order of the members' blocks for this rank.
  std::optional<Error> reduceScatter(const Group &group, const at::Tensor &all,
                                     const at::Tensor &own,
                                     const std::vector<int64_t> &sendSizes);
  std::optional<Error> allToAll(const Group &group, const at::Tensor &out,
                                const at::Tensor &in,
                                const std::vector<int64_t> &sendSizes,
                                const std::vector<int64_t> &receiveSizes);
  /// Starts to send to a rank of the world; the tensor is held, and must not
  /// change, until `waitForSends` of this bundle.
  std::optional<Error> send(const at::Tensor &tensor, int64_t to, int64_t tag,
                            int64_t bundle);
  std::optional<Error> receive(const at::Tensor &tensor, int64_t from,
                               int64_t tag);
  virtual std::optional<Error> waitForSends(int64_t bundle) = 0;

  /// All ranks of the world have come here. Waits as long as they live.
  virtual std::optional<Error> barrier() = 0;
  /// Tells the other ranks why this one gives up, as far as that is possible.
  virtual void abort(const Error &error) = 0;

  /// Counts from here on; what was counted since the last call.
  void setCounting(bool on) { counting = on; }
  Traffic takeTraffic() { return std::exchange(traffic, {}); }

protected:
  Communicator(int64_t rank, int64_t size) : ownRank(rank), worldSize(size) {}

  /// The transport's part: sizes are checked, groups have more than one rank.
  virtual std::optional<Error> connectGroup(const Group &group) = 0;
  virtual std::optional<Error> doAllReduce(const Group &group,
                                           const at::Tensor &tensor,
                                           Reduction reduction) = 0;
  virtual std::optional<Error>
  doAllGather(const Group &group, const at::Tensor &own, const at::Tensor &all,
              const std::vector<int64_t> &receiveSizes) = 0;
  virtual std::optional<Error>
  doReduceScatter(const Group &group, const at::Tensor &all,
                  const at::Tensor &own,
                  const std::vector<int64_t> &sendSizes) = 0;
  virtual std::optional<Error>
  doAllToAll(const Group &group, const at::Tensor &out, const at::Tensor &in,
             const std::vector<int64_t> &sendSizes,
             const std::vector<int64_t> &receiveSizes) = 0;
  virtual std::optional<Error> doSend(const at::Tensor &tensor, int64_t to,
                                      int64_t tag, int64_t bundle) = 0;
  virtual std::optional<Error> doReceive(const at::Tensor &tensor, int64_t from,
                                         int64_t tag) = 0;

private:
  void count(const char *kind, int64_t bytes);

  int64_t ownRank;
  int64_t worldSize;
  std::map<RankList, Group> groups;
  Traffic traffic;
  bool counting = false;
};

/// The ranks of `stage` that differ from `coordinates` on these axes only, in
/// row-major order of their coordinates.
RankList ranksAlong(const Mesh &mesh, int stage,
                    std::vector<int64_t> coordinates, std::vector<int> axes);

/// MP4001: another rank went away or fell silent.
Error lostRank(std::string what);
/// MP4002: what this rank was doing went wrong.
Error failedCall(std::string what);
/// MP4003: the program and what ran disagree.
Error contradiction(std::string what);

} // namespace monarch::runtime
